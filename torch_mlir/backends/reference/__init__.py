# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference backend: walks a module of the Torch dialect, with PyTorch's kernels.

It does what the module says and nothing else, so that it tells whether an import is right: each
operator is PyTorch's own of that name, and each value is held against its type. On fake tensors
it works as well, without computing anything.

    program = ReferenceBackend().load(module)
    result = program(torch.ones(2, 3))
"""

from __future__ import annotations

from ... import ir
from ...pytorch import require_torch

torch = require_torch("torch_mlir.backends.reference")

from .errors import ExecutionError, UnsupportedOperation  # noqa: E402  torch may be missing
from .program import ReferenceProgram  # noqa: E402
from .refinement import refine  # noqa: E402

__all__ = [
    "ExecutionError",
    "ReferenceBackend",
    "ReferenceProgram",
    "UnsupportedOperation",
    "refine",
]


class ReferenceBackend:
    """Runs modules with the installed PyTorch.

    Args:
        device: where the module's own devices are; tensors of `meta` stay there.
        is_checking: hold every value against its type.
    """

    def __init__(self, device: str = "cpu", is_checking: bool = True) -> None:
        self.device = torch.device(device)
        self.is_checking = is_checking

    def compile(self, module: ir.Module) -> ReferenceProgram:
        """Make a program of a module, which must not change any more.

        Raises:
            UnsupportedOperation: the module has an operation that the installed PyTorch has no
                kernel for; all functions are looked through.
        """
        return ReferenceProgram(module, self.device, self.is_checking)

    def load(self, artifact: ReferenceProgram) -> ReferenceProgram:
        """The program."""
        return artifact
