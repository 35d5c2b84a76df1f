# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators as the importer calls them: the MLIR operation and a converter for each argument.

Arguments are read by the schema of the installed PyTorch. The Torch dialect's operators follow
one PyTorch version (`torch_mlir.operators`): where the two differ, the arguments that the
installed schema lacks get the dialect's defaults, and an operator that cannot be written so
becomes a `torch.operator`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .. import operators
from .arguments import Converter, converter_for

REQUIRED = object()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of an operator; `default` is `REQUIRED` where it has none."""

    name: str
    convert: Converter
    default: Any
    # Its place among the installed schema's arguments; None where that schema lacks it.
    position: int | None


@dataclass(frozen=True, slots=True)
class Signature:
    """An operator: `name` with the dialect's prefix, and the arguments it takes in order."""

    name: str
    in_dialect: bool
    parameters: tuple[Parameter, ...]
    result_count: int
    # The first argument that the operator writes to.
    writes_to: str | None = None


def operation_name(schema: Any) -> str:
    """`torch.aten.add.Tensor` for `aten::add.Tensor`."""
    overload = f".{schema.overload_name}" if schema.overload_name else ""
    return f"torch.{schema.name.replace('::', '.')}{overload}"


def _parameter(argument: Any, position: int | None) -> Parameter:
    convert, _ = converter_for(argument.type, argument.N)
    # `has_default_value` tells a default of None from no default.
    default = argument.default_value if argument.has_default_value() else REQUIRED
    return Parameter(argument.name, convert, default, position)


def signature_of(schema: Any, accepts: Callable[[str], bool]) -> Signature:
    """The signature of an operator whose installed `FunctionSchema` is `schema`.

    An operation that the module's reader does not know, `accepts` tells, is not used.
    """
    name = operation_name(schema)
    own = tuple(_parameter(argument, i) for i, argument in enumerate(schema.arguments))
    results = len(schema.returns)
    written = next(
        (a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write), None
    )
    entry = operators.load().get(name.removeprefix("torch."))
    if entry is None or not accepts(name):
        return Signature(name, False, own, results, written)
    # Schemas have come to tell of writes that operators always did.
    written = written or next((a.name for a in entry.arguments if a.is_write), None)
    if [a.name for a in entry.arguments] == [p.name for p in own]:
        return Signature(name, len(entry.results) == results, own, results, written)
    dialect = torch._C.parse_schema(entry.text)
    by_name = {parameter.name: parameter for parameter in own}
    parameters = tuple(
        by_name.pop(argument.name) if argument.name in by_name else _parameter(argument, None)
        for argument in dialect.arguments
    )
    representable = (
        not by_name
        and len(dialect.returns) == results
        and all(p.position is not None or p.default is not REQUIRED for p in parameters)
    )
    return Signature(name, representable, parameters if representable else own, results, written)
