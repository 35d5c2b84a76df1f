"""Joins unpacked wheels to a virtual environment (``pyvenv.cfg``) of links.

Run as ``join_environment.py PYTHON OUT PART...``. A folder that two parts have,
and one that holds a native program, becomes a real folder; everything else is
one link. Programs are copied: scripts since they name their interpreter, native
ones since their libraries are found relative to the place they really lie in.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


class Clash(Exception):
    """Two parts have the same file with different content."""


def is_program(path: Path) -> bool:
    """Whether `path` is executable and starts as an ELF file or a script does."""
    if path.is_symlink() or not os.access(path, os.X_OK):
        return False
    with open(path, "rb") as stream:
        return stream.read(4)[:2] == b"#!" or (
            stream.seek(0) == 0 and stream.read(4) == b"\x7fELF" and ".so" not in path.name
        )


def holds_program(folder: Path) -> bool:
    """Whether there is a program anywhere under `folder`."""
    return any(is_program(Path(root, name)) for root, _, names in os.walk(folder) for name in names)


def join(sources: list[Path], target: Path, python: Path, environment: Path) -> None:
    """Makes `target` a real folder with everything that the `sources` hold."""
    target.mkdir(exist_ok=True)
    entries: dict[str, list[Path]] = {}
    for source in sources:
        for entry in source.iterdir():
            entries.setdefault(entry.name, []).append(entry)
    for name, found in sorted(entries.items()):
        place = target / name
        if all(entry.is_dir() for entry in found):
            if len(found) > 1 or holds_program(found[0]):
                join(found, place, python, environment)
            else:
                place.symlink_to(found[0])
            continue
        if any(entry.is_dir() or entry.read_bytes() != found[0].read_bytes() for entry in found):
            raise Clash(f"{name}: not the same in " + ", ".join(map(str, found)))
        if is_program(found[0]):
            copy_program(found[0], place, python, environment)
        else:
            place.symlink_to(found[0])


def copy_program(source: Path, target: Path, python: Path, environment: Path) -> None:
    """Copies a program; a script of `python` becomes one of the environment."""
    content = source.read_bytes()
    shebang = f"#!{python}/bin/python".encode()
    if content.startswith(shebang):
        _, _, rest = content.partition(b"\n")
        content = f"#!{environment}/bin/python3\n".encode() + rest
    target.write_bytes(content)
    shutil.copymode(source, target)


def main() -> None:
    python, out = Path(sys.argv[1]), Path(sys.argv[2])
    parts = [Path(part) for part in sys.argv[3:]]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    join(parts, out, python, out)
    (out / "lib" / f"python{version}" / "site-packages").mkdir(parents=True, exist_ok=True)
    (out / "bin").mkdir(exist_ok=True)
    for name in ("python3", "python", f"python{version}"):
        (out / "bin" / name).symlink_to(python / "bin" / f"python{version}")
    (out / "pyvenv.cfg").write_text(
        f"home = {python}/bin\ninclude-system-site-packages = false\nversion = {version}\n"
    )


if __name__ == "__main__":
    main()
