# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flex attention, by PyTorch's own implementation of it: the scores as one tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.fx import Node

from .regions import Handler, inline_traced

if TYPE_CHECKING:
    from ..graph import GraphImporter


def _flex_attention(graph: GraphImporter, node: Node) -> None:
    # Values have no strides: the implementation without the copy to the query's.
    from torch._higher_order_ops.flex_attention import math_attention

    inline_traced(graph, node, _with_as_many_results(math_attention, node))


def _flex_attention_backward(graph: GraphImporter, node: Node) -> None:
    from torch._higher_order_ops.flex_attention import sdpa_dense_backward

    inline_traced(graph, node, sdpa_dense_backward)


def _with_as_many_results(function: Any, node: Node) -> Any:
    """Releases differ in whether the greatest scores are told."""
    count = len(node.meta["val"])
    return lambda *args, **kwargs: function(*args, **kwargs)[:count]


HANDLERS: dict[str, Handler] = {
    "flex_attention": _flex_attention,
    "flex_attention_backward": _flex_attention_backward,
}
