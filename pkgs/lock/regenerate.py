#!/usr/bin/env python3
"""Writes poetry.lock anew from pyproject.toml.

Run with the interpreter that poetry is installed in (``nix develop`` has it).

``poetry lock`` alone asks an index for per-release JSON, which many mirrors do
not serve, and writes the address of any other source into the lock. So this
locks a copy of the project against the simple index that pip is configured
with, then takes the source out again: the lock names files and hashes, never
hosts.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import tomlkit
from poetry.packages.locker import Locker

ROOT = Path(__file__).resolve().parents[2]


def configured_index() -> str:
    """The simple index that pip would ask, by its own configuration."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    if configured.returncode == 0 and configured.stdout.strip():
        return configured.stdout.strip()
    default = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    return subprocess.run(
        [sys.executable, "-c", default], capture_output=True, text=True, check=True
    ).stdout.strip()


def without_index(lock_text: str, index: str) -> tomlkit.TOMLDocument:
    """The lock with nothing that names the index: no sources, and no description with its host."""
    host = urlsplit(index).hostname or index
    document = tomlkit.parse(lock_text)
    for package in document["package"]:
        package.pop("source", None)
        if host in package["description"]:
            package["description"] = ""
    return document


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--update", action="store_true", help="take the newest versions, not those locked today"
    )
    args = parser.parse_args()

    index = configured_index()
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text())
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        mirrored = tomlkit.parse((ROOT / "pyproject.toml").read_text())
        source = tomlkit.aot()
        source.append(tomlkit.item({"name": "index", "url": index, "priority": "primary"}))
        mirrored["tool"]["poetry"]["source"] = source
        (copy / "pyproject.toml").write_text(tomlkit.dumps(mirrored))
        if not args.update and (ROOT / "poetry.lock").exists():
            shutil.copy(ROOT / "poetry.lock", copy)
        subprocess.run([sys.executable, "-m", "poetry", "lock"], cwd=copy, check=True)
        document = without_index((copy / "poetry.lock").read_text(), index)

    # The hash covers the dependency groups; without the source it is another one.
    document["metadata"]["content-hash"] = Locker(ROOT / "poetry.lock", project)._get_content_hash()
    (ROOT / "poetry.lock").write_text(tomlkit.dumps(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
