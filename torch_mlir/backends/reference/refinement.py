# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes into a module what its tensors turn out to be: shapes and dtypes in their types.

`inference` tells what they are; here the types are set, and casts put in where the dialect
wants two types to agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from ... import ir
from ...dtypes import DTYPE_TO_ELEMENT_TYPE
from .abstract_values import Contradiction, is_encoded, join_shapes, meet
from .errors import ExecutionError
from .inference import Facts, Inference, nested
from .program import TERMINATORS, is_public
from .structural import class_of, text_of
from .value_types import TensorType

if TYPE_CHECKING:
    from ...compiler_utils import TensorPlaceholder

_CAST = "torch.tensor_static_info_cast"

# What says elsewhere which types its results have: in a signature, in a type, in a region.
_FIXED = frozenset(
    (
        "torch.prim.CallMethod",
        "torch.prim.TupleUnpack",
        "torch.shape.calculate",
        "torch.dtype.calculate",
    )
)


def refine(
    module: ir.Module,
    arguments: Mapping[str, Sequence[TensorPlaceholder | torch.Tensor | None]] | None = None,
) -> ir.Module:
    """Give the tensors of a module the shapes and dtypes that PyTorch gives them, in place.

    The functions that can be called from outside are followed on fake tensors: the public ones
    and the methods of the root object. An open size is a symbol. Nothing is known of attributes
    and global slots that the module sets, or of lists that it changes in a region. Where a
    condition isn't known, both branches are followed; what comes out of a region, or reaches a
    private function, has what all its ways have in common.

    Where PyTorch can't tell a result without the data, or too little is known of the operands,
    the operator runs on tensors of a few sizes, ranks up to 5 and common dtypes, and what the
    results have in common is taken to hold for all.

    Types only become narrower. Public functions and methods keep the types of their arguments,
    save for those that `arguments` describes. Operations that never run stay as they are.

    Args:
        module: any module of the Torch dialect; what types say already is used.
        arguments: by function, what each argument will be; None for those that are no tensors,
            or of which nothing is known.

    Returns:
        The module.

    Raises:
        ValueError: `arguments` names a function that there isn't, or doesn't fit its arguments.
        ExecutionError: an operation fails on all inputs, or gives what its type doesn't say.
            The module is as it was.
    """
    given = _described(module, arguments or {})
    inference = Inference(module, torch.device("cpu"))
    roots = _roots(module)
    for name, function in _functions(module).items():
        if len(list(function.regions[0].blocks)) and (name in roots or name in given):
            block = function.regions[0].blocks[0]
            inference.run(name, given.get(name, [None] * len(block.arguments)))
    with module.context:
        _Writer(module, inference.facts, roots - set(given)).write()
    module.operation.verify()
    return module


def _functions(module: ir.Module) -> dict[str, ir.Operation]:
    return {
        text_of(view.operation, "sym_name"): view.operation
        for view in module.body.operations
        if view.operation.name == "func.func"
    }


def _roots(module: ir.Module) -> set[str]:
    """The functions whose arguments come from outside, or from operations that are no calls."""
    roots = {name for name, function in _functions(module).items() if is_public(function)}
    objects = [v.operation for v in module.body.operations if v.operation.name == "torch.nn_module"]
    root = class_of(objects[-1].results[0].type) if objects else None
    for operation in nested(module.operation):
        if operation.name == "torch.method":
            owner = operation.parent
            assert owner is not None, "a method is within its class"
            kind = text_of(owner, "sym_name")
            if kind != root:
                continue
        elif operation.name == "func.call":
            continue
        for attribute in operation.attributes:
            value = (
                operation.attributes[attribute] if isinstance(attribute, str) else attribute.attr
            )
            if isinstance(value, ir.FlatSymbolRefAttr):
                roots.add(value.value)
    return roots & set(_functions(module))


