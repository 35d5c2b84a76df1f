# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of operators: an FX argument and the kind that the schema wants, as an MLIR value.

`converter_for` turns a schema's type into a function, once for each operator; importing a node
then only calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from .. import ir
from .builder import number_of
from .errors import Unsupported

if TYPE_CHECKING:
    from .graph import GraphImporter

Converter = Callable[["GraphImporter", Any], ir.Value]

_NUMBERED = (torch.dtype, torch.layout, torch.memory_format)


def _describe(arg: Any) -> str:
    return f"node {arg.name!r}" if isinstance(arg, Node) else f"{type(arg).__name__} {arg!r}"


def tensor(graph: GraphImporter, arg: Any) -> ir.Value:
    """A tensor; scalars become 0-d tensors, as PyTorch promotes them."""
    if type(arg) is Node:
        value = graph.value(arg)
        if arg in graph.scalars:
            return _scalar_as_tensor(graph, arg.meta["val"], value)
        return value
    if isinstance(arg, torch.Tensor):
        return graph.literal(arg, "constant")
    if isinstance(arg, (bool, complex)):
        return graph.literal(torch.tensor(arg), "constant")
    if isinstance(arg, (int, float)):
        return _scalar_as_tensor(graph, arg, graph.builder.constant(arg))
    raise Unsupported(f"a tensor is wanted, not {_describe(arg)}")


def _scalar_as_tensor(graph: GraphImporter, scalar: Any, value: ir.Value) -> ir.Value:
    if isinstance(scalar, (bool, torch.SymBool)):
        dtype, value = torch.bool, graph.coerce(value, graph.types.int)
    elif isinstance(scalar, (int, torch.SymInt)):
        dtype = torch.int64
    elif isinstance(scalar, complex):
        dtype = torch.tensor(0j).dtype
    else:
        dtype = torch.get_default_dtype()
    builder = graph.builder
    return builder.value("torch.prim.NumToTensor.Scalar", graph.types.vtensor((), dtype), [value])


def integer(graph: GraphImporter, arg: Any) -> ir.Value:
    """An int, or what the dialect numbers: a dtype, layout or memory format."""
    kind = type(arg)
    if kind is int:
        return graph.builder.constant(arg)
    if kind is Node:
        return graph.coerce(graph.value(arg), graph.types.int)
    if kind is bool:
        return graph.builder.constant(int(arg))
    if isinstance(arg, _NUMBERED):
        return graph.builder.constant(number_of(arg))
    if kind is float and arg.is_integer():
        return graph.builder.constant(int(arg))
    raise Unsupported(f"an int is wanted, not {_describe(arg)}")


def floating(graph: GraphImporter, arg: Any) -> ir.Value:
    """A float; ints are converted."""
    if isinstance(arg, (bool, int, float)):
        return graph.builder.constant(float(arg))
    if type(arg) is Node:
        return graph.coerce(graph.value(arg), graph.types.float)
    raise Unsupported(f"a float is wanted, not {_describe(arg)}")


def boolean(graph: GraphImporter, arg: Any) -> ir.Value:
    """A bool; 0 and 1 count as such."""
    if isinstance(arg, bool) or (isinstance(arg, int) and arg in (0, 1)):
        return graph.builder.constant(bool(arg))
    if type(arg) is Node:
        return graph.coerce(graph.value(arg), graph.types.bool)
    raise Unsupported(f"a bool is wanted, not {_describe(arg)}")


def number(graph: GraphImporter, arg: Any) -> ir.Value:
    """A `Scalar`: an int, a float or a complex number; a bool is the int 0 or 1."""
    if isinstance(arg, bool):
        return graph.builder.constant(int(arg))
    if isinstance(arg, (int, float)):
        return graph.builder.constant(arg)
    if isinstance(arg, complex):
        return complex_number(graph, arg)
    if type(arg) is Node:
        value = graph.value(arg)
        if arg not in graph.scalars:
            raise Unsupported(f"a scalar is wanted, and {_describe(arg)} is {value.type}")
        if value.type == graph.types.bool:
            return graph.coerce(value, graph.types.int)
        return value
    raise Unsupported(f"an int, a float or a complex is wanted, not {_describe(arg)}")


