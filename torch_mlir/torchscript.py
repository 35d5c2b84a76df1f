# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TorchScript to MLIR: `import_archive` for what `torch.jit.save` wrote, `compile` for modules.

Archives are read by an importer of this package's own, with or without PyTorch beside it. No
Python code in an archive is run.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import ir
from .compiler_utils import (
    BackendLoweringOptions,
    OutputType,
    TensorPlaceholder,
    TorchMlirCompilerError,
)
from .importers.torchscript import archives
from .importers.torchscript.archives import Source, UnrefinedOperator
from .importers.torchscript.arguments import Described, TensorArgument, of_methods

if TYPE_CHECKING:
    from .importers.torchscript.live import ExampleArgs

__all__ = [
    "BACKEND_LEGAL_OPS",
    "ExampleArgs",
    "OutputType",
    "TensorArgument",
    "TensorPlaceholder",
    "TorchMlirCompilerError",
    "UnrefinedOperator",
    "compile",
    "import_archive",
    "torch_versions",
]

# The operators that each output type's backend takes as they are; upstream's list.
BACKEND_LEGAL_OPS: dict[OutputType, list[str]] = {
    OutputType.TOSA: ["aten.flatten.using_ints", "aten.native_layer_norm", "aten.linear"],
    OutputType.LINALG_ON_TENSORS: ["aten.flatten.using_ints", "aten.adaptive_avg_pool1d",
                                   "aten.adaptive_avg_pool2d", "aten.unflatten.int"],
    OutputType.STABLEHLO: [],
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # The one name here that needs PyTorch.
    if name == "ExampleArgs":
        from .importers.torchscript.live import ExampleArgs

        return ExampleArgs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def torch_versions() -> tuple[str, ...]:
    """What `torch_version` may be, oldest first: `2.1`, `2.2`, ..."""
    return archives.torch_versions()


def import_archive(
    source: Source,
    *,
    output_type: str | OutputType = OutputType.RAW,
    methods: Sequence[str] | None = None,
    inputs: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    freeze: bool = True,
    refine: bool | None = None,
    torch_version: str | None = None,
    schemas: Sequence[str] = (),
    backend_legal_ops: Sequence[str] | None = None,
    extra_library: str | None = None,
    limits: Mapping[str, int] | None = None,
    context: ir.Context | None = None,
    unrefined: Callable[[UnrefinedOperator], None] | None = None,
    verbose: bool = False,
    enable_ir_printing: bool = False,
) -> ir.Module:
    """Import a TorchScript archive as MLIR.

    Args:
        source: its path, its bytes, or an open file. A file is mapped, and the module's literals
            point into it: it must not be written to while the module lives.
        output_type: `raw` is all that the archive holds: classes, objects and every method.
            `torch` is a function for each of `methods`, with everything inlined, tensors as
            values, and shapes and dtypes as far as they follow from `inputs`; it needs nothing
            else. The others go on from there with the passes of IREE's compiler, as
            `torch_mlir.lowering.lower` says.
        methods: those to import. By default those that `inputs` is about; without inputs,
            `forward` and the other methods of the model whose names don't begin with an
            underscore. (An archive doesn't tell which of them were exported, and which are there
            because others call them.) One of the others that has no form on values is left out,
            with a warning. `raw` has all methods.
        inputs: for `forward`, or by method: what each argument will be, without the object
            itself. A tensor, a `TensorPlaceholder`, or text such as `2x?x224xf32`; None for what
            is no tensor, or not known. Arguments behind the last one get their defaults.
        freeze: make parameters and attributes constants. Otherwise they are global variables,
            which calls may change.
        refine: find shapes and dtypes with the installed PyTorch, which gets imported for it;
            None does so if there is one, and there are `inputs`. Otherwise the importer's own
            rules have to do.
        torch_version: the release of PyTorch whose operators the archive calls, e.g. `2.6`; see
            `torch_versions`. By default the installed PyTorch's, then the newest that has them.
        schemas: of operators that it calls and no release has, e.g.
            `goofy::twist(Tensor x, int by=1) -> Tensor`. They become `torch.operator`s.
        backend_legal_ops: with `torch`, decompose compound operators save for these; None leaves
            operators as they are. With the output types below it, None is their own list.
        extra_library: a file with shape and dtype functions for further operators.
        limits: what an archive from a stranger may cost, by the names that
            `torch_mlir._mlir_libs._jit_ir_importer.import_archive` tells.
        context: of the module; a new one by default.
        unrefined: called with each operator of whose results the importer itself knows too
            little: the rank or the dtype of a tensor, though those of the operands are known.
        verbose: print the imported module, and the lowered one after each stage.
        enable_ir_printing: write the module to the standard error after each pass of the
            lowering.

    Returns:
        The module.

    Raises:
        TorchMlirCompilerError: the archive is damaged, is none, or holds something that has no
            translation: the message names the file, the operator and the line of the model's
            source. Or the lowering is not available.
        ValueError: an argument of this function is not what it may be.
        OSError: the file can't be read.
    """
    wanted = OutputType.get(output_type)
    described = of_methods(inputs)
    if methods is None and described:
        methods = list(described)
    if wanted is OutputType.RAW and described:
        raise ValueError("output_type 'raw' is the archive as it is: it takes no inputs")
    decomposes = _decomposes(wanted, backend_legal_ops, extra_library)
    if decomposes:
        from .lowering import require

        require(wanted)
    module = archives.import_archive(
        source,
        "raw" if wanted is OutputType.RAW else "torch",
        methods=methods,
        arguments=described,
        freeze=freeze,
        torch_version=torch_version,
        schemas=schemas,
        limits=dict(limits or {}),
        context=context,
        unrefined=unrefined,
    )
    if wanted is not OutputType.RAW and _refines(refine, described):
        _refine(module)
    if verbose:
        print(module)
    if not decomposes:
        return module
    from .lowering import lower

    legal = BACKEND_LEGAL_OPS.get(wanted, []) if backend_legal_ops is None else backend_legal_ops
    return lower(
        module,
        wanted,
        source="TorchScript",
        backend_legal_ops=legal,
        extra_library=extra_library,
        options=BackendLoweringOptions(),
        enable_ir_printing=enable_ir_printing,
        verbose=verbose,
    )


def compile(
    module: Any,
    example_args: Any,
    output_type: str | OutputType = OutputType.TORCH,
    use_tracing: bool = False,
    ignore_traced_shapes: bool = False,
    backend_legal_ops: Sequence[str] | None = None,
    extra_library: str | Iterable[Callable[..., Any]] = (),
    verbose: bool = False,
    enable_ir_printing: bool = False,
) -> ir.Module:
    """Import a module by way of TorchScript, with upstream's parameters. Needs PyTorch.

    Args:
        module: a ScriptModule or ScriptFunction, which is taken as it is; or another module,
            which PyTorch scripts or traces.
        example_args: the arguments of `forward`: tensors and `TensorPlaceholder`s, which tell
            their shapes and dtypes. `ExampleArgs` describes several methods.
        output_type: see `import_archive`.
        use_tracing: trace the module with the example arguments instead of scripting it.
        ignore_traced_shapes: the trace does not depend on the sizes that it was made with, so
            that placeholders may leave sizes open. Only for tracing.
        backend_legal_ops: see `import_archive`; only with the output type `torch`.
        extra_library: Python functions that calculate shapes and dtypes of further operators,
            called as upstream calls them, e.g. `aten〇add〇Tensor〡shape`; or a file of them.
        verbose: print the imported module, and the lowered one after each stage.
        enable_ir_printing: write the module to the standard error after each pass of the
            lowering.

    Returns:
        The module.

    Raises:
        ImportError: PyTorch is not installed.
        TorchMlirCompilerError: PyTorch can't script or trace the module, something in it has no
            translation, or the lowering is not available.
        ValueError: arguments that don't go together.
        TypeError: example arguments that are neither tensors nor placeholders.
    """
    _require_torch()
    from .importers.torchscript.library import library_of
    from .importers.torchscript.live import ExampleArgs, archive_of, schemas_of, script_of

    wanted = OutputType.get(output_type)
    if ignore_traced_shapes and not use_tracing:
        raise ValueError("`ignore_traced_shapes` requires `use_tracing`")
    if backend_legal_ops is not None and wanted is not OutputType.TORCH:
        raise ValueError("`backend_legal_ops` is only valid with the `torch` output type")
    example = ExampleArgs.get(example_args)
    script = script_of(module, example, use_tracing, ignore_traced_shapes)
    is_raw = wanted is OutputType.RAW
    with (
        contextlib.nullcontext(extra_library)
        if isinstance(extra_library, str)
        else library_of(extra_library)
    ) as library:
        return import_archive(
            archive_of(script),
            output_type=wanted,
            methods=None if is_raw else list(example.methods),
            inputs=None if is_raw else example.methods,
            schemas=schemas_of(script),
            backend_legal_ops=backend_legal_ops,
            extra_library=library,
            verbose=verbose,
            enable_ir_printing=enable_ir_printing,
        )


def _has_torch() -> bool:
    try:
        return importlib.util.find_spec("torch") is not None
    except ImportError:  # finders that keep modules from being imported
        return False


def _require_torch() -> None:
    if not _has_torch():
        raise ImportError(
            "torch_mlir.torchscript.compile needs the PyTorch that the module belongs to, and no "
            "PyTorch is installed in this environment; import_archive reads what it saved",
            name="torch",
        )


def _decomposes(
    output_type: OutputType, backend_legal_ops: Sequence[str] | None, extra_library: str | None
) -> bool:
    """Whether IREE's passes have anything to do."""
    if output_type is OutputType.TORCH:
        return backend_legal_ops is not None or bool(extra_library)
    return output_type is not OutputType.RAW


def _refines(refine: bool | None, described: Described) -> bool:
    if refine is None:
        return bool(described) and _has_torch()
    return refine


def _refine(module: ir.Module) -> None:
    """Fill in shapes and dtypes with the installed PyTorch.

    Raises:
        TorchMlirCompilerError: an operator refuses its operands.
    """
    from .backends import reference

    try:
        reference.refine(module)
    except reference.ExecutionError as error:
        raise TorchMlirCompilerError(str(error)) from error