def _described(
    module: ir.Module,
    arguments: Mapping[str, Sequence[TensorPlaceholder | torch.Tensor | None]],
) -> dict[str, list[Facts | None]]:
    """What is known of the arguments of functions, their types included.

    Raises:
        ValueError: there is no such function, or its arguments are others.
    """
    functions = _functions(module)
    described = {}
    for name, values in arguments.items():
        function = functions.get(name)
        if function is None:
            raise ValueError(f"no function {name!r}: there are {', '.join(functions) or 'none'}")
        kinds = [argument.type for argument in function.regions[0].blocks[0].arguments]
        if len(kinds) != len(values):
            raise ValueError(f"{name} takes {len(kinds)} arguments, {len(values)} are described")
        facts: list[Facts | None] = []
        for number, (kind, value) in enumerate(zip(kinds, values, strict=True)):
            tensor = TensorType.of(kind)
            if value is None:
                facts.append(None)
                continue
            if tensor is None:
                raise ValueError(f"argument {number} of {name} has type {kind}: it is no tensor")
            shape = tuple(None if size == -1 else int(size) for size in value.shape)
            try:
                facts.append(meet((tensor.shape, tensor.dtype), (shape, value.dtype)))
            except Contradiction as problem:
                raise ValueError(
                    f"argument {number} of {name} has type {kind}, but {problem}"
                ) from problem
        described[name] = facts
    return described


