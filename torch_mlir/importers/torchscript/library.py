# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python functions that tell shapes and dtypes of operators, as a library for the lowering.

Upstream's passes look for functions of certain names in it, such as
`__torch_mlir_shape_fn.aten.add.Tensor`; in Python the same one is `aten〇add〇Tensor〡shape`.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ... import ir
from ...compiler_utils import TorchMlirCompilerError
from .archives import import_archive

# The dot, and what stands before the kind of a function, in Python's names.
_DOT, _KIND = "〇", "〡"
_PREFIXES = {
    "shape": "__torch_mlir_shape_fn",
    "dtype": "__torch_mlir_dtype_fn",
    "decomposition": "__torch_mlir_decomposition_fn",
    "has_value_semantics": "__torch_mlir_has_value_semantics_fn",
}
# PyTorch saves a function as the method of an object that has nothing else.
_SAVED = "__torch__.PlaceholderModule.forward"


@contextlib.contextmanager
def library_of(functions: Iterable[Callable[..., Any]]) -> Iterator[str | None]:
    """A file with the functions as MLIR, which is there for the time being; None without any.

    Raises:
        ValueError: a function isn't called as upstream calls one.
        TorchMlirCompilerError: PyTorch can't script it, or something in it has no translation.
    """
    listed = list(functions)
    if not listed:
        yield None
        return
    text = library_text(listed)
    descriptor, path = tempfile.mkstemp(prefix="library-", suffix=".mlir", text=True)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        yield path
    finally:
        os.unlink(path)


def library_text(functions: Iterable[Callable[..., Any]]) -> str:
    """The functions, and those that they call, as a module of MLIR; see `library_of`."""
    operations: dict[str, str] = {}
    for function in functions:
        symbol = _symbol(function.__name__)
        module = import_archive(_archive(function), "raw")
        for view in module.body.operations:
            operation = view.operation
            if operation.name != "func.func":
                continue
            name = ir.StringAttr(operation.attributes["sym_name"]).value
            if name == _SAVED:
                name = symbol
                _make_function(operation, name)
            operations[name] = str(operation)
    return "\n".join(["module {", *operations.values(), "}\n"])


def _symbol(name: str) -> str:
    operator, _, kind = name.partition(_KIND)
    prefix = _PREFIXES.get(kind)
    if prefix is None or _DOT not in operator:
        kinds = ", ".join(_PREFIXES)
        raise ValueError(
            f"extra_library: {name!r} is not called like aten{_DOT}add{_DOT}Tensor{_KIND}shape; "
            f"the kinds are {kinds}"
        )
    return f"{prefix}.{operator.replace(_DOT, '.')}"


def _archive(function: Callable[..., Any]) -> memoryview:
    buffer = io.BytesIO()
    try:
        torch.jit.save(torch.jit.script(function), buffer)
    except Exception as error:  # the compiler's own errors, and those of what it evaluates
        raise TorchMlirCompilerError(
            f"extra_library: PyTorch cannot script {function.__name__}: {error}"
        ) from error
    return buffer.getbuffer()


def _make_function(operation: ir.Operation, symbol: str) -> None:
    """Make a method whose object nothing looks at a function."""
    block = operation.regions[0].blocks[0]
    block.erase_argument(0)
    kind = ir.FunctionType(ir.TypeAttr(operation.attributes["function_type"]).value)
    with operation.context:
        without = ir.FunctionType.get(kind.inputs[1:], kind.results)
        operation.attributes["function_type"] = ir.TypeAttr.get(without)
        operation.attributes["sym_name"] = ir.StringAttr.get(symbol)
