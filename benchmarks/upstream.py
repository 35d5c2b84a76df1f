#!/usr/bin/env python3
"""Puts our wheel beside upstream's torch-mlir: size, installed size, start-up.

Each wheel is installed alone into an environment of its own, made with the Python
that runs this; benchmarks/import_time.py then pairs the two interpreters.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

# What the project's figures are given beside.
UPSTREAM = "torch-mlir==20261001"


def pip(python: Path | str, *arguments: str) -> None:
    """Runs pip under an interpreter. Raises CalledProcessError."""
    subprocess.run(
        [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True
    )


def environment(folder: Path, wheel: Path) -> Path:
    """An environment that holds this wheel and nothing that it depends on: its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python3"
    pip(python, "install", "--no-deps", "--no-compile", str(wheel))
    return python


def installed_size(python: Path) -> int:
    """Bytes of the installed torch_mlir and its metadata, byte code left out."""
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    return sum(
        file.stat().st_size
        for folder in packages.glob("torch_mlir*")
        for file in folder.rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; exit code 1 if pip or the paired run fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path, help="ours, for the Python that runs this")
    parser.add_argument(
        "--upstream",
        default=UPSTREAM,
        metavar="REQUIREMENT",
        help="what pip downloads to put beside it (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        downloads = Path(scratch, "downloads")
        try:
            pip(sys.executable, "download", "--no-deps", "-d", str(downloads), options.upstream)
            (upstream,) = downloads.glob("*.whl")
            wheels = {"ours": options.wheel, "upstream": upstream}
            pythons = {
                name: environment(Path(scratch, name), wheel) for name, wheel in wheels.items()
            }
        except subprocess.CalledProcessError as error:
            print(f"upstream.py: pip exited with {error.returncode}, see above", file=sys.stderr)
            return 1
        print(f"{'':10}{'wheel':>12}{'installed':>12}  file")
        sizes = {
            name: (wheel.stat().st_size, installed_size(pythons[name]))
            for name, wheel in wheels.items()
        }
        for name, (packed, unpacked) in sizes.items():
            print(f"{name:10}{packed / 1e6:9.1f} MB{unpacked / 1e6:9.1f} MB  {wheels[name].name}")
        ratios = [
            ours / theirs for ours, theirs in zip(sizes["ours"], sizes["upstream"], strict=True)
        ]
        print(f"{'ratio':10}{ratios[0]:12.2f}{ratios[1]:12.2f}", flush=True)
        return subprocess.run(
            [
                sys.executable,
                str(Path(__file__).with_name("import_time.py")),
                str(pythons["ours"]),
                str(pythons["upstream"]),
            ],
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
