# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator table held against the PyTorch that is installed.

It need not be the one that the table is from, but one that can read its schemas.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from torch_mlir.operators import Argument, Type, load

torch = pytest.importorskip("torch")


def minor(text: str) -> int:
    found = re.search(r"\b2\.(\d+)", text)
    assert found is not None, text
    return int(found[1])


if minor(torch.__version__) < minor(load().header[0]) - 4:
    pytest.skip(f"PyTorch {torch.__version__} is too old", allow_module_level=True)


def full_name(schema: Any) -> str:
    return schema.name + (f".{schema.overload_name}" if schema.overload_name else "")


@pytest.fixture(scope="module")
def registered() -> dict[str, Any]:
    """Key to ``torch._C.FunctionSchema``, for the namespaces of the table."""
    importlib.import_module("torch._prims")
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    namespaces = {s.namespace for s in load().values()}
    return {
        full_name(s).replace("::", "."): s
        for s in torch._C._jit_get_all_schemas()
        if s.name.partition("::")[0] in namespaces
    }


@pytest.fixture(scope="module")
def reparsed() -> dict[str, Any]:
    """The table's texts, read by PyTorch's own parser."""
    return {key: torch._C.parse_schema(schema.text) for key, schema in load().items()}


def torch_type(type: Type) -> str:
    """A type as Python prints torch's, without symbols and enumerations."""
    inner = ", ".join(map(torch_type, type.arguments))
    plain = {
        "Scalar": "number",
        "SymInt": "int",
        "SymBool": "bool",
        "ScalarType": "int",
        "Layout": "int",
        "MemoryFormat": "int",
    }
    return f"{type.name}[{inner}]" if inner else plain.get(type.name, type.name)


def outline(arguments: tuple[Argument, ...]) -> Iterator[tuple[object, ...]]:
    for a in arguments:
        yield a.name, torch_type(a.type), a.kwarg_only, a.default is not None


def torch_outline(arguments: Any) -> Iterator[tuple[object, ...]]:
    for a in arguments:
        # `Tensor?` of a custom class and the like print as they are written.
        yield a.name, str(a.type), a.kwarg_only, a.has_default_value()


def test_torch_reads_the_same_arguments(reparsed: dict[str, Any]) -> None:
    for key, schema in load().items():
        assert list(outline(schema.arguments)) == list(torch_outline(reparsed[key].arguments)), key


def test_torch_reads_the_same_results(reparsed: dict[str, Any]) -> None:
    for key, schema in load().items():
        ours = [(r.name, torch_type(r.type)) for r in schema.results]
        assert ours == [(r.name, str(r.type)) for r in reparsed[key].returns], key


def test_torch_reads_the_same_defaults(reparsed: dict[str, Any]) -> None:
    compared = 0
    for key, schema in load().items():
        for ours, theirs in zip(schema.arguments, reparsed[key].arguments, strict=True):
            if ours.default is not None:
                assert ours.default_value == theirs.default_value, (key, ours.name)
                # `float? correction=1`: the number as it stands, or as the operator gets it.
                number = float if "float" in str(ours.type) else type(theirs.default_value)
                assert type(ours.default_value) in (number, type(theirs.default_value)), key
                compared += 1
    assert compared > 2500


def test_torch_agrees_on_what_is_written_to(reparsed: dict[str, Any]) -> None:
    for key, schema in load().items():
        assert schema.is_mutable == reparsed[key].is_mutable, key


def test_torch_prints_the_text_that_the_table_has(reparsed: dict[str, Any]) -> None:
    def ordered(text: str) -> str:
        # The members of an alias set are in no order.
        return re.sub(r"\b\w(\|\w)+", lambda m: "|".join(sorted(m[0].split("|"))), text)

    for key, schema in load().items():
        assert ordered(schema.text) == ordered(str(reparsed[key])), key


def test_operators_that_are_registered_here_stand_in_the_table(
    registered: dict[str, Any],
) -> None:
    # Operators come and go between releases, a few each time.
    missing = registered.keys() - load().keys()
    assert len(missing) < 0.05 * len(registered), sorted(missing)
    changed = [k for k in registered.keys() & load().keys() if str(registered[k]) != load()[k].text]
    assert len(changed) < 0.05 * len(registered), sorted(changed)


def test_tags_of_native_functions_yaml(registered: dict[str, Any]) -> None:
    yaml = pytest.importorskip("yaml")
    torchgen = importlib.import_module("torchgen")
    path = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    entries = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    known = frozenset().union(*(s.flags for s in load().values()))
    differing = []
    for entry in entries:
        key = "aten." + entry["func"].partition("(")[0]
        tags = entry.get("tags", [])
        tags = {tags} if isinstance(tags, str) else set(tags)
        if key in load() and not tags & known <= load()[key].flags:
            differing.append((key, tags, load()[key].flags))
    # Equal where the release is; a tag or two is taken back later.
    version = re.search(r"PyTorch (\S+);", load().header[0])
    assert version is not None
    if torch.__version__.partition("+")[0] == version[1]:
        assert differing == []
    assert len(differing) < 0.01 * len(entries), differing


@pytest.mark.parametrize(
    "key",
    ["aten.add.Tensor", "aten.add_.Tensor", "aten.view", "aten.mm", "aten.warn", "prim.TimePoint"],
)
def test_torchscript_drops_an_unused_call_where_the_table_says_pure(
    registered: dict[str, Any], key: str
) -> None:
    schema = registered[key]
    graph = torch._C.Graph()
    inputs = [graph.addInput() for _ in schema.arguments]
    for value, argument in zip(inputs, schema.arguments, strict=True):
        value.setType(argument.type)
    graph.appendNode(graph.create(schema.name, inputs, len(schema.returns)))
    torch._C._jit_pass_dce(graph)
    assert (list(graph.nodes()) == []) == load()[key].is_pure
