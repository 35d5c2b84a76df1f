#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes rows.json anew: one row for each minor version of PyTorch from 2.0 on.

Asks the index that pip is configured with (or ``--index``) for the project's
file list in its JSON form (PEP 691) and takes, for every minor version, the
newest release that was not yanked and its plain x86_64 Linux wheels. The C++
ABI is measured: the range requests of HTTP fetch libc10.so alone out of the
wheel, and the mangled name of ``c10::detail::torchCheckFail`` tells which
``std::string`` it takes. Which sources a row's selective libtorch is built from
is a choice, not a measurement: known rows keep theirs, and a new row takes its
predecessor's.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fetch"))
import fetch  # noqa: E402  (found on the path just set)

ROWS = Path(__file__).resolve().with_name("rows.json")

#: The interpreters that our own wheel is built for.
PYTHONS = ("cp311", "cp313")
OLDEST = (2, 0)

#: ``torchCheckFail(char const*, char const*, unsigned, std::string const&)``, as
#: g++ mangles it with each of libstdc++'s two string classes.
CHECK_FAIL = b"_ZN3c106detail14torchCheckFailEPKcS2_jRK"
OLD_STRING = CHECK_FAIL + b"Ss\0"
NEW_STRING = CHECK_FAIL + b"NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE\0"

WHEEL_NAME = re.compile(
    r"torch-(?P<version>\d+\.\d+\.\d+)(?:-(?P<build>\d+)[^-]*)?"
    r"-(?P<python>cp\d+)-(?P=python)-(?P<platform>manylinux[0-9a-z_]+)_x86_64\.whl"
)


class Failure(Exception):
    """What stands between us and a complete table; the message says what it is."""


class Wheel(NamedTuple):
    """One file of the index. ``version`` is (major, minor, patch)."""

    version: tuple[int, int, int]
    build: int
    python: str
    manylinux: str
    file: str
    url: str
    sha256: str


