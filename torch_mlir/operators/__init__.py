# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of PyTorch, from the table that everything here reads.

``table.txt`` is the one list of operators: the dialect, the importers and the Python
faces take names, operands, results and flags from it. Neither PyTorch nor MLIR is
needed to read it.

>>> add = lookup("aten.add.Tensor")
>>> [(a.name, str(a.type), a.default) for a in add.arguments]
[('self', 'Tensor', None), ('other', 'Tensor', None), ('alpha', 'Scalar', '1')]
>>> add.is_pure, lookup("aten.add_.Tensor").is_mutable
(True, True)
"""

from __future__ import annotations

from ._table import (
    TABLE_PATH,
    Argument,
    Schema,
    SchemaError,
    Table,
    Type,
    load,
    lookup,
    parse,
)

__all__ = [
    "TABLE_PATH",
    "Argument",
    "Schema",
    "SchemaError",
    "Table",
    "Type",
    "load",
    "lookup",
    "parse",
]
