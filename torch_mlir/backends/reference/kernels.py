# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the name of an operation to what PyTorch runs for it.

An operand is converted to what the installed operator's schema wants: the dialect has numbers
for dtypes, layouts and memory formats, and the operands that the table's PyTorch has, in its
order. Where the installed operator lacks an argument, its operand must be the default.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map_only

from ... import operators
from ...dtypes import DTYPE_TO_INT, LAYOUT_TO_INT, MEMORY_FORMAT_TO_INT
from . import python_operators

Kernel = Callable[[Sequence[Any]], Sequence[Any]]
Converter = Callable[[Any], Any]

# Modules of PyTorch that register operators once they are imported.
REGISTRARS = {
    "quantized_decomposed": (
        "torch.ao.quantization.fx._decomposed",
        "torchao.quantization.pt2e",
    ),
    "_c10d_functional": ("torch.distributed._functional_collectives",),
    "c10d_functional": ("torch.distributed._functional_collectives",),
}

_NUMBERED: dict[str, dict[int, Any]] = {
    "ScalarType": {number: dtype for dtype, number in DTYPE_TO_INT.items()},
    "Layout": {number: layout for layout, number in LAYOUT_TO_INT.items()},
    "MemoryFormat": {number: layout for layout, number in MEMORY_FORMAT_TO_INT.items()},
}
_NUMBERS: dict[type, dict[Any, int]] = {
    torch.dtype: DTYPE_TO_INT,
    torch.layout: LAYOUT_TO_INT,
    torch.memory_format: MEMORY_FORMAT_TO_INT,
}

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def dtype_of(number: int) -> torch.dtype:
    """The dtype that the dialect has a number for."""
    dtype: torch.dtype = _NUMBERED["ScalarType"][number]
    return dtype


class NoKernel(LookupError):
    """The installed PyTorch has no operator of that name."""


def overload(key: str) -> Callable[..., Any]:
    """The installed operator `aten.add.Tensor`, whose `_schema` is its schema.

    Raises:
        NoKernel: there is none.
    """
    parts = key.split(".", 2)
    if len(parts) < 2:
        raise NoKernel(f"{key!r} is not namespace.name")
    namespace, name = parts[:2]
    wanted = parts[2] if len(parts) > 2 else ""
    found = _registered(namespace, name, wanted)
    for module in REGISTRARS.get(namespace, ()) if found is None else ():
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            continue  # another release keeps them elsewhere
        found = _registered(namespace, name, wanted)
        if found is not None:
            break
    if found is None:
        raise NoKernel(f"PyTorch {torch.__version__} has no operator {key}")
    return found


class _Registered:
    """An operator that `torch.ops` doesn't reach by attribute, e.g. `aten::__range_length`."""

    def __init__(self, call: Callable[..., Any], schema: Any) -> None:
        self._call = call
        self._schema = schema

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)


def _registered(namespace: str, name: str, wanted: str) -> Callable[..., Any] | None:
    try:
        packet = getattr(getattr(torch.ops, namespace), name)
        found: Callable[..., Any] = getattr(packet, wanted or "default")
        return found
    except AttributeError:
        pass  # not reached by attribute; PyTorch may have it all the same
    try:
        operation = torch._C._get_operation_overload(f"{namespace}::{name}", wanted)
        schema = torch._C._get_schema(f"{namespace}::{name}", wanted)
    except RuntimeError:
        return None  # "Found no matching schema"
    return None if operation is None else _Registered(operation[0], schema)


def kernel(key: str, operand_count: int, result_count: int | None = None) -> Kernel:
    """What runs the operator `aten.add.Tensor` on a list of its operands.

    An operation that has a result more for each operand that the operator writes to gives what
    is written, and leaves the operands as they are.

    Raises:
        NoKernel: the installed PyTorch has no such operator, or one that takes other arguments.
    """
    entry = operators.load().get(key)
    if entry is not None:
        in_python = python_operators.find(entry)
        if in_python is not None:
            return _python_kernel(in_python, len(entry.results))
    target = overload(key)
    own = operators.parse(str(target._schema))  # type: ignore[attr-defined]
    given = own
    if entry is not None and len(entry.arguments) == operand_count and not _same_types(own, entry):
        given = entry
    call = _caller(target, own, given, operand_count)
    symbolic = python_operators.find_symbolic(own)
    count = len(own.results)
    written = [i for i, argument in enumerate(given.arguments) if argument.is_write]
    if result_count is not None and result_count != count and not own.is_varret:
        if not written or result_count < count:
            raise NoKernel(f"{key} gives {count} results, not {result_count}")
        return _functionalized(call, written, count)

    def run(operands: Sequence[Any]) -> Sequence[Any]:
        if symbolic is not None and any(isinstance(operand, _SYMBOLIC) for operand in operands):
            return (symbolic(*operands),)
        result = call(operands)
        if count == 1:
            return (_as_number(result),)
        return tuple(result) if count else ()

    return run


