#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write the schemas that operators came to have as a C++ include file.

The build runs this by its path; it needs the standard library alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

# Run by path there is no package around this file; its own folder is on the path then,
# unless Python was told to leave that out (-P, -I).
sys.path.insert(0, str(Path(__file__).resolve().parent))

from _emit import run
from _rows import ROWS_PATH, Rows, parse
from _table import TABLE_PATH, Table

PREAMBLE = """\
// Written by emit_versions_cpp.py from rows.tsv and the operator table. Don't edit.
//
// The operators whose schemas differ between rows, by name and overload, each with what it was in
// every row but the oldest, the newest first: NAME + REST is the schema.
"""


def versions(rows: Rows) -> list[tuple[str, str]]:
    """What the preamble describes, as names and rests, sorted by name."""
    found: list[tuple[str, str]] = []
    for overloads in rows.overloads.values():
        ages: dict[str, list[tuple[int, str]]] = {}
        for overload in overloads:
            name, parenthesis, rest = overload.schema.partition("(")
            ages.setdefault(name, []).append((overload.last, parenthesis + rest))
        for name, own in ages.items():
            rests = list(dict.fromkeys(rest for _, rest in sorted(own, reverse=True)))
            found.extend((name, rest) for rest in rests[:-1])
    return sorted(found, key=lambda version: version[0])


def emit(rows: Rows) -> str:
    """The include file's text."""
    lines = (f"    {{{json.dumps(name)}, {json.dumps(rest)}}},\n" for name, rest in versions(rows))
    return (
        f"{PREAMBLE}\nstruct SchemaVersion {{\n  std::string_view name, rest;\n}};\n"
        "static constexpr SchemaVersion schemaVersions[] = {\n" + "".join(lines) + "};\n"
    )


def main(argv: list[str] | None = None) -> int:
    def text(arguments: argparse.Namespace) -> str:
        table = Table(arguments.table.read_text(encoding="utf-8"), str(arguments.table))
        return emit(parse(arguments.rows.read_text(encoding="utf-8"), table, str(arguments.rows)))

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=Path, default=ROWS_PATH, help="another file of rows")
    parser.add_argument("--table", type=Path, default=TABLE_PATH, help="another table")
    return run(parser, text, argv)


if __name__ == "__main__":
    sys.exit(main())