def complex_number(graph: GraphImporter, arg: Any) -> ir.Value:
    """A complex number, which the dialect has no constant for: it is made of two floats."""
    if type(arg) is Node:
        return graph.value(arg)
    if isinstance(arg, (bool, int, float, complex)):
        constant = graph.builder.constant
        parts = [constant(float(arg.real)), constant(float(arg.imag))]
        return graph.operation("aten.Complex.float_float", [graph.types.number], parts).results[0]
    raise Unsupported(f"a complex is wanted, not {_describe(arg)}")


def string(graph: GraphImporter, arg: Any) -> ir.Value:
    """A str."""
    if isinstance(arg, str):
        return graph.builder.constant(arg)
    if type(arg) is Node:
        return graph.value(arg)
    raise Unsupported(f"a str is wanted, not {_describe(arg)}")


def device(graph: GraphImporter, arg: Any) -> ir.Value:
    """A device, given as such or by its name."""
    if isinstance(arg, str):
        arg = torch.device(arg)
    if isinstance(arg, torch.device):
        return graph.builder.constant(arg)
    if type(arg) is Node:
        return graph.value(arg)
    raise Unsupported(f"a device is wanted, not {_describe(arg)}")


def generator(graph: GraphImporter, arg: Any) -> ir.Value:
    """A generator of random numbers, which is no constant: it has to be an input."""
    if type(arg) is Node:
        return graph.value(arg)
    raise Unsupported(
        "a generator is a stream of random numbers, which has no constant; leave it out, or pass "
        f"None, for PyTorch's own ({_describe(arg)})"
    )


def optional_generator(graph: GraphImporter, arg: Any) -> ir.Value:
    """A generator or None; PyTorch's default generator is what None stands for."""
    # torch.export holds it as another Python object.
    own = getattr(torch.default_generator, "_cdata", None)
    if arg is None or (own is not None and getattr(arg, "_cdata", None) == own):
        return graph.builder.constant(None)
    return generator(graph, arg)


def custom_object(graph: GraphImporter, value: Any) -> ir.Value:
    """An object that a program holds, other than a tensor.

    Raises:
        Unsupported: it is not PyTorch's default generator, which None stands for.
    """
    if isinstance(value, torch.Generator):
        return optional_generator(graph, value)
    kind = type(value)
    raise Unsupported(
        f"the program holds an object of class {kind.__module__}.{kind.__qualname__}, which has no "
        "value in the Torch dialect"
    )


def anything(graph: GraphImporter, arg: Any) -> ir.Value:
    """A value whose kind the schema leaves open: it takes the kind that it has."""
    if type(arg) is Node:
        return graph.value(arg)
    if isinstance(arg, torch.Tensor):
        return graph.literal(arg, "constant")
    if isinstance(arg, complex):
        return complex_number(graph, arg)
    if isinstance(arg, (list, tuple)):
        values = [anything(graph, element) for element in arg]
        elements = {_element_text(value.type) for value in values}
        if len(elements) == 1:
            return graph.builder.list_of(elements.pop(), values)
        if isinstance(arg, tuple):
            return _tuple(graph, values)
        raise Unsupported(f"{_describe(arg)} does not hold elements of one type")
    if isinstance(arg, Mapping):
        return _dict(graph, arg, anything, anything)
    return graph.builder.constant(arg)


def _element_text(kind: ir.Type) -> str:
    text = str(kind).removeprefix("!torch.")
    return "vtensor" if text.startswith("vtensor<") else text


def _tuple(graph: GraphImporter, values: Sequence[ir.Value]) -> ir.Value:
    elements = ", ".join(str(value.type).removeprefix("!torch.") for value in values)
    kind = graph.types.parse(f"!torch.tuple<{elements}>")
    return graph.builder.value("torch.prim.TupleConstruct", kind, values)


def _dict(
    graph: GraphImporter, arg: Mapping[Any, Any], key: Converter, value: Converter
) -> ir.Value:
    keys = [key(graph, element) for element in arg]
    values = [value(graph, element) for element in arg.values()]
    kinds = [{_element_text(element.type) for element in part} for part in (keys, values)]
    if any(len(kind) != 1 for kind in kinds):
        raise Unsupported(f"{_describe(arg)} does not hold keys of one type and values of one type")
    kind = graph.types.parse(f"!torch.dict<{kinds[0].pop()}, {kinds[1].pop()}>")
    return graph.builder.value("torch.prim.DictConstruct", kind, [*keys, *values])


