# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program asserts while it runs: `torch.runtime.assert`, or nothing where it always holds.

PyTorch has an operator for each kind of check. A check of scalars becomes the condition that it
stands for; one whose outcome the graph already tells is left out; one that fails whatever the
inputs are stays in the program, where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from .. import ir
from ..pytorch import aten_operator
from .arguments import number
from .errors import Unsupported

if TYPE_CHECKING:
    from .graph import GraphImporter

# Imports a check, or answers False: it is to be imported as the operator that it is.
Check = Callable[["GraphImporter", Node], bool]


def _arguments(node: Node) -> Mapping[str, Any]:
    """The arguments of a call by name, defaults included.

    Raises:
        Unsupported: one that has no default is missing.
    """
    given: dict[str, Any] = {}
    target: Any = node.target
    for position, argument in enumerate(target._schema.arguments):
        if position < len(node.args):
            given[argument.name] = node.args[position]
        elif argument.name in node.kwargs:
            given[argument.name] = node.kwargs[argument.name]
        elif argument.has_default_value():
            given[argument.name] = argument.default_value
        else:
            raise Unsupported("the call does not give it", argument.name)
    return given


def require(graph: GraphImporter, condition: ir.Value, message: str) -> None:
    """Stop the program with `message` unless `condition`, a `!torch.bool`, holds."""
    attribute = ir.StringAttr.get(message, graph.types.context)
    graph.builder.emit("torch.runtime.assert", [], [condition], {"message": attribute})


def _assert_scalar(graph: GraphImporter, node: Node) -> bool:
    given = _arguments(node)
    condition, message = given["self"], given["assert_msg"]
    if not isinstance(condition, Node):
        if not condition:
            require(graph, graph.builder.constant(False), message)
        return True
    value = graph.value(condition)
    require(graph, graph.coerce(value, graph.types.bool), message)
    return True


def _assert_async(graph: GraphImporter, node: Node) -> bool:
    given = _arguments(node)
    types, condition = graph.types, given["self"]
    if not isinstance(condition, Node):
        raise Unsupported(f"a tensor is wanted, not {type(condition).__name__}", "self")
    value = graph.value(condition)
    if condition not in graph.scalars:
        value = graph.operation("aten.Bool.Tensor", [types.bool], [value]).results[0]
    message = given.get("assert_msg", "Expected Tensor with single nonzero value")
    require(graph, graph.coerce(value, types.bool), message)
    return True


def _assert_tensor_metadata(graph: GraphImporter, node: Node) -> bool:
    given = _arguments(node)
    tensor = given["a"].meta.get("val") if isinstance(given["a"], Node) else given["a"]
    if not isinstance(tensor, torch.Tensor):
        return False
    actual = {
        "size": tensor.shape if tensor.layout is torch.strided else None,
        "stride": tensor.stride() if tensor.layout is torch.strided else None,
        "dtype": tensor.dtype,
        "device": tensor.device,
        "layout": tensor.layout,
    }
    return all(
        wanted is None or name not in actual or _surely_equal(actual[name], wanted)
        for name, wanted in given.items()
        if name != "a"
    )


def _surely_equal(actual: Any, wanted: Any) -> bool:
    if isinstance(wanted, (list, tuple)):
        sizes = [_size(size) for size in wanted]
        return len(actual) == len(sizes) and all(map(_surely_equal, actual, sizes))
    if isinstance(actual, torch.SymInt) and isinstance(wanted, torch.SymInt):
        # Comparing the two themselves would ask for a guard.
        return bool(actual.node.expr == wanted.node.expr)
    if isinstance(actual, torch.SymInt) or isinstance(wanted, torch.SymInt):
        return False
    if isinstance(actual, torch.device):
        wanted = torch.device(wanted)
        return actual.type == wanted.type and wanted.index in (None, actual.index)
    return bool(actual == wanted)


def _size(size: Any) -> Any:
    return size.meta.get("val") if isinstance(size, Node) else size


def _in_range(least: int | None) -> Check:
    """A check that a size lies between `min` and `max`; `least` is what `min` is by default."""

    def check(graph: GraphImporter, node: Node) -> bool:
        given = _arguments(node)
        size = given["size"]
        low = least if given["min"] is None else given["min"]
        for name, sign, limit in (("aten.ge", ">=", low), ("aten.le", "<=", given["max"])):
            if limit is None:
                continue
            if not isinstance(size, Node) and (size >= limit if sign == ">=" else size <= limit):
                continue
            types = graph.types
            pair = [number(graph, value) for value in (size, limit)]
            kind = types.float if any(value.type == types.float for value in pair) else types.int
            pair = [graph.coerce(value, kind) for value in pair]
            name += ".float" if kind == types.float else ".int"
            condition = graph.operation(name, [types.bool], pair).results[0]
            require(graph, condition, f"the size {size} has to be {sign} {limit}")
        return True

    return check


def _table() -> dict[Any, Check]:
    by_name: dict[str, Check] = {
        "_assert_scalar.default": _assert_scalar,
        "_assert_async.default": _assert_async,
        "_assert_async.msg": _assert_async,
        "_assert_tensor_metadata.default": _assert_tensor_metadata,
        "sym_constrain_range.default": _in_range(None),
        "sym_constrain_range_for_size.default": _in_range(0),
    }
    found = {aten_operator(name): check for name, check in by_name.items()}
    found.pop(None, None)
    return found


CHECKS = _table()
