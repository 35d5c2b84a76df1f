# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of the Torch dialect that are no operators of PyTorch's.

One function for each, by the operation's name: it takes the operation and what compiles blocks,
and gives what runs it on the values of its operands.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ... import ir
from .errors import ExecutionError, UnsupportedOperation, place
from .value_types import UNINITIALIZED, TensorType, check_of

if TYPE_CHECKING:
    from .program import Compiler, Frame, Function

Step = Callable[["Frame", Sequence[Any]], Sequence[Any]]
Builder = Callable[["Compiler", ir.Operation], Step]

BUILDERS: dict[str, Builder] = {}


def _builds(*names: str) -> Callable[[Builder], Builder]:
    def register(builder: Builder) -> Builder:
        for name in names:
            BUILDERS[name] = builder
        return builder

    return register


def _constant(value: Any) -> Step:
    results = (value,)
    return lambda frame, operands: results


def text_of(operation: ir.Operation, name: str) -> str:
    """A string attribute."""
    return str(ir.StringAttr(operation.attributes[name]).value)


def _symbol(operation: ir.Operation, name: str) -> str:
    return str(ir.FlatSymbolRefAttr(operation.attributes[name]).value)


# Constants and literals


@_builds("torch.constant.none")
def _none(compiler: Compiler, operation: ir.Operation) -> Step:
    return _constant(None)


@_builds("torch.constant.bool")
def _bool(compiler: Compiler, operation: ir.Operation) -> Step:
    return _constant(bool(ir.IntegerAttr(operation.attributes["value"]).value))


@_builds("torch.constant.int")
def _int(compiler: Compiler, operation: ir.Operation) -> Step:
    return _constant(ir.IntegerAttr(operation.attributes["value"]).value)


@_builds("torch.constant.float")
def _float(compiler: Compiler, operation: ir.Operation) -> Step:
    return _constant(ir.FloatAttr(operation.attributes["value"]).value)


@_builds("torch.constant.number")
def _number(compiler: Compiler, operation: ir.Operation) -> Step:
    attribute = operation.attributes["value"]
    kind = ir.FloatAttr if isinstance(attribute, ir.FloatAttr) else ir.IntegerAttr
    return _constant(kind(attribute).value)


@_builds("torch.constant.str")
def _str(compiler: Compiler, operation: ir.Operation) -> Step:
    return _constant(text_of(operation, "value"))


@_builds("torch.constant.device")
def _device(compiler: Compiler, operation: ir.Operation) -> Step:
    device = torch.device(text_of(operation, "value"))
    return _constant(device if device.type == "meta" else compiler.device)


@_builds("torch.vtensor.literal")
def _value_literal(compiler: Compiler, operation: ir.Operation) -> Step:
    tensor = compiler.literal(operation)
    results = (tensor,)

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        return (
            results
            if frame.fake_mode is None
            else (frame.fake_mode.from_tensor(tensor, static_shapes=True),)
        )

    return step


@_builds("torch.tensor.literal")
def _literal(compiler: Compiler, operation: ir.Operation) -> Step:
    tensor = compiler.literal(operation)

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        source = (
            tensor
            if frame.fake_mode is None
            else frame.fake_mode.from_tensor(tensor, static_shapes=True)
        )
        return (source.clone(),)

    return step


# Types and value semantics


@_builds("torch.derefine", "torch.prim.unchecked_cast", "torch.tensor_static_info_cast")
def _as_is(compiler: Compiler, operation: ir.Operation) -> Step:
    return lambda frame, operands: operands


@_builds("torch.prim.Uninitialized")
def _uninitialized(compiler: Compiler, operation: ir.Operation) -> Step:
    return _constant(UNINITIALIZED)


@_builds("torch.copy.to_tensor", "torch.copy.to_vtensor")
def _copy(compiler: Compiler, operation: ir.Operation) -> Step:
    return lambda frame, operands: (operands[0].clone(),)


