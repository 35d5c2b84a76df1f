# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions as flat lists of steps, and their execution.

Every value has a place in its function's frame. A step takes its operands from their places,
and what no later step reads is let go at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ... import ir
from . import kernels
from .errors import ExecutionError, UnsupportedOperation, place
from .literals import tensor_of
from .structural import BUILDERS, Step, class_of, is_instance, text_of
from .value_types import Check, check_of

TERMINATORS = frozenset(
    (
        "func.return",
        "torch.prim.If.yield",
        "torch.prim.Loop.condition",
        "torch.shape.calculate.yield",
        "torch.dtype.calculate.yield",
        "torch.initialize.global_slots",
        "torch.global_slot.init",
    )
)
# Top-level operations that declare something, and don't run.
_DECLARATIONS = frozenset(
    (
        "func.func",
        "torch.class_type",
        "torch.global_slot",
        "torch.global_slot.module_initializer",
    )
)

Function = Callable[["Frame", Sequence[Any]], Sequence[Any]]


class Frame:
    """The values of one call of a function.

    Attributes:
        values: by place; None where nothing is (or None).
        globals: the module's global slots.
        fake_mode: the mode of the fake tensors that the call works on, None for real ones.
        variables: the local variables of TorchScript's interpreter.
    """

    __slots__ = ("fake_mode", "globals", "values", "variables")

    def __init__(self, size: int, slots: dict[str, Any], fake_mode: Any) -> None:
        self.values: list[Any] = [None] * size
        self.globals = slots
        self.fake_mode = fake_mode
        self.variables: dict[str, Any] = {}


@dataclass(slots=True)
class Instruction:
    """An operation: what it runs, where its operands and results are, what ends with it."""

    step: Step
    operation: ir.Operation
    operands: tuple[int, ...]
    results: tuple[int, ...]
    # The results whose types say something.
    checks: tuple[tuple[int, Check], ...]
    ends: tuple[int, ...] = ()


@dataclass(slots=True)
class Block:
    """A block: the places of its arguments, its operations, and what it gives."""

    arguments: tuple[int, ...] = ()
    checks: tuple[tuple[int, Check], ...] = ()
    instructions: list[Instruction] = field(default_factory=list)
    returned: tuple[int, ...] = ()

    def run(self, frame: Frame, inputs: Sequence[Any]) -> Sequence[Any]:
        """The operands of the terminator.

        Raises:
            ExecutionError: an operation fails, or gives what its type doesn't say.
        """
        values = frame.values
        for place_, value in zip(self.arguments, inputs, strict=True):
            values[place_] = value
        for number, check in self.checks:
            wrong = check(inputs[number])
            if wrong is not None:
                raise ExecutionError(f"argument {number} of a block: {wrong}")
        for instruction in self.instructions:
            _execute(instruction, frame)
        return [values[place_] for place_ in self.returned]


def _execute(instruction: Instruction, frame: Frame) -> None:
    # A function of its own: its local names let go of operands and results at once.
    values = frame.values
    operands = [values[operand] for operand in instruction.operands]
    try:
        results = instruction.step(frame, operands)
    except ExecutionError:
        raise
    except Exception as problem:
        raise ExecutionError(
            f"{place(instruction.operation)}: {type(problem).__name__}: {problem} "
            f"(operands: {', '.join(map(_shortly, operands))})"
        ) from problem
    for result, value in zip(instruction.results, results, strict=True):
        values[result] = value
    for number, check in instruction.checks:
        wrong = check(results[number])
        if wrong is not None:
            kind = instruction.operation.results[number].type
            raise ExecutionError(
                f"{place(instruction.operation)}: result {number} has type {kind}, but {wrong}"
            )
    for end in instruction.ends:
        values[end] = None


def _shortly(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        shown = ", ".join(map(_shortly, value[:4]))
        return f"[{shown}{', …' if len(value) > 4 else ''}]"
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}…"


