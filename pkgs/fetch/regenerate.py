#!/usr/bin/env python3
"""Pins Debian packages in debian.json: pool path, sha256 and version, by suite.

A name "src:NAME" pins the original archive of a source package, as upstream
released it less what Debian leaves out.

The packages of the file are looked up in the suites' main archives, on the
mirror that apt is configured with (``TORCH_MLIR_MIRROR`` names another), and
written back. Only a stable release's main suite is asked: what is in one stays
in the pool.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import lzma
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # which PYTHONSAFEPATH leaves out
import fetch  # noqa: E402

DATA = Path(__file__).with_name("debian.json")


def stanzas(index: str) -> dict[str, dict[str, str]]:
    """Package name -> fields, of a ``Packages`` index (deb822, one paragraph a package)."""
    packages: dict[str, dict[str, str]] = {}
    for paragraph in index.split("\n\n"):
        fields = dict(
            line.split(": ", 1)
            for line in paragraph.splitlines()
            if not line.startswith(" ") and ": " in line
        )
        if "Package" in fields:
            packages[fields["Package"]] = fields
    return packages


def original_archive(paragraphs: str, name: str) -> dict[str, str]:
    """The pin of a source package's original archive, from a ``Sources`` index (deb822).

    Of several versions the last is taken, as apt does. Raises SystemExit if there is none.
    """
    pin: dict[str, str] = {}
    for paragraph in paragraphs.split("\n\n"):
        if not paragraph.startswith(f"Package: {name}\n"):
            continue
        fields = dict(re.findall(r"^(\S+):((?: .*)?(?:\n .*)*)", paragraph, re.MULTILINE))
        for line in fields["Checksums-Sha256"].splitlines():
            if found := re.fullmatch(r" *([0-9a-f]{64}) \d+ (\S+\.orig\.tar\.\w+)", line):
                pin["path"] = f"{fields['Directory'].strip()}/{found[2]}"
                pin["sha256"] = found[1]
                pin["version"] = fields["Version"].strip()
    if not pin:
        raise SystemExit(f"no source package {name} with an original archive")
    return pin


def nar_hash(folder: Path) -> str:
    """Nix's hash of a folder of programs: the sha256 of its NAR, as ``sha256-<base64>``.

    Format: strings are a 64-bit little-endian length and the bytes, padded to 8.
    """

    def text(value: bytes) -> bytes:
        return len(value).to_bytes(8, "little") + value + bytes(-len(value) % 8)

    def node(path: Path) -> bytes:
        if path.is_dir():
            entries = b"".join(
                text(b"entry")
                + text(b"(")
                + text(b"name")
                + text(child.name.encode())
                + text(b"node")
                + node(child)
                + text(b")")
                for child in sorted(path.iterdir())
            )
            return text(b"(") + text(b"type") + text(b"directory") + entries + text(b")")
        return (
            text(b"(")
            + text(b"type")
            + text(b"regular")
            + text(b"executable")
            + text(b"")
            + text(b"contents")
            + text(path.read_bytes())
            + text(b")")
        )

    digest = hashlib.sha256(text(b"nix-archive-1") + node(folder)).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def download(mirrors: list[str], path: str, out: Path) -> None:
    """Writes `path` of the first mirror that has it to `out`. Raises SystemExit."""
    failures = []
    for mirror in mirrors:
        try:
            return fetch.client_of({}, os.environ).download(f"{mirror.rstrip('/')}/{path}", out)
        except OSError as error:
            failures.append(f"{mirror}: {error}")
    raise SystemExit(f"{path}: " + "; ".join(failures))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--add",
        nargs="+",
        action="append",
        default=[],
        metavar=("SUITE", "PACKAGE"),
        help="pin these packages of a suite too",
    )
    args = parser.parse_args()

    named = os.environ.get("TORCH_MLIR_MIRROR")
    mirrors = [named] if named else fetch.apt_mirrors()
    pins: dict[str, dict[str, dict[str, object]]] = json.loads(DATA.read_text())
    for suite, *packages in args.add:
        for package in packages:
            pins.setdefault(suite, {}).setdefault(package, {})

    with tempfile.TemporaryDirectory() as scratch:
        for suite, packages in pins.items():
            index = Path(scratch, suite)
            download(mirrors, f"dists/{suite}/main/binary-amd64/Packages.xz", index)
            found = stanzas(lzma.decompress(index.read_bytes()).decode())
            sources = ""
            if any(name.startswith("src:") for name in packages):
                download(mirrors, f"dists/{suite}/main/source/Sources.xz", index)
                sources = lzma.decompress(index.read_bytes()).decode()
            for name, pin in packages.items():
                if name.startswith("src:"):
                    pin.update(original_archive(sources, name.removeprefix("src:")))
                    continue
                if name not in found:
                    raise SystemExit(f"{suite} has no package {name}")
                pin["path"] = found[name]["Filename"]
                pin["sha256"] = found[name]["SHA256"]
                pin["version"] = found[name]["Version"]
                program = pin.get("program")
                if isinstance(program, dict):
                    deb, unpacked = Path(scratch, "deb"), Path(scratch, name)
                    download(mirrors, found[name]["Filename"], deb)
                    fetch.extract_program(deb, program["member"], unpacked)
                    program["narHash"] = nar_hash(unpacked)

    ordered = {suite: dict(sorted(packages.items())) for suite, packages in sorted(pins.items())}
    temporary = DATA.with_suffix(".tmp")
    temporary.write_text(json.dumps(ordered, indent=2) + "\n")
    temporary.replace(DATA)
    return 0


if __name__ == "__main__":
    sys.exit(main())
