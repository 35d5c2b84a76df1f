# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walks a module on abstract values, and notes what each tensor of it turns out to be.

Operators run on fake tensors. Where PyTorch can't tell without the data, the operator runs on
tensors of some sizes instead, and what all runs have in common is taken to hold; if that says
nothing either, the operation's result is what its type says.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from ... import ir, operators
from .abstract_values import (
    UNKNOWN,
    Contradiction,
    OpenTensor,
    Symbols,
    any_leaf,
    describe,
    facts_of,
    is_symbolic,
    join_shapes,
)
from .errors import ExecutionError, UnsupportedOperation, place
from .kernels import dtype_of
from .program import TERMINATORS, Frame, ReferenceProgram, class_of
from .structural import Object, Step, Symbol, text_of

Facts = tuple["tuple[int | None, ...] | None", "torch.dtype | None"]
Environment = dict[ir.Value, Any]

# Iterations of a loop that are followed one by one; after those, all are taken together.
MOST_ITERATIONS = 64

# What hands its operands on, or puts them into containers and takes them out of those.
_HANDING_ON = frozenset(
    f"torch.{name}"
    for name in (
        "derefine",
        "prim.unchecked_cast",
        "tensor_static_info_cast",
        "copy.to_tensor",
        "copy.to_vtensor",
        "prim.ListConstruct",
        "prim.TupleConstruct",
        "prim.DictConstruct",
        "prim.ListUnpack",
        "prim.TupleUnpack",
        "prim.TupleIndex",
        "prim.CreateObject",
        "aten.append.t",
        "aten.clear.t",
        "aten.copy.t",
        "aten.extend.t",
        "aten.insert.t",
        "aten.len.t",
        "aten.list.t",
        "aten.pop.t",
        "aten.reverse.t",
        "aten._set_item.t",
        "aten.slice.t",
        "aten.__getitem__.t",
    )
)

# PyTorch knows no shape for these, or none without the data.
_WITHOUT_SHAPE = (
    GuardOnDataDependentSymNode,
    NotImplementedError,
    *(
        getattr(fake_tensor, name)
        for name in (
            "DataDependentOutputException",
            "DynamicOutputShapeException",
            "UnsupportedFakeTensorException",
            "UnsupportedOperatorException",
        )
        if hasattr(fake_tensor, name)
    ),
)

# What kernels raise for operands that they don't take.
_MISFITS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip


# The most elements of operands for which PyTorch may run a kernel that it knows no shape for.
_MOST_REAL_ELEMENTS = 1 << 20


@contextlib.contextmanager
def _real_kernels(mode: fake_tensor.FakeTensorMode, operands: Sequence[Any]) -> Iterator[None]:
    """Lets PyTorch run operators without a shape function on zeros, if those are few."""
    elements = 0

    def visit(leaf: Any) -> bool:
        nonlocal elements
        if isinstance(leaf, torch.Tensor) and not is_symbolic(leaf):
            elements += leaf.numel()
        return elements > _MOST_REAL_ELEMENTS

    before = mode.allow_fallback_kernels
    mode.allow_fallback_kernels = before and not any_leaf(list(operands), visit)
    try:
        yield
    finally:
        mode.allow_fallback_kernels = before