class Compiler:
    """Compiles the functions of one module.

    Attributes:
        device: what the module's devices stand for.
        methods: the function of each class's method: (class, method) to function.
        literals: the storage of each literal, by address.
    """

    def __init__(self, module: ir.Module, device: torch.device, is_checking: bool) -> None:
        self.device = device
        self.is_checking = is_checking
        self.literals: set[int] = set()
        self._operations = {}
        self.methods: dict[tuple[str, str], str] = {}
        for view in module.body.operations:
            operation = view.operation
            if operation.name == "func.func":
                self._operations[text_of(operation, "sym_name")] = operation
            elif operation.name == "torch.class_type":
                kind = text_of(operation, "sym_name")
                for member in operation.regions[0].blocks[0].operations:
                    if member.operation.name == "torch.method":
                        function = ir.FlatSymbolRefAttr(member.attributes["function"]).value
                        self.methods[kind, text_of(member.operation, "name")] = function
        self._compiled: dict[str, tuple[Block, int]] = {}
        self._places: dict[ir.Value, int] = {}

    @property
    def functions(self) -> dict[str, ir.Operation]:
        """The module's functions, in its order."""
        return self._operations

    def function(self, name: str, caller: ir.Operation | None = None) -> Function:
        """What calls a function of the module, which is compiled when it is first called.

        Raises:
            UnsupportedOperation: the module has no function of that name.
        """
        operation = self._operations.get(name)
        if operation is None:
            where = "" if caller is None else f"{place(caller)}: "
            raise UnsupportedOperation(f"{where}the module has no function {name!r}")

        def call(frame: Frame, inputs: Sequence[Any]) -> Sequence[Any]:
            block, size = self.compiled(name)
            inner = Frame(size, frame.globals, frame.fake_mode)
            return block.run(inner, inputs)

        return call

    def compiled(self, name: str) -> tuple[Block, int]:
        """A function's block, and the size of its frame.

        Raises:
            UnsupportedOperation: an operation of the function is not supported.
        """
        found = self._compiled.get(name)
        if found is None:
            operation = self._operations[name]
            blocks = list(operation.regions[0].blocks)
            if len(blocks) != 1:
                what = "is only declared" if not blocks else f"has {len(blocks)} blocks"
                raise UnsupportedOperation(
                    f"the function {name!r} {what}; control flow has to be structured"
                )
            found = self._compiled[name] = self.body(blocks[0])
        return found

    def body(self, block: ir.Block) -> tuple[Block, int]:
        """A block that refers to nothing outside, and the size of its frame."""
        outer, self._places = self._places, {}
        try:
            compiled = self.block(block)
            return compiled, len(self._places)
        finally:
            self._places = outer

    def literal(self, operation: ir.Operation) -> torch.Tensor:
        """A literal's contents, which mostly lie in the module's memory."""
        with _disable_current_modes():  # they are real, whatever the caller works on
            tensor = tensor_of(operation)
        if tensor.numel():
            self.literals.add(tensor.untyped_storage().data_ptr())
        return tensor

    def slot(self, value: ir.Value) -> int:
        """The place of a value in the frame."""
        found = self._places.get(value)
        if found is None:
            found = self._places[value] = len(self._places)
        return found

    def block(self, block: ir.Block) -> Block:
        """Compile a block."""
        compiled = Block()
        compiled.arguments = tuple(self.slot(argument) for argument in block.arguments)
        if self.is_checking:
            compiled.checks = tuple(_checks(block.arguments))
        # The places that the block itself fills: what others own must outlast it.
        own = set(compiled.arguments)
        last_use: dict[int, Instruction] = {}
        for view in block.operations:
            operation = view.operation
            name = operation.name
            if name in TERMINATORS:
                compiled.returned = tuple(self.slot(operand) for operand in operation.operands)
                break
            if name in _DECLARATIONS:
                continue
            operands = tuple(self.slot(operand) for operand in operation.operands)
            step = self.step(operation)
            results = tuple(self.slot(result) for result in operation.results)
            # A symbol has the type of an int, and is none before a tensor tells its value.
            is_checking = self.is_checking and name != "torch.symbolic_int"
            checks = tuple(_checks(operation.results)) if is_checking else ()
            instruction = Instruction(step, operation, operands, results, checks)
            compiled.instructions.append(instruction)
            own.update(results)
            for used in (*operands, *self._used_inside(operation), *results):
                if used in own:
                    last_use[used] = instruction
        ends: dict[int, list[int]] = {}
        for used, instruction in last_use.items():
            if used not in compiled.returned:
                ends.setdefault(id(instruction), []).append(used)
        for instruction in compiled.instructions:
            instruction.ends = tuple(ends.get(id(instruction), ()))
        return compiled

    def _used_inside(self, operation: ir.Operation) -> Iterator[int]:
        for region in operation.regions:
            for block in region.blocks:
                for view in block.operations:
                    inner = view.operation
                    for operand in inner.operands:
                        yield self.slot(operand)
                    if len(inner.regions):
                        yield from self._used_inside(inner)

    def step(self, operation: ir.Operation) -> Step:
        """What runs an operation.

        Raises:
            UnsupportedOperation: nothing here does.
        """
        name = operation.name
        builder = BUILDERS.get(name)
        try:
            if builder is not None:
                return builder(self, operation)
            if name == "torch.operator":
                if len(operation.regions):
                    raise UnsupportedOperation(f"{place(operation)}: it has regions")
                name = text_of(operation, "name")
                if name.removeprefix("torch.") == "prim.isinstance":
                    return is_instance(self, operation)
            if not name.startswith("torch."):
                raise UnsupportedOperation(f"{place(operation)}: no operation of the Torch dialect")
            kernel = kernels.kernel(
                name.removeprefix("torch."), len(operation.operands), len(operation.results)
            )
        except (kernels.NoKernel, ValueError) as problem:
            raise UnsupportedOperation(f"{place(operation)}: {problem}") from problem
        return lambda frame, operands: kernel(operands)


def _checks(values: Sequence[ir.Value]) -> Iterator[tuple[int, Check]]:
    for number, value in enumerate(values):
        check = check_of(value.type)
        if check is not None:
            yield number, check


