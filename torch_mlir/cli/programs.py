# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From what MODEL names to a program of PyTorch's, and from that to MLIR."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .errors import CommandError, one_line, user_error
from .inputs import FileSpec, Input, OpenSize, Spec, TensorSpec
from .progress import Progress
from .references import MlirText, PythonObject, Reference, SavedProgram
from .streams import shown

if TYPE_CHECKING:
    from .. import ir
    from .values import Values


@dataclass(frozen=True)
class Program:
    """An exported program, what it was exported from, and the arguments of the export."""

    text: str
    exported: Any
    eager: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def parse_mlir(reference: MlirText) -> ir.Module:
    """The module that a file of MLIR holds.

    Raises:
        CommandError: it isn't MLIR, or not of dialects that are known here.
    """
    from .. import ir

    name = shown(reference.text)
    context = ir.Context()
    try:
        module = ir.Module.parse(reference.data, context)
    except ir.MLIRError as error:
        raise CommandError(f"{name}: not MLIR that is known here: {_diagnostic(error)}") from error
    if not list(module.body.operations):
        raise CommandError(f"{name}: holds no function")
    return module


def _diagnostic(error: Exception) -> str:
    """The first of MLIR's own messages, with its line."""
    diagnostics = getattr(error, "error_diagnostics", None)
    if not diagnostics:
        return one_line(error)
    first = diagnostics[0]
    # loc("-":3:7) is the third line of what was parsed.
    place = str(first.location).removeprefix("loc(").removesuffix(")").rpartition('"')[2]
    message = " ".join(first.message.split())
    return f"line {place.strip(':')}: {message}" if place.strip(":") else message


@contextlib.contextmanager
def pytorch(reference: Reference, options: argparse.Namespace) -> Iterator[ModuleType]:
    """PyTorch, quiet, its log kept for messages; standard output is out of a script's reach.

    Raises:
        CommandError: it isn't installed, is too old, or a module to preload can't be imported.
    """
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        # What PyTorch says about its own code is not for the user of this command.
        warnings.simplefilter("ignore")
        logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)
        try:
            from .. import fx
        except ImportError as error:
            raise CommandError(f"{shown(reference.text)}: {error}") from error
        for name in options.preload:
            try:
                importlib.import_module(name)
            except Exception as error:  # the module may do anything
                raise CommandError(f"--preload {name}: {user_error(error)}") from error
        yield fx.torch


def load_program(
    reference: SavedProgram | PythonObject,
    options: argparse.Namespace,
    values: Values,
    progress: Progress,
) -> Program:
    """Read or export a program, and decompose its operators; within `pytorch`.

    Raises:
        CommandError: PyTorch can't, or the user's code fails.
    """
    import torch

    torch.manual_seed(options.seed)
    if isinstance(reference, SavedProgram):
        program = _load_saved(torch, reference, options.inputs, values, progress)
    else:
        program = _load_object(torch, reference, options, values, progress)
    if options.no_decompose or not hasattr(program.exported, "run_decompositions"):
        return program
    return _decomposed(program, progress)


def _load_saved(
    torch: Any, reference: SavedProgram, inputs: list[Input], values: Values, progress: Progress
) -> Program:
    name = shown(reference.text)
    progress.step(f"load {name}")
    with _kept_log() as said:
        try:
            exported = torch.export.load(reference.source)
        except Exception as error:  # whatever the loader meets in a file that it can't read
            reason = one_line(error)
            if said:
                reason += f" ({' '.join(said[-1].split())})"
            raise CommandError(
                f"{name}: PyTorch {torch.__version__} cannot load the program: {reason}"
            ) from error
    return _exported(name, exported, inputs, values)


def _decomposed(program: Program, progress: Progress) -> Program:
    from .. import fx

    progress.step("decompose")
    with _kept_log():
        try:
            exported = program.exported.run_decompositions(fx.get_decomposition_table())
        except Exception as error:  # the tracer runs kernels, which may be the user's own
            raise CommandError(
                f"{program.text}: cannot be decomposed (see --no-decompose): {user_error(error)}"
            ) from error
    return replace(program, exported=exported)


