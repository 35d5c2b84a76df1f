# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imported models compile with IREE and compute what PyTorch computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torch_mlir import fx
from torch_mlir.backends.iree import IreeBackend, IreeProgram

pytest.importorskip("iree.compiler")
pytest.importorskip("iree.runtime")
pytestmark = pytest.mark.iree


def compiled(module: Any) -> IreeProgram:
    """The module's program on the CPU."""
    backend = IreeBackend()
    return backend.load(backend.compile(module))


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(width)
        self.second = torch.nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.second(torch.relu(self.norm(self.first(x)))))


class ResidualNet(torch.nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, width, 7, stride=2, padding=3)
        self.pool = torch.nn.MaxPool2d(3, 2, 1)
        self.blocks = torch.nn.Sequential(Block(width), Block(width))
        self.head = torch.nn.Linear(width, 10)

    def forward(self, x):
        x = self.blocks(self.pool(torch.relu(self.stem(x))))
        return self.head(torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


def test_a_residual_conv_net():
    torch.manual_seed(0)
    model, x = ResidualNet().eval(), torch.randn(2, 3, 32, 32)
    result = compiled(fx.export_and_import(model, x))(x)
    torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-4)


def test_a_transformers_bert():
    transformers = pytest.importorskip("transformers")

    class Bert(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = transformers.BertModel(
                transformers.BertConfig(
                    hidden_size=32,
                    num_hidden_layers=2,
                    num_attention_heads=2,
                    intermediate_size=64,
                    vocab_size=100,
                )
            )

        def forward(self, ids, mask):
            outputs = self.bert(ids, attention_mask=mask)
            return outputs.last_hidden_state, outputs.pooler_output

    torch.manual_seed(0)
    model = Bert().eval()
    ids, mask = torch.randint(0, 100, (2, 9)), torch.ones(2, 9, dtype=torch.int64)
    mask[1, 6:] = 0
    results = compiled(fx.export_and_import(model, ids, mask))(ids, mask)
    for result, expected in zip(results, model(ids, mask), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not hasattr(torch.export, "Dim"), reason="torch.export has no Dim")
def test_open_sizes():
    class Model(torch.nn.Module):
        def forward(self, x):
            return (x * x.shape[0]).reshape(-1).cumsum(0)

    x = torch.randn(4, 3)
    module = fx.export_and_import(
        Model(),
        x,
        dynamic_shapes={"x": {0: torch.export.Dim("n")}},
        import_symbolic_shape_expressions=True,
    )
    call = compiled(module)
    for rows in (4, 9):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(call(x), Model()(x))


def test_bool_and_half_literals():
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", torch.tensor([True, False, True, True, False]))
            self.register_buffer("halves", torch.arange(5).half())

        def forward(self, x):
            return torch.where(self.mask, x, self.halves.float())

    x = torch.randn(5)
    result = compiled(fx.export_and_import(Model(), x))(x)
    torch.testing.assert_close(result, Model()(x))


def test_operators_that_iree_lacks_are_torch_operators(operations):
    from iree.compiler import ir

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.special.i0(x) + 1

    x = torch.randn(3, 3)
    module = fx.export_and_import(Model(), x, decomposition_table={}, target="iree")
    context = ir.Context()
    for operation in operations(module):
        assert context.is_registered_operation(operation.name), operation.name
    names = {str(op.attributes["name"]) for op in operations(module, "torch.operator")}
    assert names == {'"torch.aten.special_i0"'}