class ReferenceProgram:
    """A module that runs on the installed PyTorch; see `torch_mlir.backends.Program`.

    It keeps the module, whose memory its literals lie in, and the module's global slots, which
    are as the last call left them.
    """

    def __init__(
        self,
        module: ir.Module,
        device: torch.device,
        is_checking: bool,
        is_compiled: bool = True,
    ) -> None:
        self._module = module
        self.compiler = Compiler(module, device, is_checking)
        self.globals: dict[str, Any] = {}
        self.objects: list[Any] = []
        """The module's TorchScript objects, in its order; the last one is the root."""
        # Everything is compiled now, so that what is not supported shows at once.
        for name, operation in self.compiler.functions.items():
            if is_compiled and len(list(operation.regions[0].blocks)):
                self.compiler.compiled(name)
        with torch.no_grad():
            self._initialize(module)

    def _initialize(self, module: ir.Module) -> None:
        for view in module.body.operations:
            if view.operation.name == "torch.global_slot.module_initializer":
                self._initialize_slots(view.operation)
        block, size = self.compiler.body(module.body)
        if block.instructions:
            for instruction in block.instructions:
                instruction.ends = ()
            frame = Frame(size, self.globals, None)
            block.run(frame, ())
            self.objects = [
                frame.values[instruction.results[0]]
                for instruction in block.instructions
                if instruction.operation.name == "torch.nn_module"
            ]

    def _initialize_slots(self, operation: ir.Operation) -> None:
        block, size = self.compiler.body(operation.regions[0].blocks[0])
        values = block.run(Frame(size, self.globals, None), ())
        terminator = operation.regions[0].blocks[0].operations[-1].operation
        names = [
            ir.FlatSymbolRefAttr(name).value
            for name in ir.ArrayAttr(terminator.attributes["slotSymNames"])
        ]
        self.globals.update(zip(names, values, strict=True))

    def __call__(self, *args: Any) -> Any:
        """Call the only public function, or `main` among several.

        Raises:
            ValueError: none of several functions is called `main`, or as its call does.
            ExecutionError: an operation fails.
        """
        names = [
            name for name, operation in self.compiler.functions.items() if is_public(operation)
        ]
        if len(names) != 1 and "main" not in names:
            raise ValueError(f"none of the functions is called main: {', '.join(names) or 'none'}")
        return self.function(names[0] if len(names) == 1 else "main")(*args)

    def function(self, name: str) -> Callable[..., Any]:
        """The function `name`, public or not.

        Its call raises ValueError for arguments that don't fit its types, and ExecutionError
        if an operation fails.

        Raises:
            ValueError: the module has no such function.
        """
        operation = self.compiler.functions.get(name)
        if operation is None:
            names = ", ".join(self.compiler.functions)
            raise ValueError(f"no function {name!r}: there are {names or 'none'}")
        kind = ir.FunctionType(ir.TypeAttr(operation.attributes["function_type"]).value)
        checks = [check_of(input_type) for input_type in kind.inputs]

        def call(*args: Any) -> Any:
            if len(args) != len(checks):
                raise ValueError(f"{name} takes {len(checks)} arguments, {len(args)} are given")
            for number, (check, arg) in enumerate(zip(checks, args, strict=True)):
                wrong = None if check is None else check(arg)
                if wrong is not None:
                    raise ValueError(
                        f"argument {number} of {name} has type {kind.inputs[number]}, but {wrong}"
                    )
            block, size = self.compiler.compiled(name)
            frame = Frame(size, self.globals, _fake_mode(args))
            with torch.no_grad():
                results = [self._owned(result) for result in block.run(frame, args)]
            if not results:
                return None
            return results[0] if len(results) == 1 else tuple(results)

        call.__name__ = call.__qualname__ = name
        return call

    def _owned(self, result: Any) -> Any:
        """A result that the caller may write to."""
        if isinstance(result, torch.Tensor):
            if result.layout is not torch.strided or type(result) is not torch.Tensor:
                return result
            in_module = result.untyped_storage().data_ptr() in self.compiler.literals
            return _copied(result) if in_module else result
        if isinstance(result, (list, tuple)):
            return type(result)(map(self._owned, result))
        return result


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    try:
        return tensor.clone()
    except NotImplementedError:  # dtypes of less than a byte: PyTorch only lays them out
        memory = tensor.untyped_storage().clone()
        layout = tensor.storage_offset(), tensor.shape, tensor.stride()
        return torch.empty(0, dtype=tensor.dtype).set_(memory, *layout)


def is_public(operation: ir.Operation) -> bool:
    """Whether a function can be called from outside of its module."""
    visibility = "sym_visibility"
    return visibility not in operation.attributes or text_of(operation, visibility) == "public"


def _fake_mode(args: Sequence[Any]) -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    for arg in args:
        if isinstance(arg, torch.Tensor) and hasattr(arg, "fake_mode"):
            return arg.fake_mode
    for mode in reversed(_get_current_dispatch_mode_stack()):
        if isinstance(mode, FakeTensorMode):
            return mode
    return None


__all__ = ["Block", "Compiler", "Frame", "Instruction", "ReferenceProgram", "class_of"]
