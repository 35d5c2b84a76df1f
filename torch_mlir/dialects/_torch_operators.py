# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python classes for the torch dialect's table operators, each made when it is asked for.

A class does what MLIR's TableGen would write for an operator of the same schema: names,
order and defaults of its arguments are the rules of ``mlir-tblgen
-gen-python-op-bindings``. It is made when its name is looked up, or when an operation has
to be shown as a view of its class.
"""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from .. import ir
from .._mlir_libs import _mlir as bindings
from ..operators import Schema, load
from . import _torch_ops_gen as _generated
from ._ods_common import get_op_result_or_value

# Names that TableGen's bindings don't give to arguments (OpPythonBindingGen.cpp).
_RESERVED = frozenset(
    {
        *keyword.kwlist,
        *("callable", "issubclass", "type"),
        *("attributes", "create", "context", "ip", "operands", "print", "get_asm", "loc"),
        *("verify", "regions", "results", "self", "operation"),
        *("DIALECT_NAMESPACE", "OPERATION_NAME"),
    }
)

# Schema types whose MLIR type follows from them. Without results that hold anything else,
# an operator's result types need not be given.
_FIXED_TYPES = {
    "int": "!torch.int",
    "SymInt": "!torch.int",
    "ScalarType": "!torch.int",
    "Layout": "!torch.int",
    "MemoryFormat": "!torch.int",
    "QScheme": "!torch.int",
    "float": "!torch.float",
    "bool": "!torch.bool",
    "SymBool": "!torch.bool",
    "str": "!torch.str",
    "Device": "!torch.Device",
    "NoneType": "!torch.none",
}


def class_name(key: str) -> str:
    """``"aten.add_.Tensor"`` to ``"AtenAdd_TensorOp"``.

    Every part of the key is written in camel case; underscores before and after it stay.
    """

    def camel(part: str) -> str:
        found = re.fullmatch(r"(_*)(.*?)(_*)", part)
        assert found is not None  # the pattern takes anything
        before, words, after = found.groups()
        return before + "".join(w[:1].upper() + w[1:] for w in words.split("_")) + after

    return "".join(map(camel, key.split("."))) + "Op"


def builder_name(key: str) -> str:
    """``"aten.add_.Tensor"`` to ``"aten_add__Tensor"``."""
    return key.replace(".", "_")


def _index(name_of: Callable[[str], str]) -> Mapping[str, str]:
    # A few pairs would share a name: `aten.Size` and `aten.size`, `quantized.mul.out` and
    # `quantized.mul_out`. The last of a pair has it (upstream's AtenSizeOp is `aten.size`),
    # the other is found in `ops`.
    return {name_of(key): key for key in load()}


@functools.cache
def class_names() -> Mapping[str, str]:
    """Class name to key, for every operator of the table."""
    return _index(class_name)


@functools.cache
def builder_names() -> Mapping[str, str]:
    """Function name to key, for every operator of the table."""
    return _index(builder_name)


def argument_names(schema: Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What results and operands are called in Python."""

    def usable(name: str) -> str:
        return f"{name}_" if name in _RESERVED else name

    operands = [usable(a.name) for a in schema.arguments]
    unnamed = "result" if len(schema.results) == 1 else "result{}"
    results = [usable(r.name or unnamed.format(i)) for i, r in enumerate(schema.results)]
    if schema.is_vararg:
        operands = ["operands_"]
    if schema.is_varret:
        results = ["results_"]
    # `-> Tensor(a!) out` is called as its operand is.
    results = [f"{name}_result" if name in operands else name for name in results]
    return tuple(results), tuple(operands)


def has_fixed_results(schema: Schema) -> bool:
    """Whether the schema alone gives the result types."""
    known = all(r.type.name in _FIXED_TYPES for r in schema.results)
    return known and bool(schema.results) and not schema.is_varret


def result_types(schema: Schema, context: ir.Context) -> list[ir.Type]:
    """The result types of an operator for which ``has_fixed_results``."""
    return [ir.Type.parse(_FIXED_TYPES[r.type.name], context) for r in schema.results]


def _operand(index: int) -> property:
    return property(lambda self: self.operation.operands[index])


