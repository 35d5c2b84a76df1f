# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on Python's values, where PyTorch's kernels don't do.

Those take a copy of a list, so that a write to it is lost; and no symbolic number.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import torch

from ... import operators
from ...dtypes import DTYPE_TO_INT

Function = Callable[..., Any]


def _div(a: Any, b: Any) -> Any:
    return a / b


def _append(values: list[Any], element: Any) -> list[Any]:
    values.append(element)
    return values


def _set_item(values: Any, index: Any, element: Any) -> Any:
    values[index] = element
    return values


def _add_in_place(values: list[Any], others: list[Any]) -> list[Any]:
    values.extend(others)
    return values


def _repeat_in_place(values: list[Any], count: int) -> list[Any]:
    values *= count
    return values


def _sort(values: list[Any], reverse: bool) -> None:
    values.sort(reverse=reverse)


def _tensor(data: Any, dtype: int | None, device: Any, requires_grad: bool = False) -> torch.Tensor:
    kinds = {number: kind for kind, number in DTYPE_TO_INT.items()}
    kind = None if dtype is None else kinds[dtype]
    return torch.tensor(data, dtype=kind, device=device, requires_grad=requires_grad)


def _delete(values: Any, index: Any) -> None:
    del values[index]


def _slice(values: Any, start: int | None, end: int | None, step: int) -> Any:
    return values[start:end:step]


def _in_torchscript(name: str) -> Function:
    """An operator that gives text, as TorchScript's interpreter writes it: `2.` for 2.0."""

    def call(*values: Any) -> str:
        graph = torch._C.Graph()
        inputs = []
        for value in values:
            inputs.append(graph.addInput())
            inputs[-1].setType(torch._C._jit_try_infer_type(value).type())
        node = graph.insertNode(graph.create(name, inputs))
        node.output().setType(torch._C.StringType.get())
        graph.registerOutput(node.output())
        return str(torch._C._create_function_from_graph("call", graph)(*values))

    return call


def _unwrap(value: Any) -> Any:
    if value is None:
        raise RuntimeError("a value is wanted, and it is None")
    return value


def _raise(message: str, kind: str | None = None) -> None:
    raise RuntimeError(f"{kind}: {message}" if kind else message)


def _derive_index(index: Any, start: Any, step: Any) -> Any:
    return start + index * step


def _power(base: int, exponent: int) -> Any:
    # PyTorch's kernel gives a float, against the schema. It also would lose digits.
    return base**exponent


def _range_length(low: int, high: int, step: int) -> int:
    if step == 0:
        raise RuntimeError("range() arg 3 must not be zero")
    return len(range(low, high, step))


def _item(tensor: torch.Tensor) -> Any:
    return tensor.item()


def _bool(tensor: torch.Tensor) -> Any:
    value = tensor.item()
    # Whether a symbol is 0 can't be told, but said.
    return value if isinstance(value, torch.SymBool) else value != 0


def _warn(message: Any, stacklevel: int = 2) -> None:
    warnings.warn(str(message), stacklevel=stacklevel)


# For symbolic numbers, by the operators' names without overloads.
_ON_NUMBERS: dict[str, Function] = {
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
    "aten.Int": lambda value: torch.sym_int(value),
    "aten.Float": lambda value: torch.sym_float(value),
    "aten.Bool": lambda value: value != 0,
    "aten.sym_max": lambda a, b: torch.sym_max(a, b),
    "aten.sym_min": lambda a, b: torch.sym_min(a, b),
    "aten.__derive_index": _derive_index,
    "prim.abs": abs,
    "prim.max": lambda a, b: torch.sym_max(a, b),
    "prim.min": lambda a, b: torch.sym_min(a, b),
}

