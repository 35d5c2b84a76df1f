# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Open sizes: shapes with `?`, arithmetic on sizes, and what is told about the symbols."""

from __future__ import annotations

import re

import pytest
import sympy
import torch

from torch_mlir import fx, ir
from torch_mlir.importers.symbols import NotAffine, affine

Dim = getattr(torch.export, "Dim", None)
pytestmark = pytest.mark.skipif(Dim is None, reason="torch.export has no Dim before PyTorch 2.2")


class Calls(torch.nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def shapes(count: int = 1, **limits):
    return {"x": {axis: Dim(f"size{axis}", **limits) for axis in range(count)}}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2,
        lambda x: x.reshape(x.shape[0] * x.shape[1]),
        lambda x: x.sum() / x.shape[0],
        lambda x: x.new_zeros(x.shape[0] + 1, x.shape[1] * 2 - 1),
        lambda x: x.new_zeros(x.shape[0] // 2 + 2),
        lambda x: torch.arange(x.shape[0] % 4 + x.shape[1]),
        lambda x: x + x.shape[0],
        lambda x: torch.cat([x, x], 1),
        lambda x: x * (x.shape[0] / 3.0),
        lambda x: x * x.shape[0] ** 0.5,
        lambda x: (x, x.shape[0], x.shape[0] + x.shape[1]),
        lambda x: x.new_ones(torch.sym_max(x.shape[0], x.shape[1])),
    ],
)
def test_other_sizes_than_the_exported_one(agree, function):
    runs = [(torch.randn(4, 6),), (torch.randn(9, 7),)]
    agree(Calls(function), torch.randn(5, 8), dynamic_shapes=shapes(2), runs=runs)


def test_open_sizes_are_question_marks():
    module = fx.export_and_import(
        Calls(lambda x: x + 1), torch.randn(5, 8), dynamic_shapes=shapes()
    )
    assert "func.func @main(%arg0: !torch.vtensor<[?,8],f32>)" in str(module)


def test_symbols_are_declared_with_their_range_and_bound(operations):
    module = fx.export_and_import(
        Calls(lambda x: torch.cat([x, x, x])),
        torch.randn(5, 8),
        dynamic_shapes=shapes(min=3, max=40),
        import_symbolic_shape_expressions=True,
    )
    (symbol,) = operations(module, "torch.symbolic_int")
    assert str(symbol.attributes["min_val"]) == "3 : i64"
    assert str(symbol.attributes["max_val"]) == "40 : i64"
    maps = [
        re.sub(r"\s", "", str(op.attributes["shape_expressions"]))
        for op in operations(module, "torch.bind_symbolic_shape")
    ]
    assert maps == ["affine_map<()[s0]->(s0,8)>", "affine_map<()[s0]->(s0*3,8)>"]
    for binding in operations(module, "torch.bind_symbolic_shape"):
        assert binding.operands[1] == symbol.results[0]


def test_static_programs_have_no_symbols(operations):
    module = fx.export_and_import(
        Calls(lambda x: x + 1), torch.randn(2), import_symbolic_shape_expressions=True
    )
    assert operations(module, "torch.symbolic_int") == []
    assert operations(module, "torch.bind_symbolic_shape") == []


def test_floor_division_and_remainder_are_affine(operations):
    module = fx.export_and_import(
        Calls(lambda x: x.new_zeros(x.shape[0] // 2 + 2, x.shape[0] % 7 + 2)),
        torch.randn(64, 2),
        dynamic_shapes=shapes(min=16),
        import_symbolic_shape_expressions=True,
    )
    maps = {
        str(op.attributes["shape_expressions"])
        for op in operations(module, "torch.bind_symbolic_shape")
    }
    assert any("s0 floordiv 2" in text for text in maps)
    assert any("s0 mod 7" in text for text in maps)


def test_expressions_that_are_not_affine_are_told_apart():
    a, b = sympy.symbols("a b", integer=True)
    with pytest.raises(NotAffine, match="Max"):
        affine(sympy.Max(a, b), {"a": 0, "b": 1}, ir.Context())


def test_sizes_that_no_affine_map_holds_get_a_symbol_of_their_own(operations):
    module = fx.export_and_import(
        Calls(lambda x: x.new_ones(torch.sym_max(x.shape[0], x.shape[1]))),
        torch.randn(5, 8),
        dynamic_shapes=shapes(2),
        import_symbolic_shape_expressions=True,
    )
    names = [str(op.attributes["symbol_name"]) for op in operations(module, "torch.symbolic_int")]
    assert len(names) == 3 and "Max(" in names[2]
    last = operations(module, "torch.bind_symbolic_shape")[-1]
    assert last.operands[len(last.operands) - 1].owner.attributes[
        "symbol_name"
    ] == ir.StringAttr.get(names[2].strip('"'), module.context)


def test_infinite_ranges_end_at_int64(operations):
    module = fx.export_and_import(
        Calls(lambda x: x + 1),
        torch.randn(5, 8),
        dynamic_shapes=shapes(),
        import_symbolic_shape_expressions=True,
    )
    (symbol,) = operations(module, "torch.symbolic_int")
    assert re.fullmatch(r"922337203685477580\d : i64", str(symbol.attributes["max_val"]))
