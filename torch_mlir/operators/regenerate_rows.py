#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write rows.tsv from the PyTorch of every row.

Run it by its path, after regenerate.py, with one folder per row that a PyTorch is installed
in (what pkgs/torch makes, its lib/python3.11/site-packages), and with an interpreter that has
what PyTorch itself imports. Each is asked in a process of its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Run by path there is no package around this file.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from _rows import ALIAS_KINDS, ROWS_PATH, Overload, Rows, lines, read, table_version
from _table import SchemaError, Table, load, parse
from regenerate import (
    REGISTERING_MODULES,
    Unusable,
    full_name,
    graph_of_call,
    import_torch,
    is_kept_without_uses,
    release,
)

HEADER = """\
TorchScript's operator registry in each row's PyTorch; written by regenerate_rows.py. The \
format is explained in _rows.py.

The operator table is of PyTorch {table}.

Rows: {rows}.
"""


@dataclass(frozen=True)
class Registry:
    """What one PyTorch registers.

    ``schemas`` has operator name to schemas in the registry's order, ``kinds`` the alias
    analysis kinds that aren't the usual one by schema, ``types`` the JIT's types of base types
    by their name in schemas.
    """

    version: str
    schemas: dict[str, list[str]]
    kinds: dict[str, str]
    types: dict[str, str]

    @property
    def row(self) -> str:
        return "_".join(map(str, release(self.version)[:2]))


# Values of these types can't be written to.
IMMUTABLE_KINDS = frozenset(
    {
        *("BoolType", "ComplexType", "DeviceObjType", "FloatType", "IntType", "NoneType"),
        *("NumberType", "StringType"),
    }
)


def is_immutable(type: Any) -> bool:
    while type.kind() == "OptionalType":
        type = type.getElementType()
    return type.kind() in IMMUTABLE_KINDS


def is_conservative(torch: Any, schema: Any) -> bool:
    """Whether alias analysis and dead code elimination take a call for one that may write to
    whatever it gets, and have other effects."""
    graph, operands = graph_of_call(torch, schema)
    try:
        if all(is_immutable(argument.type) for argument in schema.arguments):
            return is_kept_without_uses(torch, schema)
        analysis = graph.alias_db()
    except RuntimeError:
        # Analysed by operator name, and the node lacks the subgraph or operands that such
        # nodes have: no operator whose schema tells anything.
        return False
    return any(map(analysis.has_writers, operands))


def alias_kind(torch: Any, schema: Any) -> str:
    """The alias analysis kind, empty where it is FROM_SCHEMA.

    The dispatcher tells it for its own operators. For those that only the JIT knows it is
    found from what passes make of a call; with alias annotations it can only be FROM_SCHEMA.
    """
    found = re.search(
        r"^alias analysis kind: (\w+)", torch._C._dispatch_dump(full_name(schema)), re.MULTILINE
    )
    if found is not None:
        kind = found[1].lower()
        return kind if kind in ALIAS_KINDS else ""
    parsed = parse(str(schema))
    variable = parsed.is_vararg or parsed.is_varret
    if variable or any(a.annotations for a in (*parsed.arguments, *parsed.results)):
        return ""
    return "conservative" if is_conservative(torch, schema) else ""


def jit_types(schema: Any) -> dict[str, str]:
    """The base types of a schema's arguments and results: name in the text to JIT type."""
    parsed = parse(str(schema))
    found: dict[str, str] = {}
    pairs = [
        *zip(parsed.arguments, schema.arguments, strict=True),
        *zip(parsed.results, schema.returns, strict=True),
    ]
    for ours, theirs in ((ours.type, theirs.type) for ours, theirs in pairs):
        while ours.name in ("List", "Optional"):
            ours, theirs = ours.element, theirs.getElementType()
        if not ours.arguments:
            found[ours.name] = theirs.annotation_str
    return found


def dump(torch: Any) -> dict[str, Any]:
    """The running PyTorch's registry, as the fields of a `Registry`."""
    for name in REGISTERING_MODULES:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            # Older rows lack some of them.
            if not name.startswith(str(error.name)):
                raise
    schemas: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    types: dict[str, str] = {}
    for name in sorted({schema.name for schema in torch._C._jit_get_all_schemas()}):
        schemas[name] = []
        for schema in torch._C._jit_get_schemas_for_operator(name):
            text = str(schema)
            schemas[name].append(text)
            types |= jit_types(schema)
            kind = alias_kind(torch, schema)
            if kind:
                kinds[text] = kind
    return {"version": torch.__version__, "schemas": schemas, "kinds": kinds, "types": types}


def rejected_types(torch: Any, names: Iterable[str]) -> list[str]:
    """Those of the base types that this PyTorch's schema parser doesn't know."""
    found = []
    for name in names:
        try:
            torch._C.parse_schema(f"rows::probe({name} x) -> ()")
        except RuntimeError:
            found.append(name)
    return found


