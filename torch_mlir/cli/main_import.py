# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch-mlir import`: a program of PyTorch's as a file of MLIR."""

from __future__ import annotations

import argparse
from typing import IO, TYPE_CHECKING

from ..importers.consumers import CONSUMERS
from .errors import CommandError
from .options import INPUTS_HELP, MODELS_HELP, command_parser, model_options, output_option
from .programs import import_program, load_program, pytorch
from .progress import Progress, progress
from .references import MlirText, PythonObject, SavedProgram, TorchScriptArchive, resolve
from .streams import check_output, output, shown

if TYPE_CHECKING:
    from .. import ir

_EMIT = ("text", "bytecode")
_OUTPUT_TYPES = ("raw", "torch", "linalg-on-tensors", "tosa", "stablehlo")
_BYTECODE_SUFFIXES = (".mlirbc", ".bc")

_EXAMPLES = """\
examples:
  torch-mlir import model.pt2 -o model.mlir
  torch-mlir import model.pt --input 1x3x224x224xf32 -o model.mlirbc
  torch-mlir import 'torch.nn:Linear(3, 4)' --input '[batch]x3xf32' -o linear.mlirbc
  torch-mlir import net.py:build --input x=1x3x224x224xf32 --target iree | iree-compile - …
"""


def configure_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command's parser."""
    command = command_parser(
        commands,
        "import",
        help="write a model as MLIR",
        description="Write a model as MLIR. Needs PyTorch 2.1 or newer, but for TorchScript.",
        epilog=f"{MODELS_HELP}\n{INPUTS_HELP}\n{_EXAMPLES}",
    )
    model_options(command, "a .pt2 or .pt file, module:Class or script.py:function, see below")
    output_option(command, "where to write the module, - for standard output (default)")
    command.add_argument(
        "--emit",
        choices=_EMIT,
        help="how to write it (default: bytecode for a FILE in .mlirbc or .bc, else text)",
    )
    command.add_argument(
        "--output-type",
        choices=_OUTPUT_TYPES,
        help="how far to lower it (default: raw; torch, which is functions on values, for "
        "TorchScript, whose raw form is its objects and all their methods)",
    )
    command.add_argument(
        "--raw",
        dest="output_type",
        action="store_const",
        const="raw",
        help="the same as --output-type raw",
    )
    command.add_argument("--func-name", default="main", metavar="NAME", help="the function's name")
    command.add_argument(
        "--target",
        choices=CONSUMERS,
        help="write operators that this compiler does not register as torch.operator",
    )
    command.add_argument(
        "--symbolic-shapes",
        action="store_true",
        help="tell the symbols of open sizes and their ranges",
    )
    command.add_argument(
        "--locations",
        action="store_true",
        help="write source locations and module paths into the text (bytecode always has them)",
    )
    command.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="tell of which operators in TorchScript the importer doesn't know shapes and dtypes",
    )
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> None:
    """Carry the command out.

    Raises:
        CommandError: the model can't be imported, or the output can't be written.
    """
    suffixed = arguments.output.endswith(_BYTECODE_SUFFIXES)
    emit = arguments.emit or ("bytecode" if suffixed else "text")
    check_output(arguments.output)
    reference = resolve(arguments.model)
    if isinstance(reference, MlirText):
        raise CommandError(f"{shown(arguments.model)}: is MLIR, not a model of PyTorch's")
    with progress() as step:
        if isinstance(reference, TorchScriptArchive):
            from .torchscript import import_archive

            step.step(f"import {shown(reference.text)}")
            module = import_archive(reference, arguments, arguments.output_type or "torch")
        else:
            module = _of_pytorch(reference, arguments, step)
        step.step(f"write {arguments.output}")
        with output(arguments.output) as file:
            write(module, file, emit, arguments.locations)


def _of_pytorch(
    reference: SavedProgram | PythonObject, arguments: argparse.Namespace, step: Progress
) -> ir.Module:
    step.step("load PyTorch")
    with pytorch(reference, arguments) as torch:
        from .values import Values

        values = Values(arguments.seed, torch)
        program = load_program(reference, arguments, values, step)
        return import_program(
            program,
            arguments,
            step,
            output_type=arguments.output_type or "raw",
            func_name=arguments.func_name,
            target=arguments.target,
            symbolic_shapes=arguments.symbolic_shapes,
        )


def write(module: ir.Module, file: IO[bytes], emit: str, locations: bool) -> None:
    """Write `module` as text or bytecode, in pieces."""
    if emit == "bytecode":
        module.operation.write_bytecode(file)
    else:
        module.operation.print(file=file, binary=True, enable_debug_info=locations)