def _functionalized(
    call: Callable[[Sequence[Any]], Any], written: Sequence[int], count: int
) -> Kernel:
    def run(operands: Sequence[Any]) -> Sequence[Any]:
        own = list(operands)
        for place in written:
            own[place] = tree_map_only(torch.Tensor, torch.clone, own[place])
        result = call(own)
        results = [result] if count == 1 else list(result) if count else []
        contents = tree_flatten([own[place] for place in written])[0]
        return [*results, *(tensor for tensor in contents if tensor is not None)]

    return run


def _python_kernel(function: Callable[..., Any], count: int) -> Kernel:
    def run(operands: Sequence[Any]) -> Sequence[Any]:
        result = function(*operands)
        return (_as_number(result),) if count else ()

    return run


def _same_types(own: operators.Schema, given: operators.Schema) -> bool:
    """Whether two releases' schemas differ in the names of arguments at most."""
    return [(a.type, a.kwarg_only) for a in own.arguments] == [
        (a.type, a.kwarg_only) for a in given.arguments
    ]


def _as_number(result: Any) -> Any:
    numbers = _NUMBERS.get(type(result))
    return result if numbers is None else numbers[result]


def _caller(
    target: Callable[..., Any],
    own: operators.Schema,
    given: operators.Schema,
    operand_count: int,
) -> Callable[[Sequence[Any]], Any]:
    if own.is_vararg:
        return lambda operands: target(*operands)
    if len(given.arguments) != operand_count:
        raise NoKernel(
            f"{own.key} takes {len(given.arguments)} arguments, and {operand_count} are given"
        )
    # Once an argument is left out, the ones that follow go by name.
    positional: list[tuple[int, Converter | None]] = []
    named: list[tuple[str, int, Converter | None]] = []
    left_out: list[tuple[str, int, Any]] = []
    by_name = {argument.name: argument for argument in own.arguments}
    aligned = itertools.zip_longest(own.arguments, given.arguments)
    in_order = True
    for position, (mine, theirs) in enumerate(aligned):
        if theirs is None:
            break
        in_order = in_order and mine is not None and mine.name == theirs.name
        argument = by_name.get(theirs.name)
        if argument is None:
            if theirs.default is None:
                raise NoKernel(
                    f"{own.key} of PyTorch {torch.__version__} has no argument {theirs.name!r}"
                )
            left_out.append((theirs.name, position, theirs.default_value))
        elif in_order and not argument.kwarg_only:
            positional.append((position, converter(argument.type)))
        else:
            named.append((theirs.name, position, converter(argument.type)))

    def call(operands: Sequence[Any]) -> Any:
        for name, position, default in left_out:
            if operands[position] != default:
                raise ValueError(
                    f"argument {name!r} of {own.key} is {operands[position]!r}; "
                    f"PyTorch {torch.__version__} has no such argument"
                )
        args = [
            operands[position] if convert is None else convert(operands[position])
            for position, convert in positional
        ]
        kwargs = {
            name: operands[position] if convert is None else convert(operands[position])
            for name, position, convert in named
        }
        return target(*args, **kwargs)

    return call


def converter(kind: operators.Type) -> Converter | None:
    """What makes an operand an argument of a schema's type; None leaves it as it is."""
    if kind.name == "Optional":
        inner = converter(kind.element)
        if inner is None:
            return None
        convert = inner
        return lambda value: None if value is None else convert(value)
    if kind.name == "List":
        inner = converter(kind.element)
        if inner is None:
            return None
        each = inner
        return lambda values: [each(value) for value in values]
    numbered = _NUMBERED.get(kind.name)
    if numbered is None:
        return None
    table, name = numbered, kind.name

    def numbered_value(value: Any) -> Any:
        try:
            return table[value]
        except KeyError:
            raise ValueError(f"{value!r} is no {name} of PyTorch {torch.__version__}") from None

    return numbered_value