# For lists, dicts and whatever else has no tensor among its arguments.
_ON_CONTAINERS: dict[str, Function] = {
    "aten.__getitem__": operator.getitem,
    "aten.__contains__": operator.contains,
    "aten.append": _append,
    "aten._set_item": _set_item,
    "aten.Delete": _delete,
    "aten.insert": list.insert,
    "aten.extend": list.extend,
    "aten.reverse": list.reverse,
    "aten.remove": list.remove,
    "aten.sort": _sort,
    "aten.pop": lambda values, *args: values.pop(*args),
    "aten.get": dict.get,
    "aten.setdefault": dict.setdefault,
    "aten.update": dict.update,
    "aten.popitem": dict.popitem,
    "aten.dict": dict,
    "aten.slice": _slice,
    "aten.len": len,
    "aten.copy": lambda values: values.copy(),
    "aten.clear": lambda values: values.clear(),
    "aten.keys": lambda values: list(values.keys()),
    "aten.values": lambda values: list(values.values()),
    "aten.items": lambda values: [*values.items()],
}

_BY_KEY: dict[str, Function] = {
    "aten.__is__": operator.is_,
    "aten.__isnot__": operator.is_not,
    "aten.add.t": operator.add,
    "aten.add_.t": _add_in_place,
    "aten.mul.left_t": operator.mul,
    "aten.mul.right_": operator.mul,
    "aten.mul_.t": _repeat_in_place,
    "aten.select.t": operator.getitem,
    "aten.sorted.any": sorted,
    "aten.str": _in_torchscript("aten::str"),
    "aten.tensor": _tensor,
    "aten.as_tensor.list": _tensor,
    "aten.__range_length": _range_length,
    "aten.pow.int_to_int": _power,
    "aten.append.t": _append,
    "aten.list.t": list,
    "aten.Int.Tensor": lambda tensor: torch.sym_int(tensor.item()),
    "aten.Float.Tensor": lambda tensor: torch.sym_float(tensor.item()),
    "aten.Bool.Tensor": _bool,
    # PyTorch 2.1's kernels give ints.
    "aten.isfinite.float": math.isfinite,
    "aten.isinf.float": math.isinf,
    "aten.isnan.float": math.isnan,
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
    "aten.format": _in_torchscript("aten::format"),
    "aten.percentFormat": _in_torchscript("aten::percentFormat"),
    "prim.Print": print,
    "prim.RaiseException": _raise,
    "prim.dtype": lambda tensor: tensor.dtype,
    "prim.layout": lambda tensor: tensor.layout,
    "prim.device": lambda tensor: tensor.device,
}

# Results of operators on numbers, by the type in their schemas.
_RESULTS: dict[str, Function] = {
    "int": lambda value: torch.sym_int(value),
    "float": lambda value: torch.sym_float(value),
}


def find(schema: operators.Schema) -> Function | None:
    """What computes an operator in Python, or None: PyTorch's kernel does."""
    found = _BY_KEY.get(schema.key)
    kinds = [argument.type for argument in schema.arguments]
    # A dict may have tensors as its keys.
    is_of_dict = bool(kinds) and kinds[0].name == "Dict"
    if found is None and (is_of_dict or not any(map(_holds_tensor, kinds))):
        found = _ON_CONTAINERS.get(f"{schema.namespace}.{schema.name}")
    return found


def find_symbolic(schema: operators.Schema) -> Function | None:
    """What computes an operator on numbers for `SymInt`s and the like, or None."""
    function = _ON_NUMBERS.get(f"{schema.namespace}.{schema.name}")
    if function is None or any(argument.type.name not in _NUMBERS for argument in schema.arguments):
        return None
    compute = function
    convert = _RESULTS.get(str(schema.results[0].type))
    if convert is None:
        return compute
    return lambda *args: convert(compute(*args))


_NUMBERS = frozenset(("int", "float", "bool", "Scalar", "SymInt", "SymFloat", "SymBool"))


def _holds_tensor(kind: operators.Type) -> bool:
    return kind.name == "Tensor" or any(_holds_tensor(inner) for inner in kind.arguments)
