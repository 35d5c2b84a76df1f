# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that are imported as another one, because consumers know that other one.

A rewrite looks at a node and answers with a call: operator and arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from ..pytorch import aten_operator


class Call(NamedTuple):
    """An operator overload and what it is called with."""

    target: Any
    args: tuple
    kwargs: dict[str, Any]


Rewrite = Callable[[Node], Call]
aten = torch.ops.aten


def _lift_fresh_copy(node: Node) -> Call:
    return Call(aten.clone.default, node.args[:1], {"memory_format": None})


def _local_scalar_dense(node: Node) -> Call:
    # Its schema gives a Scalar; which one, the dtype of the tensor tells.
    value = node.meta.get("val")
    if isinstance(value, (bool, torch.SymBool)):
        return Call(aten.Bool.Tensor, node.args[:1], {})
    if isinstance(value, (int, torch.SymInt)):
        return Call(aten.Int.Tensor, node.args[:1], {})
    if isinstance(value, complex):
        return Call(aten.ComplexImplicit.default, node.args[:1], {})
    return Call(aten.Float.Tensor, node.args[:1], {})


def _unsafe_index_put(node: Node) -> Call:
    return Call(aten.index_put.default, node.args, dict(node.kwargs))


def _embedding_bag_forward_only(node: Node) -> Call:
    # The two differ in how they say that nothing is padding: -1 and None.
    target: Any = node.target
    names = [argument.name for argument in target._schema.arguments]
    defaults = {a.name: a.default_value for a in target._schema.arguments[3:]}
    given = defaults | dict(zip(names, node.args)) | dict(node.kwargs)
    if given["padding_idx"] == -1:
        given["padding_idx"] = None
    return Call(aten.embedding_bag.padding_idx, tuple(given[name] for name in names), {})


def _empty(node: Node) -> Call:
    # baddbmm with beta=0 ignores its first operand, NaNs included; a lowering that multiplies
    # does not, so what it is given must be finite.
    only_user = next(iter(node.users)) if len(node.users) == 1 else None
    if only_user is not None and only_user.target is aten.baddbmm.default:
        kwargs = {k: v for k, v in node.kwargs.items() if k != "memory_format"}
        return Call(aten.zeros.default, node.args, kwargs)
    return Call(node.target, node.args, dict(node.kwargs))


def _full(node: Node) -> Call:
    # A bool fills with bools, but is written as the int 0 or 1: the dtype has to tell.
    kwargs = dict(node.kwargs)
    value = node.meta.get("val")
    if kwargs.get("dtype") is None and isinstance(value, torch.Tensor):
        kwargs["dtype"] = value.dtype
    return Call(node.target, node.args, kwargs)


# The size, stride and element count of a tensor: FX has operators of its own for the symbolic
# ones. PyTorch 2.1 calls the packet, without an overload.
_SYMBOLIC = {"sym_size": "size", "sym_stride": "stride", "sym_numel": "numel"}


def _symbolic(name: str) -> Rewrite:
    def rewrite(node: Node) -> Call:
        packet = getattr(aten, name)
        overload = "int" if len(node.args) == 2 else "default"
        return Call(getattr(packet, overload), node.args, {})

    return rewrite


def _table() -> dict[Any, Rewrite]:
    by_name: dict[str, Rewrite] = {
        "lift_fresh_copy.default": _lift_fresh_copy,
        "_local_scalar_dense.default": _local_scalar_dense,
        "item.default": _local_scalar_dense,
        "_unsafe_index_put.default": _unsafe_index_put,
        "_embedding_bag_forward_only.default": _embedding_bag_forward_only,
        "empty.memory_format": _empty,
        "full.default": _full,
        "full_like.default": _full,
        "new_full.default": _full,
        "scalar_tensor.default": _full,
    }
    found = {aten_operator(name): rewrite for name, rewrite in by_name.items()}
    found.pop(None, None)
    for symbolic, plain in _SYMBOLIC.items():
        packet = getattr(aten, symbolic)
        found[packet] = _symbolic(plain)
        for overload in packet.overloads():
            found[getattr(packet, overload)] = _symbolic(plain)
    return found


REWRITES = _table()


def scalar_overload(target: Any, args: tuple) -> Any:
    """The overload for a scalar second operand, where `target` is the one for tensors.

    Tracing leaves `aten.add.Tensor(x, 2)`, which PyTorch's dispatcher would promote.
    """
    name = target._overloadname
    if name == "Tensor" or name == "Tensor_mode":
        wanted = name.replace("Tensor", "Scalar")
    elif target is aten.floor_divide.default:
        wanted = "Scalar"
    else:
        return target
    packet = target._overloadpacket
    if wanted not in packet.overloads():
        return target
    scalar = getattr(packet, wanted)
    ours, theirs = target._schema.arguments, scalar._schema.arguments
    alike = len(ours) == len(theirs) and ours[0].type.kind() == theirs[0].type.kind()
    return scalar if alike else target
