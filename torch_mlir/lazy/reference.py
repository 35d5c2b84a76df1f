# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lazy tensors on the reference backend: a vendor that any installation can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import ir
from ..backends import reference
from .backend import Backend
from .signature import Signature


class ReferenceBackend(Backend):
    """Does what modules say, operator by operator, with PyTorch's kernels on the CPU.

    It holds each module to its signature, and each value to its type. Random operators draw from
    the generator that `torch.manual_seed` seeds.
    """

    def __init__(self) -> None:
        self._backend = reference.ReferenceBackend()

    def compile(
        self, module: ir.Module, signature: Signature
    ) -> tuple[reference.ReferenceProgram, Signature]:
        """A program that walks the module.

        Raises:
            MLIRError, ModuleError: see `Signature.check_module`.
            UnsupportedOperation: the installed PyTorch has no kernel for an operation.
        """
        signature.check_module(module)
        return self._backend.compile(module), signature

    def execute(
        self, executable: tuple[reference.ReferenceProgram, Signature], arguments: Sequence[Any]
    ) -> Sequence[torch.Tensor]:
        """Run the program.

        Raises:
            ValueError: an argument isn't of its type.
            ExecutionError: an operator fails; the message names it and its place.
        """
        program, signature = executable
        signature.check_arguments(arguments)
        results = program(*arguments)
        if len(signature.results) == 1:
            return [results]
        return [] if results is None else list(results)
