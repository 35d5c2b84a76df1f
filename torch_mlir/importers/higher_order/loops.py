# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`map` and `scan`: one iteration for each slice of tensors, as `torch.prim.Loop`.

What the iterations give is carried as whole tensors, each iteration writing its slice into the
value that it got, so that no tensor changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from ... import ir
from ..arguments import anything
from ..errors import Unsupported
from ..symbols import NotAffine, affine
from .regions import Handler, bind_results, conform, inline, inline_traced, region, subgraph

if TYPE_CHECKING:
    from ..graph import GraphImporter


def _map(graph: GraphImporter, node: Node) -> None:
    """`map(body, tensors, other operands)`; the body takes a slice of each tensor."""
    _, sliced, *rest = node.args
    captured: Any
    if isinstance(sliced, int):
        # PyTorch 2.1 and 2.2 give their number, and then all operands.
        sliced, captured = rest[:sliced], rest[sliced:]
    else:
        (captured,) = rest
    _iterate(graph, node, (), sliced, captured, role="f")


def _scan(graph: GraphImporter, node: Node) -> None:
    """`scan(body, initial values, tensors, other operands)`.

    The body takes the carried values and a slice of each tensor, and gives the next carried
    values and a slice of each result. PyTorch 2.7 and newer write a scan along another axis, or
    backwards, as moves and flips around a plain one; 2.6 gave the axis and the direction.
    """
    _, initial, sliced, *rest = node.args
    axis, backwards = 0, False
    if len(rest) > 1:
        axis, backwards, *rest = rest
    captured = rest[0] if rest else node.kwargs.get("additional_inputs", ())
    _iterate(graph, node, initial, sliced, captured, "combine_fn", axis, backwards)


def _iterate(
    graph: GraphImporter,
    node: Node,
    carried: Any,
    sliced: Any,
    captured: Any,
    role: str,
    axis: int = 0,
    backwards: bool = False,
) -> None:
    """A loop over slices along `axis`, from the last one on if it goes `backwards`.

    Whatever they are, the slices of the results are stacked along their first axis, each in the
    place of the slice that it was made of.
    """
    types, builder = graph.types, graph.builder
    body = subgraph(graph, node.args[0], role)
    fakes = node.meta["val"]
    if any(not isinstance(fake, torch.Tensor) for fake in fakes):
        raise Unsupported("a loop over slices gives tensors and nothing else", role)
    first = [anything(graph, value) for value in carried]
    tensors = [graph.value(value) for value in sliced]
    others = [anything(graph, value) for value in captured]
    results = [types.of_tensor(fake) for fake in fakes]
    sizes = _Sizes(graph, [*sliced, *carried, *captured])
    trips = sizes.of(sliced[0].meta["val"].shape[axis])
    if trips is None:
        trips = builder.value(
            "torch.aten.size.int", types.int, [tensors[0], builder.constant(axis)]
        )
    stacked = [_empty(graph, sizes, fake, kind) for fake, kind in _stacked(fakes, results, first)]
    initial = [
        conform(builder, value, wanted)
        for value, wanted in zip(first, results[: len(first)], strict=True)
    ]
    loop = builder.emit(
        "torch.prim.Loop", results, [trips, builder.constant(True), *initial, *stacked], regions=1
    )
    inside = region(graph, loop.regions[0], [types.int, *results])
    place, *values = list(inside.block.arguments)
    if backwards:
        one = inside.constant(1)
        last = inside.value("torch.aten.sub.int", types.int, [trips, one])
        place = inside.value("torch.aten.sub.int", types.int, [last, place])
    slices = [
        inside.value(
            "torch.aten.select.int",
            types.vtensor(
                [size for number, size in enumerate(whole.shape) if number != axis], whole.dtype
            ),
            [value, inside.constant(axis), place],
        )
        for whole, value in zip((tensor.meta["val"] for tensor in sliced), tensors, strict=True)
    ]
    made = inline(graph, body, [*values[: len(first)], *slices, *others], inside)
    following = [
        conform(inside, value, wanted)
        for value, wanted in zip(made[: len(first)], results[: len(first)], strict=True)
    ]
    for whole, part, kind in zip(
        values[len(first) :], made[len(first) :], results[len(first) :], strict=True
    ):
        following.append(
            inside.value(
                "torch.aten.select_scatter", kind, [whole, part, inside.constant(0), place]
            )
        )
    inside.emit("torch.prim.Loop.condition", [], [inside.constant(True), *following])
    bind_results(graph, node, loop.results)


def _stacked(
    fakes: Sequence[Any], results: Sequence[ir.Type], first: Sequence[ir.Value]
) -> Sequence[tuple[Any, ir.Type]]:
    return list(zip(fakes, results, strict=True))[len(first) :]


