# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on symbolic ints, floats and bools: Python's operators, `torch.sym_*` and `math`.

FX calls the Python function; the Torch dialect has TorchScript's scalar operators. Operands of
unlike kinds are made alike first, as Python would.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from .. import ir
from .errors import Unsupported

if TYPE_CHECKING:
    from .graph import GraphImporter

# Function: TorchScript operator without overload. The operands' kind is the overload.
_ARITHMETIC: dict[Any, str] = {
    operator.add: "aten.add",
    operator.sub: "aten.sub",
    operator.mul: "aten.mul",
    operator.floordiv: "aten.floordiv",
    operator.mod: "aten.remainder",
    operator.neg: "aten.neg",
    operator.abs: "prim.abs",
    abs: "prim.abs",
}
_COMPARISONS: dict[Any, str] = {
    operator.lt: "aten.lt",
    operator.le: "aten.le",
    operator.gt: "aten.gt",
    operator.ge: "aten.ge",
    operator.eq: "aten.eq",
    operator.ne: "aten.ne",
}
# Operators that give a float whatever they take.
_FLOATING: dict[Any, str] = {
    operator.truediv: "aten.div",
    math.sqrt: "aten.sqrt",
    math.exp: "aten.exp",
    math.sin: "aten.sin",
    math.cos: "aten.cos",
    math.tan: "aten.tan",
    math.log: "aten.log",
    math.log10: "aten.log10",
    math.asin: "aten.asin",
    math.acos: "aten.acos",
    math.atan: "aten.atan",
    math.sinh: "aten.sinh",
    math.cosh: "aten.cosh",
    math.tanh: "aten.tanh",
    math.asinh: "aten.asinh",
    math.acosh: "aten.acosh",
    math.atanh: "aten.atanh",
}
# PyTorch's own names for some of `math`, where it has them: `torch._sym_sin` is `math.sin`.
_SYM_MATH = ("sqrt", "exp", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
_BITS: dict[Any, str] = {
    operator.lshift: "aten.__lshift__.int",
    operator.rshift: "aten.__rshift__.int",
}
_ROUNDING: dict[Any, str] = {
    math.floor: "aten.floor.float",
    math.ceil: "aten.ceil.float",
}


def _named(*names: str) -> list[Any]:
    """Functions of `torch` by name; the installed PyTorch may lack some."""
    return [getattr(torch, name) for name in names if hasattr(torch, name)]


def _guardless_ints() -> list[Any]:
    """What PyTorch calls to make an int of a SymBool."""
    from torch.fx.experimental import symbolic_shapes

    name = "cast_symbool_to_symint_guardless"
    return [getattr(symbolic_shapes, name)] if hasattr(symbolic_shapes, name) else []


class ScalarOps:
    """What is called by each function: `handles` tells, `emit` imports a node."""

    def __init__(self) -> None:
        self._emitters: dict[Any, Callable[[GraphImporter, tuple], ir.Value]] = {}
        on = self._emitters
        for function, name in _ARITHMETIC.items():
            on[function] = _arithmetic(name)
        for function, name in _COMPARISONS.items():
            on[function] = _comparison(name)
        for function, name in _FLOATING.items():
            on[function] = _floating(name)
        for function, name in _BITS.items():
            on[function] = _bits(name)
        for name in _SYM_MATH:
            for function in _named(f"_sym_{name}", f"sym_{name}"):
                on[function] = _floating(f"aten.{name}")
        for function in [math.log2, *_named("_sym_log2")]:
            on[function] = _log2
        for function, name in _ROUNDING.items():
            on[function] = _rounding(name)
        on[round] = _round
        on[operator.pos] = _same
        on[operator.not_] = _not
        on[math.trunc] = on[int] = _to_int
        on[float] = _to_float
        on[bool] = _to_bool
        on[math.pow] = on[operator.pow] = _power
        for function in [operator.and_, *_named("sym_and")]:
            on[function] = _logical("aten.__and__")
        for function in [operator.or_, *_named("sym_or")]:
            on[function] = _logical("aten.__or__")
        on[operator.xor] = _logical("aten.__xor__")
        for function in [*_named("sym_int"), *_guardless_ints()]:
            on[function] = _to_int
        for function in _named("sym_float"):
            on[function] = _to_float
        for function in _named("sym_not"):
            on[function] = _not
        for function in [max, *_named("sym_max")]:
            on[function] = _arithmetic("prim.max")
        for function in [min, *_named("sym_min")]:
            on[function] = _arithmetic("prim.min")
        for function in _named("sym_sum"):
            on[function] = _sum
        for function in _named("sym_ite"):
            on[function] = _if_then_else

    def handles(self, target: Any) -> bool:
        """Whether `target` is a function on scalars that this module translates."""
        try:
            return target in self._emitters
        except TypeError:
            return False

    def emit(self, graph: GraphImporter, node: Node) -> ir.Value:
        """Import a call of such a function.

        Raises:
            Unsupported: an operand is not a scalar.
        """
        if node.kwargs:
            raise Unsupported(f"keyword arguments {sorted(node.kwargs)} are not expected here")
        return self._emitters[node.target](graph, node.args)


def _operands(graph: GraphImporter, args: tuple) -> list[ir.Value]:
    values = []
    for index, arg in enumerate(args):
        if isinstance(arg, Node):
            value = graph.value(arg)
        elif isinstance(arg, (bool, int, float)):
            value = graph.builder.constant(arg)
        else:
            raise Unsupported(f"operand {index} is {type(arg).__name__} {arg!r}, not a scalar")
        if value.type not in (graph.types.int, graph.types.float, graph.types.bool):
            raise Unsupported(f"operand {index} is {value.type}, not a scalar")
        values.append(value)
    return values


def _alike(graph: GraphImporter, args: tuple) -> tuple[list[ir.Value], str]:
    """The operands, as floats if one of them is, as ints otherwise; and which of the two."""
    values = _operands(graph, args)
    types = graph.types
    if any(value.type == types.float for value in values):
        return [graph.coerce(value, types.float) for value in values], "float"
    return [graph.coerce(value, types.int) for value in values], "int"


def _kind_type(graph: GraphImporter, kind: str) -> ir.Type:
    return {"int": graph.types.int, "float": graph.types.float, "bool": graph.types.bool}[kind]


def _arithmetic(name: str) -> Callable[[GraphImporter, tuple], ir.Value]:
    def emit(graph: GraphImporter, args: tuple) -> ir.Value:
        values, kind = _alike(graph, args)
        return graph.operation(f"{name}.{kind}", [_kind_type(graph, kind)], values).results[0]

    return emit


def _comparison(name: str) -> Callable[[GraphImporter, tuple], ir.Value]:
    def emit(graph: GraphImporter, args: tuple) -> ir.Value:
        values, kind = _alike(graph, args)
        return graph.operation(f"{name}.{kind}", [graph.types.bool], values).results[0]

    return emit


def _floating(name: str) -> Callable[[GraphImporter, tuple], ir.Value]:
    def emit(graph: GraphImporter, args: tuple) -> ir.Value:
        values, kind = _alike(graph, args)
        return graph.operation(f"{name}.{kind}", [graph.types.float], values).results[0]

    return emit


def _rounding(name: str) -> Callable[[GraphImporter, tuple], ir.Value]:
    def emit(graph: GraphImporter, args: tuple) -> ir.Value:
        values, kind = _alike(graph, args)
        if kind == "int":
            return values[0]
        return graph.operation(name, [graph.types.int], values).results[0]

    return emit


def _logical(name: str) -> Callable[[GraphImporter, tuple], ir.Value]:
    def emit(graph: GraphImporter, args: tuple) -> ir.Value:
        values = _operands(graph, args)
        kind = "bool" if all(value.type == graph.types.bool for value in values) else "int"
        result = _kind_type(graph, kind)
        total = graph.coerce(values[0], result)
        for value in values[1:]:
            pair = [total, graph.coerce(value, result)]
            total = graph.operation(f"{name}.{kind}", [result], pair).results[0]
        return total

    return emit


def _bits(name: str) -> Callable[[GraphImporter, tuple], ir.Value]:
    def emit(graph: GraphImporter, args: tuple) -> ir.Value:
        values = [graph.coerce(value, graph.types.int) for value in _operands(graph, args)]
        return graph.operation(name, [graph.types.int], values).results[0]

    return emit


def _log2(graph: GraphImporter, args: tuple) -> ir.Value:
    # TorchScript has no log2 of numbers, and a quotient of logarithms is off by a bit where an
    # exact result is wanted most, at powers of two. That of tensors is exact there.
    types = graph.types
    value = graph.coerce(_operands(graph, args)[0], types.float)
    tensor = types.vtensor((), torch.float64)
    value = graph.builder.value("torch.prim.NumToTensor.Scalar", tensor, [value])
    value = graph.operation("aten.log2", [tensor], [value]).results[0]
    return graph.operation("aten.Float.Tensor", [types.float], [value]).results[0]


def _round(graph: GraphImporter, args: tuple) -> ir.Value:
    if len(args) > 1 and args[1] is not None:
        raise Unsupported("rounding to digits is not imported", "ndigits")
    values, kind = _alike(graph, args[:1])
    if kind == "int":
        return values[0]
    rounded = graph.operation("aten.round.float", [graph.types.float], values).results[0]
    return graph.coerce(rounded, graph.types.int, truncate=True)


def _same(graph: GraphImporter, args: tuple) -> ir.Value:
    return _alike(graph, args)[0][0]


def _power(graph: GraphImporter, args: tuple) -> ir.Value:
    values, kind = _alike(graph, args)
    if kind == "int":
        types, exponent = graph.types, args[1]
        if isinstance(exponent, int) and exponent < 0:
            # Python gives a float then, and so does TorchScript's operator.
            return graph.operation("aten.pow.int", [types.float], values).results[0]
        if not isinstance(exponent, int):
            return graph.operation("aten.pow.int_to_int", [types.int], values).results[0]
        return _constant_power(graph, values[0], exponent)
    return graph.operation("aten.pow.float", [graph.types.float], values).results[0]


def _constant_power(graph: GraphImporter, base: ir.Value, exponent: int) -> ir.Value:
    """Squares and products, which every reader knows."""
    total, square = None, base
    while exponent:
        if exponent & 1:
            total = square if total is None else _product(graph, total, square)
        exponent >>= 1
        if exponent:
            square = _product(graph, square, square)
    return graph.builder.constant(1) if total is None else total


def _product(graph: GraphImporter, left: ir.Value, right: ir.Value) -> ir.Value:
    return graph.operation("aten.mul.int", [graph.types.int], [left, right]).results[0]


def _to_int(graph: GraphImporter, args: tuple) -> ir.Value:
    return graph.coerce(_operands(graph, args)[0], graph.types.int, truncate=True)


def _to_float(graph: GraphImporter, args: tuple) -> ir.Value:
    return graph.coerce(_operands(graph, args)[0], graph.types.float)


def _to_bool(graph: GraphImporter, args: tuple) -> ir.Value:
    return graph.coerce(_operands(graph, args)[0], graph.types.bool)


def _not(graph: GraphImporter, args: tuple) -> ir.Value:
    value = graph.coerce(_operands(graph, args)[0], graph.types.bool)
    return graph.operation("aten.__not__", [graph.types.bool], [value]).results[0]


def _sum(graph: GraphImporter, args: tuple) -> ir.Value:
    values, kind = _alike(graph, tuple(args[0]))
    total = values[0]
    for value in values[1:]:
        pair = [total, value]
        total = graph.operation(f"aten.add.{kind}", [_kind_type(graph, kind)], pair).results[0]
    return total


def _if_then_else(graph: GraphImporter, args: tuple) -> ir.Value:
    condition = graph.coerce(_operands(graph, args[:1])[0], graph.types.bool)
    values = _operands(graph, args[1:])
    if all(value.type == graph.types.bool for value in values):
        kind = "bool"
    else:
        values, kind = _alike(graph, args[1:])
    return graph.choose(condition, _kind_type(graph, kind), values[0], values[1])


SCALAR_OPS = ScalarOps()
