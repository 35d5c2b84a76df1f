# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lazy tensors on the reference backend, for each test anew."""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

# Once it is there, it has to load.
if importlib.util.find_spec("torch_mlir._mlir_libs._lazy_backend") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    from torch_mlir import ir, lazy
    from torch_mlir.lazy.reference import ReferenceBackend

    class Recorder(ReferenceBackend):
        """The reference backend, which keeps the text of what it compiles.

        Attributes:
            modules: the texts, in order.
        """

        def __init__(self) -> None:
            super().__init__()
            self.modules: list[str] = []

        def compile(self, module: ir.Module, signature: lazy.Signature) -> Any:
            self.modules.append(str(module))
            return super().compile(module, signature)

    @pytest.fixture
    def backend() -> Iterator[Recorder]:
        """Runs lazy tensors during the test; PyTorch's counters begin at zero."""
        # A failed computation's tensors, which exceptions hold, would spoil the next `mark_step`.
        gc.collect()
        with lazy.register(Recorder()) as recorder:
            lazy.metrics.reset()
            yield recorder
