# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The default decompositions under upstream's name; see `torch_mlir.importers.decompositions`."""

from __future__ import annotations

from ..importers.decompositions import get_decomposition_table

__all__ = ["get_decomposition_table"]
