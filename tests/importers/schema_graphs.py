# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that call an operator with sample arguments of the kinds that its schema asks for.

They are written by hand, node by node: nothing is traced, and what the nodes record of their
values says only what the schema does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
from torch._ops import OpOverload

from torch_mlir import operators

# What stands for a tensor: it has a shape and a dtype, and no data.
TENSOR = torch.empty((2, 3), device="meta")


class Opaque:
    """Stands for an object that graphs refer to and MLIR knows nothing of."""


def overloads(*namespaces: str) -> Iterator[tuple[str, OpOverload]]:
    """The operators of the table that the installed PyTorch has, by the table's key."""
    for key in operators.load():
        namespace, packet, *overload = key.split(".", 2)
        if namespace not in namespaces:
            continue
        found = getattr(getattr(torch.ops, namespace), packet, None)
        found = getattr(found, overload[0] if overload else "default", None)
        if isinstance(found, OpOverload):
            yield key, found


class Samples:
    """Arguments by schema type: constants, or placeholders of `graph`."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.graph = graph
        self._placeholders: dict[str, torch.fx.Node] = {}

    def placeholder(self, name: str, value: Any) -> torch.fx.Node:
        """The input of the graph that stands for `value`."""
        if name not in self._placeholders:
            node = self._placeholders[name] = self.graph.placeholder(name)
            node.meta["val"] = value
        return self._placeholders[name]

    def tensor(self) -> torch.fx.Node:
        return self.placeholder("tensor", TENSOR)

    def of(self, kind: Any, as_nodes: bool) -> Any:
        """An argument for a schema's (real) type.

        `as_nodes`: scalars are inputs of the graph, and lists mix them with constants.
        """
        name = kind.kind()
        if name == "OptionalType":
            return self.of(kind.getElementType(), as_nodes)
        if name == "ListType":
            element = kind.getElementType()
            inner = self.of(element, as_nodes)
            if element.kind() == "OptionalType":
                return [inner, None]
            return [self.of(element, False), inner] if as_nodes else [inner]
        if name == "TupleType":
            return tuple(self.of(element, as_nodes) for element in kind.elements())
        if name == "DictType":
            key, value = self.of(kind.getKeyType(), False), self.of(kind.getValueType(), as_nodes)
            return {key: value}
        make = _SAMPLES.get(name)
        return Opaque() if make is None else make(self, as_nodes)


def _scalar(name: str, value: Any) -> Callable[[Samples, bool], Any]:
    return lambda samples, node: samples.placeholder(name, value) if node else value


_SAMPLES: dict[str, Callable[[Samples, bool], Any]] = {
    "TensorType": lambda samples, node: samples.tensor(),
    "IntType": _scalar("int", 1),
    "SymIntType": _scalar("int", 1),
    "FloatType": _scalar("float", 0.5),
    "SymFloatType": _scalar("float", 0.5),
    "BoolType": _scalar("bool", True),
    "SymBoolType": _scalar("bool", True),
    "NumberType": _scalar("float", 0.5),
    "ComplexType": lambda samples, node: 1 + 2j,
    "StringType": lambda samples, node: "text",
    "DeviceObjType": lambda samples, node: torch.device("cpu"),
    "ScalarTypeType": lambda samples, node: torch.float64,
    "LayoutType": lambda samples, node: torch.strided,
    "MemoryFormatType": lambda samples, node: torch.contiguous_format,
    "GeneratorType": lambda samples, node: torch.default_generator,
    "AnyType": lambda samples, node: samples.tensor(),
    "VarType": lambda samples, node: samples.tensor(),
    "NoneType": lambda samples, node: None,
}


def result_of(kind: Any) -> Any:
    """What a node records for a result of a schema's type."""
    name = kind.kind()
    if name == "OptionalType":
        return result_of(kind.getElementType())
    if name == "ListType":
        return [result_of(kind.getElementType())]
    if name == "TupleType":
        return tuple(result_of(element) for element in kind.elements())
    if name == "DictType":
        return {result_of(kind.getKeyType()): result_of(kind.getValueType())}
    if name in ("TensorType", "AnyType", "VarType"):
        return TENSOR
    values = {
        "IntType": 2, "SymIntType": 2, "FloatType": 0.5, "BoolType": True, "SymBoolType": True,
        "NumberType": 0.5, "StringType": "text", "ComplexType": 1 + 2j, "NoneType": None,
        "ScalarTypeType": torch.float64, "DeviceObjType": torch.device("cpu"),
        "LayoutType": torch.strided,
    }  # fmt: skip
    return values.get(name, Opaque())


def _call(samples: Samples, target: OpOverload, choose: Callable[[Any], Any]) -> None:
    args, kwargs = [], {}
    for position, argument in enumerate(target._schema.arguments):
        value = choose(argument)
        if value is _LEFT_OUT:
            continue
        if argument.kwarg_only or len(args) < position:
            kwargs[argument.name] = value
        else:
            args.append(value)
    node = samples.graph.call_function(target, tuple(args), kwargs)
    results = [result_of(result.real_type) for result in target._schema.returns]
    if results:
        node.meta["val"] = results[0] if len(results) == 1 else tuple(results)


_LEFT_OUT = object()


def graph_of(target: OpOverload) -> torch.fx.Graph:
    """Four calls of `target`: all arguments constants or tensors; scalars as inputs of the graph;
    only what has no default; None wherever that may be.
    """
    graph = torch.fx.Graph()
    samples = Samples(graph)
    # Placeholders come first.
    calls = torch.fx.Graph()
    del calls

    def given(as_nodes: bool) -> Callable[[Any], Any]:
        return lambda argument: samples.of(argument.real_type, as_nodes)

    def required(argument: Any) -> Any:
        return _LEFT_OUT if argument.has_default_value() else given(False)(argument)

    def none(argument: Any) -> Any:
        optional = argument.real_type.kind() == "OptionalType"
        return None if optional else given(False)(argument)

    for argument in target._schema.arguments:
        given(True)(argument)
    for choose in (given(False), given(True), required, none):
        _call(samples, target, choose)
    graph.output(())
    return graph
