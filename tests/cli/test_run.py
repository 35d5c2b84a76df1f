# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch-mlir run`: results, their files, and how far they are from PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from torch_mlir import cli


def relu(tmp_path):
    path = tmp_path / "relu.mlir"
    assert cli.main(["import", "torch.nn:ReLU", "--input", "3xf32", "-o", str(path)]) == 0
    return str(path)


def test_a_file_of_mlir_runs_on_given_numbers(script, tmp_path, capsys):
    assert cli.main(["run", relu(tmp_path), "--input", "3xf32=-1,0,2.5"]) == 0
    assert capsys.readouterr().out == "0: 3xfloat32 0 0 2.5\n"


def test_inputs_and_results_are_files(script, tmp_path):
    given, out = tmp_path / "x.npy", tmp_path / "y.npz"
    np.save(given, np.array([-1, 2, -3], np.float32))
    assert cli.main(["run", relu(tmp_path), "--input", f"@{given}", "-o", str(out)]) == 0
    with np.load(out) as results:
        assert results.files == ["result_0"]
        assert results["result_0"].tolist() == [0, 2, 0]


@pytest.mark.parametrize("backend", ["reference", "iree"])
@pytest.mark.parametrize("name", ["build", "program"])
def test_backends_agree_with_pytorch(script, capsys, backend, name):
    if backend == "iree":
        pytest.importorskip("iree.compiler")
        pytest.importorskip("iree.runtime")
    arguments = ["run", f"{script}:{name}", "--backend", backend, "--compare"]
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("0: 4x3xfloat32 ")
    assert "differs from PyTorch by" in printed


def test_a_difference_above_the_tolerance_is_1(script, capsys):
    assert cli.main(["run", f"{script}:random", "--compare"]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"{script}:random: differs from PyTorch by" in line
    assert "allowed is 0.0001" in line


def test_seeds_decide_the_numbers(script, capsys):
    def printed(seed):
        arguments = ["run", "torch.nn:ReLU", "--input", "8xf32", "--seed", seed]
        assert cli.main(arguments) == 0
        return capsys.readouterr().out

    assert printed("1") == printed("1") != printed("2")


def test_results_have_a_known_suffix_and_mlir_has_no_eager(script, tmp_path, complaint):
    path = relu(tmp_path)
    out = tmp_path / "y.txt"
    assert ".npz, .npy, .pt" in complaint("run", path, "--input", "3xf32", "-o", out)
    assert "this is MLIR" in complaint("run", path, "--input", "3xf32", "--compare")
    assert not out.exists()


WRITES = """
import torch

class Writes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, n, x, y=None):
        self.seen.add_(x)
        x.mul_(2)
        return x + n, y, self.seen * 1.0

def buffer():
    return Writes(), (3, torch.ones(2))

class InPlace(torch.nn.Module):
    def forward(self, n, x):
        x.mul_(2)
        return x + n

def argument():
    return InPlace(), (3, torch.ones(2))

class Drifts(torch.nn.Module):
    def forward(self, x):
        x.add_(torch.rand(2))
        return torch.zeros(2)

def drifts():
    return Drifts(), (torch.ones(2),)
"""


@pytest.fixture(scope="module")
def writes(script, tmp_path_factory):
    path = tmp_path_factory.mktemp("writes") / "writes.py"
    path.write_text(WRITES)
    return path


def test_constants_and_what_is_written_are_compared(writes, capsys):
    assert cli.main(["run", f"{writes}:buffer", "--compare"]) == 0
    *lines, verdict = capsys.readouterr().out.splitlines()
    # The buffer, the argument, and the three results.
    assert lines == [
        "0: 2xfloat32 1 1", "1: 2xfloat32 2 2",
        "2: 2xfloat32 5 5", "3: NoneType None", "4: 2xfloat32 1 1",
    ]  # fmt: skip
    assert verdict.startswith("differs from PyTorch by 0.00e+00 at most")


@pytest.mark.parametrize("backend", ["reference", "iree"])
def test_arguments_written_in_place_are_compared(writes, capsys, backend):
    if backend == "iree":
        pytest.importorskip("iree.compiler")
        pytest.importorskip("iree.runtime")
    arguments = ["run", f"{writes}:argument", "--mutation", "--compare", "--backend", backend]
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[0] == "0: 2xfloat32 5 5"


@pytest.mark.parametrize("options", [[], ["--mutation"]])
def test_a_write_that_differs_is_1(writes, capsys, options):
    assert cli.main(["run", f"{writes}:drifts", "--compare", *options]) == 1
    assert "differs from PyTorch by" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".mlir", ".mlirbc"])
def test_a_file_of_mlir_runs_on_iree(script, tmp_path, capsys, suffix):
    pytest.importorskip("iree.compiler")
    pytest.importorskip("iree.runtime")
    path = tmp_path / f"linear{suffix}"
    arguments = ["import", "torch.nn:ReLU", "--input", "[n]x2xf32", "-o", str(path)]
    assert cli.main(arguments) == 0
    # The size is open: it needn't be the example's.
    arguments = ["run", str(path), "--backend", "iree", "--input", "2x2xf32=-1,0,2,-3"]
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out == "0: 2x2xfloat32 0 0 2 0\n"
