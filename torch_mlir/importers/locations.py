# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a node came from in the user's source, as an MLIR location.

On request the location also tells the module that the node was called in, a name for each level
of the hierarchy, outermost first: `loc("Net"("layers.0: Block"("layers.0.fc: Linear"(…))))`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from torch.fx import Node

from .. import ir

_FRAME = re.compile(r'File "([^"]+)", line (\d+),')
_REPEATED = re.compile(r"@\d+\Z")


class LocationCache:
    """Locations by stack trace; nodes of one call share their trace, so their location too.

    With `module_paths`, the module hierarchy is wrapped around them.
    """

    def __init__(self, context: ir.Context, module_paths: bool = False) -> None:
        self._context = context
        self._module_paths = module_paths
        self._by_module: dict[tuple[tuple[str, ...], str | None], ir.Location] = {}
        self.unknown = ir.Location.unknown(context)
        self._by_trace: dict[str, ir.Location] = {}

    def of_node(self, node: Node, otherwise: ir.Location | None = None) -> ir.Location:
        """The user's call stack at `node`: `callsite(innermost at outer frames)`.

        A node without a stack trace gets `otherwise`, or the unknown location.
        """
        trace = node.meta.get("stack_trace")
        if self._module_paths and (stack := node.meta.get("nn_module_stack")):
            names = tuple(_module_names(stack))
            found = self._by_module.get((names, trace))
            if found is None:
                found = self._of_trace(trace) if trace else self.unknown
                for name in reversed(names):
                    found = ir.Location.name(name, found, context=self._context)
                self._by_module[names, trace] = found
            return found
        if not trace:
            return self.unknown if otherwise is None else otherwise
        found = self._by_trace.get(trace)
        if found is None:
            found = self._by_trace[trace] = self._of_trace(trace)
        return found

    def _of_trace(self, trace: str) -> ir.Location:
        # Python writes the outermost frame first.
        frames = [
            ir.Location.file(file, int(line), 0, context=self._context)
            for file, line in _FRAME.findall(trace)
        ]
        if not frames:
            return self.unknown
        if len(frames) == 1:
            return frames[0]
        return ir.Location.callsite(frames[-1], frames[-2::-1], context=self._context)


def _module_names(stack: Mapping[str, Any]) -> Iterator[str]:
    """`layers.0: Block` for each module of an `nn_module_stack`, outermost first.

    A later call of the same module is `layers.0@1`, as torch.export tells it in the entry's key.
    """
    for key, (path, kind) in stack.items():
        name = kind if isinstance(kind, str) else kind.__qualname__
        name = name.rpartition(".")[2]
        call = _REPEATED.search(str(key))
        if call and "@" not in path:
            path += call[0]
        yield f"{path}: {name}" if path else name
