# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that write to operands, called so that they return what they wrote.

As in upstream's importer, the operation has the name and the operands of PyTorch's operator, and
its results are the operator's followed by the new contents of what it writes to, in the order of
the arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from ... import ir
from ..errors import Unsupported
from .regions import Handler

if TYPE_CHECKING:
    from ..graph import GraphImporter


def _auto_functionalized(graph: GraphImporter, node: Node) -> None:
    """The operands that are written to are values, and the results their new contents."""
    target, *rest = node.args
    # PyTorch 2.2 gives the names of what is written to, and the operands as one dictionary.
    kwargs: Any = rest[1] if rest else node.kwargs
    signature = graph.module.signature(target)
    operands = graph.operands(signature, (), kwargs)
    values = node.meta["val"]
    count = sum(map(_is_written, target._schema.arguments))
    own, written = values[: len(values) - count], values[len(values) - count :]
    # An operator without results has a None before what it wrote.
    types = [graph.types.of_value(value) for value in own if value is not None]
    for value in written:
        types += [graph.types.of_value(part) for part in _parts(value)]
    made = iter(graph.builder.operator(signature.name, types, operands).results)
    results: list[ir.Value | None] = [None if value is None else next(made) for value in own]
    for value in written:
        parts = [next(made) for _ in _parts(value)]
        if isinstance(value, (list, tuple)):
            results.append(graph.builder.list_of("vtensor", parts))
        else:
            results += parts if parts else [None]
    graph.bind(node, [*results])


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _parts(value: Any) -> Sequence[Any]:
    """The tensors of what an operator writes to: one, those of a list, or none."""
    if value is None:
        return ()
    return value if isinstance(value, (list, tuple)) else (value,)


def _auto_functionalized_v2(graph: GraphImporter, node: Node) -> None:
    """The operands that are written to are views of bases; the results the bases' new contents."""
    (target,) = node.args
    signature = graph.module.signature(target)
    bases = [graph.value(base) for base in node.kwargs["_all_bases"]]
    fakes = [base.meta["val"] for base in node.kwargs["_all_bases"]]
    views: list[_View] = []
    kwargs = {name: arg for name, arg in node.kwargs.items() if not name.startswith("_")}
    places: dict[str, list[_View | None]] = {}
    for argument in target._schema.arguments:
        if not _is_written(argument):
            continue
        name = argument.name
        prefixes = [f"_{name}"]
        if f"_{name}_length" in node.kwargs:
            length = node.kwargs[f"_{name}_length"]
            prefixes = [f"_{name}_{i}" for i in range(length or 0)]
            if length is None:
                kwargs[name] = None
                continue
        read = [_View.read(node.kwargs, prefix) for prefix in prefixes]
        views.extend(view for view in read if view is not None)
        places[name] = read
    for one, other in itertools.combinations(views, 2):
        if one.base == other.base and not _View.are_apart(one, other, fakes):
            raise Unsupported(
                "two operands that are written to are views of the same tensor, and may overlap"
            )
    parameters = {parameter.name: parameter for parameter in signature.parameters}
    operands = []
    for name, parameter in parameters.items():
        if name not in places:
            arg = kwargs.get(name, parameter.default)
            operands.append(parameter.convert(graph, arg))
            continue
        parts = [
            graph.builder.constant(None) if view is None else view.take(graph, bases, fakes)
            for view in places[name]
        ]
        if f"_{name}_length" in node.kwargs:
            operands.append(graph.builder.list_of("vtensor", parts))
        else:
            operands.append(parts[0])
    own = node.meta["val"][: len(node.meta["val"]) - len(bases)]
    kinds = [graph.types.of_value(value) for value in own if value is not None]
    kinds += [view.kind(graph, fakes) for view in views]
    results = list(graph.builder.operator(signature.name, kinds, operands).results)
    count = len(kinds) - len(views)
    made = iter(results[:count])
    for view, contents in zip(views, results[count:], strict=True):
        bases[view.base] = view.put(graph, bases, fakes, contents)
    graph.bind(node, [*(None if value is None else next(made) for value in own), *bases])


