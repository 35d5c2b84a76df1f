# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's dtypes, layouts and memory formats: their MLIR element types and their numbers.

The numbers are those of `c10::ScalarType`, `c10::Layout` and `c10::MemoryFormat`; operators of
the Torch dialect take them as `!torch.int`. A dtype that the installed PyTorch lacks is left out.
"""

from __future__ import annotations

import torch

# (dtype, c10::ScalarType, MLIR element type or "" where the dialect has none)
_DTYPES = (
    ("uint8", 0, "ui8"),
    ("int8", 1, "si8"),
    ("int16", 2, "si16"),
    ("int32", 3, "si32"),
    ("int64", 4, "si64"),
    ("float16", 5, "f16"),
    ("float32", 6, "f32"),
    ("float64", 7, "f64"),
    ("complex32", 8, "complex<f16>"),
    ("complex64", 9, "complex<f32>"),
    ("complex128", 10, "complex<f64>"),
    ("bool", 11, "i1"),
    ("qint8", 12, "!torch.qint8"),
    ("quint8", 13, "!torch.quint8"),
    ("qint32", 14, "!torch.qint32"),
    ("bfloat16", 15, "bf16"),
    ("quint4x2", 16, "!torch.quint4x2"),
    ("quint2x4", 17, "!torch.quint2x4"),
    ("bits1x8", 18, ""),
    ("bits2x4", 19, ""),
    ("bits4x2", 20, ""),
    ("bits8", 21, ""),
    ("bits16", 22, ""),
    ("float8_e5m2", 23, "f8E5M2"),
    ("float8_e4m3fn", 24, "f8E4M3FN"),
    ("float8_e5m2fnuz", 25, "f8E5M2FNUZ"),
    ("float8_e4m3fnuz", 26, "f8E4M3FNUZ"),
    ("uint16", 27, "ui16"),
    ("uint32", 28, "ui32"),
    ("uint64", 29, "ui64"),
    ("uint1", 30, "ui1"),
    ("uint2", 31, "ui2"),
    ("uint3", 32, "ui3"),
    ("uint4", 33, "ui4"),
    ("uint5", 34, "ui5"),
    ("uint6", 35, "ui6"),
    ("uint7", 36, "ui7"),
    ("int1", 37, "si1"),
    ("int2", 38, "si2"),
    ("int3", 39, "si3"),
    ("int4", 40, "si4"),
    ("int5", 41, "si5"),
    ("int6", 42, "si6"),
    ("int7", 43, "si7"),
    ("float8_e8m0fnu", 44, "f8E8M0FNU"),
    ("float4_e2m1fn_x2", 45, "f4E2M1FN"),
)

_LAYOUTS = (
    ("strided", 0),
    ("sparse_coo", 1),
    ("sparse_csr", 2),
    ("_mkldnn", 3),
    ("sparse_csc", 4),
    ("sparse_bsr", 5),
    ("sparse_bsc", 6),
    ("jagged", 7),
)

_MEMORY_FORMATS = (
    ("contiguous_format", 0),
    ("preserve_format", 1),
    ("channels_last", 2),
    ("channels_last_3d", 3),
)

DTYPE_TO_INT: dict[torch.dtype, int] = {
    getattr(torch, name): number for name, number, _ in _DTYPES if hasattr(torch, name)
}

DTYPE_TO_ELEMENT_TYPE: dict[torch.dtype, str] = {
    getattr(torch, name): text for name, _, text in _DTYPES if text and hasattr(torch, name)
}

LAYOUT_TO_INT: dict[torch.layout, int] = {
    getattr(torch, name): number for name, number in _LAYOUTS if hasattr(torch, name)
}

MEMORY_FORMAT_TO_INT: dict[torch.memory_format, int] = {
    getattr(torch, name): number for name, number in _MEMORY_FORMATS if hasattr(torch, name)
}
