# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions that are only marked: their operators are imported in place."""

from __future__ import annotations

import operator

import pytest
import torch
from eager import compare, exported, held, leaves_of
from torch.fx.experimental.proxy_tensor import make_fx

from torch_mlir import fx


def operators_of(program):
    """The names of the higher-order operators that a program calls."""
    return [
        node.target.__name__
        for node in program.graph.nodes
        if isinstance(node.target, torch._ops.HigherOrderOperator)
    ]


def held_with(name, function, *args, **options):
    """As `held`, for a function whose program calls the operator `name` as it is exported."""
    program = exported(function, args, functional=False, **options)
    if name not in operators_of(program):
        pytest.skip(f"this PyTorch exports no {name}, but {operators_of(program)}")
    compare(fx.export_and_import(program, decomposition_table={}), function, [args])


def without_gradients(x):
    y = x.sin()
    with torch.no_grad():
        y = y * 2
        z = y.cos()
    with torch.enable_grad():
        return y + 1, z


@pytest.mark.parametrize("strict", [False, True])
def test_regions_without_gradients(strict):
    held(without_gradients, torch.randn(3), strict=strict)


def test_set_grad_enabled():
    x = torch.randn(3, requires_grad=True)
    held_with("wrap_with_set_grad_enabled", without_gradients, x)


def in_bfloat16(x):
    y = x @ x
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = x @ y
        w = z @ x
    return y, z, w.float() + 1


def test_autocast():
    held_with("wrap_with_autocast", in_bfloat16, torch.randn(3, 3))


def test_checkpoint():
    def function(x, y):
        def layer(x, y):
            return (x * y).sin().cos(), y + 1

        return torch.utils.checkpoint.checkpoint(layer, x, y, use_reentrant=False)

    held(function, torch.randn(3), torch.randn(3))


def test_a_checkpoint_of_a_dynamo_graph():
    """The graph before AOTAutograd; it calls functions of Python, which make_fx traces."""
    weight = torch.randn(3)

    def function(x):
        return torch.utils.checkpoint.checkpoint(
            lambda x: (x * weight).sin(), x, use_reentrant=False
        )

    graphs = []

    def keep(gm, inputs):
        graphs.append(gm)
        return gm

    torch._dynamo.reset()
    x = torch.randn(3, requires_grad=True)
    torch.compile(function, backend=keep, fullgraph=True)(x)
    (captured,) = graphs
    (call,) = (
        node
        for node in captured.graph.nodes
        if getattr(node.target, "__name__", "") == "tag_activation_checkpoint"
    )
    inner = captured.get_submodule(str(call.args[0].target))
    inputs = [torch.randn(3) for _ in call.args[1:]]
    body = make_fx(lambda *args: (leaves_of(inner(*args))[0],), tracing_mode="fake")(*inputs)
    graph = torch.fx.Graph()
    places = []
    for name, value in zip("xyz", inputs):
        places.append(graph.placeholder(name))
        places[-1].meta["val"] = value
    node = graph.call_function(call.target, (graph.get_attr("body"), *places))
    node.meta["val"] = (torch.empty(3),)
    first = graph.call_function(operator.getitem, (node, 0))
    first.meta["val"] = torch.empty(3)
    graph.output((first,))
    module = fx.stateless_fx_import(torch.fx.GraphModule({"body": body}, graph))
    compare(module, inner, [tuple(inputs)])


def test_hints():
    hints = pytest.importorskip("torch._higher_order_ops.hints_wrap")

    def inner(x, y):
        return (x + y).sin()

    class Hinted(torch.nn.Module):
        def forward(self, x, y):
            return hints.hints_wrapper(inner, (x, y), {}, hints={"outer": True}) * 2

    args = torch.randn(3), torch.randn(3)
    program = exported(Hinted(), args, strict=True)
    assert operators_of(program) == ["hints_wrapper"]
    module = fx.export_and_import(program, decomposition_table={})
    compare(module, lambda x, y: inner(x, y) * 2, [args])


def test_nested_compile_regions():
    region = getattr(torch.compiler, "nested_compile_region", None)
    if region is None:
        pytest.skip("this PyTorch has no nested_compile_region")

    @region
    def layer(x, y):
        return x.sin() * y, y + 1

    def function(x, y):
        x, y = layer(x, y)
        x, y = layer(x, y)
        return x.sum(), y

    held_with("invoke_subgraph", function, torch.randn(3), torch.randn(3), strict=True)


def test_strict_mode():
    strict = pytest.importorskip("torch._higher_order_ops.strict_mode").strict_mode

    def function(x, y):
        return strict(lambda x, y: (x.sin() + y, x.cos()), (x, y))

    args = torch.randn(3), torch.randn(3)
    program = exported(function, args, strict=True)
    assert operators_of(program) == ["strict_mode"]
    compare(
        fx.export_and_import(program, decomposition_table={}),
        lambda x, y: (x.sin() + y, x.cos()),
        [args],
    )


def test_regions_within_regions():
    def function(x):
        with torch.no_grad():
            y = torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = y @ y
        return y.float()

    x = torch.ones(2, 2)
    held(function, x, runs=[(x,), (-x,)])
