# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The FX importer under upstream's names; see `torch_mlir.importers`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .. import ir
from ..dtypes import DTYPE_TO_ELEMENT_TYPE as TORCH_DTYPE_TO_MLIR_TYPE_ASM
from ..dtypes import DTYPE_TO_INT as TORCH_DTYPE_TO_INT
from ..dtypes import LAYOUT_TO_INT as TORCH_LAYOUT_TO_INT
from ..dtypes import MEMORY_FORMAT_TO_INT as TORCH_MEMORY_FORMAT_TO_INT
from ..importers.hooks import FxImporterHooks, InputInfo
from ..importers.node_importer import ContextCache, GraphNodeImporter
from ..importers.program import REQUIRED_DIALECTS, FxImporter
from ..importers.references import Empty, EmptyType, RefMapping, RefTracker
from ..importers.types import TypeCache

__all__ = [
    "REQUIRED_DIALCTS",
    "TORCH_DTYPE_TO_INT",
    "TORCH_DTYPE_TO_MLIR_TYPE",
    "TORCH_DTYPE_TO_MLIR_TYPE_ASM",
    "TORCH_LAYOUT_TO_INT",
    "TORCH_MEMORY_FORMAT_TO_INT",
    "ContextCache",
    "Empty",
    "EmptyType",
    "FxImporter",
    "FxImporterHooks",
    "GraphNodeImporter",
    "InputInfo",
    "RefMapping",
    "RefTracker",
    "create_mlir_tensor_type",
    "is_symbolic",
]


# Spelled as upstream spells it.
REQUIRED_DIALCTS = list(REQUIRED_DIALECTS)

# Element types by dtype, each made in the context that is current.
TORCH_DTYPE_TO_MLIR_TYPE: dict[torch.dtype, Callable[[], ir.Type]] = {
    dtype: partial(ir.Type.parse, text) for dtype, text in TORCH_DTYPE_TO_MLIR_TYPE_ASM.items()
}


def create_mlir_tensor_type(tensor: torch.Tensor) -> ir.Type:
    """The builtin `tensor` type of a tensor's shape and dtype, in the context that is current.

    Raises:
        ValueError: no context is current.
    """
    context = ir.Context.current
    if context is None:
        raise ValueError("no MLIR context is current: call it within `with context:`")
    return TypeCache(context).builtin_tensor(tensor.shape, tensor.dtype)


def is_symbolic(obj: Any) -> bool:
    """Whether `obj` is a size, a number or a truth that is known only when the program runs."""
    return isinstance(obj, (torch.SymInt, torch.SymFloat, torch.SymBool))