@_builds("torch.overwrite.tensor.contents")
def _overwrite(compiler: Compiler, operation: ir.Operation) -> Step:
    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        value, overwritten = operands
        overwritten.copy_(value)
        return ()

    return step


@_builds("torch.prim.NumToTensor.Scalar")
def _number_to_tensor(compiler: Compiler, operation: ir.Operation) -> Step:
    kind = TensorType.of(operation.results[0].type)
    dtype = None if kind is None else kind.dtype
    # As PyTorch has it for a float, whatever the default dtype is.
    of_float = dtype or torch.float64

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        value = operands[0]
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return (torch.ops.aten.scalar_tensor.default(value, dtype=dtype),)
        return (torch.tensor(value, dtype=of_float if isinstance(value, float) else dtype),)

    return step


# Containers


@_builds("torch.prim.ListConstruct")
def _list(compiler: Compiler, operation: ir.Operation) -> Step:
    return lambda frame, operands: (list(operands),)


@_builds("torch.prim.TupleConstruct")
def _tuple(compiler: Compiler, operation: ir.Operation) -> Step:
    return lambda frame, operands: (tuple(operands),)


@_builds("torch.prim.DictConstruct")
def _dict(compiler: Compiler, operation: ir.Operation) -> Step:
    count = len(operation.operands) // 2
    return lambda frame, operands: (dict(zip(operands[:count], operands[count:], strict=True)),)


@_builds("torch.prim.ListUnpack", "torch.prim.TupleUnpack")
def _unpack(compiler: Compiler, operation: ir.Operation) -> Step:
    count = len(operation.results)

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        elements = operands[0]
        if len(elements) != count:
            raise ValueError(f"{count} elements are wanted, and there are {len(elements)}")
        return tuple(elements)

    return step


@_builds("torch.prim.TupleIndex")
def _tuple_index(compiler: Compiler, operation: ir.Operation) -> Step:
    return lambda frame, operands: (operands[0][operands[1]],)


# Control flow


@_builds("torch.prim.If")
def _if(compiler: Compiler, operation: ir.Operation) -> Step:
    then, otherwise = (compiler.block(region.blocks[0]) for region in operation.regions)

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        return (then if operands[0] else otherwise).run(frame, ())

    return step


@_builds("torch.prim.Loop")
def _loop(compiler: Compiler, operation: ir.Operation) -> Step:
    body = compiler.block(operation.regions[0].blocks[0])

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        limit, condition, *carried = operands
        iteration = 0
        while condition and iteration < limit:
            condition, *carried = body.run(frame, (iteration, *carried))
            iteration += 1
        return carried

    return step


@_builds("func.call")
def _call(compiler: Compiler, operation: ir.Operation) -> Step:
    function = compiler.function(_symbol(operation, "callee"), operation)
    return lambda frame, operands: function(frame, operands)


@_builds("torch.shape.calculate", "torch.dtype.calculate")
def _calculate(compiler: Compiler, operation: ir.Operation) -> Step:
    body = compiler.block(operation.regions[0].blocks[0])
    return lambda frame, operands: body.run(frame, ())


@_builds("torch.promote_dtypes")
def _promote_dtypes(compiler: Compiler, operation: ir.Operation) -> Step:
    from .kernels import DTYPE_TO_INT, dtype_of

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        # A rank of None stands for a number, which promotes as a wrapped scalar does.
        ranks, dtypes = operands
        values: list[Any] = []
        for rank, number in zip(ranks, dtypes, strict=True):
            dtype = dtype_of(number)
            if rank is None:
                kind = torch.zeros((), dtype=dtype)
                values.append(kind.item())
            else:
                values.append(torch.empty([0] * rank, dtype=dtype))
        result = values[0]
        for value in values[1:]:
            promoted = torch.result_type(result, value)
            rank = max(
                getattr(result, "ndim", 0) if isinstance(result, torch.Tensor) else 0,
                getattr(value, "ndim", 0) if isinstance(value, torch.Tensor) else 0,
            )
            result = torch.empty([0] * rank, dtype=promoted)
        dtype = result.dtype if isinstance(result, torch.Tensor) else torch.tensor(result).dtype
        return (DTYPE_TO_INT[dtype],)

    return step


