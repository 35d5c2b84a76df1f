# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flex attention, by PyTorch's own implementation of it: the scores as one tensor."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from torch.fx import Node

from .regions import Handler, inline_traced, outputs

if TYPE_CHECKING:
    from ..graph import GraphImporter


def _flex_attention(graph: GraphImporter, node: Node) -> None:
    # Values have no strides: the implementation without the copy to the query's.
    from torch._higher_order_ops.flex_attention import math_attention

    inline_traced(graph, node, _with_as_many_results(math_attention, node))


def _flex_attention_backward(graph: GraphImporter, node: Node) -> None:
    from torch._higher_order_ops.flex_attention import sdpa_dense_backward

    parameters = inspect.signature(sdpa_dense_backward)

    def backward(*args: Any, **kwargs: Any) -> Any:
        call = parameters.bind(*args, **kwargs)
        given = call.arguments
        # Gradients are wanted of the captured tensors that the graph of the score's gradient
        # gives one for; the implementation asks the tensors, and those of a graph don't tell.
        _, _, _, _, _, *gradients = outputs(given["joint_graph"])
        given["score_mod_other_buffers"] = tuple(
            captured if gradient is None else captured.detach().requires_grad_()
            for captured, gradient in zip(
                given.get("score_mod_other_buffers", ()), gradients, strict=True
            )
        )
        return sdpa_dense_backward(*call.args, **call.kwargs)

    inline_traced(graph, node, backward)


def _with_as_many_results(function: Any, node: Node) -> Any:
    """Releases differ in whether the greatest scores are told."""
    count = len(node.meta["val"])
    return lambda *args, **kwargs: function(*args, **kwargs)[:count]


HANDLERS: dict[str, Handler] = {
    "flex_attention": _flex_attention,
    "flex_attention_backward": _flex_attention_backward,
}
