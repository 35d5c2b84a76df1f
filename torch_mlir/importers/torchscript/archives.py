# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Archives, read by the native importer."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from ... import ir
from ..._mlir_libs import _jit_ir_importer as native  # type: ignore[attr-defined]
from ...compiler_utils import TorchMlirCompilerError
from .arguments import Described

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
"""An archive: its path, its bytes, or an open file, of which the rest is read."""


@dataclass(frozen=True)
class UnrefinedOperator:
    """An operator that gave tensors of unknown rank or dtype, though its operands' are known."""

    name: str
    """As TorchScript has it: `aten::einsum`."""
    count: int
    location: tuple[str, int, str] | None
    """File, line and function of the first call."""

    def __str__(self) -> str:
        place = "" if self.location is None else f", first at {self.location[0]}:{self.location[1]}"
        times = "once" if self.count == 1 else f"{self.count} times"
        return f"{self.name}: {times}{place}"


def import_archive(
    source: Source,
    mode: str,
    *,
    methods: Sequence[str] | None = None,
    arguments: Described | None = None,
    freeze: bool = True,
    torch_version: str | None = None,
    schemas: Sequence[str] = (),
    limits: dict[str, int] | None = None,
    context: ir.Context | None = None,
    unrefined: Callable[[UnrefinedOperator], None] | None = None,
) -> ir.Module:
    """The module that an archive holds.

    Args:
        mode: `raw`, or `torch`; see `torch_mlir.torchscript.import_archive`, whose parameters
            the others are.
        unrefined: told of each operator of whose results the importer knows too little.

    Raises:
        TorchMlirCompilerError: the archive can't be read, or something in it not be imported.
        ValueError: there is no such release or limit.
        OSError: the file can't be read.
    """
    given, name = _given(source)
    options: dict[str, Any] = {
        "name": name,
        "mode": mode,
        "schemas": list(schemas),
        **(limits or {}),
    }
    if mode != "raw":
        options["methods"] = list(methods or ())
        options["freeze"] = freeze
        options["arguments"] = {
            method: [value and (list(value.shape), value.element_type) for value in values]
            for method, values in (arguments or {}).items()
        }
        if unrefined is not None:
            tell = unrefined
            options["unrefined"] = lambda *given: tell(UnrefinedOperator(*given))
    context = context or ir.Context()
    if torch_version is not None:
        return _imported(context, given, row=_row(torch_version), **options)
    installed = _installed_row()
    if installed is None:
        return _imported(context, given, **options)
    try:
        return _imported(context, given, row=installed, **options)
    except TorchMlirCompilerError as error:
        try:
            # Another release may have saved it: the newest one that has its operators.
            return _imported(context, given, **options)
        except TorchMlirCompilerError:
            raise error from None


def _imported(context: ir.Context, given: Any, **options: Any) -> ir.Module:
    try:
        return cast("ir.Module", native.import_archive(context, given, **options))
    except native.ImportError as error:
        raise TorchMlirCompilerError(str(error)) from None


def _given(source: Source) -> tuple[Any, str]:
    """What the native importer takes, and what messages call it."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        # The native importer's message would not be an OSError.
        with open(path, "rb"):
            return path, path
    if isinstance(source, (bytes, bytearray, memoryview)):
        return source, "<bytes>"
    data = source.read()
    if not isinstance(data, bytes):
        raise TypeError(f"an archive is read from a binary file; this one gives {type(data)}")
    return data, str(getattr(source, "name", "<file>"))


def torch_versions() -> tuple[str, ...]:
    """The releases of PyTorch whose operators are known, oldest first: `2.1`, `2.2`, ..."""
    return tuple(row.replace("_", ".") for row in native.rows())


def _row(torch_version: str) -> str:
    """What the native importer calls the release `torch_version`, e.g. `2.6` or `2.6.0+cpu`.

    Raises:
        ValueError: it isn't known.
    """
    row = "_".join(torch_version.split("+")[0].split(".")[:2])
    if row not in native.rows():
        known = ", ".join(torch_versions())
        raise ValueError(f"torch_version {torch_version!r} is not one of {known}")
    return row


def _installed_row() -> str | None:
    """The release of the installed PyTorch, which isn't loaded for it; None if it isn't known."""
    torch = sys.modules.get("torch")
    try:
        version = str(torch.__version__) if torch else importlib.metadata.version("torch")
        return _row(version)
    except (importlib.metadata.PackageNotFoundError, AttributeError, ValueError):
        return None
