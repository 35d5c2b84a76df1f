#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write the operator table as a C++ include file.

The build runs this by its path; it needs the standard library alone.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# Run by path there is no package around this file; its own folder is on the path then,
# unless Python was told to leave that out (-P, -I).
sys.path.insert(0, str(Path(__file__).resolve().parent))

from _emit import run
from _table import TABLE_PATH, Argument, Schema, SchemaError, Table, Type

PREAMBLE = """\
// Written by emit_cpp.py from the operator table. Don't edit.
//
//   TORCH_OPERATOR(name, schema, operandKinds, resultKinds, flags)
//
// in the order of std::string's comparison of the names. Kinds, one for each operand or
// result, are prefix codes:
//
//   T  tensor                      d  ScalarType, Layout, MemoryFormat, QScheme
//   i  int, SymInt                 D  Device
//   f  float                       G  Generator
//   b  bool, SymBool               N  None
//   S  Scalar, complex             A  anything: Any, a type variable
//   s  str                         X  dict
//   P  tuple, or an object of a class
//   L… list of what follows        ?… what follows, or None
//   !… written to by the operator (before the whole kind: !LT)
//   *  last: any number more, of any kind
//
//   TORCH_OPERATOR_FLAG(name, bit)
//
// gives the bits of `flags`. `mutates` and `aliases` come from the schema's alias
// annotations (a written operand; a result that shares memory with an operand, or may
// share it with anything), the others stand in the table, whose header explains them.
#ifndef TORCH_OPERATOR
#define TORCH_OPERATOR(name, schema, operandKinds, resultKinds, flags)
#endif
#ifndef TORCH_OPERATOR_FLAG
#define TORCH_OPERATOR_FLAG(name, bit)
#endif

"""

POSTSCRIPT = """
#undef TORCH_OPERATOR
#undef TORCH_OPERATOR_FLAG
"""

KINDS = {
    "Any": "A",
    "AnyClassType": "P",
    "AnyEnumType": "P",
    "Await": "P",
    "Device": "D",
    "Dict": "X",
    "Future": "P",
    "Generator": "G",
    "Layout": "d",
    "MemoryFormat": "d",
    "NoneType": "N",
    "QScheme": "d",
    "RRef": "P",
    "Scalar": "S",
    "ScalarType": "d",
    "Storage": "P",
    "Stream": "P",
    "SymBool": "b",
    "SymInt": "i",
    "Tensor": "T",
    "Tuple": "P",
    "bool": "b",
    "complex": "S",
    "float": "f",
    "int": "i",
    "str": "s",
}


def kind(type: Type) -> str:
    """The code of a type.

    Raises:
        SchemaError: for a type that this program doesn't know.
    """
    if type.name == "List":
        return "L" + kind(type.element)
    if type.name == "Optional":
        return "?" + kind(type.element)
    if type.is_variable:
        return "A"
    if type.name.startswith("__torch__."):
        return "P"
    if type.name not in KINDS:
        raise SchemaError(f"no kind for the type {type}: add it to KINDS of {__file__}")
    return KINDS[type.name]


def kinds(arguments: tuple[Argument, ...], variable: bool) -> str:
    """The codes of all arguments, written ones marked; ``*`` at the end of a variable list."""
    return "".join("!" * a.is_write + kind(a.type) for a in arguments) + "*" * variable


def flags_of(schema: Schema) -> frozenset[str]:
    """The table's flags and those that the schema itself tells."""
    derived = {"mutates": schema.is_mutable, "aliases": schema.is_aliasing}
    return schema.flags | {name for name, holds in derived.items() if holds}


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped.isascii() or not escaped.isprintable():
        raise SchemaError(f"a schema that isn't plain ASCII: {text!r}")
    # "??(" and the like are trigraphs to an old preprocessor.
    return '"' + escaped.replace("??", "?\\?") + '"'


def emit(table: Table) -> str:
    """The include file's text."""
    schemas = sorted(table.values(), key=lambda s: s.key.encode())
    names = ["pure", "mutates", "aliases"]
    names += sorted(frozenset().union(*map(flags_of, schemas)) - set(names))
    if len(names) > 32:
        raise SchemaError(f"{len(names)} flags don't go into 32 bits: {' '.join(names)}")
    bits = {name: 1 << i for i, name in enumerate(names)}
    lines = [f"TORCH_OPERATOR_FLAG({name}, {bit:#x})\n" for name, bit in bits.items()]
    lines.append("\n")
    for s in schemas:
        mask = sum(bits[f] for f in flags_of(s))
        lines.append(
            f"TORCH_OPERATOR({quoted(s.key)}, {quoted(s.text)}, "
            f"{quoted(kinds(s.arguments, s.is_vararg))}, "
            f"{quoted(kinds(s.results, s.is_varret))}, {mask:#x})\n"
        )
    return PREAMBLE + "".join(lines) + POSTSCRIPT


def main(argv: list[str] | None = None) -> int:
    def text(arguments: argparse.Namespace) -> str:
        return emit(Table(arguments.table.read_text(encoding="utf-8"), str(arguments.table)))

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--table", type=Path, default=TABLE_PATH, help="another table")
    return run(parser, text, argv)


if __name__ == "__main__":
    sys.exit(main())