def _exported(name: str, exported: Any, inputs: list[Input], values: Values) -> Program:
    """A program whose shapes are settled: inputs are what to run it with."""
    args, kwargs = values.of_inputs(inputs)
    if not inputs:
        args, kwargs = getattr(exported, "example_inputs", None) or ((), {})
    # PyTorch 2.1's programs are called themselves.
    eager = exported.module() if hasattr(exported, "module") else exported
    return Program(name, exported, eager, tuple(args), dict(kwargs))


def _load_object(
    torch: Any,
    reference: PythonObject,
    options: argparse.Namespace,
    values: Values,
    progress: Progress,
) -> Program:
    progress.step(f"load {reference.text}")
    found = _called(torch, reference)
    example: tuple[Any, ...] = ()
    if isinstance(found, (tuple, list)) and found:
        found, *rest = found
        example = tuple(rest)
    if isinstance(found, torch.export.ExportedProgram):
        return _exported(reference.text, found, options.inputs, values)
    if not isinstance(found, torch.nn.Module):
        raise CommandError(
            f"{reference.text}: a torch.nn.Module or an ExportedProgram is wanted, "
            f"with example arguments or without; it gives {_kind(found)}"
        )
    if not options.train:
        found.eval()
    if options.inputs:
        args, kwargs = values.of_inputs(options.inputs)
        dynamic_shapes = _dynamic_shapes(torch, reference.text, found, options.inputs, args, kwargs)
    else:
        args, kwargs, dynamic_shapes = _example(reference.text, found, example)
    progress.step(f"export {reference.text}")
    from .. import fx

    with _kept_log():
        try:
            exported = fx._export(found, args, kwargs, dynamic_shapes, options.strict)
        except Exception as error:  # the user's code may raise anything, and so may the tracer
            raise CommandError(
                f"{reference.text}: cannot be exported: {user_error(error)}"
            ) from error
    return Program(reference.text, exported, found, args, kwargs)


def _called(torch: Any, reference: PythonObject) -> Any:
    """The object itself, or what it makes."""
    found = reference.load()
    is_model = isinstance(found, (torch.nn.Module, torch.export.ExportedProgram, tuple, list))
    if is_model and reference.args is None:
        return found
    if is_model:
        raise CommandError(
            f"{reference.text}: {reference.name} is {_kind(found)}, not to be called"
        )
    if not callable(found):
        raise CommandError(f"{reference.text}: {reference.name} is {_kind(found)}, not a model")
    try:
        return found(*(reference.args or ()), **reference.kwargs)
    except SystemExit as error:
        raise CommandError(f"{reference.text}: {reference.name} exits") from error
    except Exception as error:  # the user's code may raise anything
        hint = ""
        if isinstance(error, TypeError) and reference.args is None and inspect.isclass(found):
            hint = "; its arguments go into parentheses behind the name"
        raise CommandError(f"{reference.text}: {user_error(error)}{hint}") from error


def _kind(value: Any) -> str:
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return "None" if value is None else f"a {name}"


