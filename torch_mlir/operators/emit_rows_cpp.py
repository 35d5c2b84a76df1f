#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write the operator registries of all rows as a C++ include file.

The build runs this by its path; it needs the standard library alone.
"""

from __future__ import annotations

import argparse
import re
import sys
import zlib
from pathlib import Path

# Run by path there is no package around this file; its own folder is on the path then,
# unless Python was told to leave that out (-P, -I).
sys.path.insert(0, str(Path(__file__).resolve().parent))

from _emit import run
from _rows import ROWS_PATH, Rows, parse
from _table import TABLE_PATH, SchemaError, Table

PREAMBLE = """\
// Written by emit_rows_cpp.py from rows.tsv and the operator table. Don't edit.
//
// rowNames are the rows, oldest first, and sourceRow is the index of the one that the libtorch which
// is built fits in. deflatedRows is zlib's format; inflated, inflatedRowsSize
// bytes, it is lines:
//
//   =NAME TYPE     the JIT's type for a type that not every schema parser knows
//   @NAME          an operator name, and after it an overload on each line:
//   FLK REST       F and L are 'A' + the index of the first and of the last row that has it, K is
//                  the initial of its alias analysis kind (f for FROM_SCHEMA), and NAME + REST
//                  (without a space between) is its schema. Those that hold for a row stand in
//                  the order of its registry.
"""

# The range of the characters that rows are written in.
MOST_ROWS = ord("~") - ord("A") + 1


def blob(rows: Rows) -> bytes:
    """What the preamble describes.

    Raises:
        SchemaError: for what the format can't hold.
    """
    if len(rows.names) > MOST_ROWS:
        raise SchemaError(f"{len(rows.names)} rows don't go into a character")
    found = [f"={name} {meant}\n" for name, meant in sorted(rows.types.items())]
    for name, overloads in rows.overloads.items():
        found.append(f"@{name}\n")
        for overload in overloads:
            first, last = (chr(ord("A") + index) for index in (overload.first, overload.last))
            kind = (overload.kind or "from_schema")[0]
            found.append(f"{first}{last}{kind} {overload.schema.removeprefix(name)}\n")
    text = "".join(found)
    if not text.isascii():
        raise SchemaError("a schema that isn't plain ASCII")
    return text.encode("ascii")


def source_row(rows: Rows, libtorch: str) -> int:
    """The index of the row that has what the code of a libtorch wants: its own or the next.

    Raises:
        SchemaError: where that libtorch is newer than all rows, or no version.
    """
    found = re.match(r"(\d+)\.(\d+)", libtorch)
    if found is None:
        raise SchemaError(f"{libtorch!r} is no version")
    release = (int(found[1]), int(found[2]))
    for index, name in enumerate(rows.names):
        if tuple(map(int, name.split("_"))) >= release:
            return index
    raise SchemaError(f"libtorch {libtorch} is newer than the newest row, {rows.names[-1]}")


def emit(rows: Rows, libtorch: str) -> str:
    """The include file's text, for code that is linked with a libtorch of that version."""
    inflated = blob(rows)
    deflated = zlib.compress(inflated, 9)
    names = ", ".join(f'"{name}"' for name in rows.names)
    numbers = [str(byte) for byte in deflated]
    lines = (",".join(numbers[i : i + 32]) for i in range(0, len(numbers), 32))
    return (
        f"{PREAMBLE}\n"
        f"static constexpr const char *rowNames[] = {{{names}}};\n"
        f"static constexpr int sourceRow = {source_row(rows, libtorch)};\n"
        f"static constexpr std::size_t inflatedRowsSize = {len(inflated)};\n"
        f"static constexpr unsigned char deflatedRows[] = {{\n" + ",\n".join(lines) + "};\n"
    )


def main(argv: list[str] | None = None) -> int:
    def text(arguments: argparse.Namespace) -> str:
        table = Table(arguments.table.read_text(encoding="utf-8"), str(arguments.table))
        rows = parse(arguments.rows.read_text(encoding="utf-8"), table, str(arguments.rows))
        return emit(rows, arguments.libtorch)

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--libtorch", required=True, help="its source's version, as 2.6.0")
    parser.add_argument("--rows", type=Path, default=ROWS_PATH, help="another file of rows")
    parser.add_argument("--table", type=Path, default=TABLE_PATH, help="another table")
    return run(parser, text, argv)


if __name__ == "__main__":
    sys.exit(main())
