# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lazy tensors that a vendor in C++ compiles and runs: ``import lazy_vendor; lazy_vendor.register()``."""

from __future__ import annotations

from pathlib import Path

import torch

# The library is linked with PyTorch and torch_mlir's lazy backend, which have to be there first.
import torch_mlir.lazy  # noqa: F401

torch.ops.load_library(str(Path(__file__).with_name("lazy_vendor.so")))


def register() -> None:
    """From now on, tensors on the device "lazy" are this vendor's."""
    torch.ops.lazy_vendor.register()


def compiled() -> int:
    """How many modules have been compiled."""
    return torch.ops.lazy_vendor.compiled()


def executed() -> list[str]:
    """The operators that have been run, by name, in the order in which they were first run."""
    return torch.ops.lazy_vendor.executed()
