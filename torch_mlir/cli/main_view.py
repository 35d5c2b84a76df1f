# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch-mlir view`: a model's graph as a page for browsers."""

from __future__ import annotations

import argparse

from .modules import load_module
from .options import (
    ANY_MODEL,
    ANY_MODEL_HELP,
    command_parser,
    model_options,
    output_option,
)
from .progress import progress
from .references import resolve
from .streams import check_output, shown, write_text

_EXAMPLES = """\
examples:
  torch-mlir view model.pt2 -o graph.html
  torch-mlir view 'torch.nn:Linear(3, 4)' --input 2x3xf32 -o graph.html
  torch-mlir view model.mlirbc -o graph.html
"""


def configure_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command's parser."""
    command = command_parser(
        commands,
        "view",
        help="write a model's graph as an HTML page",
        description="Write a model's graph as an HTML page that needs no network: folded by "
        "module hierarchy, shapes on the edges.",
        epilog=f"{ANY_MODEL_HELP}\n{_EXAMPLES}",
    )
    model_options(command, ANY_MODEL)
    output_option(command, "where to write the page, - for standard output (default)")
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> None:
    """Carry the command out.

    Raises:
        CommandError: the model can't be read or imported, or the output can't be written.
    """
    from .view import graph, page

    check_output(arguments.output)
    reference = resolve(arguments.model)
    with progress() as step:
        module, _ = load_module(reference, arguments, step)
        step.step(f"write {arguments.output}")
        title = shown(reference.text)
        write_text(arguments.output, page.html_page(graph.of_module(module), title))
