# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators with effects, which PyTorch orders by tokens that go from one to the next.

In MLIR the order of the operations is the order of their effects: tokens are left out.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from torch._ops import OpOverload
from torch.fx import Node

from ..arguments import anything
from ..errors import Unsupported
from .regions import Handler

if TYPE_CHECKING:
    from ..graph import GraphImporter


def _with_effects(graph: GraphImporter, node: Node) -> None:
    """`with_effects(token, operator, …)` gives the next token and the operator's results."""
    target, *args = node.args[1:]
    name = getattr(target, "__name__", "")
    if name == "print":
        _emit_print(graph, args, node.kwargs)
        graph.bind(node, [None])
        return
    if not isinstance(target, OpOverload):
        raise Unsupported(f"the higher-order operator {name!r} with effects is not imported")
    signature = graph.module.signature(target)
    operands = graph.operands(signature, tuple(args), node.kwargs)
    values = [value for value in node.meta["val"][1:] if value is not None]
    types = [graph.types.of_value(value) for value in values]
    append = graph.builder.emit if signature.in_dialect else graph.builder.operator
    operation = append(signature.name, types, operands)
    graph.bind(node, [None, *operation.results])


def _print(graph: GraphImporter, node: Node) -> None:
    """`print(format, name=value, …)`, as Python's `str.format` has it."""
    _emit_print(graph, node.args, node.kwargs)
    graph.bind(node, graph.builder.constant(None))


def _emit_print(graph: GraphImporter, args: Any, kwargs: Any) -> None:
    """`aten::format` knows no names and no escapes: values come in the order of their places.

    Floats and tensors are printed as TorchScript prints them: `3.` for 3.0.
    """
    pieces, values = [""], []
    for literal, field, spec, conversion in string.Formatter().parse(args[0]):
        pieces[-1] += literal
        if field is None:
            continue
        if spec or conversion or field not in kwargs:
            raise Unsupported(f"the field {field!r} of the format {args[0]!r} is not imported")
        # Braces of the text are a value, or they would be a place for one.
        values += [graph.builder.constant("{}")] * pieces[-1].count("{}")
        values.append(anything(graph, kwargs[field]))
        pieces.append("")
    values += [graph.builder.constant("{}")] * pieces[-1].count("{}")
    text = "{}".join(pieces)
    types = graph.types
    operands = [graph.builder.constant(text), *values]
    formatted = graph.operation("aten.format", [types.str], operands).results[0]
    graph.operation("prim.Print", [], [formatted])


HANDLERS: dict[str, Handler] = {"with_effects": _with_effects, "print": _print}
