# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of literals as tensors, without a copy where they lie as PyTorch has them."""

from __future__ import annotations

import ctypes
import re

import torch

from ... import ir
from ..._mlir_libs import _torchMlir as _native
from ...dtypes import DTYPE_TO_ELEMENT_TYPE

# `tensor<2x3xsi64>`
_TENSOR = re.compile(r"^tensor<((?:\d+x)*)([^,]+)>$")

# How MLIR spells the dtypes. Integers without a sign of their own have PyTorch's.
DTYPES: dict[str, torch.dtype] = {
    **{text: dtype for dtype, text in DTYPE_TO_ELEMENT_TYPE.items()},
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}


def tensor_of(operation: ir.Operation, name: str = "value") -> torch.Tensor:
    """The elements of an operation's attribute, `dense<…>` or `dense_resource<…>`.

    The tensor lies in the memory of the operation's context wherever it can. It must not be
    written to, and the context has to outlive it.

    Raises:
        ValueError: the attribute holds no elements, or elements of no dtype of PyTorch's, or
            another number of them than its type says.
    """
    kind, address, size, is_splat = _native.elements_data(operation, name)
    match = _TENSOR.match(str(kind))
    if match is None or match[2] not in DTYPES:
        raise ValueError(f"a literal of type {kind} has no tensor in PyTorch")
    shape = [int(length) for length in match[1].split("x") if length]
    dtype = DTYPES[match[2]]
    count = 1 if is_splat else torch.Size(shape).numel()
    if not torch.Size(shape).numel():
        return torch.empty(shape, dtype=dtype)
    width = torch.empty((), dtype=dtype).element_size()
    # Inline bools are bits; bools in a blob are bytes, as in PyTorch.
    is_packed = dtype is torch.bool and size == (count + 7) // 8
    if size != width * count and not is_packed:
        raise ValueError(f"a literal of type {kind} has {size} bytes of contents")
    memory = torch.frombuffer((ctypes.c_ubyte * size).from_address(address), dtype=torch.uint8)
    if is_packed:
        bits = torch.bitwise_right_shift(memory.unsqueeze(1), torch.arange(8, dtype=torch.uint8))
        elements = (bits & 1).flatten()[:count].bool()
        return (elements.repeat(torch.Size(shape).numel()) if is_splat else elements).reshape(shape)
    if is_splat:
        # Bytes: some dtypes can't be copied. Strides of 0 would be no tensor of the user's.
        memory = memory.repeat(torch.Size(shape).numel())
    elif address % width:
        memory = memory.clone()
    return memory.view(dtype).reshape(shape)
