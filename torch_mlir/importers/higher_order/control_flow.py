# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches, and loops that run while a condition holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.fx import Node

from ..arguments import anything
from ..errors import Unsupported
from .regions import (
    Handler,
    as_bool,
    bind_results,
    conform,
    inline,
    region,
    result_types,
    subgraph,
)

if TYPE_CHECKING:
    from ..graph import GraphImporter


def _cond(graph: GraphImporter, node: Node) -> None:
    """`cond(predicate, true graph, false graph, operands)` as `torch.prim.If`."""
    predicate, if_true, if_false = node.args[:3]
    operands = node.args[3] if len(node.args) > 3 else ()
    inputs = [anything(graph, operand) for operand in operands]
    builder, results = graph.builder, result_types(graph, node)
    condition = as_bool(graph, builder, anything(graph, predicate))
    branches = (
        subgraph(graph, if_true, "true_fn"),
        subgraph(graph, if_false, "false_fn"),
    )
    choice = builder.emit("torch.prim.If", results, [condition], regions=2)
    for target, body in zip(choice.regions, branches, strict=True):
        branch = region(graph, target, ())
        values = inline(graph, body, inputs, branch)
        branch.emit(
            "torch.prim.If.yield",
            [],
            [conform(branch, value, wanted) for value, wanted in zip(values, results, strict=True)],
        )
    bind_results(graph, node, choice.results)


def _while_loop(graph: GraphImporter, node: Node) -> None:
    """`while_loop(condition graph, body graph, carried, captured)` as `torch.prim.Loop`."""
    condition = subgraph(graph, node.args[0], "cond_fn")
    body = subgraph(graph, node.args[1], "body_fn")
    builder, results = graph.builder, result_types(graph, node)
    if len(node.args[2]) != len(results):
        # PyTorch 2.3 exports loops that capture something in such a way, and doesn't run them.
        raise Unsupported(f"{len(node.args[2])} values are carried, and {len(results)} come out")
    carried = [
        conform(builder, anything(graph, value), wanted)
        for value, wanted in zip(node.args[2], results, strict=True)
    ]
    captured = [anything(graph, arg) for arg in (node.args[3] if len(node.args) > 3 else ())]
    (first,) = inline(graph, condition, [*carried, *captured], builder)
    bound = builder.constant(torch.iinfo(torch.int64).max)
    start = as_bool(graph, builder, first)
    loop = builder.emit("torch.prim.Loop", results, [bound, start, *carried], regions=1)
    inside = region(graph, loop.regions[0], [graph.types.int, *results])
    values = [
        conform(inside, value, wanted)
        for value, wanted in zip(
            inline(graph, body, [*list(inside.block.arguments)[1:], *captured], inside),
            results,
            strict=True,
        )
    ]
    (again,) = inline(graph, condition, [*values, *captured], inside)
    inside.emit("torch.prim.Loop.condition", [], [as_bool(graph, inside, again), *values])
    bind_results(graph, node, loop.results)


HANDLERS: dict[str, Handler] = {"cond": _cond, "while_loop": _while_loop}
