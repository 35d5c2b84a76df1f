# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lazy tensors on the reference backend, for each test anew."""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

# Once it is there, it has to load.
if importlib.util.find_spec("torch_mlir._mlir_libs._lazy_backend") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    from torch_mlir import ir, lazy

    COMPUTES = importlib.util.find_spec("torch.export") is not None
    if COMPUTES:
        from torch_mlir.lazy.reference import ReferenceBackend as Computing
    else:
        # Of PyTorch 2.0, which the reference backend doesn't work with, there are texts alone.
        folder = Path(__file__).parent
        collect_ignore = [
            each.name for each in folder.glob("test_*.py") if each.name != "test_lowering_text.py"
        ]

        class Computing(lazy.Backend):
            """Holds modules to their signatures, and gives zeros."""

            def compile(self, module: ir.Module, signature: lazy.Signature) -> lazy.Signature:
                signature.check_module(module)
                return signature

            def execute(
                self, executable: lazy.Signature, arguments: Sequence[Any]
            ) -> list[torch.Tensor]:
                executable.check_arguments(arguments)
                return [torch.zeros(each.shape, dtype=each.dtype) for each in executable.results]

    class Recorder(Computing):
        """The reference backend, which keeps the text of what it compiles.

        Attributes:
            modules: the texts, in order.
            computes: whether there are values; False without the reference backend.
        """

        computes = COMPUTES

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
