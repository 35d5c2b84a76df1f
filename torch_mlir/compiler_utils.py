# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What callers of the importers pass in and get back besides the module itself; its lowering."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from . import ir

__all__ = [
    "BackendLoweringOptions",
    "OutputType",
    "TensorPlaceholder",
    "TorchMlirCompilerError",
    "get_module_name_for_debug_dump",
    "lower_mlir_module",
    "run_pipeline_with_repro_report",
]


class TorchMlirCompilerError(Exception):
    """A program cannot be imported or lowered; the message says which part, and why."""


class OutputType(Enum):
    """How far a program is lowered after its import."""

    # Torch dialect in the form that backends take.
    TORCH = "torch"
    # `linalg` on tensors with `arith`, `math`, `scf` and `tensor`.
    LINALG_ON_TENSORS = "linalg-on-tensors"
    TOSA = "tosa"
    STABLEHLO = "stablehlo"
    # Torch dialect as the importer wrote it.
    RAW = "raw"

    @staticmethod
    def get(spec: str | OutputType) -> OutputType:
        """The output type that `spec` is, or names in any case, with `-` or `_`.

        Raises:
            ValueError: no output type has that name.
        """
        if isinstance(spec, OutputType):
            return spec
        try:
            return OutputType[spec.upper().replace("-", "_")]
        except KeyError:
            names = ", ".join(OutputType.__members__)
            raise ValueError(f"output_type {spec!r} is not one of {names}") from None


class TensorPlaceholder:
    """A formal tensor parameter: a shape, where -1 is a size not known, and a dtype."""

    def __init__(self, shape: Sequence[int], dtype: torch.dtype) -> None:
        self.shape = list(shape)
        self.dtype = dtype

    @staticmethod
    def like(tensor: torch.Tensor, dynamic_axes: Sequence[int] | None = None) -> TensorPlaceholder:
        """A placeholder of `tensor`'s dtype and shape, with `dynamic_axes` left open."""
        open_axes = frozenset(dynamic_axes or ())
        shape = [-1 if axis in open_axes else size for axis, size in enumerate(tensor.shape)]
        return TensorPlaceholder(shape, tensor.dtype)


@dataclass
class BackendLoweringOptions:
    """How the Torch dialect becomes another one.

    Attributes:
        allow_non_finites: the result may use infinities and NaNs, e.g. as the initial value of
            a maximum; otherwise the dtype's largest finite values stand for them.
    """

    allow_non_finites: bool = True


def get_module_name_for_debug_dump(module: ir.Module) -> str:
    """The module's `torch.debug_module_name`, or a name for a module that has none."""
    from . import ir

    attributes = module.operation.attributes
    if "torch.debug_module_name" not in attributes:
        return "UnnammedModule"  # spelt as upstream spells it: scripts look for the file
    return ir.StringAttr(attributes["torch.debug_module_name"]).value


def run_pipeline_with_repro_report(
    module: ir.Module, pipeline: str, description: str, enable_ir_printing: bool = False
) -> None:
    """Run a pass pipeline on `module`, in place; if it fails, leave a file that reproduces it.

    Passes that this package registers run here. A pipeline with others, e.g. those of the Torch
    dialect, runs in IREE's `iree-opt`.

    Args:
        pipeline: as MLIR writes it, `builtin.module(…)`.
        description: what the pipeline does, for the error.
        enable_ir_printing: print the module to the standard error after each pass; the context's
            multithreading stays off from then on.

    Raises:
        TorchMlirCompilerError: the pipeline fails, or needs iree-base-compiler, which is not
            installed. The message has the diagnostics and the command that runs the pipeline
            again on the file.
    """
    from . import ir
    from .passmanager import PassManager

    name = get_module_name_for_debug_dump(module)
    before = _elided(module)
    passes, reason = None, ""
    try:
        with module.context:
            passes = PassManager.parse(pipeline)
    except ValueError as error:
        reason = str(error)
    if passes is None:
        _run_in_iree(module, pipeline, description, enable_ir_printing, before, reason)
        return
    if enable_ir_printing:
        # Passes that print must not run beside each other.
        module.context.enable_multithreading(False)
        passes.enable_ir_printing()
    try:
        passes.run(module.operation)
    except ir.MLIRError as error:
        path = _write_repro(name, before, pipeline)
        script = (
            "import sys; from torch_mlir import ir, passmanager; ctx = ir.Context(); "
            "module = ir.Module.parse(open(sys.argv[1]).read(), ctx); "
            "passmanager.PassManager.parse(sys.argv[2], ctx).run(module.operation)"
        )
        command = ["python", "-c", script, path, pipeline]
        raise _failure(name, description, str(error), command) from None


def _run_in_iree(
    module: ir.Module,
    pipeline: str,
    description: str,
    enable_ir_printing: bool,
    before: str,
    reason: str,
) -> None:
    from .backends import iree_passes, iree_tools

    name = get_module_name_for_debug_dump(module)
    try:
        iree_passes.run_pipeline(module, pipeline, description, enable_ir_printing)
    except iree_tools.IreeError as error:
        path = _write_repro(name, before, pipeline)
        command = ["iree-opt", f"--pass-pipeline={pipeline}", path]
        details = "\n".join(str(diagnostic) for diagnostic in error.diagnostics)
        raise _failure(name, description, details, command) from None
    except iree_tools.NotInstalled as error:
        raise TorchMlirCompilerError(
            f"{description or pipeline} needs passes that torch_mlir does not have "
            f"({reason.strip()}) and that IREE does: {error}"
        ) from None


def _elided(module: ir.Module) -> str:
    """The module as text, without the contents of large tensors."""
    text = module.operation.get_asm(
        large_elements_limit=10, large_resource_limit=0, enable_debug_info=True
    )
    assert isinstance(text, str)
    return text


def _write_repro(name: str, text: str, pipeline: str) -> str:
    """Write a module and the pipeline that fails on it, as `--run-reproducer` reads them."""
    prefix = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
    descriptor, path = tempfile.mkstemp(prefix=f"{prefix[:80]}-", suffix=".mlir", text=True)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.write(
            "\n{-#\n  external_resources: {\n    mlir_reproducer: {\n"
            f"      pipeline: {json.dumps(pipeline)},\n"
            "      disable_threading: true,\n      verify_each: true\n    }\n  }\n#-}\n"
        )
    return path


def _failure(
    name: str, description: str, diagnostics: str, command: Sequence[str]
) -> TorchMlirCompilerError:
    return TorchMlirCompilerError(
        f"{description or f'{name} compile'} failed with the following diagnostics:\n"
        f"{diagnostics}\n\n"
        "The file holds the module as it was before, without the contents of large tensors; "
        f"to run the pipeline on it again:\n$ {shlex.join(command)}"
    )


def lower_mlir_module(
    verbose: bool,
    output_type: OutputType,
    module: ir.Module,
    backend_options: BackendLoweringOptions | None = None,
) -> ir.Module:
    """Lower a module of the Torch dialect in backend form, in place.

    Args:
        verbose: print the module before and after.
        output_type: TORCH leaves the module as it is.
        backend_options: None is the default ones.

    Returns:
        `module`.

    Raises:
        ValueError: nothing lowers to that output type.
        TorchMlirCompilerError: IREE is not installed, has no such lowering, or refuses the
            module.
    """
    from .lowering import lower_backend_form

    return lower_backend_form(module, output_type, backend_options, verbose=verbose)
