# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors as constant data: parameters, buffers and lifted constants become MLIR attributes.

Contents go into resource blobs that point at PyTorch's own memory: nothing is copied when the
tensor lies on the CPU, contiguous. The blob keeps the tensor alive; writing to the tensor after
its import shows in the module.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses import FakeTensor

from .. import ir
from .._mlir_libs import _torchMlir as _native
from .errors import Unsupported
from .types import TypeCache


@dataclass(frozen=True)
class Literal:
    """Contents of a tensor.

    `attribute` holds them with the shape and dtype of `type`. Where `widened_bool` is set, bools
    are stored as bytes, and the reader has to convert them back to `i1`.
    """

    attribute: ir.Attribute
    type: ir.Type
    widened_bool: bool = False


class LiteralCache:
    """Literals of one MLIR context; tensors that share their memory share their blob."""

    def __init__(self, types: TypeCache) -> None:
        self._types = types
        # The tensor is kept so that its address is not given to another one.
        self._literals: dict[tuple, tuple[torch.Tensor, Literal]] = {}
        # Blobs by the memory that they point at, whatever the shape it is seen in.
        self._blobs: dict[tuple[int, int, torch.dtype], ir.Attribute] = {}
        self._names: Counter[str] = Counter()

    def of_tensor(self, tensor: torch.Tensor, name: str) -> Literal:
        """The contents of `tensor`; `name` is what its blob is called in the text.

        Raises:
            Unsupported: the tensor holds no data, or data that MLIR has no elements for.
        """
        _check_data(tensor, name)
        key = (
            tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride(), tensor.device,
            tensor.is_conj(), tensor.is_neg(),
        )  # fmt: skip
        found = self._literals.get(key)
        if found is None:
            found = self._literals[key] = (tensor, self._make(tensor, name))
        return found[1]

    def _make(self, tensor: torch.Tensor, name: str) -> Literal:
        types, dtype = self._types, tensor.dtype
        types.element_text(dtype)  # Refuses what has no type.
        data = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        count = data.numel()
        tensor_type = types.builtin_tensor(data.shape, dtype)
        value_type = types.vtensor(data.shape, dtype)
        if dtype is torch.bool and count:
            # MLIR packs bits of i1 in ways that differ between its versions.
            first = bool(data.flatten()[0])
            if bool((data == first).all()):
                text = f"dense<{str(first).lower()}> : {tensor_type}"
                return Literal(ir.Attribute.parse(text, types.context), value_type)
            widened = self._make(data.view(torch.uint8), name)
            return Literal(widened.attribute, widened.type, widened_bool=True)
        # MLIR's Python bindings have no class for dense<…> of complex numbers.
        if count == 0 and not dtype.is_complex:
            return Literal(
                ir.Attribute.parse(f"dense<> : {tensor_type}", types.context), value_type
            )
        # One element is a splat, which consumers fold; resource blobs have none.
        if (count == 1 and not dtype.is_complex) or _is_inlined(data):
            text = f'dense<"0x{bytes(_memory(data)).hex()}"> : {tensor_type}'
            return Literal(ir.Attribute.parse(text, types.context), value_type)
        return Literal(self._blob(data, name, tensor_type), value_type)

    def _blob(self, data: torch.Tensor, name: str, kind: ir.Type) -> ir.Attribute:
        """Elements in a resource blob; one that points at the same memory is used again."""
        memory = (data.data_ptr(), data.numel(), data.dtype)
        found = self._blobs.get(memory)
        if found is not None:
            return _native.resource_elements_as(found, kind)
        # Named as MLIR would name it, which counts from the start for each of the same name.
        number = self._names[name]
        self._names[name] += 1
        name = f"{name}_{number}" if number else name
        made = self._blobs[memory] = ir.DenseResourceElementsAttr.get_from_buffer(
            _memory(data), name, kind, alignment=_alignment(data), context=self._types.context
        )
        return made


def _is_inlined(data: torch.Tensor) -> bool:
    """Whether IREE moves the contents into kernels that compute in another float type.

    It moves 256 bytes and less; where a CPU has no bf16, the kernel converts them to f32, and the
    conversion reads dense<…> only.
    """
    return data.dtype is torch.bfloat16 and 0 < data.numel() * data.element_size() <= 256


def _check_data(tensor: torch.Tensor, name: str) -> None:
    """Whether `tensor` has contents that can be read as they lie in memory.

    Raises:
        Unsupported: it has not.
    """
    kind = type(tensor)
    if isinstance(tensor, FakeTensor) or tensor.is_meta:
        raise Unsupported(f"{name!r} is a {kind.__name__} that holds no data")
    if tensor.layout is not torch.strided:
        raise Unsupported(f"{name!r} has layout {tensor.layout}, whose data is not imported")
    if kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        # Its memory, if it has any, is not what its operators work on.
        raise Unsupported(
            f"{name!r} is a tensor of class {kind.__module__}.{kind.__qualname__}, which has "
            "operators of its own: replace it by the tensors that it is made of before the export"
        )


def _memory(tensor: torch.Tensor) -> ctypes.Array:
    """A buffer over the bytes of a contiguous CPU tensor, which keeps the tensor alive.

    `Tensor.numpy` would do for the dtypes that NumPy has, where NumPy is installed.
    """
    count = tensor.numel() * tensor.element_size()
    buffer: Any = (ctypes.c_ubyte * count).from_address(tensor.data_ptr())
    buffer.tensor = tensor
    return buffer


def _alignment(tensor: torch.Tensor) -> int:
    return tensor.element_size() // 2 if tensor.is_complex() else tensor.element_size()
