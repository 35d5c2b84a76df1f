# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that call graphs: branches, loops, and wrappers that only mark a region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import GraphModule, Node

from .. import ir
from .arguments import anything
from .builder import BlockBuilder
from .errors import Unsupported

if TYPE_CHECKING:
    from .graph import GraphImporter

Handler = Callable[["GraphImporter", Node], None]


def import_call(graph: GraphImporter, node: Node, target: Any) -> None:
    """Import a call of a higher-order operator.

    Raises:
        Unsupported: the operator is not among those that this module knows.
    """
    name = getattr(target, "__name__", None) or target.name()
    handler = _HANDLERS.get(name)
    if handler is None:
        raise Unsupported(f"the higher-order operator {name!r} is not imported")
    handler(graph, node)


def _subgraph(graph: GraphImporter, node: Any, role: str) -> GraphModule:
    target = graph.attribute_of(node) if isinstance(node, Node) else node
    if not isinstance(target, GraphModule):
        raise Unsupported(f"a graph is wanted, not {type(target).__name__}", role)
    return target


def _inline(
    graph: GraphImporter, body: GraphModule, inputs: Sequence[ir.Value], builder: BlockBuilder
) -> list[ir.Value]:
    """Import `body` at the end of the block of `builder`; its results, None ones included."""
    inner = type(graph).create(graph.module, builder, graph.symbols)
    placeholders = [node for node in body.graph.nodes if node.op == "placeholder"]
    if len(placeholders) != len(inputs):
        raise Unsupported(f"a graph of {len(placeholders)} inputs is given {len(inputs)}")
    for placeholder, value in zip(placeholders, inputs, strict=True):
        inner.bind(placeholder, value)
    inner.import_nodes(body.graph.nodes)
    output = next(node for node in reversed(body.graph.nodes) if node.op == "output")
    results = output.args[0]
    if not isinstance(results, (list, tuple)):
        results = [results]
    return [inner.output(value) for value in results]


def _conform(builder: BlockBuilder, value: ir.Value, wanted: ir.Type) -> ir.Value:
    """A tensor that is known with more or fewer static sizes than `wanted` tells."""
    if value.type == wanted:
        return value
    return builder.value("torch.tensor_static_info_cast", wanted, [value])


def _region(graph: GraphImporter, region: ir.Region, inputs: Sequence[ir.Type]) -> BlockBuilder:
    with graph.builder.location:
        block = ir.Block.create_at_start(region, list(inputs))
    builder = BlockBuilder(block, graph.types, graph.module.literals)
    builder.location = graph.builder.location
    return builder


def _bind_results(graph: GraphImporter, node: Node, results: Sequence[ir.Value]) -> None:
    if isinstance(node.meta.get("val"), (list, tuple)):
        graph.bind(node, list(results))
    else:
        graph.bind(node, results[0])


def _result_types(graph: GraphImporter, node: Node) -> list[ir.Type]:
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else [value]
    return [graph.types.of_value(value) for value in values]


def _as_bool(graph: GraphImporter, builder: BlockBuilder, value: ir.Value) -> ir.Value:
    if value.type == graph.types.bool:
        return value
    return builder.value("torch.aten.Bool.Tensor", graph.types.bool, [value])


def _cond(graph: GraphImporter, node: Node) -> None:
    """`cond(predicate, true graph, false graph, operands)` as `torch.prim.If`."""
    predicate, if_true, if_false = node.args[:3]
    operands = node.args[3] if len(node.args) > 3 else ()
    inputs = [anything(graph, operand) for operand in operands]
    builder, results = graph.builder, _result_types(graph, node)
    condition = _as_bool(graph, builder, anything(graph, predicate))
    branches = (
        _subgraph(graph, if_true, "true_fn"),
        _subgraph(graph, if_false, "false_fn"),
    )
    choice = builder.emit("torch.prim.If", results, [condition], regions=2)
    for region, body in zip(choice.regions, branches, strict=True):
        branch = _region(graph, region, ())
        values = _inline(graph, body, inputs, branch)
        branch.emit(
            "torch.prim.If.yield",
            [],
            [
                _conform(branch, value, wanted)
                for value, wanted in zip(values, results, strict=True)
            ],
        )
    _bind_results(graph, node, choice.results)


