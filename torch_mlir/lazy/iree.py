# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lazy tensors on IREE: a vendor that compiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import ir
from ..backends import iree
from .backend import Backend
from .signature import Signature


class IreeBackend(Backend):
    """Compiles with IREE for one target, and runs on one device.

    Needs iree-base-compiler and iree-base-runtime. It holds each module and its arguments to the
    signature.

    Args:
        options: those of `torch_mlir.backends.iree.IreeBackend`: `target`, `device`, `flags`.
    """

    def __init__(self, **options: Any) -> None:
        self._backend = iree.IreeBackend(**options)

    def compile(
        self, module: ir.Module, signature: Signature
    ) -> tuple[iree.IreeProgram, Signature]:
        """A program on the device.

        Raises:
            MLIRError, ModuleError: see `Signature.check_module`.
            IreeError: IREE refuses the module; the message has what it says.
            TorchMlirCompilerError: IREE isn't installed, has no such device, or has no type for
                an argument or result.
        """
        signature.check_module(module)
        return self._backend.load(self._backend.compile(module)), signature

    def execute(
        self, executable: tuple[iree.IreeProgram, Signature], arguments: Sequence[Any]
    ) -> Sequence[torch.Tensor]:
        """Run the program.

        Raises:
            ValueError: an argument isn't of its type.
            RuntimeError: IREE's runtime fails.
        """
        program, signature = executable
        signature.check_arguments(arguments)
        results = program(*arguments)
        if len(signature.results) == 1:
            return [results]
        return [] if results is None else list(results)
