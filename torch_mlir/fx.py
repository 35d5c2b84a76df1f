# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch programs to MLIR: `export_and_import` for modules, `stateless_fx_import` for graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .pytorch import require_torch

torch = require_torch("torch_mlir.fx")

from torch.export import ExportedProgram  # noqa: E402  torch may be missing, see above
from torch.fx import GraphModule  # noqa: E402
from torch.nn import Module  # noqa: E402

from . import ir  # noqa: E402
from .compiler_utils import (  # noqa: E402
    BackendLoweringOptions,
    OutputType,
    TorchMlirCompilerError,
)
from .importers.consumers import Accepts, consumer  # noqa: E402
from .importers.decompositions import get_decomposition_table  # noqa: E402
from .importers.hooks import FxImporterHooks, InputInfo  # noqa: E402
from .importers.program import FxImporter  # noqa: E402

__all__ = [
    "FxImporter",
    "FxImporterHooks",
    "InputInfo",
    "OutputType",
    "TorchMlirCompilerError",
    "export_and_import",
    "get_decomposition_table",
    "stateless_fx_import",
]


def export_and_import(
    f: Module | ExportedProgram,
    *args: Any,
    output_type: str | OutputType = OutputType.RAW,
    fx_importer: FxImporter | None = None,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | None = None,
    strict: bool = False,
    experimental_support_mutation: bool = False,
    import_symbolic_shape_expressions: bool = False,
    hooks: FxImporterHooks | None = None,
    decomposition_table: dict[Any, Callable] | None = None,
    func_name: str = "main",
    enable_graph_printing: bool = False,
    verbose: bool = False,
    enable_ir_printing: bool = False,
    backend_legal_ops: list[str] | None = None,
    allow_non_finites: bool = True,
    target: str | None = None,
    **kwargs: Any,
) -> ir.Module:
    """Export a module with `torch.export`, decompose it, and import it as MLIR.

    Args:
        f: a module, which is exported for `args` and `kwargs`; or a program that was exported
            already, which is left as it is.
        output_type: how far to lower. `raw`, the import itself, needs nothing else; the others
            need IREE's compiler (iree-base-compiler), as `torch_mlir.lowering.lower` says.
        fx_importer: imports the program, into its own module; a new one by default.
        dynamic_shapes: the sizes that stay open, as `torch.export.export` takes them.
        strict: trace with TorchDynamo rather than by running Python.
        experimental_support_mutation: import writes to inputs as such, rather than as results.
        import_symbolic_shape_expressions: tell the symbols of open sizes and their ranges.
        hooks: decide what becomes of parameters and buffers.
        decomposition_table: operators to decompose, and how; None is the default table, an
            empty one decomposes nothing.
        func_name: the name of the function.
        enable_graph_printing: print the graph that is imported.
        verbose: print the imported module, and the lowered one after each stage.
        enable_ir_printing: write the module to the standard error after each pass of the
            lowering.
        backend_legal_ops: operators that the lowering does not decompose, e.g. `aten.linear`.
        allow_non_finites: the lowered module may use infinities and NaNs of its own.
        target: who reads the module. `"iree"` writes the operators that IREE does not register
            as `torch.operator`; so does None where the module is lowered, and uses the whole
            dialect otherwise.

    Returns:
        The module. Its literals point at the memory of the program's tensors.

    Raises:
        TorchMlirCompilerError: something in the program has no translation, or the lowering
            is not available. Errors of `torch.export` pass through.
    """
    wanted = _available(output_type)
    program = f
    if not isinstance(program, ExportedProgram):
        program = _export(f, args, kwargs, dynamic_shapes, strict)
    # PyTorch 2.1 decomposes to its core operators while it exports, and only then.
    decomposes_later = hasattr(program, "run_decompositions")
    if decomposition_table is None and decomposes_later:
        decomposition_table = get_decomposition_table()
    if decomposition_table:
        if not decomposes_later:
            raise TorchMlirCompilerError(
                f"PyTorch {torch.__version__} takes no decomposition_table after the export: "
                "pass None, or a program that was exported with the decompositions"
            )
        program = program.run_decompositions(decomposition_table)
    if enable_graph_printing:
        program.graph_module.print_readable()
    accepts = _accepts(target, wanted)
    importer = fx_importer or FxImporter(hooks=hooks, accepts=accepts)
    load = (
        importer.import_program if experimental_support_mutation else importer.import_frozen_program
    )
    load(
        program,
        func_name=func_name,
        import_symbolic_shape_expressions=import_symbolic_shape_expressions,
    )
    return _lower(
        importer.module,
        wanted,
        verbose=verbose,
        enable_ir_printing=enable_ir_printing,
        backend_legal_ops=backend_legal_ops,
        allow_non_finites=allow_non_finites,
    )


