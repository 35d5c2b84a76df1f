# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch-mlir run`: run a model on a backend, and compare it with PyTorch."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .errors import CommandError, one_line
from .modules import load_module
from .options import (
    INPUTS_HELP,
    MODELS_HELP,
    READS_MLIR_HELP,
    command_parser,
    model_options,
    output_option,
)
from .progress import progress
from .references import resolve
from .streams import check_output, shown, write_text

if TYPE_CHECKING:
    from .programs import Program

_SAVED = (".npz", ".npy", ".pt")
# How many numbers of a result are printed.
_SHOWN = 6


def configure_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command's parser."""
    command = command_parser(
        commands,
        "run",
        help="run a model on a backend",
        description="Run a model on a backend; print its results, or write them to a file.",
        epilog=f"{MODELS_HELP}{READS_MLIR_HELP}\n{INPUTS_HELP}",
    )
    model_options(command, "a .pt2, .mlir or .mlirbc file, module:Class or script.py:function")
    output_option(
        command,
        "write the results to a .npz, .npy or .pt file (default: print their first numbers)",
    )
    command.add_argument(
        "--backend",
        choices=("reference", "iree"),
        default="reference",
        help="PyTorch's kernels, or IREE (default: %(default)s)",
    )
    command.add_argument(
        "--function", metavar="NAME", help="the function to run (default: the only one, or main)"
    )
    command.add_argument(
        "--compare",
        action="store_true",
        help="run the program with PyTorch too; exit 1 if results differ by more than --tolerance",
    )
    command.add_argument(
        "--tolerance",
        type=_tolerance,
        default=1e-4,
        metavar="X",
        help="the greatest difference, as a part of a result's greatest number "
        "(default: %(default)s)",
    )
    command.set_defaults(execute=execute)


def _tolerance(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text} is no tolerance: it has to be 0 or more")
    return value


def execute(arguments: argparse.Namespace) -> None:
    """Carry the command out.

    Raises:
        CommandError: the model can't be read or run, or results differ.
    """
    path = arguments.output
    if path != "-" and not path.endswith(_SAVED):
        raise CommandError(f"{path}: results go into a file that ends in {', '.join(_SAVED)}")
    check_output(path)
    reference = resolve(arguments.model)
    name = shown(arguments.model)
    with progress() as step:
        target = "iree" if arguments.backend == "iree" else None
        module, program = load_module(reference, arguments, step, target)
        if arguments.compare and program is None:
            raise CommandError(f"{name}: --compare needs a program of PyTorch's, and this is MLIR")
        step.step(f"compile for {arguments.backend}")
        call = _function(name, module, arguments)
        step.step("run")
        args = _arguments(name, program, arguments)
        # Programs may write to what they are given; PyTorch gets the same.
        results = _results(_run(name, call, _copied(args)))
        if arguments.compare and program is not None:
            step.step("run with PyTorch")
            expected = _eager(name, program)
    if path == "-":
        lines = [f"{i}: {_described(value)}\n" for i, value in enumerate(results)]
        write_text(path, "".join(lines) or "no results\n")
    else:
        from .values import save_results

        save_results(path, results, _torch())
    if arguments.compare:
        _compare(name, results, expected, arguments.tolerance)


def _function(name: str, module: Any, arguments: argparse.Namespace) -> Any:
    from .. import backends
    from ..compiler_utils import TorchMlirCompilerError

    try:
        backend = backends.get(arguments.backend)
        loaded = backend.load(backend.compile(module))
        return loaded if arguments.function is None else loaded.function(arguments.function)
    except (TorchMlirCompilerError, ImportError, ValueError) as error:
        raise CommandError(f"{name}: {one_line(error, 5000)}") from error


