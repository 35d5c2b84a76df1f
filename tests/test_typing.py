# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package holds to its annotations."""

from __future__ import annotations

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
        cwd=Path(torch_mlir.__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"in {packages}:\n{result.stdout}{result.stderr}"
    assert "Success: no issues found" in result.stdout