# Symbolic shapes


class Symbol:
    """A symbolic size: what `torch.bind_symbolic_shape` learns it to be.

    `value` is None until a tensor tells it.
    """

    def __init__(self, name: str, low: int, high: int) -> None:
        self.name = name
        self.low = low
        self.high = high
        self.value: int | None = None

    def bind(self, size: int) -> None:
        """Learn the symbol's value, or hold it against what is known.

        Raises:
            ValueError: the size differs, or is out of the symbol's range.
        """
        if self.value is None:
            if not self.low <= size <= self.high:
                raise ValueError(
                    f"the size {self.name} is {size}, and not in {self.low} … {self.high}"
                )
            self.value = size
        elif self.value != size:
            raise ValueError(f"the size {self.name} is {self.value}, and {size} elsewhere")


@_builds("torch.symbolic_int")
def _symbolic_int(compiler: Compiler, operation: ir.Operation) -> Step:
    name = text_of(operation, "symbol_name")
    low, high = (
        ir.IntegerAttr(operation.attributes[bound]).value for bound in ("min_val", "max_val")
    )
    return lambda frame, operands: (Symbol(name, low, high),)


@_builds("torch.bind_symbolic_shape")
def _bind_symbolic_shape(compiler: Compiler, operation: ir.Operation) -> Step:
    expressions = [*ir.AffineMapAttr(operation.attributes["shape_expressions"]).value.results]

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        tensor, *symbols = operands
        if tensor.dim() != len(expressions):
            raise ValueError(f"the tensor has {tensor.dim()} sizes, not {len(expressions)}")
        if frame.fake_mode is not None:
            return ()
        later = []
        for expression, size in zip(expressions, tensor.shape, strict=True):
            if isinstance(expression, ir.AffineSymbolExpr):
                symbols[expression.position].bind(size)
            else:
                later.append((expression, size))
        for expression, size in later:
            expected = _evaluate(expression, symbols)
            if expected is not None and expected != size:
                raise ValueError(f"a size is {size}, and has to be {expression} = {expected}")
        return ()

    return step


