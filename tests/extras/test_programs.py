# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scripts that were written for upstream give the modules that upstream gives.

`upstream_modules.json` holds what `programs.py` gives where upstream is installed. Modules are
compared as what they compute: constants, which one of the two makes anew at each use, count as
parts of the operations that take them, and literals by their types.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir.fx")

from programs import PROGRAMS  # noqa: E402

from torch_mlir import ir  # noqa: E402

UPSTREAM = json.loads((Path(__file__).parent / "upstream_modules.json").read_text())

# What torch.export traces differs from one PyTorch to another.
pytestmark = pytest.mark.skipif(
    torch.__version__.split("+")[0] != UPSTREAM["torch"].split("+")[0],
    reason=f"upstream's modules were made with PyTorch {UPSTREAM['torch']}",
)

_CONSTANTS = ("torch.constant.", "torch.vtensor.literal", "torch.prim.ListConstruct")


def outline(module: ir.Module) -> list[str]:
    """One line for each operation that is no constant."""
    values: dict[Any, str] = {}
    lines: list[str] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        operation = operation.operation
        operands = ", ".join(values[value] for value in operation.operands)
        attributes = ", ".join(
            sorted(
                f"{name}={re.sub('dense_resource<[^>]*>', 'data', str(operation.attributes[name]))}"
                for name in operation.attributes
            )
        )
        text = f"{operation.name} {{{attributes}}}({operands})"
        if operation.name.startswith(_CONSTANTS):
            values[operation.results[0]] = text
        else:
            types = ", ".join(str(result.type) for result in operation.results)
            lines.append(f"{text} -> {types}")
            for result in operation.results:
                values[result] = f"%{len(values)}"
        for region in operation.regions:
            for block in region:
                for argument in block.arguments:
                    values[argument] = f"%{len(values)}: {argument.type}"
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return renumbered(lines)


def renumbered(lines: list[str]) -> list[str]:
    names: dict[str, str] = {}
    return [re.sub(r"%\d+", lambda m: names.setdefault(m[0], f"%v{len(names)}"), s) for s in lines]


@pytest.mark.parametrize("name", sorted(UPSTREAM["modules"]))
def test_a_script_gives_upstreams_module(name):
    module, calls = PROGRAMS[name]()
    told = UPSTREAM["modules"][name]
    context = ir.Context()
    context.allow_unregistered_dialects = True
    theirs = ir.Module.parse("\n".join(told["module"]), context)
    assert outline(module) == outline(theirs)
    assert calls == told["calls"]


def test_every_script_is_compared():
    assert set(PROGRAMS) == set(UPSTREAM["modules"])