class _Writer:
    """Sets the types of a module's values.

    `fixed` has the functions whose arguments keep their types.
    """

    def __init__(self, module: ir.Module, facts: Mapping[ir.Value, Facts], fixed: set[str]) -> None:
        self._facts = facts
        self._functions = _functions(module)
        self._fixed = fixed | {
            ir.FlatSymbolRefAttr(operation.attributes["function"]).value
            for operation in nested(module.operation)
            if operation.name == "torch.method"
        }
        self._signatures = {
            name: self._signature(name)
            for name, function in self._functions.items()
            if len(list(function.regions[0].blocks))
        }

    def write(self) -> None:
        """Set all types."""
        for name, (inputs, results) in self._signatures.items():
            function = self._functions[name]
            block = function.regions[0].blocks[0]
            first = block.operations[0].operation
            kind = ir.FunctionType.get(inputs, results)
            function.attributes["function_type"] = ir.TypeAttr.get(kind)
            for argument, wanted in zip(block.arguments, inputs, strict=True):
                self._set(argument, wanted, first)
            self._block(block, results)

    def _signature(self, name: str) -> tuple[list[ir.Type], list[ir.Type]]:
        block = self._functions[name].regions[0].blocks[0]
        inputs = [a.type if name in self._fixed else self._narrowed(a) for a in block.arguments]
        returned = block.operations[len(block.operations) - 1].operation.operands
        return inputs, [self._narrowed(value) for value in returned]

    def _narrowed(self, *values: ir.Value) -> ir.Type:
        """The first value's type, with what all values turned out to be."""
        kind = values[0].type
        facts = [self._facts[value] for value in values if value in self._facts]
        tensor = TensorType.of(kind)
        if tensor is None or is_encoded(kind) or not facts:
            return kind
        shape, dtype = facts[0]
        for other_shape, other_dtype in facts[1:]:
            shape = join_shapes(shape, other_shape)
            dtype = dtype if dtype is other_dtype else None
        shape, dtype = meet((tensor.shape, tensor.dtype), (shape, dtype))
        return tensor_type(tensor.is_value, shape, dtype)

    def _set(self, value: ir.Value, kind: ir.Type, after: ir.Operation | None) -> None:
        """Set a value's type; what reads the value sees all that is known of it.

        `after` is the operation that stands after the value's definition.
        """
        narrowed = self._narrowed(value)
        value.set_type(kind)
        # Writes have to reach the tensor itself: no cast stands between.
        if kind == narrowed or after is None or not str(kind).startswith("!torch.vtensor"):
            return
        if any(True for _ in value.uses):
            cast = self._cast(value, narrowed, after)
            value.replace_all_uses_except(cast, _first_cast(value, cast))

    def _cast(self, value: ir.Value, kind: ir.Type, before: ir.Operation) -> ir.Value:
        """The value as one of type `kind`."""
        if value.type == kind:
            return value
        position, location = ir.InsertionPoint(before), before.location
        mine, wanted = TensorType.of(value.type), TensorType.of(kind)
        assert mine is not None and wanted is not None, f"{value.type} is no tensor"
        try:
            meet((mine.shape, mine.dtype), (wanted.shape, wanted.dtype))
        except Contradiction:  # this never runs
            value = ir.Operation.create(
                _CAST,
                [tensor_type(wanted.is_value, None, None)],
                [value],
                ip=position,
                loc=location,
            ).results[0]
        made: ir.Value = ir.Operation.create(
            _CAST, [kind], [value], ip=position, loc=location
        ).results[0]
        return made

    def _convert(self, operation: ir.Operation, start: int, kinds: Sequence[ir.Type]) -> None:
        """Make the operands from `start` on have these types."""
        for number, kind in enumerate(kinds, start):
            operand = operation.operands[number]
            if operand.type != kind:
                operation.operands[number] = self._cast(operand, kind, operation)

    def _block(self, block: ir.Block, results: Sequence[ir.Type]) -> None:
        """Set the types of a block's values, and make its terminator give `results`."""
        operations = [view.operation for view in block.operations]
        for operation, after in zip(operations, [*operations[1:], None], strict=True):
            if operation.name in TERMINATORS:
                start = 1 if operation.name == "torch.prim.Loop.condition" else 0
                self._convert(operation, start, results)
            else:
                self._operation(operation, after)

    def _operation(self, operation: ir.Operation, after: ir.Operation | None) -> None:
        name = operation.name
        kinds = [self._narrowed(result) for result in operation.results]
        if name == "func.call":
            callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
            if callee in self._signatures:
                inputs, kinds = self._signatures[callee]
                self._convert(operation, 0, inputs)
            else:
                kinds = [result.type for result in operation.results]
        elif name in _FIXED:
            kinds = [result.type for result in operation.results]
        elif name in ("torch.copy.to_tensor", "torch.copy.to_vtensor"):
            operand = TensorType.of(operation.operands[0].type)
            if operand is not None and not is_encoded(operation.operands[0].type):
                kinds = [tensor_type(not operand.is_value, operand.shape, operand.dtype)]
        elif name == "torch.overwrite.tensor.contents":
            written = TensorType.of(operation.operands[1].type)
            if written is not None and not is_encoded(operation.operands[1].type):
                kind = tensor_type(True, written.shape, written.dtype)
                self._convert(operation, 0, [kind])
        elif name == "torch.prim.If":
            for region in operation.regions:
                self._block(region.blocks[0], kinds)
        elif name == "torch.prim.Loop":
            kinds = self._loop(operation)
        if name.endswith(".calculate"):
            for region in operation.regions:
                self._block(region.blocks[0], kinds)
        for result, kind in zip(operation.results, kinds, strict=True):
            self._set(result, kind, after)

    def _loop(self, operation: ir.Operation) -> list[ir.Type]:
        """The types of the carried values, before, in and after the loop."""
        block = operation.regions[0].blocks[0]
        terminator = block.operations[len(block.operations) - 1].operation
        kinds = [
            self._narrowed(result, argument, initial, following)
            for result, argument, initial, following in zip(
                operation.results,
                list(block.arguments)[1:],
                list(operation.operands)[2:],
                list(terminator.operands)[1:],
                strict=True,
            )
        ]
        self._convert(operation, 2, kinds)
        first = block.operations[0].operation
        for argument, kind in zip(list(block.arguments)[1:], kinds, strict=True):
            self._set(argument, kind, first)
        self._block(block, kinds)
        return kinds


def _first_cast(value: ir.Value, cast: ir.Value) -> ir.Operation:
    """The operation of the cast, or casts, that reads the value itself."""
    operation = cast.owner.operation
    while operation.operands[0] != value:
        operation = operation.operands[0].owner.operation
    return operation


def tensor_type(
    is_value: bool, shape: Sequence[int | None] | None, dtype: torch.dtype | None
) -> ir.Type:
    """`!torch.vtensor<[2,?],f32>`, or `!torch.tensor`; nothing in angles if nothing is known."""
    stem = "!torch.vtensor" if is_value else "!torch.tensor"
    if shape is None and dtype is None:
        return ir.Type.parse(stem)
    sizes = "*"
    if shape is not None:
        sizes = f"[{','.join('?' if size is None else str(size) for size in shape)}]"
    element = "unk" if dtype is None else DTYPE_TO_ELEMENT_TYPE[dtype]
    return ir.Type.parse(f"{stem}<{sizes},{element}>")


__all__ = ["ExecutionError", "refine", "tensor_type"]
