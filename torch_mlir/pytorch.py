# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The installed PyTorch: that there is one, that it exports programs, which operators it has."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any


def require_torch(wanted_by: str) -> ModuleType:
    """Import `torch` and its `torch.export`.

    Raises:
        ImportError: PyTorch is not installed, or has no `torch.export` (before 2.1).
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"{wanted_by} needs PyTorch 2.1 or newer beside torch_mlir, and no PyTorch is "
            "installed in this environment (the rest of torch_mlir works without it)",
            name="torch",
        ) from None
    if importlib.util.find_spec("torch.export") is None:
        raise ImportError(
            f"{wanted_by} needs torch.export, which PyTorch has since 2.1; "
            f"this environment has PyTorch {torch.__version__}",
            name="torch.export",
        )
    import torch.export

    return torch


def aten_operator(name: str) -> Any:
    """`torch.ops.aten.add.Tensor` for `add.Tensor`, all of its overloads for `add`.

    Returns:
        None if the installed PyTorch has no such operator.
    """
    import torch

    packet, _, overload = name.partition(".")
    found = getattr(torch.ops.aten, packet, None)
    return getattr(found, overload, None) if overload else found
