# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that call graphs, or that wrap another operator.

Each family has a file of its own, with one function for each of its operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.fx import Node

from ..errors import Unsupported
from . import attention, control_flow, effects, functionalized, loops, wrappers
from .regions import Handler

if TYPE_CHECKING:
    from ..graph import GraphImporter

__all__ = ["HANDLERS", "import_call"]

HANDLERS: dict[str, Handler] = {
    **attention.HANDLERS,
    **control_flow.HANDLERS,
    **effects.HANDLERS,
    **functionalized.HANDLERS,
    **loops.HANDLERS,
    **wrappers.HANDLERS,
}
"""What imports a call of each operator, by the operator's name."""


def import_call(graph: GraphImporter, node: Node, target: Any) -> None:
    """Import a call of a higher-order operator.

    Raises:
        Unsupported: the operator is not among those in `HANDLERS`, or its call is not supported.
    """
    name = getattr(target, "__name__", None) or target.name()
    handler = HANDLERS.get(name)
    if handler is None:
        raise Unsupported(f"the higher-order operator {name!r} is not imported{_what(node, name)}")
    handler(graph, node)


def _what(node: Node, name: str) -> str:
    """What a call is about, where its operator's name alone doesn't tell."""
    if not name.startswith("triton_kernel_wrapper"):
        return ""
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    kernel: Any = kernel_side_table.get_kernel(node.kwargs["kernel_idx"])
    function = getattr(kernel, "fn", kernel)
    called = getattr(function, "__name__", type(function).__name__)
    return f": the Triton kernel {called!r} is written for a GPU; give it an operator's form"
