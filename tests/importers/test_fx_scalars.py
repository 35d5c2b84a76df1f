# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on symbolic ints, floats and bools gives what Python gives."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest
import torch
from execution import run

from torch_mlir import fx


def imported(function: Any, args: tuple) -> Any:
    """A module that calls `function` with inputs of the kinds of `args`; lists stay lists."""
    graph = torch.fx.Graph()
    inputs = []

    def placeholder(value: Any) -> torch.fx.Node:
        node = graph.placeholder(f"arg{len(inputs)}")
        node.meta["val"] = value
        inputs.append(value)
        return node

    nodes = torch.fx.node.map_aggregate(args, placeholder)
    node = graph.call_function(function, nodes)
    node.meta["val"] = function(*args)
    graph.output((node,))
    module = fx.stateless_fx_import(torch.fx.GraphModule({}, graph))
    assert module.operation.verify()
    return module, inputs


def check(function: Any, *args: Any) -> None:
    module, inputs = imported(function, args)
    got = run(module, *inputs)
    expected = function(*args)
    assert got == expected and type(got) is type(expected), (got, expected)


BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, max, min,
    torch.sym_max, torch.sym_min,
]  # fmt: skip


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_two_operands(function):
    for a, b in ((7, 2), (-7, 2), (7, -2), (3, 3), (2.5, 1.5), (-2.5, 1.5), (2.5, -1.5)):
        check(function, a, b)


@pytest.mark.parametrize(
    "function",
    [operator.add, operator.mul, operator.truediv, operator.lt, torch.sym_max],
    ids=lambda f: f.__name__,
)
def test_ints_and_floats_mix_to_floats(function):
    if type(function(7, 2.5)) is int:
        pytest.skip("this PyTorch's sym_max keeps the int that it is given")
    for a, b in ((7, 2.5), (2.5, 7)):
        check(function, a, b)


@pytest.mark.parametrize(
    "function",
    [math.sqrt, math.exp, math.sin, math.cos, math.tan, math.log, math.log10, math.asin, math.acos,
     math.atan, math.sinh, math.cosh, math.tanh, math.asinh],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_functions_of_math(function):
    check(function, 0.5)
    check(function, 1)


def test_logarithms_to_base_2_are_exact_at_powers_of_two():
    for exponent in range(-40, 60):
        check(math.log2, 2.0**exponent)


@pytest.mark.parametrize(
    "function",
    [math.floor, math.ceil, math.trunc, round, torch.sym_int, int],
    ids=lambda f: f.__name__,
)
def test_rounding(function):
    for value in (2.5, 3.5, -2.5, -0.25, 7.0, 5):
        check(function, value)


@pytest.mark.parametrize("function", [torch.sym_float, float, bool, operator.not_, torch.sym_not])
def test_conversions(function):
    for value in (True, False) if function is torch.sym_not else (2, 0):
        check(function, value)


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.xor])
def test_bits_and_truth(function):
    for a, b in ((6, 3), (True, False), (True, True)):
        check(function, a, b)


@pytest.mark.parametrize("function", [operator.lshift, operator.rshift])
def test_shifts(function):
    check(function, 20, 2)


def test_signs():
    for function in (operator.neg, operator.pos, abs):
        check(function, -3)
        check(function, -2.5)


def test_powers():
    check(operator.pow, 2.5, 2)
    check(operator.pow, 2, 0.5)
    check(operator.pow, 2.0, -1.5)


def test_ints_to_the_power_of_ints_stay_ints(operations):
    check(operator.pow, 3, 5)
    module, _ = imported(operator.pow, (3, 5))
    (power,) = operations(module, "torch.aten.pow.int_to_int")
    assert str(power.results[0].type) == "!torch.int"


@pytest.mark.parametrize("exponent", [0, 1, 2, 5, 30, -2])
def test_constant_powers(exponent):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = 3
    node = graph.call_function(operator.pow, (x, exponent))
    node.meta["val"] = 3**exponent
    graph.output((node,))
    got = run(fx.stateless_fx_import(torch.fx.GraphModule({}, graph)), 3)
    assert got == 3**exponent and type(got) is type(3**exponent)


@pytest.mark.skipif(not hasattr(torch, "sym_ite"), reason="this PyTorch has no sym_ite")
def test_choices():
    for values in ((1, 2), (1.5, 2.5), (True, False)):
        for condition in (True, False):
            check(torch.sym_ite, condition, *values)


@pytest.mark.skipif(not hasattr(torch, "sym_sum"), reason="this PyTorch has no sym_sum")
def test_sums():
    module, inputs = imported(torch.sym_sum, ([1, 2, 3],))
    assert run(module, *inputs) == 6


def test_rounding_to_digits_is_refused():
    with pytest.raises(fx.TorchMlirCompilerError, match="round, argument 'ndigits'"):
        imported(round, (2.5, 1))


def test_operands_that_are_no_scalars_are_refused():
    with pytest.raises(fx.TorchMlirCompilerError, match="add: operand 0 is .*vtensor"):
        imported(operator.add, (torch.ones(2), 1))
