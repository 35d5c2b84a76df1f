#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Microseconds for each node of graphs of a thousand to a hundred thousand nodes.

    python3 benchmarks/fx_linear.py [--plot curve.svg]

If the import is linear, the time for a node doesn't depend on the number of nodes. Six kinds of
graph are imported, verified and written as bytecode and as text: a chain; a fan, one value that
all nodes use; splits, each giving a list that is unpacked; nodes with a source line of their own
each; nodes that each take a constant tensor; and one list of all that is unpacked and put together
again. Graphs are made by hand, since tracing isn't what is timed.
"""

from __future__ import annotations

import argparse
import gc
import io
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

COLORS = ("#06c", "#c60", "#090", "#90c", "#c09", "#555")
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)


def chain(count: int) -> Any:
    """Each node takes the one before."""
    return _graph(count, lambda graph, x, last, i: _call(graph, last, x))


def fan(count: int) -> Any:
    """Each node takes the input."""
    return _graph(count, lambda graph, x, last, i: _call(graph, x, x))


def lines(count: int) -> Any:
    """A chain whose nodes come from different lines of the source."""

    def step(graph: Any, x: Any, last: Any, i: int) -> Any:
        node = _call(graph, last, x)
        node.meta["stack_trace"] = f'  File "model.py", line {i + 1}, in forward\n    x = f{i}(x)\n'
        return node

    return _graph(count, step)


def splits(count: int) -> Any:
    """Splits into eight, of which two parts are added; four nodes a round."""
    import operator

    import torch

    def step(graph: Any, x: Any, last: Any, i: int) -> Any:
        parts = graph.call_function(torch.ops.aten.split.Tensor, (last, 1))
        parts.meta["val"] = list(last.meta["val"].split(1))
        left, right = (graph.call_function(operator.getitem, (parts, k)) for k in (i % 8, 3))
        for node in (left, right):
            node.meta["val"] = parts.meta["val"][0]
        node = _call(graph, left, right)
        node.meta["val"] = parts.meta["val"][0]
        return _call(graph, x, node)

    return _graph(count // 5, step)


def constants(count: int) -> Any:
    """Each node adds a tensor of its own, none of which has a name."""
    import torch

    contents = iter(torch.arange(16.0 * count).reshape(count, 8, 2).unbind())

    def step(graph: Any, x: Any, last: Any, i: int) -> Any:
        node = graph.call_function(torch.ops.aten.add.Tensor, (last, next(contents)))
        node.meta["val"] = last.meta["val"]
        return node

    return _graph(count, step)


def wide(count: int) -> Any:
    """A list of as many elements as there are nodes."""
    import operator

    import torch

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    with torch._subclasses.FakeTensorMode():
        x.meta["val"], part = torch.empty(count), torch.empty(1)
    parts = graph.call_function(torch.ops.aten.split.Tensor, (x, 1))
    parts.meta["val"] = [part] * count
    elements = [graph.call_function(operator.getitem, (parts, i)) for i in range(count)]
    for element in elements:
        element.meta["val"] = part
    whole = graph.call_function(torch.ops.aten.cat.default, (elements,))
    whole.meta["val"] = x.meta["val"]
    graph.output((whole,))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def _call(graph: Any, left: Any, right: Any) -> Any:
    import torch

    node = graph.call_function(torch.ops.aten.add.Tensor, (left, right))
    node.meta["val"] = right.meta["val"] if right.op == "placeholder" else left.meta["val"]
    return node


def _graph(count: int, step: Callable[..., Any]) -> Any:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    with FakeTensorMode():
        x.meta["val"] = torch.empty(8, 2)
        last = x
        for i in range(count):
            last = step(graph, x, last, i)
    graph.output((last,))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def measure(make: Callable[[int], Any], count: int) -> dict[str, float]:
    """CPU seconds of each stage, for a graph of about `count` nodes."""
    from torch_mlir.importers.program import FxImporter

    module = make(count)
    gc.collect()
    clock = time.process_time
    importer = FxImporter()
    start = clock()
    importer.import_graph_module(module)
    imported = clock()
    importer.module.operation.verify()
    verified = clock()
    importer.module.operation.write_bytecode(io.BytesIO())
    written = clock()
    importer.module.operation.print(file=io.StringIO())
    return {
        "import": imported - start,
        "verify": verified - imported,
        "bytecode": written - verified,
        "text": clock() - written,
    }


def plot(curves: dict[str, list[tuple[int, float]]]) -> str:
    """Microseconds of the import for a node, over the number of nodes, as an SVG."""
    import math

    width, height, margin = 640, 360, 50
    top = max(value for curve in curves.values() for _, value in curve) * 1.1
    low, high = math.log10(SIZES[0]), math.log10(SIZES[-1])

    def x(count: int) -> float:
        return margin + (math.log10(count) - low) / (high - low) * (width - 2 * margin)

    def y(value: float) -> float:
        return height - margin - value / top * (height - 2 * margin)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="12">'
        ),
        (
            f'<path d="M{margin} {margin}V{height - margin}H{width - margin}" fill="none" '
            'stroke="black"/>'
        ),
        f'<text x="{margin}" y="{margin - 12}">µs for each node</text>',
        f'<text x="{margin - 6}" y="{y(top):.0f}" text-anchor="end">{top:.0f}</text>',
        f'<text x="{margin - 6}" y="{y(0):.0f}" text-anchor="end">0</text>',
    ]
    parts += [
        f'<text x="{x(size):.0f}" y="{height - margin + 18}" text-anchor="middle">{size:,}</text>'
        for size in SIZES
    ]
    for color, (name, curve) in zip(COLORS, curves.items()):
        path = " ".join(f"{x(count):.1f},{y(value):.1f}" for count, value in curve)
        last_x, last_y = x(curve[-1][0]), y(curve[-1][1])
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}"/>')
        parts.append(f'<text x="{last_x + 4:.0f}" y="{last_y:.0f}" fill="{color}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table of microseconds for each node, and how the last compares with the first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, help="where to draw the curves of the import")
    options = parser.parse_args(argv)
    curves: dict[str, list[tuple[int, float]]] = {}
    print(f"{'µs a node':10} {'nodes':>8} {'import':>8} {'verify':>8} {'bytecode':>8} {'text':>8}")
    measure(chain, 1_000)  # what is loaded on first use
    for make in (chain, fan, splits, lines, constants, wide):
        for size in SIZES:
            seconds = measure(make, size)
            each = {stage: value / size * 1e6 for stage, value in seconds.items()}
            curves.setdefault(make.__name__, []).append((size, each["import"]))
            print(
                f"{make.__name__:10} {size:8,} {each['import']:8.2f} {each['verify']:8.2f} "
                f"{each['bytecode']:8.2f} {each['text']:8.2f}"
            )
        first, last = curves[make.__name__][0][1], curves[make.__name__][-1][1]
        print(f"{make.__name__:10} {SIZES[-1]:,} nodes against {SIZES[0]:,}: {last / first:.2f}")
    if options.plot:
        options.plot.write_text(plot(curves), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
