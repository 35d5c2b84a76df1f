# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TorchScript archives as MLIR, with PyTorch or without."""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .errors import CommandError, one_line
from .inputs import Input, TensorSpec, ValueSpec
from .references import TorchScriptArchive
from .streams import shown

if TYPE_CHECKING:
    from .. import ir


def import_archive(
    reference: TorchScriptArchive, options: argparse.Namespace, output_type: str
) -> ir.Module:
    """The archive as MLIR.

    Args:
        output_type: as `torch_mlir.torchscript.import_archive` takes it.

    Raises:
        CommandError: the archive is damaged, or something in it has no translation.
    """
    name = shown(reference.text)
    try:
        from .. import torchscript
    except ImportError as error:
        raise CommandError(f"{name}: TorchScript can't be read here: {one_line(error)}") from error
    is_raw = output_type == "raw"
    methods = options.methods or ["forward"]
    inputs = [*_arguments(name, options.inputs)] if options.inputs and not is_raw else None
    # What messages call the archive.
    source = reference.source if isinstance(reference.source, str) else _Pipe(reference.source)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            module = torchscript.import_archive(
                source,
                output_type=output_type,
                methods=None if is_raw else methods,
                inputs=None if inputs is None else {methods[0]: inputs},
                freeze=not options.no_freeze,
                torch_version=options.torch_version,
                schemas=options.schemas,
                unrefined=_tell if getattr(options, "verbose", False) else None,
            )
        for warning in told:
            # PyTorch has things to say about its own code, which are not for the user.
            text = " ".join(str(warning.message).split())
            if text.startswith(f"{name}: "):
                print(f"torch-mlir: warning: {text}", file=sys.stderr)
        return module
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror or error}") from error
    except ValueError as error:
        raise CommandError(f"{name}: {one_line(error)}") from error
    except torchscript.TorchMlirCompilerError as error:
        # These name the operator and the line: nothing of them is cut.
        text = one_line(error, 5000)
        raise CommandError(text if text.startswith(name) else f"{name}: {text}") from error


def call_method(reference: TorchScriptArchive, method: str, args: Sequence[Any]) -> Any:
    """What a method gives in the installed PyTorch, whose interpreter runs the archive's code.

    Raises:
        CommandError: this PyTorch can't load the archive, or the method raises.
    """
    import torch

    name = shown(reference.text)
    source = reference.source
    with warnings.catch_warnings():
        # What PyTorch says about its own code is not for the user of this command.
        warnings.simplefilter("ignore")
        try:
            loaded = torch.jit.load(
                source if isinstance(source, str) else io.BytesIO(source), map_location="cpu"
            )
            with torch.no_grad():
                return getattr(loaded, method)(*args)
        except Exception as error:  # the archive's code may raise, and so may what loads it
            raise CommandError(f"{name}: PyTorch itself: {one_line(error)}") from error


def _tell(operator: Any) -> None:
    """Tell of an operator of whose results too little is known without PyTorch."""
    print(f"torch-mlir: no shapes or dtypes of its own for {operator}", file=sys.stderr)


class _Pipe(io.BytesIO):
    """What came through a pipe."""

    name = shown("-")


def _arguments(name: str, inputs: Sequence[Input]) -> Iterator[Any]:
    """What `--input` tells of the arguments, in their order.

    Raises:
        CommandError: an argument is given by its name, or a file can't be read.
    """
    from ..importers.torchscript.arguments import TensorArgument

    for given in inputs:
        if given.name is not None:
            raise CommandError(
                f"{name}: --input {given.text}: TorchScript's arguments are given in their order, "
                "without names"
            )
        spec = given.spec
        if isinstance(spec, TensorSpec):
            sizes = tuple(size if isinstance(size, int) else -1 for size in spec.shape)
            yield TensorArgument(sizes, spec.dtype)
        elif isinstance(spec, ValueSpec):
            yield None
        else:
            from .values import Values

            args, _ = Values(0, None).of_inputs([given])
            yield from (TensorArgument(value.shape, str(value.dtype)) for value in args)
