# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that call graphs."""

from __future__ import annotations

import pytest
import torch
from execution import run

from torch_mlir import fx

cond = getattr(torch, "cond", None)


@pytest.mark.skipif(cond is None, reason="this PyTorch has no torch.cond")
def test_both_branches_of_cond(agree):
    class Chooses(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("w", torch.randn(3))

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x * self.w + 1, lambda x: (x - 1).sin(), (x,))

    agree(Chooses(), torch.ones(3), runs=[(torch.ones(3),), (-torch.ones(3),)])


def test_while_loop():
    loops = pytest.importorskip("torch._higher_order_ops.while_loop")

    class Loops(torch.nn.Module):
        def forward(self, n, x):
            return loops.while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2 + 1), (n, x))

    n, x = torch.tensor(5), torch.ones(2)
    try:
        program = torch.export.export(Loops(), (n, x))
    except Exception as error:
        if torch.__version__ >= "2.13":  # a TorchVersion: exports it, so this is a fault
            raise
        pytest.skip(f"this PyTorch does not export while_loop: {type(error).__name__}")
    module = fx.export_and_import(program)
    for count in (0, 1, 5):
        count_left, value = run(module, torch.tensor(count), x)
        assert count_left.item() == 0
        assert torch.equal(value, torch.full((2,), 2.0 ** (count + 1) - 1))


def test_regions_without_gradients_are_imported_in_place(agree, operations):
    class Mixed(torch.nn.Module):
        def forward(self, x):
            y = x.sin()
            with torch.no_grad():
                y = y * 2
            return y + 1

    agree(Mixed(), torch.randn(3))
    agree(Mixed(), torch.randn(3), decomposition_table={})
