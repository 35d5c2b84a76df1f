# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package holds to its annotations."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torch_mlir

pytest.importorskip("mypy")

CONFIGURATION = Path(__file__).resolve().parents[1] / "pyproject.toml"


@pytest.fixture
def mypy(tmp_path):
    """Runs mypy on the package as it is installed: the compiled modules have their stubs there."""
    # Linked, since what lies in site-packages is not looked through, or shadows its neighbours.
    found = tmp_path / "found"
    found.mkdir()
    (found / "torch_mlir").symlink_to(Path(torch_mlir.__file__).parent)
    command = [sys.executable, "-m", "mypy", "--config-file", str(CONFIGURATION)]

    def run(*arguments: str) -> str:
        result = subprocess.run(
            [*command, "--cache-dir", str(tmp_path / "cache"), *arguments],
            check=False,
            env={**os.environ, "MYPYPATH": str(found)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        return result.stdout + result.stderr

    return run


def test_mypy_finds_nothing_in_the_installed_package(mypy):
    said = mypy("-p", "torch_mlir")
    assert re.fullmatch(r"Success: no issues found in \d{3,} source files\n", said), said


def test_stubs_know_the_classes_of_types(mypy, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from torch_mlir import ir\n"
        "from torch_mlir.dialects import torch as torch_d\n"
        "kind = torch_d.ValueTensorType.get([2, -1], ir.F32Type.get())\n"
        "reveal_type(kind)\n"
        "reveal_type(kind.sizes)\n"
        "reveal_type(torch_d.ListType.get(torch_d.IntType.get()).contained_type)\n"
        "torch_d.ListType.get('int')\n"
    )
    said = mypy(str(program))
    revealed = [line.rpartition(" is ")[2] for line in said.splitlines() if "Revealed" in line]
    assert revealed == [
        '"torch_mlir._mlir_libs._torchMlir.ValueTensorType"',
        '"list[int] | None"',
        '"torch_mlir._mlir_libs._mlir.ir.Type"',
    ], said
    assert "7: error: Argument 1" in said
    assert "Found 1 error" in said
