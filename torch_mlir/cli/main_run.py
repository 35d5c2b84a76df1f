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
    ANY_MODEL,
    ANY_MODEL_HELP,
    command_parser,
    model_options,
    output_option,
)
from .progress import progress
from .references import MlirText, TorchScriptArchive, resolve
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
        epilog=ANY_MODEL_HELP,
    )
    model_options(command, ANY_MODEL)
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
        help="run the program with PyTorch too; exit 1 if results differ by more than --tolerance. "
        "Of TorchScript, PyTorch's own interpreter then runs what the archive holds",
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
        if arguments.compare and isinstance(reference, MlirText):
            raise CommandError(f"{name}: --compare needs a program to export, and this is MLIR")
        step.step(f"compile for {arguments.backend}")
        call = _function(name, module, arguments)
        step.step("run")
        args = _arguments(name, program, arguments)
        # Programs may write to what they are given; PyTorch gets the same.
        given = _copied(args)
        results = _results(_run(name, call, given))
        if arguments.compare:
            step.step("run with PyTorch")
            if isinstance(reference, TorchScriptArchive):
                compared = _pairs_of_archive(name, reference, arguments, args, results)
            elif program is not None:
                compared = _pairs(name, program, arguments.mutation, given, results)
    if path == "-":
        lines = [f"{i}: {_described(value)}\n" for i, value in enumerate(results)]
        write_text(path, "".join(lines) or "no results\n")
    else:
        from .values import save_results

        save_results(path, results, _torch())
    if arguments.compare:
        _compare(name, compared, arguments.tolerance)


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
    flat = _ordered(name, program, program.args, program.kwargs)
    if not arguments.mutation:
        return flat
    # These functions don't take what the export made a constant.
    signature = program.exported.graph_signature
    specs = [spec for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]
    return [
        value
        for spec, value in zip(specs, flat, strict=True)
        if type(spec.arg).__name__ != "ConstantArgument"
    ]


def _ordered(
    name: str, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
    """Arguments one by one: those by position, then those by name in the export's order."""
    from torch.utils._pytree import tree_flatten

    ordered = getattr(program.exported, "_get_flat_args_with_check", None)
    if ordered is None:
        return tree_flatten((args, kwargs))[0]
    try:
        flat, _ = ordered(args, kwargs)
    except Exception as error:  # PyTorch's own checks of what was given
        raise CommandError(f"{name}: {one_line(error)}") from error
    return list(flat)


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


def _pairs(
    name: str, program: Program, mutation: bool, given: Sequence[Any], results: list[Any]
) -> list[tuple[str, Any, Any]]:
    """What is compared: what to call it, ours, and PyTorch's.

    Besides results, that is what the program wrote to buffers and arguments: it comes before the
    results, or with `mutation` stands in `given`.
    """
    expected, leaves = _eager(name, program)
    state = _state(program.eager)
    pairs: list[tuple[str, Any, Any]] = []
    written = _written(program)
    if mutation and written:
        arguments = (value for value in leaves if hasattr(value, "clone"))
        tensors = (value for value in given if hasattr(value, "clone"))
        both = zip(tensors, arguments, strict=True)
        pairs += [(f"argument {number}", *pair) for number, pair in enumerate(both)]
        written = []
    if len(results) != len(written) + len(expected):
        raise CommandError(
            f"{name}: {len(results) - len(written)} results, and {len(expected)} from PyTorch"
        )
    for (target, position), ours in zip(written, results, strict=False):
        if position is not None:
            pairs.append((f"argument {position}", ours, leaves[position]))
        elif target in state:
            pairs.append((f"buffer {target!r}", ours, state[target]))
    returned = zip(results[len(written) :], expected, strict=True)
    pairs += [(f"result {number}", *pair) for number, pair in enumerate(returned)]
    return pairs


def _pairs_of_archive(
    name: str,
    archive: TorchScriptArchive,
    arguments: argparse.Namespace,
    args: Sequence[Any],
    results: list[Any],
) -> list[tuple[str, Any, Any]]:
    """The results of ours and PyTorch's; writes to arguments and attributes aren't looked at."""
    from torch.utils._pytree import tree_flatten

    from .torchscript import call_method

    method = arguments.function or (arguments.methods or ["forward"])[0]
    returned = call_method(archive, method, _copied(args))
    # None is no result of a function on values.
    expected = [value for value in tree_flatten(returned)[0] if value is not None]
    if len(results) != len(expected):
        raise CommandError(f"{name}: {len(results)} results, and {len(expected)} from PyTorch")
    pairs = enumerate(zip(results, expected, strict=True))
    return [(f"result {number}", *pair) for number, pair in pairs]


def _written(program: Program) -> list[tuple[str, int | None]]:
    """The buffers and arguments that a program writes to, in the order of its results.

    A name; and an argument's position, None for a buffer.
    """
    signature = program.exported.graph_signature
    specs = getattr(signature, "output_specs", None)
    if specs is None:  # PyTorch 2.1, whose programs write to buffers only
        return [(name, None) for name in signature.buffers_to_mutate.values()]
    inputs = [spec.arg for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]
    positions = {getattr(arg, "name", None): number for number, arg in enumerate(inputs)}
    return [
        (
            spec.target,
            positions[spec.target] if spec.kind.name == "USER_INPUT_MUTATION" else None,
        )
        for spec in specs
        if spec.kind.name.endswith("_MUTATION")
    ]


def _state(eager: Any) -> dict[str, Any]:
    """Buffers and parameters by name; PyTorch 2.1's programs show none."""
    if not hasattr(eager, "named_buffers"):
        return {}
    return {
        **dict(eager.named_parameters(remove_duplicate=False)),
        **dict(eager.named_buffers(remove_duplicate=False)),
    }


def _eager(name: str, program: Program) -> tuple[list[Any], list[Any]]:
    """PyTorch's results, and its arguments after it ran."""
    import torch
    from torch.utils._pytree import tree_flatten, tree_map

    def copy(value: Any) -> Any:
        return value.clone() if isinstance(value, torch.Tensor) else value

    args, kwargs = tree_map(copy, program.args), tree_map(copy, program.kwargs)
    try:
        with torch.no_grad():
            result = program.eager(*args, **kwargs)
    except Exception as error:  # the user's code may raise anything
        raise CommandError(f"{name}: PyTorch itself: {one_line(error)}") from error
    return tree_flatten(result)[0], _ordered(name, program, args, kwargs)


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


def _compare(name: str, pairs: Sequence[tuple[str, Any, Any]], tolerance: float) -> None:
    import numpy as np

    from .values import as_array

    worst, worst_relative = 0.0, 0.0
    for what, mine, wanted in pairs:
        if mine is None and wanted is None:
            continue
        left, right = as_array(mine), as_array(wanted)
        if left.shape != right.shape:
            raise CommandError(
                f"{name}: {what} has shape {list(left.shape)}, and {list(right.shape)} from PyTorch"
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
