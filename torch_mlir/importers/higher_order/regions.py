# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs within a graph: imported in place, in a region, or traced anew."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_flatten, tree_unflatten

from ... import ir
from ..arguments import anything
from ..builder import BlockBuilder
from ..decompositions import get_decomposition_table
from ..errors import Unsupported

if TYPE_CHECKING:
    from ..graph import GraphImporter, Result

Handler = Callable[["GraphImporter", Node], None]


def subgraph(graph: GraphImporter, node: Any, role: str) -> GraphModule:
    """The graph that an argument refers to.

    Raises:
        Unsupported: it refers to something else.
    """
    target = graph.attribute_of(node) if isinstance(node, Node) else node
    if not isinstance(target, GraphModule):
        raise Unsupported(f"a graph is wanted, not {type(target).__name__}", role)
    return target


def inline(
    graph: GraphImporter, body: GraphModule, inputs: Sequence[ir.Value], builder: BlockBuilder
) -> list[ir.Value]:
    """Import `body` at the end of the block of `builder`; its results, None ones included.

    Raises:
        Unsupported: the graph takes another number of inputs.
    """
    inner = type(graph).create(graph.module, builder, graph.symbols)
    placeholders = [node for node in body.graph.nodes if node.op == "placeholder"]
    if len(placeholders) != len(inputs):
        raise Unsupported(f"a graph of {len(placeholders)} inputs is given {len(inputs)}")
    for placeholder, value in zip(placeholders, inputs, strict=True):
        inner.bind(placeholder, value)
    inner.import_nodes(body.graph.nodes)
    return [inner.output(value) for value in outputs(body)]


def outputs(body: GraphModule) -> Sequence[Any]:
    """What a graph returns: nodes and constants."""
    output = next(node for node in reversed(body.graph.nodes) if node.op == "output")
    returned = output.args[0]
    return returned if isinstance(returned, (list, tuple)) else [returned]


def conform(builder: BlockBuilder, value: ir.Value, wanted: ir.Type) -> ir.Value:
    """A tensor that is known with more or fewer static sizes than `wanted` tells."""
    if value.type == wanted:
        return value
    return builder.value("torch.tensor_static_info_cast", wanted, [value])


def region(graph: GraphImporter, target: ir.Region, inputs: Sequence[ir.Type]) -> BlockBuilder:
    """What fills the one block of a region, whose arguments have the types `inputs`."""
    with graph.builder.location:
        block = ir.Block.create_at_start(target, list(inputs))
    builder = BlockBuilder(block, graph.types, graph.module.literals)
    builder.location = graph.builder.location
    return builder


def bind_results(graph: GraphImporter, node: Node, results: Sequence[Result]) -> None:
    """Let `node` stand for the results of what it calls."""
    if isinstance(node.meta.get("val"), (list, tuple)):
        graph.bind(node, list(results))
    else:
        (result,) = results
        assert isinstance(result, ir.Value)
        graph.bind(node, result)


def result_types(graph: GraphImporter, node: Node) -> list[ir.Type]:
    """The types of the results of what `node` calls."""
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else [value]
    return [graph.types.of_value(value) for value in values]


def as_bool(graph: GraphImporter, builder: BlockBuilder, value: ir.Value) -> ir.Value:
    """A condition, from a bool or a tensor of one element."""
    if value.type == graph.types.bool:
        return value
    return builder.value("torch.aten.Bool.Tensor", graph.types.bool, [value])


