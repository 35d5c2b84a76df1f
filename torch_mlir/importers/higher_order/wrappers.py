# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions that are only marked, such as those without gradients: imported in place.

Regions of `torch.autocast` are too, once the casts are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from ..arguments import anything
from .regions import Handler, bind_results, inline, inline_traced, subgraph

if TYPE_CHECKING:
    from ..graph import GraphImporter


def _marked(place: int, inputs: Callable[[Sequence[Any]], Sequence[Any]]) -> Handler:
    """A region whose graph is the argument at `place`; `inputs` picks what the graph takes."""

    def handle(graph: GraphImporter, node: Node) -> None:
        body = subgraph(graph, node.args[place], "wrapped_func")
        values = [anything(graph, arg) for arg in inputs(node.args[place + 1 :])]
        bind_results(graph, node, inline(graph, body, values, graph.builder))

    return handle


def _all(args: Sequence[Any]) -> Sequence[Any]:
    return args


def _first(args: Sequence[Any]) -> Sequence[Any]:
    return args[0]


def _after_name(args: Sequence[Any]) -> Sequence[Any]:
    # The operands came as one tuple at first.
    operands = args[1:]
    return (
        operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    )


def _autocast(graph: GraphImporter, node: Node) -> None:
    """A region whose operators cast their operands, which its graph does not tell."""

    def run(device: str, dtype: Any, enabled: bool, cached: Any, body: Any, *args: Any) -> Any:
        # Kept casts would be those of another trace.
        with torch.autocast(device, dtype=dtype, enabled=enabled, cache_enabled=False):
            return body(*args)

    inline_traced(graph, node, run)


HANDLERS: dict[str, Handler] = {
    "wrap": _marked(0, _all),
    "wrap_with_set_grad_enabled": _marked(1, _all),
    "wrap_with_autocast": _autocast,
    "wrap_activation_checkpoint": _marked(0, _all),
    "tag_activation_checkpoint": _marked(0, _all),
    "hints_wrapper": _marked(0, _first),
    "strict_mode": _marked(0, _first),
    "run_const_graph": _marked(0, _first),
    "invoke_subgraph": _marked(0, _after_name),
}