def unsupported(kind: str) -> Converter:
    """A kind of argument that no value of ours stands for: only nodes and None pass."""

    def convert(graph: GraphImporter, arg: Any) -> ir.Value:
        if type(arg) is Node:
            return graph.value(arg)
        raise Unsupported(f"arguments of type {kind} are not imported: {_describe(arg)}")

    return convert


def optional(inner: Converter) -> Converter:
    """None, or what `inner` takes."""

    def convert(graph: GraphImporter, arg: Any) -> ir.Value:
        return graph.builder.constant(None) if arg is None else inner(graph, arg)

    return convert


def list_of(inner: Converter, element: str, size: int | None) -> Converter:
    """A list whose elements `inner` takes; one element stands for `size` of them."""

    def convert(graph: GraphImporter, arg: Any) -> ir.Value:
        if isinstance(arg, (list, tuple)):
            values = [inner(graph, value) for value in arg]
            return graph.builder.list_of(element, values)
        if type(arg) is Node and arg not in graph.scalars:
            return graph.value(arg)
        if size is None:
            raise Unsupported(f"a list of {element} is wanted, not {_describe(arg)}")
        return graph.builder.list_of(element, [inner(graph, arg)] * size)

    return convert


def tuple_of(inner: Sequence[Converter]) -> Converter:
    """A tuple, each of whose elements its own converter takes."""

    def convert(graph: GraphImporter, arg: Any) -> ir.Value:
        if type(arg) is Node:
            return graph.value(arg)
        if isinstance(arg, (list, tuple)) and len(arg) == len(inner):
            return _tuple(
                graph,
                [convert(graph, element) for convert, element in zip(inner, arg, strict=True)],
            )
        raise Unsupported(f"a tuple of {len(inner)} is wanted, not {_describe(arg)}")

    return convert


def dict_of(key: Converter, value: Converter) -> Converter:
    """A dict whose keys and values the two take."""

    def convert(graph: GraphImporter, arg: Any) -> ir.Value:
        if type(arg) is Node:
            return graph.value(arg)
        if isinstance(arg, Mapping):
            return _dict(graph, arg, key, value)
        raise Unsupported(f"a dict is wanted, not {_describe(arg)}")

    return convert


# JIT type kind: (converter, how the dialect spells the type within a list)
_SIMPLE: dict[str, tuple[Converter, str]] = {
    "TensorType": (tensor, "vtensor"),
    "IntType": (integer, "int"),
    "SymIntType": (integer, "int"),
    "ScalarTypeType": (integer, "int"),
    "LayoutType": (integer, "int"),
    "MemoryFormatType": (integer, "int"),
    "FloatType": (floating, "float"),
    "SymFloatType": (floating, "float"),
    "BoolType": (boolean, "bool"),
    "SymBoolType": (boolean, "bool"),
    "NumberType": (number, "number"),
    "ComplexType": (complex_number, "number"),
    "StringType": (string, "str"),
    "DeviceObjType": (device, "Device"),
    "GeneratorType": (generator, "Generator"),
    "AnyType": (anything, "any"),
    "VarType": (anything, "any"),
}


def converter_for(jit_type: Any, size: int | None = None) -> tuple[Converter, str]:
    """What converts arguments of a schema's type, and how the dialect spells that type.

    `size` is the N of `int[N]`.
    """
    kind = jit_type.kind()
    if kind == "OptionalType":
        inner, text = converter_for(jit_type.getElementType(), size)
        if inner is generator:
            return optional_generator, f"optional<{text}>"
        return optional(inner), f"optional<{text}>"
    if kind == "ListType":
        inner, text = converter_for(jit_type.getElementType())
        return list_of(inner, text, size), f"list<{text}>"
    if kind == "TupleType":
        parts = [converter_for(element) for element in jit_type.elements()]
        texts = ", ".join(text for _, text in parts)
        return tuple_of([convert for convert, _ in parts]), f"tuple<{texts}>"
    if kind == "DictType":
        key, key_text = converter_for(jit_type.getKeyType())
        value, value_text = converter_for(jit_type.getValueType())
        return dict_of(key, value), f"dict<{key_text}, {value_text}>"
    return _SIMPLE.get(kind) or (unsupported(str(jit_type)), "any")
