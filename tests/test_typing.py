# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package holds to its annotations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import torch_mlir

pytest.importorskip("mypy")

CONFIGURATION = Path(__file__).resolve().parents[1] / "pyproject.toml"


def test_mypy_finds_nothing_in_the_installed_package(tmp_path):
    # The package as it is installed: the compiled modules have their stubs there.
    packages = Path(torch_mlir.__file__).resolve().parents[1]
    command = [sys.executable, "-m", "mypy", "--config-file", str(CONFIGURATION)]
    result = subprocess.run(
        [*command, "--cache-dir", str(tmp_path), "-p", "torch_mlir"],
        check=False,
        cwd=Path(torch_mlir.__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"in {packages}:\n{result.stdout}{result.stderr}"
    assert "Success: no issues found" in result.stdout


def test_stubs_know_the_classes_of_types(tmp_path):
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
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), str(program)],
        check=False,
        env={**os.environ, "MYPYPATH": str(Path(torch_mlir.__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    revealed = [line.rpartition(" is ")[2] for line in result.stdout.splitlines() if "note" in line]
    assert revealed == [
        '"torch_mlir._mlir_libs._torchMlir.ValueTensorType"',
        '"list[int] | None"',
        '"torch_mlir._mlir_libs._mlir.ir.Type"',
    ], result.stdout
    assert "7: error: Argument 1" in result.stdout
    assert "Found 1 error" in result.stdout