def stateless_fx_import(
    gm: GraphModule,
    output_type: str | OutputType = OutputType.RAW,
    fx_importer: FxImporter | None = None,
    hooks: FxImporterHooks | None = None,
    model_name: str = "main",
    enable_graph_printing: bool = False,
    verbose: bool = False,
    enable_ir_printing: bool = False,
    backend_legal_ops: list[str] | None = None,
    allow_non_finites: bool = True,
) -> ir.Module:
    """Import the graph of `gm`, whose nodes carry fake tensors or tensor metadata.

    Placeholders are the inputs of the function `model_name`; what `get_attr` nodes refer to
    becomes literals. The other parameters are those of `export_and_import`.

    Raises:
        TorchMlirCompilerError: something in the graph has no translation.
    """
    wanted = _available(output_type)
    if enable_graph_printing:
        gm.print_readable()
    importer = fx_importer or FxImporter(hooks=hooks, accepts=_accepts(None, wanted))
    importer.import_graph_module(gm, func_name=model_name)
    return _lower(
        importer.module,
        wanted,
        verbose=verbose,
        enable_ir_printing=enable_ir_printing,
        backend_legal_ops=backend_legal_ops,
        allow_non_finites=allow_non_finites,
    )


def _export(
    module: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    strict: bool,
) -> ExportedProgram:
    import inspect

    offered = inspect.signature(torch.export.export).parameters
    options: dict[str, Any] = {}
    if "strict" in offered:
        options["strict"] = strict
    if "dynamic_shapes" in offered:
        options["dynamic_shapes"] = dynamic_shapes
    elif dynamic_shapes is not None:
        raise TorchMlirCompilerError(
            f"torch.export of PyTorch {torch.__version__} takes no dynamic_shapes: "
            "export the module with its `constraints`, and pass the exported program"
        )
    return torch.export.export(module, args, kwargs, **options)


def _available(output_type: str | OutputType) -> OutputType:
    """The output type, if what is installed lowers to it; found out before the work is done."""
    wanted = OutputType.get(output_type)
    if wanted is not OutputType.RAW:
        from .lowering import require

        require(wanted)
    return wanted


def _accepts(target: str | None, output_type: OutputType) -> Accepts | None:
    # IREE's passes do the lowering, so IREE reads the module.
    lowers = output_type is not OutputType.RAW
    name = "iree" if target is None and lowers else target
    return None if name is None else consumer(name)


def _lower(
    module: ir.Module,
    output_type: OutputType,
    *,
    verbose: bool,
    enable_ir_printing: bool,
    backend_legal_ops: list[str] | None,
    allow_non_finites: bool,
) -> ir.Module:
    if verbose:
        print(module)
    if output_type is OutputType.RAW:
        return module
    from .lowering import lower

    return lower(
        module,
        output_type,
        backend_legal_ops=backend_legal_ops,
        options=BackendLoweringOptions(allow_non_finites=allow_non_finites),
        enable_ir_printing=enable_ir_printing,
        verbose=verbose,
    )
