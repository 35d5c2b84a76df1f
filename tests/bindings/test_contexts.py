"""Contexts, and the end of the process."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "entered",
    [
        "ir.Context().__enter__()",
        "ir.Location.unknown(ir.Context()).__enter__()",
        "ir.InsertionPoint(ir.Module.parse('module {}', ir.Context()).body).__enter__()",
    ],
)
def test_process_ends_well_inside_a_context(entered: str) -> None:
    program = f"from torch_mlir import ir\nentered = {entered}\nassert ir.Context.current\n"
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_leave_contexts_leaves_all_of_them() -> None:
    from torch_mlir import ir
    from torch_mlir._mlir_libs import _torchMlir

    context = ir.Context()
    context.__enter__()
    ir.Location.unknown().__enter__()
    _torchMlir.leave_contexts()
    assert ir.Context.current is None
