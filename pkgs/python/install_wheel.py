"""Unpacks wheels into a folder of their own, as ``pythonEnv`` joins them.

Layout: ``lib/pythonX.Y/site-packages`` and ``bin``. Written with the
``installer`` library, straight from its wheel.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import os
import py_compile
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--installer", required=True, help="the installer library's wheel")
    parser.add_argument("--native-programs", required=True, help="native_programs.py")
    parser.add_argument("--compile", action="store_true", help="compile the byte code")
    parser.add_argument("wheels", type=Path, help="a folder of wheels")
    parser.add_argument("out", type=Path)
    args = parser.parse_args()

    sys.path.insert(0, args.installer)
    from installer import install  # noqa: PLC0415  (found on the path just set)
    from installer.destinations import SchemeDictionaryDestination  # noqa: PLC0415
    from installer.sources import WheelFile  # noqa: PLC0415

    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site_packages = args.out / "lib" / python / "site-packages"
    site_packages.mkdir(parents=True)
    destination = SchemeDictionaryDestination(
        {
            "purelib": str(site_packages),
            "platlib": str(site_packages),
            "headers": str(args.out / "include"),
            "scripts": str(args.out / "bin"),
            "data": str(args.out),
        },
        interpreter=sys.executable,
        script_kind="posix",
    )
    for wheel in sorted(args.wheels.iterdir()):
        with WheelFile.open(wheel) as source:
            install(source=source, destination=destination, additional_metadata={})

    spec = importlib.util.spec_from_file_location("native_programs", args.native_programs)
    native_programs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native_programs)
    native_programs.adopt(
        list(native_programs.native_programs(args.out)), Path(sys.base_prefix).resolve()
    )

    if args.compile:
        # A file that is no Python (a template, another version's) stays as it is.
        compileall.compile_dir(
            site_packages,
            quiet=2,
            workers=min(2, os.cpu_count() or 1),
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )


if __name__ == "__main__":
    main()