def _result(index: int) -> property:
    return property(lambda self: self.operation.results[index])


def _constructor(schema: Schema) -> Callable[..., None]:
    """``__init__``, compiled from text: a real signature, and no work when it is called."""
    results, operands = argument_names(schema)
    fixed = has_fixed_results(schema)
    positional = ("" if fixed else "".join(f"{name}, " for name in results)) + "".join(
        f"{name}, " for name in operands
    )
    given = "results=None, " if fixed else ""
    if fixed:
        types = (
            "result_types(schema, loc.context if loc else ir.Context.current)"
            " if results is None else results"
        )
    else:
        types = "results_" if schema.is_varret else f"[{', '.join(results)}]"
    values = "operands_" if schema.is_vararg else f"[{', '.join(operands)}]"
    source = (
        f"def __init__(self, {positional}*, {given}loc=None, ip=None):\n"
        f"    OpView.__init__(self, self.OPERATION_NAME, self._ODS_REGIONS,\n"
        f"        self._ODS_OPERAND_SEGMENTS, self._ODS_RESULT_SEGMENTS,\n"
        f"        results={types}, operands={values}, loc=loc, ip=ip)\n"
    )
    namespace = {
        "OpView": ir.OpView,
        "ir": ir,
        "result_types": result_types,
        "schema": schema,
    }
    exec(compile(source, f"<{schema.key}>", "exec"), namespace)  # noqa: S102  text of our own
    constructor: Callable[..., None] = namespace["__init__"]  # type: ignore[assignment]
    return constructor


@functools.cache
def structural_classes() -> Mapping[str, type[ir.OpView]]:
    """The classes that TableGen wrote for operators that have a schema too."""
    classes = (c for c in vars(_generated).values() if isinstance(c, type))
    named = {getattr(c, "OPERATION_NAME", ""): c for c in classes if issubclass(c, ir.OpView)}
    return {key: named[f"torch.{key}"] for key in load() if f"torch.{key}" in named}


@functools.cache
def op_class(key: str) -> type[ir.OpView]:
    """The class of a table operator, registered with MLIR's bindings.

    Raises:
        KeyError: where the table has no such operator.
    """
    schema = load()[key]
    if key in structural_classes():
        return structural_classes()[key]
    results, operands = argument_names(schema)
    members: dict[str, Any] = {
        "__doc__": schema.text,
        "__module__": "torch_mlir.dialects.torch",
        "__init__": _constructor(schema),
        "OPERATION_NAME": f"torch.{key}",
        "_ODS_REGIONS": (0, True),
        "SCHEMA": schema,
    }
    if schema.is_vararg:
        members["operands_"] = property(lambda self: self.operation.operands)
    else:
        members.update((name, _operand(i)) for i, name in enumerate(operands))
    if schema.is_varret:
        members["results_"] = property(lambda self: self.operation.results)
    else:
        members.update((name, _result(i)) for i, name in enumerate(results))
    made = type(class_name(key), (ir.OpView,), members)
    # In the place of what stands for it since register_all.
    registered: type[ir.OpView] = bindings.register_operation(_generated._Dialect, replace=True)(
        made
    )
    return registered


def register_all() -> None:
    """Tell MLIR's bindings of every operator, without making the classes.

    For a view of an operation they call ``cls.__new__(cls)`` of what is registered under
    the operation's name; that makes the class.
    """

    def view(key: str, _: object) -> ir.OpView:
        cls = op_class(key)
        return cls.__new__(cls)

    for key in load().keys() - structural_classes().keys():
        bindings.globals._register_operation_impl(
            f"torch.{key}", SimpleNamespace(__new__=functools.partial(view, key))
        )


def builder(key: str) -> Callable[..., Any]:
    """A function that makes the operation and returns its result, or results if several.

    It takes what the class takes. One without results returns the operation.
    """
    cls = op_class(key)
    schema = load()[key]

    def build(*arguments: Any, **named: Any) -> Any:
        op = cls(*arguments, **named)
        if schema.is_varret or len(schema.results) > 1:
            return op.results
        return op.results[0] if schema.results else op

    build.__name__ = build.__qualname__ = builder_name(key)
    build.__doc__ = schema.text
    build.__module__ = "torch_mlir.dialects.torch"
    return build


