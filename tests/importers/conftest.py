# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the importers' tests share: import a module, run the MLIR, hold it against eager."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

# The modules beside this file, however pytest was told to import tests.
sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("torch.export", reason="needs PyTorch 2.1 or newer")


@pytest.fixture
def agree():
    """Import a module for the given inputs, run it, and compare with calling it."""
    from eager import compare

    from torch_mlir import fx

    def check(module: Any, *args: Any, runs: list[tuple] | None = None, **options: Any) -> Any:
        imported = fx.export_and_import(module, *args, **options)
        compare(imported, module, [args] if runs is None else runs)
        return imported

    return check


@pytest.fixture
def operations():
    """The operations of a module, nested ones included, by name or all."""

    def of(module: Any, name: str | None = None) -> list[Any]:
        found = []

        def visit(operation: Any) -> None:
            for region in operation.regions:
                for block in region.blocks:
                    for inner in block.operations:
                        inner = inner.operation
                        if name is None or inner.name == name:
                            found.append(inner)
                        visit(inner)

        visit(module.operation)
        return found

    return of
