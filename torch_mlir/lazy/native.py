# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiled part, which belongs to one minor version of PyTorch."""

from __future__ import annotations

import importlib
import importlib.util
import mmap
import re
from typing import Any

_NAME = "torch_mlir._mlir_libs._lazy_backend"
# What `_lazy_backend.built_for` holds, as its file has it.
_BUILT_FOR = re.compile(rb"torch_mlir lazy backend for PyTorch (\d[\w.+-]*)\0")


def check_installation() -> None:
    """See that PyTorch and the compiled part are there, and fit.

    Raises:
        ImportError: they don't; the message says what to install.
    """
    load()


def load() -> Any:
    """The module `_lazy_backend`.

    Raises:
        ImportError: PyTorch isn't installed, or is of another minor version than the one that
            the module was built for; or there is no such module.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            "torch_mlir.lazy needs PyTorch beside torch_mlir, and no PyTorch is installed in "
            "this environment (the rest of torch_mlir works without it)",
            name="torch",
        ) from None
    spec = importlib.util.find_spec(_NAME)
    if spec is None or spec.origin is None:
        raise ImportError(
            "this torch_mlir was built without lazy tensors: install the wheel made for PyTorch "
            f"{_minor(torch.__version__)}, the installed one",
            name=_NAME,
        )
    try:
        native = importlib.import_module(_NAME)
    except ImportError as error:
        built_for = _built_for(spec.origin)
        if built_for is not None and _minor(built_for) != _minor(torch.__version__):
            raise ImportError(_mismatch(built_for, torch.__version__), name=_NAME) from error
        raise ImportError(
            f"{spec.origin} doesn't load with PyTorch {torch.__version__}"
            f"{'' if built_for is None else f', though it was built for {built_for}'}: {error}",
            name=_NAME,
        ) from error
    if _minor(native.torch_version) != _minor(torch.__version__):
        raise ImportError(_mismatch(native.torch_version, torch.__version__), name=_NAME)
    return native


def _minor(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])


def _mismatch(built_for: str, installed: str) -> str:
    return (
        f"the lazy tensors of this torch_mlir are built for PyTorch {_minor(built_for)}, and "
        f"{installed} is installed: install PyTorch {_minor(built_for)}, or the wheel of "
        f"torch_mlir for PyTorch {_minor(installed)}"
    )


def _built_for(path: str) -> str | None:
    """The PyTorch that a file was built for, without loading it."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        match = _BUILT_FOR.search(memory)
        return None if match is None else match[1].decode()
