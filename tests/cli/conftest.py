# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A script with models, and how the commands' failures are told."""

from __future__ import annotations

import importlib.util

import pytest

from torch_mlir import cli

SCRIPT = """
import sys
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.fc(x)) + x

class Net(torch.nn.Module):
    def __init__(self, out=3):
        super().__init__()
        self.layers = torch.nn.Sequential(Block(), Block())
        self.head = torch.nn.Linear(8, out)

    def forward(self, x, scale=None):
        y = self.head(self.layers(x))
        return y if scale is None else y * scale

class Random(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand(x.shape)

def build():
    print("a script's own words")
    return Net(), (torch.ones(4, 8),)

def program():
    return torch.export.export(Net().eval(), (torch.ones(4, 8),))

def random():
    return Random(), (torch.zeros(2, 2),)

def fails():
    raise KeyError("weights")

def exits():
    sys.exit(3)

def interrupts():
    raise KeyboardInterrupt

def nothing():
    return None
"""


@pytest.fixture(scope="session")
def script(tmp_path_factory):
    """The path of `SCRIPT`; needs PyTorch, as what it holds does."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs PyTorch")
    pytest.importorskip("torch.export", reason="needs PyTorch 2.1 or newer")
    path = tmp_path_factory.mktemp("scripts") / "models.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def complaint(capsys):
    """Runs a command that fails with 1; its one line on the standard error."""

    def run(*arguments: object) -> str:
        assert cli.main([str(argument) for argument in arguments]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        (line,) = captured.err.splitlines()
        assert line.startswith("torch-mlir: error: ")
        return line

    return run