class Overload:
    """An operator to call: ``ops.aten.add.Tensor(a, b, alpha, results=[type])``.

    Operands are given in the schema's order or by the schema's names, ``results`` is a
    sequence of types. It may be left out where the schema fixes the types.
    """

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    @property
    def schema(self) -> Schema:
        return load()[self.key]

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self.schema.text

    def __repr__(self) -> str:
        return f"<torch dialect operator {self.schema.text}>"

    def __call__(
        self,
        *operands: ir.Value | ir.Operation | ir.OpView,
        results: Sequence[ir.Type] | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
        **named: ir.Value | ir.Operation | ir.OpView,
    ) -> ir.OpView:
        """Make the operation.

        Raises:
            TypeError: where operands are missing, unknown or given twice, or ``results``
                is missing.
        """
        schema = self.schema
        if results is None:
            if schema.results and not has_fixed_results(schema):
                raise TypeError(f"{self.key}: results= is needed: {schema.text}")
            context = loc.context if loc else ir.Context.current
            results = result_types(schema, context)
        values = self._bind(schema, operands, named)
        made = ir.Operation.create(
            f"torch.{self.key}", results=list(results), operands=values, loc=loc, ip=ip
        )
        return made.operation.opview

    def _bind(self, schema: Schema, operands: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        values = list(operands)
        if not schema.is_vararg:
            names = [a.name for a in schema.arguments]
            if len(values) > len(names):
                raise TypeError(f"{self.key}: {len(values)} operands: {schema.text}")
            twice = named.keys() & set(names[: len(values)])
            missing = [n for n in names[len(values) :] if n not in named]
            unknown = named.keys() - set(names)
            for what, which in (("twice", twice), ("missing", missing), ("unknown", unknown)):
                if which:
                    raise TypeError(f"{self.key}: {what}: {', '.join(which)}: {schema.text}")
            values += [named[n] for n in names[len(values) :]]
        elif named:
            raise TypeError(f"{self.key}: unknown: {', '.join(named)}: {schema.text}")
        return [get_op_result_or_value(v) for v in values]


class Packet:
    """The overloads of an operator: ``ops.aten.add``; call it for the one without a name."""

    __slots__ = ("_keys", "_name")

    def __init__(self, name: str, keys: tuple[str, ...]) -> None:
        self._name = name
        self._keys = keys

    def __repr__(self) -> str:
        return f"<torch dialect operators {', '.join(self._keys)}>"

    def __dir__(self) -> Iterator[str]:
        for key in self._keys:
            yield key.removeprefix(self._name).removeprefix(".") or "default"

    def __getattr__(self, overload: str) -> Overload:
        key = self._name if overload == "default" else f"{self._name}.{overload}"
        if key not in self._keys:
            raise AttributeError(
                f"{self._name} has no overload {overload!r}: {', '.join(dir(self))}"
            )
        return Overload(key)

    def __call__(self, *operands: Any, **named: Any) -> ir.OpView:
        if self._name not in self._keys:
            raise TypeError(f"{self._name}: name an overload: {', '.join(dir(self))}")
        return Overload(self._name)(*operands, **named)


class Namespace:
    """The operators of a namespace: ``ops.aten``."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<torch dialect namespace {self._name}>"

    def __dir__(self) -> list[str]:
        prefix = f"{self._name}."
        return [p.removeprefix(prefix) for p in load().overloads if p.startswith(prefix)]

    def __getattr__(self, name: str) -> Packet:
        packet = f"{self._name}.{name}"
        keys = load().overloads.get(packet)
        if keys is None:
            raise AttributeError(f"{packet}: not in the operator table")
        return Packet(packet, keys)


class Namespaces:
    """Every operator of the table by its own name: ``ops.aten.add.Tensor``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<torch dialect operators>"

    def __dir__(self) -> list[str]:
        return sorted({packet.partition(".")[0] for packet in load().overloads})

    def __getattr__(self, name: str) -> Namespace:
        if name not in dir(self):
            raise AttributeError(f"{name}: no namespace of the operator table")
        return Namespace(name)
