"""What is linked into the wheel: parts.json joined with the pins of the packages.

parts.json says of each part which package it comes from, its license and where the
license's text stands. Versions and hashes stand in poetry.lock and in the data file of
Debian packages, and are read from there.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from archive import read_member


@dataclass(frozen=True)
class Package:
    """A pinned file that parts come from."""

    name: str
    version: str
    sha256: str
    purl: str
    path: Path


@dataclass(frozen=True)
class Part:
    """Something linked in.

    ``license`` is an SPDX expression; ``texts`` are names under ``.dist-info/licenses``;
    ``within`` is where in its package the part is, "" for the whole.
    """

    name: str
    description: str
    package: Package
    within: str
    license: str
    texts: tuple[str, ...]

    @property
    def purl(self) -> str:
        return self.package.purl + (f"#{quote(self.within)}" if self.within else "")


def _pins(lock: Path, debian: Path, suite: str) -> dict[str, dict[str, tuple[str, str]]]:
    """Package name -> sha256 of each of its files -> version, purl.

    Debian's packages of another suite than ``suite`` are named ``other/name``, the original
    archives of source packages ``src:name``.
    """
    pins: dict[str, dict[str, tuple[str, str]]] = {}
    for package in tomllib.loads(lock.read_text(encoding="utf-8"))["package"]:
        name, version = package["name"], package["version"]
        for file in package["files"]:
            purl = f"pkg:pypi/{name}@{quote(version)}?file_name={quote(file['file'])}"
            sha256 = file["hash"].removeprefix("sha256:")
            pins.setdefault(name, {})[sha256] = (version, purl)
    for other, packages in json.loads(debian.read_text(encoding="utf-8")).items():
        for debian_name, package in packages.items():
            name = debian_name if other == suite else f"{other}/{debian_name}"
            if name in pins:
                raise ValueError(f"both {lock.name} and {debian.name} pin a {name}")
            version = package["version"]
            arch = Path(package["path"]).stem.rsplit("_", 1)[1]
            if debian_name.startswith("src:"):
                arch = "source"
            label = quote(debian_name.removeprefix("src:"))
            purl = f"pkg:deb/debian/{label}@{quote(version)}?arch={arch}&distro={other}"
            pins[name] = {package["sha256"]: (version, purl)}
    return pins


def find_packages(
    names: set[str], files: list[Path], lock: Path, debian: Path, suite: str
) -> dict[str, Package]:
    """The named packages among ``files``, known by their hashes alone.

    Raises:
        ValueError: one is missing, or a file is none that is pinned.
    """
    pins = _pins(lock, debian, suite)
    found: dict[str, Package] = {}
    for path in files:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        owner = next((name for name in names if sha256 in pins.get(name, {})), None)
        if owner is None:
            raise ValueError(f"{path.name} is no pinned file of {', '.join(sorted(names))}")
        version, purl = pins[owner][sha256]
        found[owner] = Package(owner, version, sha256, purl, path)
    if missing := names - set(found):
        raise ValueError(f"no file was given of {', '.join(sorted(missing))}")
    return found


def comment_with(source: str, words: str) -> str:
    """The comment of a C source that holds certain words, without its asterisks.

    Raises:
        ValueError: none does.
    """
    for comment in re.findall(r"/\*(.*?)\*/", source, re.DOTALL):
        lines = [re.sub(r"^\s*\*+ ?", "", line).rstrip() for line in comment.splitlines()]
        text = textwrap.dedent("\n".join(lines)).strip("\n")
        if words in " ".join(text.split()):
            return text + "\n"
    raise ValueError(f"no comment holds {words!r}")


def package_names(parts: dict[str, Any]) -> set[str]:
    """The packages that the data of parts.json refers to."""
    entries = [*parts["parts"], *parts["texts"].values()]
    return {entry["package"] for entry in entries}


def load(
    parts: Path, files: list[Path], lock: Path, debian: Path, suite: str
) -> tuple[list[Part], dict[str, bytes]]:
    """The parts, and the license texts by their names under ``.dist-info/licenses``.

    Raises:
        ValueError: a package is missing, or a text isn't where parts.json says.
    """
    data = json.loads(parts.read_text(encoding="utf-8"))
    packages = find_packages(package_names(data), files, lock, debian, suite)
    texts: dict[str, bytes] = {}
    for name, source in data["texts"].items():
        _, text = read_member(packages[source["package"]].path, source["member"])
        if "comment" in source:
            text = comment_with(text.decode("utf-8"), source["comment"]).encode()
        texts[name] = text
    found = []
    for part in data["parts"]:
        if unknown := set(part["texts"]) - set(texts):
            raise ValueError(f"{part['name']}: there is no text {', '.join(sorted(unknown))}")
        found.append(
            Part(
                part["name"],
                part["description"],
                packages[part["package"]],
                part.get("within", ""),
                part["license"],
                tuple(part["texts"]),
            )
        )
    return found, texts
