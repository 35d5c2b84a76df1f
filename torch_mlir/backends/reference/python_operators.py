# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on Python's values: numbers, lists, dicts and strings.

PyTorch registers a kernel for each, which takes a copy of a list and no symbolic number. These
write to the list that they are given, and work for `SymInt`s too.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import torch

from ... import operators

Function = Callable[..., Any]


def _div(a: Any, b: Any) -> Any:
    return a / b


def _append(values: list[Any], element: Any) -> list[Any]:
    values.append(element)
    return values


def _set_item(values: Any, index: Any, element: Any) -> Any:
    values[index] = element
    return values


def _delete(values: Any, index: Any) -> None:
    del values[index]


def _slice(values: Any, start: int | None, end: int | None, step: int) -> Any:
    return values[start:end:step]


def _format(text: str, *values: Any) -> str:
    return text.format(*values)


def _unwrap(value: Any) -> Any:
    if value is None:
        raise RuntimeError("a value is wanted, and it is None")
    return value


def _raise(message: str, kind: str | None = None) -> None:
    raise RuntimeError(f"{kind}: {message}" if kind else message)


def _derive_index(index: Any, start: Any, step: Any) -> Any:
    return start + index * step


def _range_length(low: int, high: int, step: int) -> int:
    if step == 0:
        raise RuntimeError("range() arg 3 must not be zero")
    return len(range(low, high, step))


def _item(tensor: torch.Tensor) -> Any:
    return tensor.item()


def _warn(message: Any, stacklevel: int = 2) -> None:
    warnings.warn(str(message), stacklevel=stacklevel)


# By the operators' names without overloads: those whose arguments hold no tensor.
_ON_VALUES: dict[str, Function] = {
    "aten.add": operator.add,
    "aten.sub": operator.sub,
    "aten.mul": operator.mul,
    "aten.div": _div,
    "aten.floordiv": operator.floordiv,
    "aten.remainder": operator.mod,
    "aten.neg": operator.neg,
    "aten.pow": operator.pow,
    "aten.ceil": math.ceil,
    "aten.floor": math.floor,
    "aten.eq": operator.eq,
    "aten.ne": operator.ne,
    "aten.lt": operator.lt,
    "aten.le": operator.le,
    "aten.gt": operator.gt,
    "aten.ge": operator.ge,
    "aten.__and__": operator.and_,
    "aten.__or__": operator.or_,
    "aten.__xor__": operator.xor,
    "aten.__not__": operator.not_,
    "aten.Complex": complex,
    "prim.abs": abs,
    "aten.append": _append,
    "aten._set_item": _set_item,
    "aten.Delete": _delete,
    "aten.insert": list.insert,
    "aten.extend": list.extend,
    "aten.reverse": list.reverse,
    "aten.index": list.index,
    "aten.count": list.count,
    "aten.slice": _slice,
    "aten.len": len,
    "aten.copy": lambda values: values.copy(),
    "aten.clear": lambda values: values.clear(),
    "aten.keys": lambda values: list(values.keys()),
    "aten.values": lambda values: list(values.values()),
    "aten.items": lambda values: [*values.items()],
    "aten.sym_max": lambda a, b: torch.sym_max(a, b),
    "aten.sym_min": lambda a, b: torch.sym_min(a, b),
}

# Those for which that doesn't matter, or that exist for one overload only.
_BY_KEY: dict[str, Function] = {
    "aten.__is__": operator.is_,
    "aten.__isnot__": operator.is_not,
    "aten.__getitem__.t": operator.getitem,
    "aten.__getitem__.str": operator.getitem,
    "aten.__contains__.int": operator.contains,
    "aten.__contains__.str": operator.contains,
    "aten.__contains__.float": operator.contains,
    "aten.__contains__.str_list": operator.contains,
    "aten.__derive_index": _derive_index,
    "aten.__range_length": _range_length,
    "aten.append.t": _append,
    "aten.list.t": list,
    "aten.pop.t": list.pop,
    "aten.Int.Scalar": lambda x: torch.sym_int(x),
    "aten.Int.bool": int,
    "aten.Int.float": lambda x: torch.sym_int(x),
    "aten.Float.Scalar": lambda x: torch.sym_float(x),
    "aten.Float.int": lambda x: torch.sym_float(x),
    "aten.Bool.int": lambda x: x != 0,
    "aten.Bool.float": lambda x: x != 0,
    "aten.Int.Tensor": _item,
    "aten.Float.Tensor": _item,
    "aten.Bool.Tensor": _item,
    "aten.IntImplicit": _item,
    "aten.FloatImplicit": _item,
    "aten.ScalarImplicit": _item,
    "aten.ComplexImplicit": _item,
    "aten.item": _item,
    "aten.size": lambda tensor: list(tensor.shape),
    "aten.size.int": lambda tensor, axis: tensor.shape[axis],
    "aten.sym_size": lambda tensor: list(tensor.shape),
    "aten.sym_size.int": lambda tensor, axis: tensor.shape[axis],
    "aten.dim": lambda tensor: tensor.dim(),
    "aten.numel": lambda tensor: tensor.numel(),
    "aten.sym_numel": lambda tensor: tensor.numel(),
    "aten.len.Tensor": lambda tensor: tensor.shape[0],
    "aten._unwrap_optional": _unwrap,
    "prim.unchecked_unwrap_optional": _unwrap,
    "aten.warn": _warn,
    "aten.format": _format,
    "prim.Print": print,
    "prim.RaiseException": _raise,
    "prim.min.int": min,
    "prim.max.int": max,
    "prim.min.float": min,
    "prim.max.float": max,
    "prim.min.self_int": min,
    "prim.max.self_int": max,
    "prim.min.self_float": min,
    "prim.max.self_float": max,
    "prim.dtype": lambda tensor: tensor.dtype,
    "prim.layout": lambda tensor: tensor.layout,
    "prim.device": lambda tensor: tensor.device,
}

_RESULTS: dict[str, Function] = {
    "int": lambda value: torch.sym_int(value) if not isinstance(value, torch.Tensor) else value,
    "float": lambda value: torch.sym_float(value),
    "bool": lambda value: value if isinstance(value, torch.SymBool) else bool(value),
}


def find(schema: operators.Schema) -> Function | None:
    """What computes an operator in Python, or None: PyTorch's kernel does."""
    key = schema.key
    function = _BY_KEY.get(key)
    if function is None:
        if any(_holds_tensor(argument.type) for argument in schema.arguments):
            return None
        function = _ON_VALUES.get(f"{schema.namespace}.{schema.name}")
    if function is None or key in _BY_KEY and not schema.results:
        return function
    if len(schema.results) == 1 and (convert := _RESULTS.get(str(schema.results[0].type))):
        compute = function

        def converted(*args: Any) -> Any:
            return convert(compute(*args))

        return converted
    return function


def _holds_tensor(kind: operators.Type) -> bool:
    return kind.name == "Tensor" or any(_holds_tensor(inner) for inner in kind.arguments)
