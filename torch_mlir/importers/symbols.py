# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic sizes: `torch.symbolic_int` for each symbol, `torch.bind_symbolic_shape` for shapes.

Both only inform: they tell a compiler which sizes are equal or derived from one another, and the
range that torch.export allows each symbol.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from .. import ir
from .builder import BlockBuilder

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Range:
    """What a symbol can be, both ends included."""

    low: int = _INT64_MIN
    high: int = _INT64_MAX


def ranges_of(constraints: Mapping[Any, Any]) -> dict[str, Range]:
    """The int symbols of an ExportedProgram's `range_constraints`, by name.

    Infinite ends, which PyTorch writes as its own `int_oo` or sympy's `oo`, become those of int64.
    """
    return {
        str(symbol): Range(_bound(limits.lower, math.ceil), _bound(limits.upper, math.floor))
        for symbol, limits in constraints.items()
        if not limits.is_bool
    }


def _bound(value: Any, inward: Callable[[Any], int]) -> int:
    if isinstance(value, (int, sympy.Integer)):
        bound = int(value)
    elif str(value) in ("oo", "int_oo"):
        bound = _INT64_MAX
    elif str(value) in ("-oo", "-int_oo"):
        bound = _INT64_MIN
    else:
        bound = int(inward(value))
    return max(_INT64_MIN, min(_INT64_MAX, bound))


class NotAffine(Exception):
    """An expression that affine maps with symbols cannot hold."""


def affine(expression: Any, position: Mapping[str, int], context: ir.Context) -> ir.AffineExpr:
    """A sympy expression over integer symbols as an affine expression.

    `position` numbers the symbols. Products of symbols make the expression semi-affine.

    Raises:
        NotAffine: there is something other than symbols, integers, `+`, `*`, positive powers,
            `mod`, and floor and ceiling division by what is not known to be negative or zero.
    """

    def convert(term: Any) -> ir.AffineExpr:
        if isinstance(term, (int, sympy.Integer)):
            return ir.AffineConstantExpr.get(int(term), context)
        if isinstance(term, sympy.Symbol):
            return ir.AffineSymbolExpr.get(position[term.name], context)
        parts = term.args
        if isinstance(term, sympy.Add):
            return _fold(ir.AffineAddExpr.get, [convert(part) for part in parts])
        if isinstance(term, sympy.Mul):
            return _fold(ir.AffineMulExpr.get, [convert(part) for part in parts])
        if isinstance(term, sympy.Pow) and isinstance(parts[1], sympy.Integer) and parts[1] > 0:
            return _fold(ir.AffineMulExpr.get, [convert(parts[0])] * int(parts[1]))
        if isinstance(term, (sympy.floor, sympy.ceiling)):
            # How PyTorch 2.1 and 2.2 write a division of integers.
            top, bottom = sympy.fraction(sympy.together(parts[0]))
            name = "FloorDiv" if isinstance(term, sympy.floor) else "CeilDiv"
            return divide(name, top, bottom)
        # PyTorch has functions of its own for integers; they are known by name.
        name = type(term).__name__
        if name == "Identity":
            return convert(parts[0])
        if name == "PowByNatural" and isinstance(parts[1], sympy.Integer) and parts[1] > 0:
            return _fold(ir.AffineMulExpr.get, [convert(parts[0])] * int(parts[1]))
        if name == "ModularIndexing":
            quotient = divide("FloorDiv", parts[0], parts[1])
            return _DIVISIONS["Mod"](quotient, divisor(parts[2]))
        if name in _DIVISIONS:
            return divide(name, parts[0], parts[1])
        raise NotAffine(str(term))

    def divisor(term: Any) -> ir.AffineExpr:
        if isinstance(term, (int, sympy.Integer)) and term < 1:
            raise NotAffine(f"a division by {term}")
        return convert(term)

    def divide(name: str, top: Any, bottom: Any) -> ir.AffineExpr:
        return _DIVISIONS[name](convert(top), divisor(bottom))

    return convert(expression)


_DIVISIONS: dict[str, Callable[[ir.AffineExpr, ir.AffineExpr], ir.AffineExpr]] = {
    "Mod": ir.AffineModExpr.get,
    "PythonMod": ir.AffineModExpr.get,
    "FloorDiv": ir.AffineFloorDivExpr.get,
    "CleanDiv": ir.AffineFloorDivExpr.get,
    "CeilDiv": ir.AffineCeilDivExpr.get,
}


def _fold(
    combine: Callable[[ir.AffineExpr, ir.AffineExpr], ir.AffineExpr], parts: list[ir.AffineExpr]
) -> ir.AffineExpr:
    result = parts[0]
    for part in parts[1:]:
        result = combine(result, part)
    return result


class SymbolBinder:
    """The symbols of one function, each declared once in its block.

    Symbols that first show up within a region, such as the branch of a conditional, are declared
    in that region.
    """

    def __init__(self, builder: BlockBuilder, ranges: Mapping[str, Range]) -> None:
        self._builder = builder
        self._ranges = ranges
        self._values: dict[tuple[BlockBuilder, str], ir.Value] = {}
        self._i64 = ir.IntegerType.get_signless(64, builder.context)

    def declare_all(self) -> None:
        """Declare every symbol that the program constrains."""
        for name in self._ranges:
            self._symbol(name, self._builder)

    def _symbol(self, name: str, builder: BlockBuilder) -> ir.Value:
        for known in (self._builder, builder):
            found = self._values.get((known, name))
            if found is not None:
                return found
        limits = self._ranges.get(name, Range())
        declared = self._values[builder, name] = builder.value(
            "torch.symbolic_int",
            builder.types.int,
            (),
            {
                "symbol_name": ir.StringAttr.get(name, builder.context),
                "min_val": ir.IntegerAttr.get(self._i64, limits.low),
                "max_val": ir.IntegerAttr.get(self._i64, limits.high),
            },
        )
        return declared

    def bind(
        self, value: ir.Value, tensor: torch.Tensor, builder: BlockBuilder | None = None
    ) -> None:
        """Say what the symbolic sizes of `value` are, if `tensor` has any.

        `builder` fills the block that holds `value`: the function's, if it is not given. A size
        that is not affine is bound to a symbol of its own, named by its expression.
        """
        builder = builder or self._builder
        sizes = [_expression(size) for size in tensor.shape]
        symbols: set[str] = set()
        for size in sizes:
            if isinstance(size, sympy.Expr):
                symbols.update(symbol.name for symbol in size.free_symbols)
        if not symbols:
            return
        context = builder.context
        names = sorted(symbols)
        position = {name: index for index, name in enumerate(names)}
        results: list[ir.AffineExpr] = []
        for size in sizes:
            try:
                results.append(affine(size, position, context))
            except NotAffine:
                name = str(size)
                if name not in position:
                    position[name] = len(names)
                    names.append(name)
                results.append(ir.AffineSymbolExpr.get(position[name], context))
        shape = ir.AffineMap.get(0, len(names), results, context)
        operands = [value, *(self._symbol(name, builder) for name in names)]
        attributes: dict[str, ir.Attribute] = {"shape_expressions": ir.AffineMapAttr.get(shape)}
        builder.emit("torch.bind_symbolic_shape", [], operands, attributes)


def _expression(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size
