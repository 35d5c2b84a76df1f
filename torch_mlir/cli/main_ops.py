# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch-mlir ops`: the operators of a model, and which of them a compiler registers."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..importers.consumers import CONSUMERS
from .errors import CommandError
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
from .streams import check_output, write_text

if TYPE_CHECKING:
    from .. import ir


def configure_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command's parser."""
    command = command_parser(
        commands,
        "ops",
        help="list the operators that a model uses",
        description="List the operators that a model uses, the most frequent first.",
        epilog=ANY_MODEL_HELP,
    )
    model_options(command, ANY_MODEL)
    output_option(command, "where to write the list, - for standard output (default)")
    command.add_argument(
        "--target", choices=CONSUMERS, help="tell which of them this compiler registers"
    )
    command.add_argument(
        "--format", choices=("text", "json"), default="text", help="(default: %(default)s)"
    )
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> None:
    """Carry the command out.

    Raises:
        CommandError: the model can't be read, or the compiler isn't installed.
    """
    check_output(arguments.output)
    reference = resolve(arguments.model)
    with progress() as step:
        module, _ = load_module(reference, arguments, step)
        counts = Counter(operators(module))
        registered = _registered(arguments.target)
    rows: list[dict[str, Any]] = []
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        row: dict[str, Any] = {"operator": name, "count": count}
        if registered is not None:
            row["registered"] = registered(name)
        rows.append(row)
    if arguments.format == "json":
        text = json.dumps(rows, indent=2) + "\n"
    else:
        text = "".join(_line(row, arguments.target) for row in rows)
        text += f"{len(rows)} operators, {sum(counts.values())} calls"
        if registered is not None:
            missing = sum(not row["registered"] for row in rows)
            text += f", {missing} not registered by {arguments.target}"
        text += "\n"
    write_text(arguments.output, text)


def _line(row: dict[str, Any], target: str | None) -> str:
    note = "" if row.get("registered", True) else f"  not registered by {target}"
    return f"{row['count']:6} {row['operator']}{note}\n"


def operators(module: ir.Module) -> Iterator[str]:
    """The name of each operation that is an operator of PyTorch's, or calls a custom one.

    Literals, lists and other structure have no schema, and are not listed. A `torch.operator`
    goes by the name of what it calls.
    """
    from .. import ir
    from ..operators import load

    table = load()

    names: list[str] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        name = operation.name
        if name == "torch.operator":
            names.append(ir.StringAttr(operation.attributes["name"]).value)
        elif name.startswith("torch.") and name.removeprefix("torch.") in table:
            names.append(name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    yield from names


def _registered(target: str | None) -> Any:
    """What tells whether `target` registers an operator; None without a target."""
    if target is None:
        return None
    from ..importers.consumers import consumer

    try:
        return consumer(target)
    except ImportError as error:
        raise CommandError(f"--target {target}: {error}") from error
