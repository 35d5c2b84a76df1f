# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What upstream's modules offer is here, with the same parameters and defaults, or left out.

`upstream_signatures.json` holds what an installation of upstream's offers; `read_signatures.py`
regenerates it. `left_out.json` says why a name of it is not here.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch_mlir.fx")

HERE = Path(__file__).parent
UPSTREAM = json.loads((HERE / "upstream_signatures.json").read_text())["modules"]
LEFT_OUT = json.loads((HERE / "left_out.json").read_text())


def offered() -> Iterator[tuple[str, str, str, Any]]:
    """(module, name within it, what it is, what upstream tells of it)"""
    for module, content in UPSTREAM.items():
        for name, parameters in content["functions"].items():
            yield module, name, "function", parameters
        for name in content["tables"]:
            yield module, name, "table", None
        for name, cls in content["classes"].items():
            yield module, name, "class", None
            if name in LEFT_OUT.get(module, {}):
                continue
            for method, parameters in cls.get("methods", {}).items():
                yield module, f"{name}.{method}", "method", parameters
            for prop in cls.get("properties", []):
                yield module, f"{name}.{prop}", "property", None
            for kind in ("fields", "members"):
                if kind in cls:
                    yield module, name, kind, cls[kind]


def find(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in filter(None, name.split(".")):
        found = getattr(found, part)
    return found


CASES = [
    pytest.param(*case, id=f"{case[0]}.{case[1]}-{case[2]}")
    for case in offered()
    if case[1] not in LEFT_OUT.get(case[0], {})
]


def text(default: Any) -> str:
    return str(default) if hasattr(default, "name") else repr(default)


@pytest.mark.parametrize(("module", "name", "kind", "told"), CASES)
def test_upstreams_name_is_here(module, name, kind, told):
    found = find(module, name)
    if kind in ("function", "method"):
        ours = [
            (p.name, p.kind.name, None if p.default is p.empty else text(p.default))
            for p in inspect.signature(found).parameters.values()
        ]
        absent = LEFT_OUT.get(module, {})
        theirs = [
            (*p[:2], p[2] if len(p) > 2 else None) for p in told if f"{name}({p[0]})" not in absent
        ]
        names = [parameter[0] for parameter in theirs]
        assert [parameter for parameter in ours if parameter[0] in names] == theirs
        further = [p for p in ours if p[0] not in names]
        assert all(default is not None for _, _, default in further), "upstream's calls lack one"
        positional = [p[0] for p in ours if p[1] == "POSITIONAL_OR_KEYWORD"]
        expected = [p[0] for p in theirs if p[1] == "POSITIONAL_OR_KEYWORD"]
        assert positional[: len(expected)] == expected
    elif kind == "fields":
        ours = {
            field.name: None if field.default is dataclasses.MISSING else text(field.default)
            for field in dataclasses.fields(found)
        }
        assert list(ours.items())[: len(told)] == list(told.items())
    elif kind == "members":
        assert {member.name: member.value for member in found} == told
    elif kind == "table":
        assert len(found) > 0
    elif kind == "property":
        assert isinstance(found, property)
    else:
        assert inspect.isclass(found)


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module, names in LEFT_OUT.items() for name in names],
)
def test_what_is_left_out_is_upstreams_and_not_here(module, name):
    name, _, parameter = name.removesuffix(")").partition("(")
    told = [parameters for m, n, _, parameters in offered() if (m, n) == (module, name)]
    assert told, "upstream has no such name"
    if parameter:
        assert parameter in [upstreams for upstreams, *_ in told[0]]
        assert parameter not in inspect.signature(find(module, name)).parameters
    else:
        owner, _, member = name.rpartition(".")
        assert not hasattr(find(module, owner), member), "it is here: take it from the list"
