# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line: `torch-mlir import MODEL -o model.mlir`, and what else it offers.

Each command has a module `main_COMMAND`, which adds its parser and carries it out. Commands that
need neither PyTorch nor MLIR load neither.
"""

from __future__ import annotations

from .main import main as main