def _example(
    text: str, module: Any, example: tuple[Any, ...]
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """The script's own example: arguments, keyword arguments, dynamic_shapes."""
    if not example:
        signature = inspect.signature(module.forward)
        if not signature.parameters:
            return (), {}, None
        raise CommandError(
            f"{text}: give an --input for each argument of forward{signature}, "
            "or return example arguments along with the module"
        )
    if len(example) > 3:
        raise CommandError(f"{text}: gives {len(example) + 1} things; at most four are wanted")
    padded = [*example, None, None]
    args, kwargs, shapes = padded[:3]
    if not isinstance(args, (tuple, list)):
        args = (args,)
    if not isinstance(kwargs or {}, dict):
        raise CommandError(f"{text}: keyword arguments are a dict; it gives {_kind(kwargs)}")
    return tuple(args), kwargs or {}, shapes


def _dynamic_shapes(
    torch: Any,
    text: str,
    module: Any,
    inputs: list[Input],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> dict[str, Any] | None:
    """`dynamic_shapes` of torch.export: parameter's name to its open sizes; None without any."""
    signature = inspect.signature(module.forward)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise CommandError(f"{text}: forward{signature}: {one_line(error)}") from error
    dims: dict[str, Any] = {}
    by_position = [
        _open(torch, spec, dims)
        for given in inputs
        if given.name is None
        for spec in _each(given.spec, args)
    ]
    by_name = {given.name: _open(torch, given.spec, dims) for given in inputs if given.name}
    if not any(by_position) and not any(by_name.values()):
        return None
    # Parameters in their order take what stands by position, then what has a name.
    shapes: dict[str, Any] = {}
    position = 0
    for name in bound.arguments:
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            shapes[name] = tuple(by_position[position:])
            position = len(by_position)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            shapes[name] = {key: by_name[key] for key in bound.arguments[name]}
        elif name in by_name:
            shapes[name] = by_name[name]
        else:
            shapes[name] = by_position[position]
            position += 1
    return shapes


def _each(spec: Spec, args: tuple[Any, ...]) -> Iterable[Spec]:
    """A spec for each argument that it gives; a file without a key may give several."""
    if isinstance(spec, FileSpec) and spec.key is None:
        return [spec] * len(args)
    return [spec]


def _open(torch: Any, spec: Spec, dims: dict[str, Any]) -> dict[int, Any] | None:
    """Dimension to torch.export's `Dim`; `dims` holds those that have a name already."""
    if not isinstance(spec, TensorSpec):
        return None
    found = {}
    for axis, size in enumerate(spec.shape):
        if isinstance(size, OpenSize):
            found[axis] = _dim(torch, size, dims)
    return found or None


def _dim(torch: Any, size: OpenSize, dims: dict[str, Any]) -> Any:
    dim = torch.export.Dim
    if size.name is None:
        # One that may turn out to equal another; before 2.6 each has a name of its own.
        dynamic = getattr(dim, "DYNAMIC", None)
        if dynamic is not None:
            return dynamic
        return dims.setdefault(f"_size_{len(dims)}", dim(f"_size_{len(dims)}"))
    if size.name not in dims:
        bounds = {"min": size.low, "max": size.high}
        dims[size.name] = dim(size.name, **{k: v for k, v in bounds.items() if v is not None})
    return dims[size.name]


@contextlib.contextmanager
def _kept_log() -> Iterator[list[str]]:
    """What PyTorch logs meanwhile, instead of its being shown.

    It logs the reason of a failed load or export, and raises an error that refers to the log.
    """
    said: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    keep = Keep()
    # Besides "torch" itself, some of the loggers below it have handlers of their own.
    names = [name for name in logging.root.manager.loggerDict if name.startswith("torch.")]
    loggers = [logging.getLogger(name) for name in ("torch", *names)]
    before = [(logger, logger.handlers[:], logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [], logger.name != "torch"
    loggers[0].handlers = [keep]
    try:
        yield said
    finally:
        for logger, handlers, propagate in before:
            logger.handlers, logger.propagate = handlers, propagate


def import_program(
    program: Program,
    options: argparse.Namespace,
    progress: Progress,
    *,
    output_type: str = "raw",
    func_name: str = "main",
    target: str | None = None,
    symbolic_shapes: bool = False,
) -> ir.Module:
    """The program as MLIR; its operations tell the modules that they came from.

    Raises:
        CommandError: something in it has no translation, or the lowering isn't there.
    """
    from .. import fx
    from ..importers.consumers import consumer
    from ..importers.graph import GraphImporter

    class Counted(GraphImporter):
        """Says how many nodes are imported; a nested graph's count as one."""

        def import_nodes(self, nodes: Any) -> None:
            if self.builder.block.owner.operation.name == "func.func":
                nodes = progress.counted("import", list(nodes))
            super().import_nodes(nodes)
            if output_type != "raw":
                progress.step(f"lower to {output_type}")

    try:
        progress.step("import")
        importer = fx.FxImporter(
            accepts=None if target is None else consumer(target),
            graph_node_importer_cls=Counted if progress.visible else GraphImporter,
            module_paths=True,
        )
        return fx.export_and_import(
            program.exported,
            fx_importer=importer,
            output_type=output_type,
            func_name=func_name,
            experimental_support_mutation=options.mutation,
            import_symbolic_shape_expressions=symbolic_shapes,
            decomposition_table={},
        )
    except fx.TorchMlirCompilerError as error:
        # These name the operator, the argument and the line: nothing of them is cut.
        raise CommandError(f"{program.text}: {one_line(error, 5000)}") from error
    except ImportError as error:
        raise CommandError(f"{program.text}: {one_line(error)}") from error
