# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operator of the table imports with every kind of argument that its schema has.

What cannot be imported is said here, kind by kind, and nothing else is refused.
"""

from __future__ import annotations

from typing import Any

import pytest
from schema_graphs import graph_of, overloads

from torch_mlir import fx, ir, operators

NAMESPACES = ("aten", "prim", "prims", "quantized", "_quantized", "quantized_decomposed")

# Objects of PyTorch that no value of the dialect stands for, by the kind of schema type.
OBJECTS = {
    "AnyClassType", "AnyEnumType", "AwaitType", "ClassType", "FutureType", "GeneratorType",
    "QSchemeType", "RRefType", "StorageType", "StreamObjType",
}  # fmt: skip


def written(schema: Any) -> str | None:
    """The first argument that the operator writes to, by its own schema or else the table's."""
    for argument in schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            return argument.name
    overload = f".{schema.overload_name}" if schema.overload_name else ""
    entry = operators.load()[schema.name.replace("::", ".") + overload]
    return next((argument.name for argument in entry.arguments if argument.is_write), None)


def kinds(kind: Any) -> set[str]:
    """The kinds of schema type that `kind` is built of; an optional generator may be None."""
    name = kind.kind()
    if name == "OptionalType":
        inner = kinds(kind.getElementType())
        return inner - {"GeneratorType"}
    if name == "ListType":
        return kinds(kind.getElementType())
    return {name}


def expected_refusal(schema: Any) -> str | None:
    """What the error says of an operator that is not imported; None for all others."""
    name = written(schema)
    if name is not None:
        return f"argument {name!r}: the operator writes to it"
    for argument in schema.arguments:
        objects = kinds(argument.type) & OBJECTS
        if "GeneratorType" in objects:
            return f"argument {argument.name!r}: a generator is a stream of random numbers"
        if objects:
            return f"argument {argument.name!r}: arguments of type "
    for result in schema.returns:
        if kinds(result.type) & (OBJECTS | {"AnyListType"}):
            return "has no type in the Torch dialect"
        if result.type.kind() == "ListType" and kinds(result.type) == {"TupleType"}:
            return "a list that holds tuple has no type"
    return None


def calls() -> list[tuple[str, Any]]:
    # What takes any number of arguments names none that a sample could be made for.
    table = operators.load()
    return [
        (key, overload)
        for key, overload in overloads(*NAMESPACES)
        if not table[key].is_vararg and not table[key].is_varret
    ]


@pytest.fixture(scope="module")
def imported() -> tuple[ir.Module, dict[str, str]]:
    """All operators in one module, and why those that are missing are."""
    importer, refused = fx.FxImporter(), {}
    for key, overload in calls():
        try:
            importer.import_stateless_graph(graph_of(overload), func_name=key)
        except fx.TorchMlirCompilerError as error:
            refused[key] = str(error)
    return importer.module, refused


def test_exactly_what_has_no_translation_is_refused(imported):
    _, refused = imported
    wrong = []
    for key, overload in calls():
        expected, got = expected_refusal(overload._schema), refused.get(key)
        if (expected is None) != (got is None) or (got and expected not in got):
            wrong.append((key, expected, got))
    assert wrong == []
    assert len(calls()) - len(refused) > 2000


def test_a_refusal_names_the_operator(imported):
    for key, message in imported[1].items():
        assert message.startswith((key + ":", key + ", argument")), message


def test_what_is_imported_verifies_and_reads_back(imported):
    module, _ = imported
    assert module.operation.verify()
    text = str(module)
    again = ir.Module.parse(text, ir.Context())
    assert str(again) == text


# IREE's verifier looks at the sizes, dtypes and numbers that these get, which samples that follow
# the schema alone have no reason to choose well.
VALUES_MATTER = {
    "aten._scaled_mm", "aten._scaled_mm_v2", "aten.count_nonzero.dim_IntList", "aten.permute",
    "aten.rot90", "aten.tril_indices", "aten.triu_indices",
    "quantized_decomposed.dequantize_per_token", "quantized_decomposed.quantize_per_token",
}  # fmt: skip


def has_complex_keys(schema: Any) -> bool:
    """Whether a dict has complex numbers as keys, which IREE's dicts cannot have."""
    types = [argument.type for argument in schema.arguments]
    return any(t.kind() == "DictType" and t.getKeyType().kind() == "ComplexType" for t in types)


@pytest.mark.iree
def test_iree_reads_every_operator_with_every_kind_of_argument():
    pytest.importorskip("iree.compiler")
    from iree.compiler import ir as iree

    from torch_mlir.importers.consumers import consumer

    importer = fx.FxImporter(accepts=consumer("iree"))
    for key, overload in calls():
        schema = overload._schema
        if key in VALUES_MATTER or has_complex_keys(schema) or expected_refusal(schema):
            continue
        importer.import_stateless_graph(graph_of(overload), func_name=key)
    module = iree.Module.parse(str(importer.module), iree.Context())
    assert module.operation.verify()