def _evaluate(expression: Any, symbols: Sequence[Symbol]) -> int | None:
    """An affine expression's value; None while one of its symbols has none."""
    if isinstance(expression, ir.AffineConstantExpr):
        return int(expression.value)
    if isinstance(expression, ir.AffineSymbolExpr):
        return symbols[expression.position].value
    left, right = (_evaluate(part, symbols) for part in (expression.lhs, expression.rhs))
    if left is None or right is None:
        return None
    if isinstance(expression, ir.AffineAddExpr):
        return left + right
    if isinstance(expression, ir.AffineMulExpr):
        return left * right
    if isinstance(expression, ir.AffineModExpr):
        return left % right
    if isinstance(expression, ir.AffineFloorDivExpr):
        return left // right
    return -(-left // right)


@_builds("torch.runtime.assert")
def _assert(compiler: Compiler, operation: ir.Operation) -> Step:
    message = text_of(operation, "message")
    where = place(operation)

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        if not operands[0]:
            raise ExecutionError(f"{message} ({where})")
        return ()

    return step


# Global slots


@_builds("torch.global_slot.get")
def _get_slot(compiler: Compiler, operation: ir.Operation) -> Step:
    name = _symbol(operation, "slot")

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        try:
            return (frame.globals[name],)
        except KeyError:
            raise ValueError(f"the global slot {name!r} has no value yet") from None

    return step


@_builds("torch.global_slot.set")
def _set_slot(compiler: Compiler, operation: ir.Operation) -> Step:
    name = _symbol(operation, "slot")

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        frame.globals[name] = operands[0]
        return ()

    return step


# TorchScript's objects


class Object:
    """An object of a TorchScript class: `attributes` by name, `methods` by name."""

    def __init__(self, kind: str, attributes: dict[str, Any]) -> None:
        self.kind = kind
        self.attributes = attributes


@_builds("torch.nn_module")
def _nn_module(compiler: Compiler, operation: ir.Operation) -> Step:
    kind = class_of(operation.results[0].type)
    slots = [
        (text_of(slot.operation, "name"), compiler.slot(slot.operation.operands[0]))
        for slot in operation.regions[0].blocks[0].operations
        if slot.operation.name == "torch.slot"
    ]
    return lambda frame, operands: (
        Object(kind, {name: frame.values[slot] for name, slot in slots}),
    )


@_builds("torch.prim.CreateObject")
def _create_object(compiler: Compiler, operation: ir.Operation) -> Step:
    kind = class_of(operation.results[0].type)
    return lambda frame, operands: (Object(kind, {}),)


@_builds("torch.prim.GetAttr")
def _get_attribute(compiler: Compiler, operation: ir.Operation) -> Step:
    name = text_of(operation, "name")
    return lambda frame, operands: (operands[0].attributes[name],)


@_builds("torch.prim.SetAttr")
def _set_attribute(compiler: Compiler, operation: ir.Operation) -> Step:
    name = text_of(operation, "name")

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        receiver, value = operands
        receiver.attributes[name] = value
        return ()

    return step


@_builds("torch.prim.CallMethod")
def _call_method(compiler: Compiler, operation: ir.Operation) -> Step:
    name = text_of(operation, "name")
    methods: Mapping[tuple[str, str], str] = compiler.methods
    functions = {
        kind: compiler.function(function, operation)
        for (kind, method), function in methods.items()
        if method == name
    }
    if not functions:
        raise UnsupportedOperation(f"{place(operation)}: no class has a method {name!r}")

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        return functions[operands[0].kind](frame, operands)

    return step


def class_of(kind: ir.Type) -> str:
    """`__torch__.M` of `!torch.nn.Module<"__torch__.M">`."""
    return str(kind).split('"')[1]


# TorchScript's interpreter


@_builds("torch.prim.Store")
def _store(compiler: Compiler, operation: ir.Operation) -> Step:
    name = text_of(operation, "name")

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        frame.variables[name] = operands[0]
        return ()

    return step


@_builds("torch.prim.Load")
def _load(compiler: Compiler, operation: ir.Operation) -> Step:
    name = text_of(operation, "name")

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        try:
            return (frame.variables[name],)
        except KeyError:
            raise ValueError(f"the variable {name!r} has no value yet") from None

    return step


@_builds("torch.prim.Enter")
def _enter(compiler: Compiler, operation: ir.Operation) -> Step:
    enter = _method(compiler, operation, "__enter__")

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        enter(frame, operands)
        return (None,)

    return step


@_builds("torch.prim.Exit")
def _exit(compiler: Compiler, operation: ir.Operation) -> Step:
    leave = _method(compiler, operation, "__exit__")

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        # No exception is on its way: one would have ended the program.
        results = leave(frame, (*operands, None, None, None))
        return tuple(results) or (None,)

    return step


def _method(compiler: Compiler, operation: ir.Operation, name: str) -> Function:
    kind = class_of(operation.operands[0].type)
    function = compiler.methods.get((kind, name))
    if function is None:
        raise UnsupportedOperation(f"{place(operation)}: {kind!r} has no method {name!r}")
    return compiler.function(function, operation)


# Operators without a schema


def is_instance(compiler: Compiler, operation: ir.Operation) -> Step:
    """`torch.operator "torch.prim.isinstance"`, whose attribute `types` has the types."""
    kinds = [ir.TypeAttr(kind).value for kind in ir.ArrayAttr(operation.attributes["types"])]
    return lambda frame, operands: (any(_has_type(operands[0], kind) for kind in kinds),)


def _has_type(value: Any, kind: ir.Type) -> bool:
    """Whether TorchScript takes a value for one of a type: bools are no ints.

    Of an empty list or dict it isn't known what it would hold.
    """
    from ...dialects import torch as dialect

    if isinstance(kind, dialect.OptionalType):
        return value is None or _has_type(value, kind.contained_type)
    if isinstance(kind, dialect.UnionType):
        return any(_has_type(value, contained) for contained in kind.contained_types)
    if isinstance(kind, dialect.ListType):
        return isinstance(value, list) and all(_has_type(v, kind.contained_type) for v in value)
    if isinstance(kind, dialect.TupleType):
        kinds = kind.contained_types
        return (
            isinstance(value, tuple)
            and len(value) == len(kinds)
            and all(map(_has_type, value, kinds))
        )
    if isinstance(kind, dialect.DictType):
        return isinstance(value, dict) and all(
            _has_type(key, kind.key_type) and _has_type(held, kind.value_type)
            for key, held in value.items()
        )
    if isinstance(kind, dialect.NnModuleType):
        return isinstance(value, Object) and value.kind == kind.class_name
    text = str(kind)
    if text == "!torch.any":
        return True
    if text == "!torch.Device":
        return isinstance(value, torch.device)
    if text == "!torch.number":
        return type(value) in (int, float, complex)
    check = check_of(kind)
    if check is None:
        raise UnsupportedOperation(f"whether a value has type {kind} is not known")
    return check(value) is None


@_builds("torch.hop_flex_attention")
def _flex_attention(compiler: Compiler, operation: ir.Operation) -> Step:
    from .attention import flex_attention

    modifiers: list[tuple[Function, list[torch.dtype]] | None] = []
    for attribute, count in (("score_mod_fn", 5), ("mask_mod_fn", 4)):
        if attribute not in operation.attributes:
            modifiers.append(None)
            continue
        name = _symbol(operation, attribute)
        function = compiler.function(name, operation)
        kind = ir.TypeAttr(compiler.functions[name].attributes["function_type"]).value
        tensors = [TensorType.of(argument) for argument in ir.FunctionType(kind).inputs]
        dtypes = [torch.int32 if tensor is None else tensor.dtype for tensor in tensors[-4:]]
        if len(tensors) != count:
            raise UnsupportedOperation(
                f"{place(operation)}: {name!r} takes {len(tensors)} arguments, not {count}"
            )
        modifiers.append((function, [dtype or torch.int32 for dtype in dtypes]))

    def call(frame: Frame, function: Function, *args: Any) -> Any:
        return function(frame, args)[0]

    # Results that are not asked for may be None.
    wanted = [str(result.type) != "!torch.none" for result in operation.results]

    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        query, key, value, scale, *_ = operands
        calls: list[Any] = []
        dtypes: list[torch.dtype] = []
        for modifier in modifiers:
            if modifier is None:
                calls.append(None)
                dtypes += [torch.int32] * 4
            else:
                function, own = modifier
                calls.append(functools.partial(call, frame, function))
                dtypes += own
        score_mod, mask_mod = calls
        results = flex_attention(query, key, value, scale, score_mod, mask_mod, dtypes)
        return tuple(value if given else None for value, given in zip(results, wanted, strict=True))

    return step


@_builds("torch.valsem.aten.bernoulli.float")
def _bernoulli(compiler: Compiler, operation: ir.Operation) -> Step:
    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        tensor, probability, generator = operands
        return (tensor.clone().bernoulli_(probability, generator=generator),)

    return step


@_builds("torch.per_tensor_affine.create")
def _per_tensor_affine(compiler: Compiler, operation: ir.Operation) -> Step:
    create = torch.ops.aten._make_per_tensor_quantized_tensor.default
    return lambda frame, operands: (create(*operands),)


@_builds("torch.linear_params.create")
def _linear_params(compiler: Compiler, operation: ir.Operation) -> Step:
    def step(frame: Frame, operands: Sequence[Any]) -> Sequence[Any]:
        weight, bias = (*operands, None)[:2]
        # Weights in half precision are kept as floats, by PyTorch's archives too.
        prepack = (
            torch.ops.quantized.linear_prepack
            if weight.is_quantized
            else torch.ops.quantized.linear_prepack_fp16
        )
        return (prepack.default(weight, bias),)

    return step