def _arguments(name: str, program: Program | None, arguments: argparse.Namespace) -> Sequence[Any]:
    """The arguments in the order of the program's inputs."""
    from .values import Values

    torch = _torch()
    if torch is None:
        raise CommandError(f"{name}: arguments are PyTorch's tensors: install torch")
    if program is None:
        args, kwargs = Values(arguments.seed, torch).of_inputs(arguments.inputs)
        if kwargs:
            raise CommandError(
                f"{name}: MLIR's functions have no names for arguments: {', '.join(kwargs)}"
            )
        return args
    from torch.utils._pytree import tree_leaves

    # PyTorch's order: arguments by position, then those by name in the order of the export.
    ordered = getattr(program.exported, "_get_flat_args_with_check", None)
    if ordered is not None:
        try:
            flat, _ = ordered(program.args, program.kwargs)
        except Exception as error:  # PyTorch's own checks of what was given
            raise CommandError(f"{name}: {one_line(error)}") from error
        return [value for value in flat if not _is_constant(value)]
    return [
        value for value in tree_leaves((program.args, program.kwargs)) if not _is_constant(value)
    ]


def _is_constant(value: Any) -> bool:
    """What an export takes as a constant, so that the function doesn't take it."""
    return value is None or isinstance(value, (bool, int, float, str))


def _copied(args: Sequence[Any]) -> list[Any]:
    return [value.clone() if hasattr(value, "clone") else value for value in args]


def _run(name: str, call: Any, args: Sequence[Any]) -> Any:
    try:
        return call(*args)
    except (ValueError, TypeError, RuntimeError) as error:
        raise CommandError(f"{name}: {one_line(error, 5000)}") from error


def _results(result: Any) -> list[Any]:
    if result is None:
        return []
    return list(result) if isinstance(result, tuple) else [result]


def _eager(name: str, program: Program) -> list[Any]:
    import torch
    from torch.utils._pytree import tree_leaves, tree_map

    def copy(value: Any) -> Any:
        return value.clone() if isinstance(value, torch.Tensor) else value

    args, kwargs = tree_map(copy, program.args), tree_map(copy, program.kwargs)
    try:
        with torch.no_grad():
            result = program.eager(*args, **kwargs)
    except Exception as error:  # the user's code may raise anything
        raise CommandError(f"{name}: PyTorch itself: {one_line(error)}") from error
    return [value for value in tree_leaves(result) if value is not None]


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _described(value: Any) -> str:
    from .values import as_array, describe

    if not hasattr(value, "shape"):
        return f"{describe(value)} {value!r}"
    flat = as_array(value).reshape(-1)
    numbers = " ".join(
        f"{number:.6g}" if flat.dtype.kind in "fc" else str(number) for number in flat[:_SHOWN]
    )
    return f"{describe(value)} {numbers}{' …' if flat.size > _SHOWN else ''}".rstrip()


def _compare(name: str, results: list[Any], expected: list[Any], tolerance: float) -> None:
    import numpy as np

    from .values import as_array

    # What a program writes to comes before what it returns.
    ours = results[len(results) - len(expected) :] if len(results) > len(expected) else results
    if len(ours) != len(expected):
        raise CommandError(f"{name}: {len(ours)} results, and {len(expected)} from PyTorch")
    worst, worst_relative = 0.0, 0.0
    for number, (mine, wanted) in enumerate(zip(ours, expected, strict=True)):
        left, right = as_array(mine), as_array(wanted)
        if left.shape != right.shape:
            raise CommandError(
                f"{name}: result {number} has shape {list(left.shape)}, "
                f"and {list(right.shape)} from PyTorch"
            )
        if not left.size:
            continue
        if left.dtype.kind not in "c":
            left, right = left.astype(np.float64), right.astype(np.float64)
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        difference = np.where(same, 0.0, np.abs(left - right))
        greatest = float(difference.max())
        finite = np.abs(right[np.isfinite(right)])
        scale = float(finite.max()) if finite.size else 0.0
        relative = 0.0 if greatest == 0 else greatest / scale if scale else math.inf
        if math.isnan(greatest):
            relative = math.inf
        worst, worst_relative = max(worst, greatest), max(worst_relative, relative)
    verdict = (
        f"differs from PyTorch by {worst:.2e} at most, "
        f"{worst_relative:.2e} of a result's greatest number"
    )
    if not worst_relative <= tolerance:
        raise CommandError(f"{name}: {verdict}; allowed is {tolerance:g}")
    print(verdict)
