# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lines of the user's program."""

from __future__ import annotations

from types import TracebackType

from .native import load

_native = load()


class LocationRecording:
    """Whether PyTorch records lines; a `with` block's end puts it back to what it was."""

    def __init__(self, enabled: bool) -> None:
        self._before = bool(_native.set_ir_debug(enabled))

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _native.set_ir_debug(self._before)


def record_locations(enabled: bool = True) -> LocationRecording:
    """Record the Python stack of each operator, from now on or in a `with` block.

    Operations of modules have them as locations, and errors name the line. It takes time: PyTorch
    walks the stack for each operator.
    """
    return LocationRecording(enabled)
