# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The format of rows.tsv: what TorchScript's operator registry holds in each row's PyTorch.

Archives hold no overload names: a reader tries the overloads of a name in the order in which
the registry of the PyTorch that it is has them. So the file keeps that order beside the
schemas. It holds what the operator table doesn't say by itself. A line is

    SCHEMA [TAB WORDS]

where the schema is a whole one, or the mere full name (``aten::add.Tensor``) of an operator of
the table, whose schema is meant then. The words, with spaces between, are the rows that have it
(``2_3``, ``2_3-2_7``, ``-2_7``, ``2_3-``; all rows without) and, where it isn't FROM_SCHEMA, the
operator's c10::AliasAnalysisKind in small letters, as far as that makes a difference. Lines with
the same operator name stand together; those of them that hold for a row are the overloads that
the row has, in its order. A schema stands again where the orders of two rows contradict each
other. A name that the table has and this file hasn't is in all rows with the table's schemas, in
the table's order.

A line ``SymBool := bool`` gives the type that the JIT uses for a type which not every row's
schema parser knows.

Only the standard library is used: builds run this before anything is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from _table import SchemaError, Table, load

ROWS_PATH = Path(__file__).with_name("rows.tsv")

# Kinds but for the usual one, and for INTERNAL_SPECIAL_CASE, which goes by operator name and
# which PyTorch's alias analysis knows by itself.
ALIAS_KINDS = ("conservative", "pure_function")

_ROWS_IN_HEADER = re.compile(r"^Rows: ((?:\d+_\d+ ?)+)\.$")
_TABLE_IN_HEADER = re.compile(r"^The operator table is of PyTorch (\S+)\.$")


@dataclass(frozen=True, slots=True)
class Overload:
    """A schema in the registry of the rows ``first`` to ``last`` (indices, both included).

    ``kind`` is the alias analysis kind if it isn't FROM_SCHEMA, and empty if it is.
    """

    schema: str
    first: int
    last: int
    kind: str = ""

    @property
    def full_name(self) -> str:
        """``aten::add.Tensor``."""
        return self.schema.partition("(")[0]

    @property
    def name(self) -> str:
        """``aten::add``."""
        return operator_name(self.schema)


def operator_name(schema: str) -> str:
    """``aten::add`` of a schema or a full name."""
    namespace, _, rest = schema.partition("(")[0].partition("::")
    return f"{namespace}::{rest.partition('.')[0]}"


@dataclass(frozen=True)
class Rows:
    """What each row's registry holds.

    ``names`` are the rows, oldest first; ``overloads`` has the lines of each operator name in
    the file's order; ``types`` are the JIT's types of types that not every parser knows.
    """

    names: tuple[str, ...]
    overloads: Mapping[str, tuple[Overload, ...]]
    types: Mapping[str, str]

    def registry(self, row: str) -> dict[str, list[str]]:
        """Operator name to the row's schemas, in the order of its registry.

        Raises:
            ValueError: where there is no such row.
        """
        index = self.names.index(row)
        found = {}
        for name, overloads in self.overloads.items():
            schemas = [o.schema for o in overloads if o.first <= index <= o.last]
            if schemas:
                found[name] = schemas
        return found


def table_version(table: Table) -> str:
    """The PyTorch that a table was written from."""
    found = re.search(r"PyTorch (\d[\d.]*\d)", table.header[0] if table.header else "")
    if found is None:
        raise SchemaError("the operator table's header names no PyTorch")
    return found[1]


def _texts(table: Table) -> list[str]:
    return [schema.text for schema in table.values()]


def _implied(table: Table, last: int) -> dict[str, tuple[Overload, ...]]:
    """What holds for an operator name of the table that rows.tsv doesn't list."""
    found: dict[str, list[Overload]] = {}
    for schema in _texts(table):
        found.setdefault(operator_name(schema), []).append(Overload(schema, 0, last))
    return {name: tuple(overloads) for name, overloads in found.items()}


def _range(word: str, names: Sequence[str]) -> tuple[int, int]:
    first, dash, last = word.partition("-")
    if not dash:
        last = first
    return (
        names.index(first) if first else 0,
        names.index(last) if last else len(names) - 1,
    )


def _range_word(overload: Overload, names: Sequence[str]) -> str:
    if overload.first == overload.last:
        return names[overload.first]
    first = names[overload.first] if overload.first else ""
    last = names[overload.last] if overload.last < len(names) - 1 else ""
    return f"{first}-{last}" if first or last else ""


def parse(text: str, table: Table, source: str = "<rows>") -> Rows:
    """Read the file's text.

    Raises:
        SchemaError: with the line, for what isn't in the format; for a file that was written
            beside another table than this one, whose names could mean other schemas.
    """
    lines = text.splitlines()
    header = [line[1:].strip() for line in lines if line.startswith("#")]
    rows = [m[1] for m in map(_ROWS_IN_HEADER.match, header) if m]
    beside = [m[1] for m in map(_TABLE_IN_HEADER.match, header) if m]
    if len(rows) != 1 or len(beside) != 1:
        raise SchemaError(f"{source}: the header doesn't name the rows and the table")
    if beside[0] != table_version(table):
        raise SchemaError(
            f"{source} was written beside the operator table of PyTorch {beside[0]}, and that is "
            f"of {table_version(table)} by now: run regenerate_rows.py"
        )
    names = tuple(rows[0].split())
    by_full_name = {schema.partition("(")[0]: schema for schema in _texts(table)}
    listed: dict[str, list[Overload]] = {}
    types: dict[str, str] = {}
    previous = ""
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            continue
        schema, _, rest = line.partition("\t")
        words = rest.split()
        if " := " in schema:
            declared, _, meant = schema.partition(" := ")
            types[declared] = meant
            continue
        if "(" not in schema:
            if schema not in by_full_name:
                raise SchemaError(f"{source}:{number}: the table has no {schema!r}")
            schema = by_full_name[schema]
        kind = words.pop() if words and words[-1] in ALIAS_KINDS else ""
        try:
            first, last = _range(words.pop(), names) if words else (0, len(names) - 1)
        except ValueError as error:
            raise SchemaError(f"{source}:{number}: {error}") from error
        if words or first > last:
            raise SchemaError(f"{source}:{number}: what is {rest!r}?")
        overload = Overload(schema, first, last, kind)
        if overload.name != previous and overload.name in listed:
            raise SchemaError(f"{source}:{number}: lines of {overload.name} stand apart")
        previous = overload.name
        listed.setdefault(previous, []).append(overload)
    everything = _implied(table, len(names) - 1) | {n: tuple(o) for n, o in listed.items()}
    return Rows(names, dict(sorted(everything.items())), types)


def lines(rows: Rows, table: Table) -> Iterator[str]:
    """The file's lines below its header."""
    unlisted = _implied(table, len(rows.names) - 1)
    texts = frozenset(_texts(table))
    missing = unlisted.keys() - rows.overloads.keys()
    if missing:
        raise SchemaError(f"no row has what the table has: {', '.join(sorted(missing))}")
    for declared, meant in sorted(rows.types.items()):
        yield f"{declared} := {meant}"
    for name, overloads in sorted(rows.overloads.items()):
        if overloads == unlisted.get(name):
            continue
        for overload in overloads:
            schema = overload.full_name if overload.schema in texts else overload.schema
            words = (_range_word(overload, rows.names), overload.kind)
            yield "\t".join(filter(None, (schema, " ".join(filter(None, words)))))


def read(path: Path = ROWS_PATH) -> Rows:
    """The rows of the package's own file and table."""
    return parse(path.read_text(encoding="utf-8"), load(), str(path))