class _Sizes:
    """Symbolic sizes as values: read off what a loop is given, or computed from such."""

    def __init__(self, graph: GraphImporter, nodes: Sequence[Any]) -> None:
        self._graph = graph
        self._nodes = [node for node in nodes if isinstance(node, Node)]

    def of(self, size: Any) -> ir.Value | None:
        """A size as a `!torch.int`, None where it is not known from tensors and numbers."""
        if isinstance(size, int):
            return self._graph.builder.constant(size)
        expression = size.node.expr
        found = self._given(expression)
        if found is not None:
            return found
        symbols = sorted(expression.free_symbols, key=str)
        values = [self._given(symbol) for symbol in symbols]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        position = {str(symbol): index for index, symbol in enumerate(symbols)}
        try:
            affine_expression = affine(expression, position, self._graph.builder.context)
        except NotAffine:
            return None
        return self._computed(affine_expression, known)

    def _given(self, expression: Any) -> ir.Value | None:
        graph, builder = self._graph, self._graph.builder
        for node in self._nodes:
            fake = node.meta["val"]
            if isinstance(fake, torch.SymInt) and fake.node.expr == expression:
                return graph.value(node)
            if not isinstance(fake, torch.Tensor):
                continue
            for axis, length in enumerate(fake.shape):
                if isinstance(length, torch.SymInt) and length.node.expr == expression:
                    return builder.value(
                        "torch.aten.size.int",
                        graph.types.int,
                        [graph.value(node), builder.constant(axis)],
                    )
        return None

    def _computed(self, expression: Any, symbols: Sequence[ir.Value]) -> ir.Value:
        builder, kind = self._graph.builder, self._graph.types.int
        if isinstance(expression, ir.AffineConstantExpr):
            return builder.constant(expression.value)
        if isinstance(expression, ir.AffineSymbolExpr):
            return symbols[expression.position]
        name = _ARITHMETIC[type(expression)]
        operands = [self._computed(part, symbols) for part in (expression.lhs, expression.rhs)]
        if name is not None:
            return builder.value(name, kind, operands)
        # A quotient rounded up: that of the negative rounded down, negative.
        negative = builder.value("torch.aten.neg.int", kind, [operands[0]])
        floor = builder.value("torch.aten.floordiv.int", kind, [negative, operands[1]])
        return builder.value("torch.aten.neg.int", kind, [floor])


_ARITHMETIC: dict[type, str | None] = {
    ir.AffineAddExpr: "torch.aten.add.int",
    ir.AffineMulExpr: "torch.aten.mul.int",
    ir.AffineModExpr: "torch.aten.remainder.int",
    ir.AffineFloorDivExpr: "torch.aten.floordiv.int",
    ir.AffineCeilDivExpr: None,
}


def _empty(graph: GraphImporter, sizes: _Sizes, fake: Any, kind: ir.Type) -> ir.Value:
    """A tensor for the slices of a result, all of which will be written."""
    builder = graph.builder
    shape = []
    for size in fake.shape:
        value = sizes.of(size)
        if value is None:
            raise Unsupported(f"the size {size} of a result is not known from the operands'")
        shape.append(value)
    none = builder.constant(None)
    return builder.value(
        "torch.aten.zeros",
        kind,
        [
            builder.list_of("int", shape),
            builder.constant(fake.dtype),
            none,
            builder.constant(fake.device),
            none,
        ],
    )


def _associative_scan(graph: GraphImporter, node: Node) -> None:
    """`associative_scan(body, tensors, other operands)`, by PyTorch's implementation of it.

    PyTorch 2.4 to 2.6 give the axis after the tensors.
    """
    try:
        from torch._higher_order_ops.associative_scan import generic_associative_scan
    except ImportError:
        raise Unsupported("this PyTorch has no implementation of it for CPUs") from None

    def scan(body: Any, tensors: Any, *rest: Any) -> Any:
        axis = rest[0] if rest and isinstance(rest[0], int) else 0
        captured = rest[-1] if rest and isinstance(rest[-1], (list, tuple)) else ()

        def combine(*slices: Any) -> Any:
            return body(*slices, *captured)

        # It takes slices along the first axis of all tensors at once.
        in_parallel = torch.vmap(combine, in_dims=0, out_dims=0)
        scanned = generic_associative_scan(
            in_parallel, [tensor.movedim(axis, 0) for tensor in tensors], 0
        )
        return [result.movedim(0, axis) for result in scanned]

    inline_traced(graph, node, scan)


HANDLERS: dict[str, Handler] = {
    "map": _map,
    "map_impl": _map,
    "scan": _scan,
    "associative_scan": _associative_scan,
}