class RemoteFile(io.RawIOBase):
    """A seekable view of ``url`` that fetches only what is read.

    Raises :class:`Failure` on a server that ignores range requests, rather
    than draw half a gigabyte through a read of twenty bytes.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.position = 0
        request = urllib.request.Request(url, headers={"Range": "bytes=0-0"})
        with urllib.request.urlopen(request) as answer:
            extent = answer.headers.get("Content-Range")
            if answer.status != 206 or extent is None:
                raise Failure(f"{url}: the server does not answer range requests")
            self.size = int(extent.rpartition("/")[2])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: self.size}[whence]
        self.position = start + offset
        return self.position

    def readinto(self, buffer: Any) -> int:
        end = min(self.position + len(buffer), self.size)
        if end <= self.position:
            return 0
        span = f"bytes={self.position}-{end - 1}"
        request = urllib.request.Request(self.url, headers={"Range": span})
        with urllib.request.urlopen(request) as answer:
            content = answer.read()
        buffer[: len(content)] = content
        self.position += len(content)
        return len(content)


def configured_index() -> str:
    """The simple index that the fetchers ask too: pip's, unless a variable names another.

    Find-links, extra indexes and constraints are the machine's preferences and
    have no say in what a pin is. Raises ``fetch.FetchError`` where there is none.
    """
    return fetch.index_address(fetch.pip_config(), os.environ)


def wheels_of(index: str) -> list[Wheel]:
    """Every plain x86_64 Linux wheel of torch that ``index`` lists and nobody yanked.

    Builds with a local version (``+cpu``) are left out: PyPI never has them.
    """
    address = index.rstrip("/") + "/torch/"
    accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=accept)) as answer:
            listing = json.load(answer)
            address = answer.url
    except (OSError, json.JSONDecodeError) as error:
        raise Failure(f"{address} gave no JSON file list (PEP 691): {error}") from error
    found = []
    for entry in listing["files"]:
        match = WHEEL_NAME.fullmatch(entry["filename"])
        if match is None or entry.get("yanked"):
            continue
        major, minor, patch = (int(part) for part in match["version"].split("."))
        found.append(
            Wheel(
                version=(major, minor, patch),
                build=int(match["build"] or 0),
                python=match["python"],
                manylinux=match["platform"],
                file=entry["filename"],
                url=urllib.parse.urljoin(address, entry["url"]),
                sha256=entry["hashes"]["sha256"],
            )
        )
    return found


def newest_wheels(wheels: Iterable[Wheel]) -> dict[tuple[int, int], dict[str, Wheel]]:
    """For each minor version its newest release's wheel for each of :data:`PYTHONS`.

    The highest build number wins, as it does for installers (PEP 427).
    """
    rows: dict[tuple[int, int], dict[str, Wheel]] = {}
    for wheel in sorted(wheels):
        minor = wheel.version[:2]
        if minor < OLDEST or wheel.python not in PYTHONS:
            continue
        row = rows.setdefault(minor, {})
        if any(other.version != wheel.version for other in row.values()):
            row.clear()
        row[wheel.python] = wheel
    return dict(sorted(rows.items()))


def has_cxx11_abi(wheel: Wheel) -> bool:
    """Whether ``wheel`` was built with ``_GLIBCXX_USE_CXX11_ABI=1``; reads about 1 MB of it."""
    remote = io.BufferedReader(RemoteFile(wheel.url), buffer_size=1 << 18)
    with zipfile.ZipFile(remote) as archive:
        library = archive.read("torch/lib/libc10.so")
    old, new = OLD_STRING in library, NEW_STRING in library
    if old == new:
        raise Failure(
            f"{wheel.file}: libc10.so names torchCheckFail with "
            + ("both string classes" if old else "neither string class")
            + "; another symbol has to tell its ABI"
        )
    return new


def row_name(minor: tuple[int, int]) -> str:
    return f"{minor[0]}_{minor[1]}"


def rows_from(index: str, before: dict[str, Any]) -> dict[str, Any]:
    """The whole table, by row name. ``before`` is the table as it stands."""
    rows: dict[str, Any] = {}
    source: str | None = None
    for minor, row_wheels in newest_wheels(wheels_of(index)).items():
        name = row_name(minor)
        if "cp311" not in row_wheels:
            raise Failure(f"row {name} has no wheel for cp311, which every row is built for")
        source = before.get(name, {}).get("libtorch_source", source)
        if source is None:
            raise Failure(
                f"row {name} comes before every known row: write its libtorch_source by hand"
            )
        first = row_wheels["cp311"]
        print(f"{name}: {'.'.join(map(str, first.version))}", file=sys.stderr)
        rows[name] = {
            "version": ".".join(map(str, first.version)),
            "wheels": {
                python: {"file": wheel.file, "sha256": wheel.sha256}
                for python, wheel in sorted(row_wheels.items())
            },
            "cxx11_abi": has_cxx11_abi(first),
            "manylinux": first.manylinux,
            "libtorch_source": source,
        }
    return rows


def write_whole(path: Path, text: str) -> None:
    """Writes ``path`` so that no reader ever sees half of it."""
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, prefix=path.name, suffix=".part", delete=False
    ) as part:
        part.write(text)
    os.chmod(part.name, 0o644)
    os.replace(part.name, path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--index", help="a simple index, in place of the one pip is set up with")
    parser.add_argument("-o", "--output", default=str(ROWS), help="`-` writes to standard output")
    options = parser.parse_args(arguments)
    try:
        rows = rows_from(options.index or configured_index(), json.loads(ROWS.read_text()))
    except (Failure, fetch.FetchError, OSError) as failure:
        print(f"regenerate.py: {failure}", file=sys.stderr)
        return 1
    text = json.dumps(rows, indent=2) + "\n"
    if options.output == "-":
        sys.stdout.write(text)
    else:
        write_whole(Path(options.output), text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
