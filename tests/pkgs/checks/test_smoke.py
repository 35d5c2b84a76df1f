# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pkgs/checks/smoke/smoke.py beside packages that fail in the ways it is there to see."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SMOKE = Path(__file__).parents[3] / "pkgs/checks/smoke/smoke.py"

#: As much of torch_mlir.ir as smoke.py looks at, right in everything.
GOOD_IR = """
class MLIRError(Exception):
    pass

class Context:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        pass

class Module:
    def __init__(self, text):
        self.text = text
        self.operation = self
    def verify(self):
        return True
    def __str__(self):
        return self.text
    @staticmethod
    def parse(text):
        if "%b, %b" in text:
            raise MLIRError("error: not an int")
        return Module(text)
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH with an installed torch 9.9.0 and a torch_mlir to spoil."""
    metadata = tmp_path / "torch-9.9.0.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9.0+cu999\n")
    (tmp_path / "torch_mlir").mkdir()
    (tmp_path / "torch_mlir/__init__.py").write_text("")
    (tmp_path / "torch_mlir/ir.py").write_text(GOOD_IR)
    return tmp_path


def smoke(packages: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SMOKE), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(packages)},
    )


def test_another_pytorch_than_the_rows_is_refused(packages: Path) -> None:
    result = smoke(packages, "--torch", "9.8.1")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "smoke.py: PyTorch 9.9.0 is installed, not 9.8.1\n"


def test_a_package_that_is_right_passes_its_step(packages: Path) -> None:
    result = smoke(packages, "--step", "alone")
    assert (result.returncode, result.stdout) == (0, "no library of PyTorch's mapped\n")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("return True", "return False", "a module of one addition does not verify"),
        ("return self.text", "return self.text + ' '", "does not read back as it was"),
        ('if "%b, %b" in text', "if False", "a tensor was taken for the addition's scalar"),
        ('MLIRError("error: not an int")', 'MLIRError("")', "a wrong module's error says only"),
        ("class MLIRError", "import torch\nclass MLIRError", "torch_mlir.ir imports torch"),
    ],
)
def test_a_package_that_is_wrong_fails_its_step(
    packages: Path, right: str, wrong: str, message: str
) -> None:
    (packages / "torch.py").write_text("")
    assert right in GOOD_IR
    (packages / "torch_mlir/ir.py").write_text(GOOD_IR.replace(right, wrong))
    result = smoke(packages, "--step", "alone")
    assert result.returncode == 1
    assert message in result.stderr


def test_a_library_of_pytorchs_in_the_process_fails_the_step(packages: Path) -> None:
    library = packages / "libtorch_cpu.so"
    subprocess.run(
        ["cc", "-shared", "-o", str(library), "-x", "c", "-"], input=b"int nothing;", check=True
    )
    with (packages / "torch_mlir/ir.py").open("a") as file:
        file.write(f"import ctypes\nctypes.CDLL({str(library)!r})\n")
    result = smoke(packages, "--step", "alone")
    assert result.returncode == 1
    assert "torch_mlir.ir maps libtorch_cpu.so" in result.stderr


def test_every_failed_step_is_named_and_no_report_is_written(packages: Path) -> None:
    (packages / "torch.py").write_text("raise ImportError('spoiled torch')")
    report = packages / "report"
    result = smoke(packages, "--torch", "9.9.0", "-o", str(report))
    assert result.returncode == 1
    assert result.stderr == ("smoke.py: PyTorch 9.9.0: torch-first, torch-last, model failed\n")
    assert result.stdout.count("ImportError: spoiled torch") == 3
    assert not report.exists()


def test_a_crash_is_told_by_its_signal(packages: Path) -> None:
    (packages / "torch_mlir/ir.py").write_text("import os\nos.abort()\n")
    result = smoke(packages)
    assert result.returncode == 1
    assert result.stdout.startswith("alone ")
    assert "killed by signal 6" in result.stdout


def test_an_unknown_step_is_a_wrong_argument(packages: Path) -> None:
    assert smoke(packages, "--step", "nonsense").returncode == 2