def ask(folder: Path, *request: str) -> Any:
    """Run this program on the PyTorch of a folder; its answer.

    Raises:
        Unusable: with what it printed, where it fails.
    """
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch) / "answer.json"
        command = [sys.executable, "-W", "ignore", __file__, "--answer", str(answer), *request]
        done = subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        if done.returncode != 0:
            raise Unusable(f"{folder}: {done.stdout.strip()}")
        return json.loads(answer.read_text(encoding="utf-8"))


def longest_common(a: Sequence[object], b: Sequence[object]) -> list[tuple[int, int]]:
    """The index pairs of a longest common subsequence."""
    lengths = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            lengths[i][j] = (
                lengths[i + 1][j + 1] + 1
                if a[i] == b[j]
                else max(lengths[i + 1][j], lengths[i][j + 1])
            )
    pairs, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def merged(orders: Sequence[Sequence[tuple[str, str]]]) -> tuple[Overload, ...]:
    """One list of lines from each row's (schema, kind) in order."""
    # [schema, kind, first, last], in the order in which the lines will stand.
    found: list[list[Any]] = []
    for row, order in enumerate(orders):
        live = [line for line in found if line[3] == row - 1]
        stays = {j: live[i] for i, j in longest_common([(*x[:2],) for x in live], order)}
        at = 0
        for j, (schema, kind) in enumerate(order):
            if j in stays:
                stays[j][3] = row
                at = next(i for i, line in enumerate(found) if line is stays[j]) + 1
            else:
                found.insert(at, [schema, kind, row, row])
                at += 1
    return tuple(Overload(schema, first, last, kind) for schema, kind, first, last in found)


def collect(folders: Sequence[Path]) -> Rows:
    """The rows of the PyTorch in each of the folders."""
    registries = [Registry(**ask(folder)) for folder in folders]
    of_row = {registry.row: (registry, f) for registry, f in zip(registries, folders, strict=True)}
    if len(of_row) != len(folders):
        raise Unusable(f"two folders of one row: {' '.join(r.row for r in registries)}")
    names = sorted(of_row, key=lambda row: tuple(map(int, row.split("_"))))
    ordered = [of_row[name][0] for name in names]
    types: dict[str, str] = {}
    for registry in ordered:
        types |= registry.types
    # A name in small letters that a parser doesn't know is a type variable to it.
    asked = sorted(name for name in types if name[:1].isupper())
    rejected = set().union(*(ask(of_row[name][1], "--rejects", *asked) for name in names))
    operators = sorted(set().union(*(registry.schemas for registry in ordered)))
    return Rows(
        tuple(names),
        {
            name: merged(
                [[(s, r.kinds.get(s, "")) for s in r.schemas.get(name, ())] for r in ordered]
            )
            for name in operators
        },
        {name: types[name] for name in rejected},
    )


def rows_text(rows: Rows, table: Table) -> str:
    """The whole file."""
    header = HEADER.format(table=table_version(table), rows=" ".join(rows.names))
    comment = "".join(
        f"# {line}".rstrip() + "\n"
        for paragraph in header.split("\n\n")
        for line in (*textwrap.wrap(paragraph, 96, break_on_hyphens=False), "")
    ).removesuffix("#\n")
    return comment + "".join(f"{line}\n" for line in lines(rows, table))


def check(torch: Any) -> list[str]:
    """How the running PyTorch's registry differs from what the file has for its row."""
    here = Registry(**dump(torch))
    rows = read()
    if here.row not in rows.names:
        raise Unusable(f"PyTorch {here.version} is of no row in {ROWS_PATH}")
    expected = rows.registry(here.row)
    if torch.version.cuda is None:
        # The rows' wheels are CUDA builds.
        expected = {n: s for n, s in expected.items() if not n.startswith("cuda::")}
    return [
        f"{name}:\n  here: {here.schemas.get(name)}\n  file: {expected.get(name)}"
        for name in sorted(expected.keys() | here.schemas.keys())
        if expected.get(name) != here.schemas.get(name)
    ]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, help="site-packages, one for each row")
    parser.add_argument("-o", "--output", type=Path, default=ROWS_PATH)
    parser.add_argument(
        "--check", action="store_true", help="hold the file against this interpreter's PyTorch"
    )
    # How this program asks itself: for the registry, or for which of the types are unknown.
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rejects", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    output: Path = arguments.output
    try:
        if arguments.answer is not None:
            torch = import_torch()
            types = arguments.rejects
            answer = dump(torch) if types is None else rejected_types(torch, types)
            arguments.answer.write_text(json.dumps(answer), encoding="utf-8")
            return 0
        if arguments.check:
            differences = check(import_torch())
            for difference in differences:
                print(difference, file=sys.stderr)
            return 1 if differences else 0
        if not arguments.folders:
            parser.error("name the folders of all rows, or --check")
        text = rows_text(collect(arguments.folders), load())
        part = output.with_name(output.name + ".part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, output)
    except (OSError, SchemaError, Unusable) as error:
        print(f"regenerate_rows: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
