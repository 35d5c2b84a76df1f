# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs what the importer made with PyTorch's own kernels, which check each value's type."""

from __future__ import annotations

from typing import Any

from torch_mlir import backends, ir


def run(module: ir.Module, *inputs: Any, function: str | None = None) -> Any:
    """What `function`, or the module's only one, gives: a value, a tuple of several, or None."""
    assert module.operation.verify()
    program = backends.get("reference").compile(module)
    return (program if function is None else program.function(function))(*inputs)