class _View:
    """How an operand is a part of a base, as `auto_functionalized_v2` writes it down."""

    def __init__(self, base: int, operator: str, args: tuple[Any, ...]) -> None:
        self.base = base
        self.operator = operator
        self.args = args

    @staticmethod
    def read(kwargs: Any, prefix: str) -> _View | None:
        """The view of the operand whose keywords begin with `prefix`; None for no tensor."""
        base = kwargs[f"{prefix}_base_index"]
        if base is None:
            return None
        if f"{prefix}_storage_offset" in kwargs:
            names: tuple[str, ...] = ("size", "stride", "storage_offset")
            operator = "as_strided"
        elif f"{prefix}_slice_dim" in kwargs:
            names = ("slice_dim", "slice_start", "slice_end")
            operator = "slice"
        else:
            # The base itself, or an alias of it.
            names, operator = (), ""
        return _View(base, operator, tuple(kwargs[f"{prefix}_{name}"] for name in names))

    @staticmethod
    def are_apart(one: _View, other: _View, fakes: list[Any]) -> bool:
        """Whether two views of one base are known to have no element in common."""
        ranges = [view.range_along_axis(fakes) for view in (one, other)]
        left, right = ranges
        first: Any
        second: Any
        if left is not None and right is not None and left[0] == right[0]:
            first, second = left[1:], right[1:]
        else:
            first, second = (_reach(view.fake(fakes)) for view in (one, other))
        bounds = [*first, *second]
        if not all(isinstance(bound, int) for bound in bounds):
            return False
        return bool(first[1] <= second[0] or second[1] <= first[0])

    def range_along_axis(self, fakes: list[Any]) -> tuple[Any, Any, Any] | None:
        """A slice's axis, and the first and the last index plus one; None for other views."""
        if self.operator != "slice":
            return None
        axis, start, _ = self.args
        start = 0 if start is None else start
        base = fakes[self.base]
        if isinstance(start, int) and start < 0:
            start = start + base.shape[axis]
        return axis % base.dim(), start, start + self.fake(fakes).shape[axis]

    def fake(self, fakes: list[Any]) -> Any:
        """The operand as a fake tensor."""
        base = fakes[self.base]
        if not self.operator:
            return base
        function: Callable[..., Any] = {
            "as_strided": torch.ops.aten.as_strided.default,
            "slice": torch.ops.aten.slice.Tensor,
        }[self.operator]
        args = torch.fx.node.map_arg(self.args, lambda node: node.meta["val"])
        with base.fake_mode:
            return function(base, *args)

    def kind(self, graph: GraphImporter, fakes: list[Any]) -> ir.Type:
        """The operand's type."""
        return graph.types.of_tensor(self.fake(fakes))

    def take(self, graph: GraphImporter, bases: list[ir.Value], fakes: list[Any]) -> ir.Value:
        """The operand, from its base."""
        if not self.operator:
            return bases[self.base]
        target = getattr(torch.ops.aten, self.operator)
        target = target.Tensor if self.operator == "slice" else target.default
        return self._emit(graph, target, [bases[self.base]], self.kind(graph, fakes))

    def put(
        self, graph: GraphImporter, bases: list[ir.Value], fakes: list[Any], contents: ir.Value
    ) -> ir.Value:
        """The base with new contents for the operand."""
        if not self.operator:
            return contents
        target = getattr(torch.ops.aten, f"{self.operator}_scatter").default
        kind = graph.types.of_tensor(fakes[self.base])
        return self._emit(graph, target, [bases[self.base], contents], kind)

    def _emit(
        self, graph: GraphImporter, target: Any, tensors: list[ir.Value], kind: ir.Type
    ) -> ir.Value:
        signature = graph.module.signature(target)
        operands = list(tensors)
        for parameter, arg in zip(signature.parameters[len(tensors) :], self.args, strict=False):
            operands.append(parameter.convert(graph, arg))
        for parameter in signature.parameters[len(operands) :]:
            operands.append(parameter.convert(graph, parameter.default))
        return graph.operation(signature.name.removeprefix("torch."), [kind], operands).results[0]


def _reach(tensor: Any) -> tuple[Any, Any]:
    """The places in its storage between which the elements of a tensor are."""
    start = tensor.storage_offset()
    spans = zip(tensor.shape, tensor.stride(), strict=True)
    return start, start + 1 + sum((size - 1) * stride for size, stride in spans)


HANDLERS: dict[str, Handler] = {
    "auto_functionalized": _auto_functionalized,
    "auto_functionalized_v2": _auto_functionalized_v2,
}