def _while_loop(graph: GraphImporter, node: Node) -> None:
    """`while_loop(condition graph, body graph, carried, captured)` as `torch.prim.Loop`."""
    condition = _subgraph(graph, node.args[0], "cond_fn")
    body = _subgraph(graph, node.args[1], "body_fn")
    builder, results = graph.builder, _result_types(graph, node)
    carried = [
        _conform(builder, anything(graph, value), wanted)
        for value, wanted in zip(node.args[2], results, strict=True)
    ]
    captured = [anything(graph, arg) for arg in (node.args[3] if len(node.args) > 3 else ())]
    (first,) = _inline(graph, condition, [*carried, *captured], builder)
    bound = builder.constant(torch.iinfo(torch.int64).max)
    start = _as_bool(graph, builder, first)
    loop = builder.emit("torch.prim.Loop", results, [bound, start, *carried], regions=1)
    inside = _region(graph, loop.regions[0], [graph.types.int, *results])
    values = [
        _conform(inside, value, wanted)
        for value, wanted in zip(
            _inline(graph, body, [*list(inside.block.arguments)[1:], *captured], inside),
            results,
            strict=True,
        )
    ]
    (again,) = _inline(graph, condition, [*values, *captured], inside)
    inside.emit("torch.prim.Loop.condition", [], [_as_bool(graph, inside, again), *values])
    _bind_results(graph, node, loop.results)


def _wrapper(body_position: int) -> Handler:
    """A marked region, such as one without gradients: its graph is imported in place."""

    def handle(graph: GraphImporter, node: Node) -> None:
        body = _subgraph(graph, node.args[body_position], "wrapped_func")
        inputs = [anything(graph, arg) for arg in node.args[body_position + 1 :]]
        _bind_results(graph, node, _inline(graph, body, inputs, graph.builder))

    return handle


def _auto_functionalized(graph: GraphImporter, node: Node) -> None:
    """An operator that writes to operands, as one that also returns what it wrote."""
    (target,) = node.args
    _emit_functionalized(graph, node, target, node.kwargs)


def _auto_functionalized_v2(graph: GraphImporter, node: Node) -> None:
    """As above, where the operands that are written to are given as bases and views of them."""
    (target,) = node.args
    bases = node.kwargs.get("_all_bases", ())
    kwargs = {k: v for k, v in node.kwargs.items() if not k.startswith("_")}
    for name in [argument.name for argument in target._schema.arguments]:
        base = node.kwargs.get(f"_{name}_base_index")
        if base is None:
            continue
        views = [
            key
            for key in node.kwargs
            if key.startswith(f"_{name}_") and key not in (f"_{name}_base_index", f"_{name}_alias")
        ]
        if views or not isinstance(base, int):
            raise Unsupported("a view that the operator writes to is not imported", name)
        kwargs[name] = bases[base]
    _emit_functionalized(graph, node, target, kwargs)


def _emit_functionalized(
    graph: GraphImporter, node: Node, target: Any, kwargs: dict[str, Any]
) -> None:
    signature = graph.module.signature(target)
    operands = graph.operands(signature, (), kwargs)
    values = node.meta["val"]
    # An operator without results has a None before what it wrote.
    types = [graph.types.of_value(value) for value in values if value is not None]
    operation = graph.builder.operator(signature.name, types, operands)
    made = iter(operation.results)
    graph.bind(node, [None if value is None else next(made) for value in values])


_HANDLERS: dict[str, Handler] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "wrap_with_set_grad_enabled": _wrapper(1),
    "wrap_with_autocast": _wrapper(4),
    "auto_functionalized": _auto_functionalized,
    "auto_functionalized_v2": _auto_functionalized_v2,
}
