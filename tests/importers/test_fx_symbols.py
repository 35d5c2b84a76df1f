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


def test_what_is_affine_is_written_so():
    a, b = sympy.symbols("a b", integer=True)
    functions = pytest.importorskip("torch.utils._sympy.functions")
    cases = {
        sympy.floor(a / 4): "s0 floordiv 4",
        sympy.ceiling((a + b) / 2): "(s0 + s1) ceildiv 2",
        functions.FloorDiv(a, 3): "s0 floordiv 3",
        a**2: "s0 * s0",
        3 * a + 1: "s0 * 3 + 1",
    }
    if hasattr(functions, "ModularIndexing"):
        cases[functions.ModularIndexing(a, 2, 5)] = "(s0 floordiv 2) mod 5"
    if hasattr(functions, "PowByNatural"):
        cases[functions.PowByNatural(a, sympy.Integer(2))] = "s0 * s0"
    context = ir.Context()
    for expression, text in cases.items():
        wanted = ir.Attribute.parse(f"affine_map<()[s0, s1] -> ({text})>", context)
        got = ir.AffineMap.get(0, 2, [affine(expression, {"a": 0, "b": 1}, context)], context)
        assert ir.AffineMapAttr.get(got) == wanted, expression


def test_divisions_by_negative_numbers_are_not_affine():
    functions = pytest.importorskip("torch.utils._sympy.functions")
    a = sympy.symbols("a", integer=True)
    for expression in (functions.FloorDiv(a, -3), functions.Mod(a, -3)):
        with pytest.raises(NotAffine):
            affine(expression, {"a": 0}, ir.Context())


@pytest.mark.skipif(not hasattr(torch, "cond"), reason="this PyTorch has no torch.cond")
def test_symbols_of_a_branch_are_bound_in_it(operations):
    def branches(x):
        return torch.cond(
            x.sum() > 0, lambda x: torch.cat([x, x]).cumsum(0).sum(), lambda x: x.sum(), (x,)
        )

    module = fx.export_and_import(
        Calls(branches),
        torch.randn(5),
        dynamic_shapes=shapes(min=2),
        import_symbolic_shape_expressions=True,
    )
    assert module.operation.verify()
    (choice,) = operations(module, "torch.prim.If")
    inside = [op for op in operations(module, "torch.bind_symbolic_shape") if op.parent == choice]
    assert len(inside) >= 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.new_zeros(x.shape[0] ** 2),
        lambda x: x.new_zeros(torch.sym_min(x.shape[0], x.shape[1]) + 1),
        lambda x: x.new_zeros((x.shape[0] + 5) // 2 + x.shape[1] % 3),
        lambda x: x * torch.sym_float(x.shape[0]) / 3,
    ],
)
def test_arithmetic_in_python(agree, function):
    runs = [(torch.randn(12, 6),), (torch.randn(19, 7),)]
    agree(Calls(function), torch.randn(15, 8), dynamic_shapes=shapes(2, min=6, max=64), runs=runs)
