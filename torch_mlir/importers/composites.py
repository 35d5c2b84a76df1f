# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants that no attribute of MLIR holds: made of ones that it does, by the operator for it.

A sparse tensor is made of its indices and its values, a quantised one of its integers, its scale
and its zero point, and one whose elements are smaller than a byte of its bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .. import ir
from .arguments import anything
from .errors import Unsupported
from .sparsity import is_sparse

if TYPE_CHECKING:
    from .graph import GraphImporter

_PER_CHANNEL = (torch.per_channel_affine, torch.per_channel_affine_float_qparams)
# What the operators that make quantised tensors can make: they tell the dtype by the integers'.
_QUANTISED = (torch.qint8, torch.quint8, torch.qint32)
_PACKED = frozenset(
    getattr(torch, name)
    for name in (
        "float4_e2m1fn_x2",
        *(f"{sign}{n}" for sign in ("int", "uint") for n in range(1, 8)),
    )
    if hasattr(torch, name)
)


def is_composite(tensor: torch.Tensor) -> bool:
    """Whether `composite` is what makes a constant of `tensor`."""
    return is_sparse(tensor) or tensor.is_quantized or tensor.dtype in _PACKED


def composite(graph: GraphImporter, tensor: torch.Tensor, name: str) -> ir.Value:
    """The value of `tensor`; literals that it is made of are called `name` and what they are.

    Raises:
        Unsupported: there is no operator that makes such a tensor.
    """
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        return _coo(graph, tensor, name)
    if is_sparse(tensor):
        return _compressed(graph, tensor, name)
    if tensor.is_quantized:
        return _quantised(graph, tensor, name)
    data = graph.builder.tensor(tensor.contiguous().view(torch.uint8), f"{name}.bytes")
    return _make(graph, tensor, "aten.view.dtype", [data, graph.builder.constant(tensor.dtype)])


def _make(
    graph: GraphImporter, tensor: torch.Tensor, name: str, operands: list[ir.Value]
) -> ir.Value:
    return graph.operation(name, [graph.types.of_tensor(tensor)], operands).results[0]


def _factory(graph: GraphImporter, tensor: torch.Tensor) -> list[ir.Value]:
    """Size, dtype, layout, device and pin_memory, as operators that make tensors take them."""
    constant = graph.builder.constant
    size = graph.builder.list_of("int", [constant(size) for size in tensor.shape])
    device = torch.device("cpu")
    return [
        size,
        *(constant(value) for value in (tensor.dtype, tensor.layout, device, False)),
    ]


def _coo(graph: GraphImporter, tensor: torch.Tensor, name: str) -> ir.Value:
    indices = graph.builder.tensor(tensor._indices(), f"{name}.indices")
    values = graph.builder.tensor(tensor._values(), f"{name}.values")
    coalesced = graph.builder.constant(tensor.is_coalesced())
    operands = [indices, values, *_factory(graph, tensor), coalesced]
    return _make(graph, tensor, "aten.sparse_coo_tensor.indices_size", operands)


def _compressed(graph: GraphImporter, tensor: torch.Tensor, name: str) -> ir.Value:
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        compressed, plain = tensor.crow_indices(), tensor.col_indices()
    else:
        compressed, plain = tensor.ccol_indices(), tensor.row_indices()
    operands = [
        graph.builder.tensor(compressed, f"{name}.compressed_indices"),
        graph.builder.tensor(plain, f"{name}.plain_indices"),
        graph.builder.tensor(tensor.values(), f"{name}.values"),
        *_factory(graph, tensor),
    ]
    return _make(graph, tensor, "aten.sparse_compressed_tensor.comp_plain_value_size", operands)


def _quantised(graph: GraphImporter, tensor: torch.Tensor, name: str) -> ir.Value:
    if tensor.dtype not in _QUANTISED:
        raise Unsupported(f"{name!r} holds {tensor.dtype}, which no operator makes of integers")
    integers = graph.builder.tensor(tensor.int_repr(), f"{name}.int_repr")
    scheme = tensor.qscheme()
    if scheme is torch.per_tensor_affine:
        scale, zero_point = tensor.q_scale(), tensor.q_zero_point()
        operands = [integers, anything(graph, scale), anything(graph, zero_point)]
        return _make(graph, tensor, "aten._make_per_tensor_quantized_tensor", operands)
    if scheme not in _PER_CHANNEL:
        raise Unsupported(f"{name!r} is quantised by {scheme}, which no operator makes")
    operands = [
        integers,
        graph.builder.tensor(tensor.q_per_channel_scales(), f"{name}.scales"),
        graph.builder.tensor(tensor.q_per_channel_zero_points(), f"{name}.zero_points"),
        graph.builder.constant(tensor.q_per_channel_axis()),
    ]
    return _make(graph, tensor, "aten._make_per_channel_quantized_tensor", operands)