def inline_traced(graph: GraphImporter, node: Node, function: Callable[..., Any]) -> None:
    """Import what `function` does with the arguments of `node`, which are traced through it.

    `function` is PyTorch's own implementation of the operator. Nodes among the arguments become
    inputs of the trace, subgraphs are called in it, and all else is as it is.

    Raises:
        Unsupported: PyTorch does not trace it.
    """
    from torch._dispatch.python import enable_python_dispatcher
    from torch._guards import detect_fake_mode
    from torch.fx.experimental.proxy_tensor import make_fx

    leaves, spec = tree_flatten((node.args, node.kwargs))
    filled: list[Any] = []
    inputs: list[Node] = []
    places: list[int] = []
    examples: list[Any] = []
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, Node):
            value = _example(graph, leaf)
            if isinstance(value, GraphModule):
                leaf = value
            else:
                places.append(place)
                inputs.append(leaf)
                examples.append(value)
        filled.append(leaf)

    def call(*values: Any) -> Any:
        arguments = list(filled)
        for place, value in zip(places, values, strict=True):
            arguments[place] = value
        args, kwargs = tree_unflatten(arguments, spec)
        return tree_flatten(function(*args, **kwargs))[0]

    try:
        # Tensors made of nothing but open sizes have to be fake too, and sizes stay open in
        # PyTorch's kernels in Python, but not in all of those in C++.
        mode = detect_fake_mode(examples)
        with torch.no_grad(), mode or nullcontext(), enable_python_dispatcher():
            fakes = [_as_fake(value, mode) for value in examples]
            written = make_fx(call, _allow_non_fake_inputs=True)(*fakes)
            body = make_fx(
                torch.func.functionalize(written),
                decomposition_table=get_decomposition_table(),
                _allow_non_fake_inputs=True,
            )(*fakes)
    except Exception as problem:
        raise Unsupported(
            f"PyTorch does not trace its implementation: {type(problem).__name__}: {problem}"
        ) from problem
    for made in body.graph.nodes:
        made.meta.setdefault("stack_trace", node.meta.get("stack_trace"))
    wanted = node.meta["val"]
    several = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    computed = outputs(body)
    ends = list(itertools.accumulate(len(tree_flatten(value)[0]) for value in several))
    if ends[-1] != len(computed):
        raise Unsupported(f"{ends[-1]} results are recorded, and there are {len(computed)}")
    read = _read(node, len(several))
    kept = [
        leaf
        for place, value in enumerate(several)
        for leaf in range(ends[place] - len(tree_flatten(value)[0]), ends[place])
        if place in read and computed[leaf] is not None
    ]
    _keep_outputs(body, kept)
    values = [anything(graph, leaf) for leaf in inputs]
    expected, structure = tree_flatten(several)
    results: list[ir.Value | None] = [None] * len(computed)
    for place, value in zip(kept, inline(graph, body, values, graph.builder), strict=True):
        if isinstance(expected[place], torch.Tensor):
            value = conform(graph.builder, value, graph.types.of_value(expected[place]))
        results[place] = value
    nested = tree_unflatten(results, structure)
    bind_results(graph, node, [_as_list(result) for result in nested])


def _example(graph: GraphImporter, arg: Node) -> Any:
    """What stands for an argument in a trace: its recorded value, or what it refers to.

    Raises:
        Unsupported: there is neither.
    """
    if "val" in arg.meta:
        return arg.meta["val"]
    if arg.op == "get_attr":
        return graph.attribute_of(arg)
    raise Unsupported(f"node {arg.name!r} records no value (`val`)")


def _as_fake(value: Any, mode: Any) -> Any:
    is_real = isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor)
    return value if mode is None or not is_real else mode.from_tensor(value)


def _as_list(result: Any) -> Any:
    return [_as_list(part) for part in result] if isinstance(result, (list, tuple)) else result


def _read(node: Node, count: int) -> Sequence[int]:
    """The places of those of a node's results that other nodes read."""
    if not isinstance(node.meta["val"], (list, tuple)):
        return [0]
    if any(user.target is not operator.getitem for user in node.users):
        return range(count)
    return [user.args[1] for user in node.users]


def _keep_outputs(body: GraphModule, places: Sequence[int]) -> None:
    """Let a graph give the outputs at `places`, and compute nothing for the others."""
    output = next(node for node in reversed(body.graph.nodes) if node.op == "output")
    every = outputs(body)
    output.args = (tuple(every[place] for place in places),)
    body.graph.eliminate_dead_code()
