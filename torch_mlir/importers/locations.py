# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a node came from in the user's source, as an MLIR location."""

from __future__ import annotations

import re

from torch.fx import Node

from .. import ir

_FRAME = re.compile(r'File "([^"]+)", line (\d+),')


class LocationCache:
    """Locations by stack trace; nodes of one call share their trace, so their location too."""

    def __init__(self, context: ir.Context) -> None:
        self._context = context
        self.unknown = ir.Location.unknown(context)
        self._by_trace: dict[str, ir.Location] = {}

    def of_node(self, node: Node, otherwise: ir.Location | None = None) -> ir.Location:
        """The user's call stack at `node`: `callsite(innermost at outer frames)`.

        A node without a stack trace gets `otherwise`, or the unknown location.
        """
        trace = node.meta.get("stack_trace")
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
