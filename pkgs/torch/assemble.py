# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unpacks a PyTorch wheel into a folder and makes it run on a CPU, by itself.

Layout of the folder: ``lib/pythonX.Y/site-packages``, as environments join it.
The stand-ins for CUDA libraries (:mod:`cpu_stubs`) lie in ``torch/lib``, which
every library of the wheel names in its RPATH: no environment variable is
needed. What a CPU never reads is left out (:mod:`trim`).
"""

from __future__ import annotations

import argparse
import compileall
import os
import py_compile
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cpu_stubs
import trim

WORKERS = min(2, os.cpu_count() or 1)


def unpack(wheel: Path, site_packages: Path) -> None:
    """Writes the wheel's files below ``site_packages``, programs executable."""
    site_packages.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            place = Path(archive.extract(member, site_packages))
            if member.external_attr >> 16 & 0o111 and not member.is_dir():
                place.chmod(0o755)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--compile", action="store_true", help="compile the byte code")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()

    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site_packages = options.out / "lib" / python / "site-packages"
    unpack(options.wheel, site_packages)

    libraries = list(cpu_stubs.shared_objects(site_packages))
    stubs = cpu_stubs.stubs_for(map(cpu_stubs.read_library, libraries))
    with ThreadPoolExecutor(WORKERS) as pool:
        saved = sum(pool.map(trim.trim, libraries))
    cpu_stubs.write_stubs(stubs, site_packages / "torch" / "lib")
    print(f"{len(stubs)} stand-ins; {saved / 1e6:.0f} MB trimmed")

    if options.compile:
        # What no interpreter could read (a template, say) stays as it is.
        compileall.compile_dir(
            site_packages,
            quiet=2,
            workers=WORKERS,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
