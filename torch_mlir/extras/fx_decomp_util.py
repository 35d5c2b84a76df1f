# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The default decompositions under upstream's name; see `torch_mlir.importers.decompositions`."""

from __future__ import annotations

from ..importers.decompositions import DEFAULT_DECOMPOSITIONS, get_decomposition_table

__all__ = [
    "DEFAULT_DECOMPOSITIONS",
    "get_decomposition_table",
    "get_expanded_decomposition_table",
]

get_expanded_decomposition_table = get_decomposition_table
