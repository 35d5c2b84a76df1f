# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the backends' tests share: programs from the text of a module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# The helpers beside this file, however pytest was told to import tests.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def reference() -> Callable[..., Any]:
    """Compile the text of a module for the reference backend."""
    pytest.importorskip("torch")
    from torch_mlir import backends, ir

    def compiled(text: str, **options: Any) -> Any:
        backend = backends.get("reference", **options)
        return backend.load(backend.compile(ir.Module.parse(text, ir.Context())))

    return compiled


@pytest.fixture
def run(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Call the only function of a module, given as text."""
    return lambda text, *inputs: reference(text)(*inputs)
