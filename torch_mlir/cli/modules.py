# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MODEL as a module of MLIR, whatever it names."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .programs import Program, import_program, load_program, parse_mlir, pytorch
from .progress import Progress
from .references import MlirText, Reference, TorchScriptArchive
from .streams import shown

if TYPE_CHECKING:
    from .. import ir


def load_module(
    reference: Reference,
    options: argparse.Namespace,
    progress: Progress,
    target: str | None = None,
) -> tuple[ir.Module, Program | None]:
    """The module, and the program that it was imported from; None for MLIR and TorchScript.

    Raises:
        CommandError: the model can't be read, exported or imported.
    """
    if isinstance(reference, MlirText):
        progress.step(f"read {reference.text}")
        return parse_mlir(reference), None
    if isinstance(reference, TorchScriptArchive):
        from .torchscript import import_archive

        progress.step(f"import {shown(reference.text)}")
        return import_archive(reference, options, "torch"), None
    progress.step("load PyTorch")
    with pytorch(reference, options) as torch:
        from .values import Values

        values = Values(options.seed, torch)
        program = load_program(reference, options, values, progress)
        return import_program(program, options, progress, target=target), program
