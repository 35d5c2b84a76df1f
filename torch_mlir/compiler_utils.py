# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What callers of the importers pass in and get back besides the module itself."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["OutputType", "TensorPlaceholder", "TorchMlirCompilerError"]


class TorchMlirCompilerError(Exception):
    """A program cannot be imported or lowered; the message says which part, and why."""


class OutputType(Enum):
    """How far a program is lowered after its import."""

    # Torch dialect in the form that backends take.
    TORCH = "torch"
    # `linalg` on tensors with `arith`, `math`, `scf` and `tensor`.
    LINALG_ON_TENSORS = "linalg-on-tensors"
    TOSA = "tosa"
    STABLEHLO = "stablehlo"
    # Torch dialect as the importer wrote it.
    RAW = "raw"

    @staticmethod
    def get(spec: str | OutputType) -> OutputType:
        """The output type that `spec` is, or names in any case, with `-` or `_`.

        Raises:
            ValueError: no output type has that name.
        """
        if isinstance(spec, OutputType):
            return spec
        try:
            return OutputType[spec.upper().replace("-", "_")]
        except KeyError:
            names = ", ".join(OutputType.__members__)
            raise ValueError(f"output_type {spec!r} is not one of {names}") from None


class TensorPlaceholder:
    """A formal tensor parameter: a shape, where -1 is a size not known, and a dtype."""

    def __init__(self, shape: Sequence[int], dtype: torch.dtype) -> None:
        self.shape = list(shape)
        self.dtype = dtype

    @staticmethod
    def like(tensor: torch.Tensor, dynamic_axes: Sequence[int] | None = None) -> TensorPlaceholder:
        """A placeholder of `tensor`'s dtype and shape, with `dynamic_axes` left open."""
        open_axes = frozenset(dynamic_axes or ())
        shape = [-1 if axis in open_axes else size for axis, size in enumerate(tensor.shape)]
        return TensorPlaceholder(shape, tensor.dtype)