class Inference:
    """What the tensors of a module are.

    Attributes:
        facts: shape and dtype of each tensor, by its value in the module; tensors of operations
            that never run are not among these.
    """

    def __init__(self, module: ir.Module, device: torch.device) -> None:
        program = ReferenceProgram(module, device, is_checking=False, is_compiled=False)
        self.facts: dict[ir.Value, Facts] = {}
        self._compiler = program.compiler
        self._symbols = Symbols(device)
        self._frame = Frame(0, program.globals, self._symbols.mode)
        self._program = program
        self._objects: dict[int, Any] = {}
        self._active: list[str] = []
        self._recursive: set[str] = set()
        # Attributes and slots that the module sets: what they hold first says nothing.
        self._changing: set[str] = set()
        for operation in nested(module.operation):
            if operation.name in ("torch.prim.SetAttr", "torch.prim.Store"):
                self._changing.add(text_of(operation, "name"))
            elif operation.name == "torch.global_slot.set":
                self._changing.add(ir.FlatSymbolRefAttr(operation.attributes["slot"]).value)

    def run(self, name: str, arguments: Sequence[Facts | None]) -> None:
        """Follow a call of a function from outside.

        Args:
            name: the function.
            arguments: what is known of its arguments besides their types; None for nothing.

        Raises:
            ExecutionError: the call fails, whatever its arguments are.
        """
        block = self._compiler.functions[name].regions[0].blocks[0]
        with self._symbols.mode, torch.no_grad(), _no_logging():
            inputs = []
            for argument, known in zip(block.arguments, arguments, strict=True):
                if known is not None:
                    inputs.append(self._symbols.tensor(*known))
                else:
                    inputs.append(self._object_of(argument.type))
            self._call(name, inputs)
            # What calls itself may get any argument of its type.
            for again in sorted(self._recursive - {name}):
                block = self._compiler.functions[again].regions[0].blocks[0]
                self._call(again, [self._symbols.of_type(a.type) for a in block.arguments])

    def _object_of(self, kind: ir.Type) -> Any:
        if str(kind).startswith("!torch.nn.Module<"):
            for made in reversed(self._program.objects):
                if made.kind == class_of(kind):
                    return self._faked(made)
        return self._symbols.of_type(kind)

    def _faked(self, value: Any) -> Any:
        """What the module holds, with fake tensors in the place of its tensors."""
        if isinstance(value, Object):
            found = self._objects.get(id(value))
            if found is None:
                found = self._objects[id(value)] = Object(value.kind, {})
                for name, attribute in value.attributes.items():
                    found.attributes[name] = self._faked(attribute)
            return found
        if isinstance(value, torch.Tensor) and value.is_quantized:
            return self._symbols.tensor(value.shape, value.dtype)
        if isinstance(value, torch.Tensor):
            return self._symbols.mode.from_tensor(value, static_shapes=True)
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._faked, value))
        if isinstance(value, dict):
            return {key: self._faked(element) for key, element in value.items()}
        return value

    def _call(self, name: str, inputs: Sequence[Any]) -> Sequence[Any]:
        operation = self._compiler.functions[name]
        blocks = list(operation.regions[0].blocks)
        if name in self._active or not blocks:
            self._recursive.update({name} if blocks else ())
            kind = ir.FunctionType(ir.TypeAttr(operation.attributes["function_type"]).value)
            return [self._symbols.of_type(result) for result in kind.results]
        self._active.append(name)
        try:
            return self._block(blocks[0], inputs, {})
        finally:
            self._active.pop()

    def _block(
        self, block: ir.Block, inputs: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        """What the block's terminator gives."""
        for argument, value in zip(block.arguments, inputs, strict=True):
            self._note(argument, value, environment, block.owner)
        for view in block.operations:
            operation = view.operation
            if operation.name in TERMINATORS:
                return [environment[operand] for operand in operation.operands]
            operands = [environment[operand] for operand in operation.operands]
            results = self._operation(operation, operands, environment)
            for result, value in zip(operation.results, results, strict=True):
                self._note(result, value, environment, operation)
        return ()

    def _note(self, value: ir.Value, found: Any, environment: Environment, operation: Any) -> None:
        try:
            found = self._symbols.narrow(found, value.type)
        except Contradiction as problem:
            raise ExecutionError(
                f"{place(operation.operation)}: a value has type {value.type}, but {problem}"
            ) from problem
        environment[value] = found
        self._add(value, found)

    def _add(self, value: ir.Value, found: Any) -> None:
        facts = facts_of(found)
        if facts is None and str(value.type).startswith(("!torch.vtensor", "!torch.tensor")):
            facts = (None, None)
        if facts is None:
            return
        known = self.facts.get(value)
        self.facts[value] = facts if known is None else _joined(known, facts) or facts

    # Operations

    def _operation(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        special = _SPECIAL.get(operation.name)
        if special is not None:
            return special(self, operation, operands, environment)
        results = self._leaf(operation, operands, environment)
        if operation.name in _HANDING_ON:
            return results
        for changed in _written(operation, operands):
            # Operators may change the shapes of tensors that they write to.
            for value, held in list(environment.items()):
                if held is changed and isinstance(changed, torch.Tensor):
                    self._add(value, held)
        return results

    def _leaf(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        is_open = any_leaf(list(operands), _is_open)
        try:
            step = self._compiler.step(operation)
            if _is_open_squeeze(operation, operands):
                return self._tried(operation, step, operands)
            if not is_open or operation.name in _HANDING_ON:
                if operation.name.startswith("torch.copy.") and is_open:
                    return operands
                with _real_kernels(self._symbols.mode, operands):
                    return step(self._frame, operands)
        except UnsupportedOperation:
            return self._nothing(operation, operands, environment)
        except ExecutionError:
            raise
        except _WITHOUT_SHAPE:
            pass
        except Exception as problem:
            # PyTorch's kernels differ in what they say where a symbol doesn't do.
            if not is_open and not any_leaf(list(operands), is_symbolic):
                raise ExecutionError(
                    f"{place(operation)}: {type(problem).__name__}: {problem}"
                ) from problem
        self._forget(_written(operation, operands), environment)
        return self._tried(operation, step, operands)

    def _tried(self, operation: ir.Operation, step: Step, operands: Sequence[Any]) -> Sequence[Any]:
        """What an operation gives for some operands, and so for all; or what its types say."""
        tried: list[Facts | None] | None = None
        sizes = set()
        for size, trial in self._symbols.concretizations(operands):
            try:
                with _real_kernels(self._symbols.mode, trial):
                    results = step(self._frame, trial)
            except _WITHOUT_SHAPE:
                tried = None
                break
            except _MISFITS:
                continue  # the operation doesn't take these: they are no case to be thought of
            facts = [facts_of(result) for result in results]
            lengths = [length for fact in facts if fact is not None for length in fact[0] or ()]
            if any(length is not None and length < 0 for length in lengths):
                continue  # PyTorch doesn't check all that it takes
            sizes.add(size)
            tried = facts if tried is None else list(map(_joined, tried, facts))
        # Where the large sizes don't fit, others may.
        is_sized = sizes >= set(self._symbols.sizes(operands)[-2:])
        values = []
        for number, result in enumerate(operation.results):
            known = None if tried is None else tried[number]
            if known is None:
                values.append(self._symbols.of_type(result.type))
                continue
            shape, dtype = known
            if shape is not None and not is_sized:
                shape = (None,) * len(shape)
            elif shape is not None and len(sizes) > 1:
                # Sizes that are equal here needn't be: 0 and 1 may be their difference and ratio.
                shape = tuple(None if length in (0, 1) else length for length in shape)
            values.append(self._symbols.tensor(shape, dtype))
        return values

    def _attribute(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        receiver = operands[0]
        name = text_of(operation, "name")
        if name in self._changing or not isinstance(receiver, Object):
            return [self._symbols.of_type(operation.results[0].type)]
        return [receiver.attributes[name]]

    def _slot(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        name = ir.FlatSymbolRefAttr(operation.attributes["slot"]).value
        if name in self._changing or name not in self._frame.globals:
            return [self._symbols.of_type(operation.results[0].type)]
        return [self._faked(self._frame.globals[name])]

    def _nothing(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        return [self._symbols.of_type(result.type) for result in operation.results]

    def _calls(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        if operation.name == "func.call":
            return self._call(ir.FlatSymbolRefAttr(operation.attributes["callee"]).value, operands)
        entering = {"torch.prim.Enter": "__enter__", "torch.prim.Exit": "__exit__"}
        method = entering.get(operation.name) or text_of(operation, "name")
        callee = self._compiler.methods.get((class_of(operation.operands[0].type), method))
        if callee is None:
            return self._nothing(operation, operands, environment)
        if method == "__enter__":
            self._call(callee, operands)
            return [None]
        if method == "__exit__":
            return self._call(callee, (*operands, None, None, None)) or [None]
        return self._call(callee, operands)

    def _quantizes(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        """PyTorch's own fake tensors say that nothing is quantised."""
        fact = facts_of(operands[0])
        number = next((value for value in operands[:0:-1] if type(value) is int), None)
        dtype = None if number is None else dtype_of(number)
        return [self._symbols.tensor(None if fact is None else fact[0], dtype)]

    def _assert(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        condition = operands[0]
        if isinstance(condition, torch.SymBool):
            torch._check(condition)
        elif condition is False:
            raise ExecutionError(f"{text_of(operation, 'message')} ({place(operation)})")
        return ()

    def _bind(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        tensor, *symbols = operands
        if not isinstance(tensor, torch.Tensor):
            return ()
        expressions = ir.AffineMapAttr(operation.attributes["shape_expressions"]).value.results
        for expression, size in zip(expressions, tensor.shape, strict=True):
            if not isinstance(expression, ir.AffineSymbolExpr):
                continue
            symbol = symbols[expression.position]
            if not isinstance(symbol, Symbol):
                continue
            # Above MLIR's greatest index there are no sizes, nor bounds.
            known: Any = symbol.value
            if known is None:
                symbol.value = size
                if isinstance(size, torch.SymInt):
                    torch._check(size >= symbol.low)
            elif isinstance(size, torch.SymInt) or isinstance(known, torch.SymInt):
                torch._check(size == known)
        return ()

    def _same_block(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        return self._block(operation.regions[0].blocks[0], (), environment)

    # Control flow

    def _if(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        condition = known_bool(operands[0])
        blocks = [region.blocks[0] for region in operation.regions]
        if condition is not None:
            return self._block(blocks[0 if condition else 1], (), environment)
        self._forget([environment.get(value) for value in _written_inside(operation)], environment)
        problems = []
        outcomes = []
        for block in blocks:
            try:
                outcomes.append(self._apart(operation, block, (), environment))
            except ExecutionError as problem:
                problems.append(problem)  # so the branch isn't taken, or ends the program
        if not outcomes:
            raise problems[0]
        if len(outcomes) == 1:
            return outcomes[0]
        return [self._symbols.join(a, b) for a, b in zip(*outcomes, strict=True)]

    def _loop(
        self, operation: ir.Operation, operands: Sequence[Any], environment: Environment
    ) -> Sequence[Any]:
        body = operation.regions[0].blocks[0]
        limit, condition, *carried = operands
        values: Sequence[Any] = carried
        going = known_bool(condition)
        if going is False or (type(limit) is int and limit <= 0):
            return values
        if type(limit) is int and going is not None and not _written_inside(operation):
            for iteration in range(MOST_ITERATIONS + 1):
                if iteration == limit or going is False:
                    return values
                condition, *values = self._block(body, (iteration, *values), environment)
                going = known_bool(condition)
                if going is None:
                    break
        self._forget([environment.get(value) for value in _written_inside(operation)], environment)
        values = carried
        while True:
            iteration = self._symbols.size()
            try:
                _, *after = self._apart(operation, body, (iteration, *values), environment)
            except ExecutionError:
                return values  # no iteration comes to its end
            joined = [self._symbols.join(a, b) for a, b in zip(values, after, strict=True)]
            if describe(joined) == describe(list(values)):
                return joined
            values = joined

    def _apart(
        self,
        operation: ir.Operation,
        block: ir.Block,
        inputs: Sequence[Any],
        environment: Environment,
    ) -> Sequence[Any]:
        """What a block gives that may not run: what it learns of symbols holds in it alone."""
        names: dict[Any, Any] = {}
        inner = dict(environment)
        for inside in nested(operation):
            for operand in inside.operands:
                held = inner.get(operand)
                if held is not None and any_leaf(held, is_symbolic):
                    inner[operand] = self._symbols.renamed(held, names)
        renamed = [self._symbols.renamed(value, names) for value in inputs]
        return [
            self._symbols.restored(result, names) for result in self._block(block, renamed, inner)
        ]

    def _forget(self, changed: Sequence[Any], environment: Environment) -> None:
        """Nothing is known any more of these lists and dicts."""
        for one in changed:
            if isinstance(one, (list, dict)):
                for value, held in environment.items():
                    if any(inner is one for inner in _containers(held)):
                        environment[value] = UNKNOWN


Special = Callable[[Inference, ir.Operation, Sequence[Any], Environment], Sequence[Any]]
_SPECIAL: Mapping[str, Special] = {
    "torch.prim.If": Inference._if,
    "torch.prim.Loop": Inference._loop,
    "torch.prim.GetAttr": Inference._attribute,
    "torch.prim.CallMethod": Inference._calls,
    "torch.prim.Uninitialized": Inference._nothing,
    "torch.prim.Print": Inference._nothing,
    "torch.global_slot.get": Inference._slot,
    "torch.global_slot.set": Inference._nothing,
    "torch.prim.SetAttr": Inference._nothing,
    "torch.prim.Load": Inference._nothing,
    "torch.prim.Store": Inference._nothing,
    "torch.prim.Enter": Inference._calls,
    "torch.prim.Exit": Inference._calls,
    "torch.runtime.assert": Inference._assert,
    "torch.aten.quantize_per_tensor": Inference._quantizes,
    "torch.aten.quantize_per_channel": Inference._quantizes,
    "torch.aten.quantize_per_tensor_dynamic": Inference._quantizes,
    "torch.bind_symbolic_shape": Inference._bind,
    "torch.shape.calculate": Inference._same_block,
    "torch.dtype.calculate": Inference._same_block,
    "func.call": Inference._calls,
}


@contextlib.contextmanager
def _no_logging() -> Iterator[None]:
    """Keep PyTorch from logging what operators raise on fake tensors: most of that is no error."""
    logger = logging.getLogger(fake_tensor.__name__)
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def known_bool(condition: Any) -> bool | None:
    """A condition's value, None if it depends on what isn't known."""
    if isinstance(condition, bool):
        return condition
    if isinstance(condition, torch.SymBool):
        known = condition.node.maybe_as_bool() if hasattr(condition.node, "maybe_as_bool") else None
        if known is None:
            known = condition.node.shape_env._maybe_evaluate_static(condition.node.expr)
        return None if known is None else bool(known)
    return None


def nested(operation: ir.Operation) -> Iterator[ir.Operation]:
    """All operations inside of one."""
    for region in operation.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
                yield from nested(view.operation)


def _joined(a: Facts | None, b: Facts | None) -> Facts | None:
    """What two descriptions have in common; None if one of them is of no tensor."""
    if a is None or b is None:
        return None
    return join_shapes(a[0], b[0]), a[1] if a[1] is b[1] else None


def _is_open(leaf: Any) -> bool:
    return leaf is UNKNOWN or isinstance(leaf, OpenTensor)


def _is_open_squeeze(operation: ir.Operation, operands: Sequence[Any]) -> bool:
    """Whether the rank of the result depends on sizes: fake tensors take those not to be 1."""
    return operation.name.startswith("torch.aten.squeeze") and is_symbolic(operands[0])


def _schema(operation: ir.Operation) -> operators.Schema | None:
    return operators.load().get(operation.name.removeprefix("torch."))


def _written(operation: ir.Operation, operands: Sequence[Any]) -> list[Any]:
    schema = _schema(operation)
    if schema is None or len(schema.arguments) != len(operands):
        return []
    pairs = zip(schema.arguments, operands, strict=True)
    return [operand for argument, operand in pairs if argument.is_write]


def _written_inside(operation: ir.Operation) -> list[ir.Value]:
    """The lists and dicts that operations inside of one write to."""
    found = []
    for inside in nested(operation):
        schema = _schema(inside)
        if schema is None or len(schema.arguments) != len(inside.operands):
            continue
        for argument, operand in zip(schema.arguments, inside.operands, strict=True):
            if argument.is_write and argument.type.name in ("List", "Dict", "t"):
                found.append(operand)
    return found


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple, dict)):
        yield value
        for element in value.values() if isinstance(value, dict) else value:
            yield from _containers(element)


__all__ = ["Facts", "Inference", "known_bool", "nested"]
