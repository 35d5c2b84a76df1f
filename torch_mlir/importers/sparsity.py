# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's sparse layouts as encodings of MLIR's sparse_tensor dialect.

The sizes of a sparse tensor of PyTorch are batch sizes, two or more sparse ones, then dense ones;
an encoding maps them to the levels in which the tensor is stored. Its levels say what PyTorch
keeps: `dense` for an index that is implied, `compressed` for one behind positions, `singleton`
for one more coordinate of the same entry. Coordinates lie in one array for each level (`soa`).
The dialect's documentation (`SparseTensorEncodingAttr`) is the source of the notation.
"""

from __future__ import annotations

import torch

from .errors import Unsupported

# The layouts that are built of compressed rows, or columns: (indices are rows, in blocks)
_COMPRESSED = {
    torch.sparse_csr: (False, False),
    torch.sparse_csc: (True, False),
    torch.sparse_bsr: (False, True),
    torch.sparse_bsc: (True, True),
}


def is_sparse(tensor: torch.Tensor) -> bool:
    """Whether `encoding` knows the layout of `tensor`."""
    return tensor.layout is torch.sparse_coo or tensor.layout in _COMPRESSED


def encoding(tensor: torch.Tensor) -> str:
    """The `#sparse_tensor.encoding` of a tensor, real or fake, of a sparse layout.

    COO is described as coalesced: no two entries have the same place.

    Raises:
        Unsupported: the installed PyTorch does not tell how the tensor is stored.
    """
    try:
        sparse, dense = tensor.sparse_dim(), tensor.dense_dim()
        levels, indices = (_coo if tensor.layout is torch.sparse_coo else _compressed)(tensor)
    except (RuntimeError, NotImplementedError) as error:
        raise Unsupported(
            f"how a {type(tensor).__name__} of layout {tensor.layout} is stored is not known: "
            f"{str(error).splitlines()[0]}"
        ) from error
    rank = tensor.dim()
    batch = rank - sparse - dense
    levels = [
        *(f"d{d} : batch" for d in range(batch)),
        *levels,
        *(f"d{d} : dense" for d in range(rank - dense, rank)),
    ]
    sizes = ", ".join(f"d{d}" for d in range(rank))
    width = torch.iinfo(indices.dtype).bits
    return (
        f"#sparse_tensor.encoding<{{ map = ({sizes}) -> ({', '.join(levels)}), "
        f"posWidth = {width}, crdWidth = {width} }}>"
    )


def _coo(tensor: torch.Tensor) -> tuple[list[str], torch.Tensor]:
    count = tensor.sparse_dim()
    if count == 1:
        return ["d0 : compressed"], tensor._indices()
    inner = [f"d{d} : singleton(nonunique, soa)" for d in range(1, count - 1)]
    levels = ["d0 : compressed(nonunique)", *inner, f"d{count - 1} : singleton(soa)"]
    return levels, tensor._indices()


def _compressed(tensor: torch.Tensor) -> tuple[list[str], torch.Tensor]:
    by_column, in_blocks = _COMPRESSED[tensor.layout]
    row = tensor.dim() - tensor.sparse_dim() - tensor.dense_dim()
    column = row + 1
    indices = tensor.row_indices() if by_column else tensor.col_indices()
    outer, inner = (column, row) if by_column else (row, column)
    if not in_blocks:
        return [f"d{outer} : dense", f"d{inner} : compressed"], indices
    block = tensor.values().shape[row + 1 : row + 3]
    size = {row: block[0], column: block[1]}
    return [
        f"d{outer} floordiv {size[outer]} : dense",
        f"d{inner} floordiv {size[inner]} : compressed",
        # Within a block, rows come first in both layouts.
        f"d{row} mod {size[row]} : dense",
        f"d{column} mod {size[column]} : dense",
    ], indices
