# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the Torch dialect as the importers write it to what compilers read.

The passes are those of upstream's torch-mlir, in the form in which IREE's compiler carries them;
the package iree-base-compiler has to be installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from . import ir
from .backends import iree_passes, iree_tools
from .compiler_utils import (
    BackendLoweringOptions,
    OutputType,
    TorchMlirCompilerError,
    run_pipeline_with_repro_report,
)

__all__ = ["lower", "lower_backend_form", "require"]

Source = Literal["TorchFX", "TorchScript"]

_PIPELINES = {
    "TorchFX": "torchdynamo-export-to-torch-backend-pipeline",
    "TorchScript": "torch-function-to-torch-backend-pipeline",
}

_TITLES = {
    OutputType.LINALG_ON_TENSORS: "Linalg-on-Tensors",
    OutputType.TOSA: "TOSA",
    OutputType.STABLEHLO: "StableHLO",
}


def lower(
    module: ir.Module,
    output_type: str | OutputType,
    *,
    source: Source = "TorchFX",
    backend_legal_ops: Sequence[str] | None = None,
    extra_library: str | None = None,
    options: BackendLoweringOptions | None = None,
    enable_ir_printing: bool = False,
    verbose: bool = False,
) -> ir.Module:
    """Lower an imported module, in place.

    Args:
        module: as an importer writes it.
        output_type: RAW leaves the module as it is. TORCH is the Torch dialect in backend form:
            variants of operators are reduced to one, compound operators decomposed.
            LINALG_ON_TENSORS goes on to functions on builtin tensors that compute with `linalg`,
            `tensor`, `arith`, `math`, `scf` and `cf`; a few operators (sorting, scattering,
            scanning) become `tm_tensor` operations, which come in generic form. TOSA and
            STABLEHLO need an IREE with passes that lead there.
        source: the importer. Of what comes from TorchScript, shapes and dtypes are found out, and
            results get the types that they turn out to have.
        backend_legal_ops: operators that are not decomposed, e.g. `aten.flatten.using_ints`.
        extra_library: a file with shape and dtype functions for further operators.
        options: for the way from the backend form on.
        enable_ir_printing: write the module to the standard error after each pass.
        verbose: print the module after each stage.

    Returns:
        `module`. The operations that it held are gone; the contents of large tensors stay where
        they were.

    Raises:
        ValueError: there is no output type of that name, or a name of an operator has characters
            that no operator has.
        TorchMlirCompilerError: IREE's compiler is not installed, has no passes that lead to the
            output type, or refuses the module.
    """
    wanted = OutputType.get(output_type)
    if wanted is OutputType.RAW:
        return module
    require(wanted)
    run_pipeline_with_repro_report(
        module,
        _to_backend_form(backend_legal_ops or (), extra_library, source),
        f"Lowering {source} IR -> Torch Backend IR",
        enable_ir_printing=enable_ir_printing,
    )
    return lower_backend_form(
        module, wanted, options, enable_ir_printing=enable_ir_printing, verbose=verbose
    )


def lower_backend_form(
    module: ir.Module,
    output_type: OutputType,
    options: BackendLoweringOptions | None = None,
    *,
    enable_ir_printing: bool = False,
    verbose: bool = False,
) -> ir.Module:
    """Lower the Torch dialect in backend form, in place. Like `lower` otherwise.

    Raises:
        ValueError: the output type is RAW.
    """
    if verbose:
        _print("Torch Backend IR", module)
    if output_type is OutputType.TORCH:
        return module
    require(output_type)
    title = _TITLES[output_type]
    run_pipeline_with_repro_report(
        module,
        _from_backend_form(output_type, options or BackendLoweringOptions()),
        f"Lowering Torch Backend IR -> {title} Backend IR",
        enable_ir_printing=enable_ir_printing,
    )
    if verbose:
        _print(f"{title} Backend IR", module)
    return module


def require(output_type: OutputType) -> None:
    """Check that what is installed lowers to `output_type`, before any work is done.

    Raises:
        ValueError: the output type is RAW.
        TorchMlirCompilerError: IREE's compiler is not installed, or has no such passes.
    """
    if output_type is OutputType.TORCH:
        pipeline = _to_backend_form((), None)
    else:
        pipeline = _from_backend_form(output_type, BackendLoweringOptions())
    try:
        known = iree_passes.knows_pipeline(pipeline)
    except iree_tools.NotInstalled as error:
        raise TorchMlirCompilerError(
            f"output_type {output_type.value!r} lowers with the passes of IREE's compiler: {error}"
        ) from None
    if not known:
        raise TorchMlirCompilerError(
            f"output_type {output_type.value!r}: the installed {iree_tools.COMPILER_PACKAGE} has "
            f"no passes that lower the Torch dialect to it. Use 'linalg-on-tensors', or import "
            "with 'raw' and run upstream's torch-mlir-opt on the module, with "
            f"-pass-pipeline='builtin.module(torchdynamo-export-to-torch-backend-pipeline, "
            f"{pipeline.removeprefix('builtin.module(')}'"
        )


def _to_backend_form(
    legal: Sequence[str], extra_library: str | None, source: Source = "TorchFX"
) -> str:
    options = []
    if legal:
        names = [name.removeprefix("torch.") for name in legal]
        for name in names:
            if not name.replace(".", "").replace("_", "").isalnum():
                raise ValueError(f"backend_legal_ops: {name!r} is no operator's name")
        options.append("backend-legal-ops=" + ",".join(names))
    if extra_library:
        options.append(f"extra-library={extra_library}")
    return (
        "builtin.module(func.func(torch-match-quantized-custom-ops),"
        f"{_PIPELINES[source]}{{{' '.join(options)}}})"
    )


def _from_backend_form(output_type: OutputType, options: BackendLoweringOptions) -> str:
    finites = f"{{allow-non-finites={str(options.allow_non_finites).lower()}}}"
    match output_type:
        case OutputType.LINALG_ON_TENSORS | OutputType.STABLEHLO:
            with_options = finites
        case OutputType.TOSA:
            with_options = ""
        case _:
            raise ValueError(f"nothing lowers to output_type {output_type.value!r}")
    name = f"torch-backend-to-{output_type.value}-backend-pipeline"
    return f"builtin.module({name}{with_options})"


def _print(title: str, module: ir.Module) -> None:
    print(f"\n{'=' * 20}\n{title}")
    print(module)
