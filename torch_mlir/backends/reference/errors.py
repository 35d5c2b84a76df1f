# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the reference backend raises."""

from __future__ import annotations

from ... import ir
from ...compiler_utils import TorchMlirCompilerError


class UnsupportedOperation(TorchMlirCompilerError):
    """A module has an operation that nothing here runs; the message names it and its place."""


class ExecutionError(RuntimeError):
    """An operation fails while a module runs; the message names it and its place.

    PyTorch's own error, if there is one, is the cause.
    """


def place(operation: ir.Operation) -> str:
    """An operation and where it comes from, for messages."""
    name = operation.name
    if name == "torch.operator":
        name = f"{name} {operation.attributes['name']}"
    return f"{name} at {_without_loc(str(operation.location))}"


def _without_loc(text: str) -> str:
    return text.removeprefix("loc(").removesuffix(")")
