#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write results.tsv: the rules for dtypes and sizes of operators' results.

Run it by its path with the built package and the pinned PyTorch beside it. Nothing is written
down by hand: PyTorch's own samples (torch.testing._internal) are run, and calls that are made
of them with other dtypes, ranks, numbers and flags. Of a small set of rules an operator gets the
first that is right on all that was seen, and that enough different calls tell apart from the
others. An operator that no rule explains gets none.

The rules themselves stand in csrc/torchscript/Shapes.cpp and nowhere else: this program asks the
importer what a rule says. PyTorch's shape functions are among them, for the operators that it has
them for and for all others that they happen to be right for.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import pickle
import random
import resource
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from torch_mlir._mlir_libs import _jit_ir_importer as native  # type: ignore[attr-defined]
from torch_mlir.dtypes import DTYPE_TO_INT
from torch_mlir.operators._results import NONE, RESULTS_PATH, parse, text_of
from torch_mlir.operators._table import Argument, Schema, Type, load

HEADER = """\
Rules for the results of operators, found by regenerate_results.py from what PyTorch {version} \
does. The format
is explained in _results.py, the rules in csrc/torchscript/Shapes.h.

{summary}
"""

SEED = 20
# Samples of one entry of op_db with one dtype.
MOST_SAMPLES = 16
MOST_TRACED = 5
# Calls of an operator that others are made of, and calls made of each.
MOST_BASES = 12
MOST_MUTANTS = 70
# Calls of which all operands get others' dtypes at once, and how many of each.
MOST_CATEGORISED = 2
MOST_CATEGORIES = 250
# How often calls are changed, one change on the other.
MUTATIONS = 3
# For the calls that are made of an operator's.
MOST_SECONDS = 15
MOST_MEMORY = 3 << 29
# What calls raise that PyTorch refuses, or that samples of others than CPUs make.
REFUSALS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    ImportError,
)
# Elements of a tensor: larger ones tell nothing more.
MOST_ELEMENTS = 1 << 14
# Different calls that a rule has to explain, and for what part of them it has to tell all of a
# result's sizes. (A list may have a -1 in it, which stands for what the rest leaves, a shape
# function asserts more than it has to.) Rules that aren't here tell them always.
LEAST_CALLS = 8
LEAST_COMPLETE = {
    "list": 0.5,
    "replace": 0.5,
    "append": 0.3,
    "count": 0.1,
    "repeat": 0.9,
    "function": 0.9,
    "rank": 0.0,
}
# A shape function that PyTorch has for that operator.
LEAST_COMPLETE_STATED = 0.2

SAMPLE_DTYPES = (
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
    torch.complex64,
)
NUMBERS = (3, 2.5, True, 1 + 1j, 7, -1.5, False, 0)
CATEGORIES = (
    torch.float32,
    torch.float64,
    torch.int64,
    torch.int32,
    torch.bool,
    torch.complex64,
    torch.uint8,
)
OTHER_DTYPES = (*SAMPLE_DTYPES, torch.float16, torch.int16, torch.complex128)


@dataclass
class Call:
    """Arguments in the schema's order."""

    arguments: list[Any]

    def facts(self) -> list[Any]:
        return [fact(argument) for argument in self.arguments]


@dataclass
class Observed:
    """What an overload does. ``calls`` are those to make others of."""

    overload: torch._ops.OpOverload
    calls: list[Call] = field(default_factory=list)
    # By the operands and results as text: both as the importer takes them.
    seen: dict[str, tuple[list[Any], list[Any]]] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)


@functools.cache
def lengths_of(overload: torch._ops.OpOverload) -> list[int | None]:
    """Of arguments that are lists of so many, where one number may stand for all, how many."""
    kinds = [bare(argument.type) for argument in table_schema(overload).arguments]
    return [kind.size if kind.name == "List" else None for kind in kinds]


def spread(overload: torch._ops.OpOverload, operands: list[Any]) -> list[Any]:
    """The operands as TorchScript has them: lists where Python may give a number."""
    return [
        [each] * length if length is not None and isinstance(each, (int, float)) else each
        for each, length in zip(operands, lengths_of(overload), strict=True)
    ]


def is_plain(operands: Any) -> bool:
    """Whether a call can be made of what is known of its operands."""
    if isinstance(operands, list):
        return all(map(is_plain, operands))
    return operands is not ...


def value_of(operand: Any) -> Any:
    """An operand as it's known: a tensor of ones for one."""
    if isinstance(operand, tuple):
        dtypes = {number: dtype for dtype, number in DTYPE_TO_INT.items()}
        return torch.ones(operand[0], dtype=dtypes[operand[1]])
    return [value_of(each) for each in operand] if isinstance(operand, list) else operand


def fact(value: Any) -> Any:
    """What the importer is told of an operand."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.dtype not in DTYPE_TO_INT:
            return ...
        return (list(value.shape), DTYPE_TO_INT[value.dtype])
    if isinstance(value, torch.dtype):
        return DTYPE_TO_INT[value]
    if isinstance(value, (list, tuple, torch.Size)):
        return [fact(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return ...


def in_order(overload: torch._ops.OpOverload, args: Sequence[Any], kwargs: Any) -> Call | None:
    """The arguments in the schema's order, defaults filled in."""
    arguments: list[Any] = []
    for index, argument in enumerate(overload._schema.arguments):
        if index < len(args):
            arguments.append(args[index])
        elif argument.name in kwargs:
            arguments.append(kwargs[argument.name])
        elif argument.has_default_value():
            arguments.append(argument.default_value)
        else:
            return None
    return Call(arguments)


def run(overload: torch._ops.OpOverload, call: Call) -> Any:
    positional, named = [], {}
    for argument, value in zip(overload._schema.arguments, call.arguments, strict=True):
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    return overload(*positional, **named)


class Observations:
    def __init__(self) -> None:
        self.overloads: dict[str, Observed] = {}
        self.frozen = False

    def save(self, path: Path) -> None:
        with path.open("wb") as file:
            pickle.dump({name: own.seen for name, own in self.overloads.items()}, file)

    def load(self, path: Path) -> None:
        with path.open("rb") as file:
            for name, seen in pickle.load(file).items():
                namespace, _, rest = name.partition("::")
                packet, _, overload = rest.partition(".")
                try:
                    packets = getattr(torch.ops, namespace)
                    own = getattr(getattr(packets, packet), overload or "default")
                except AttributeError:
                    continue  # what a library registers when it is asked to
                self.overloads[name] = Observed(own)
                for operands, results in seen.values():
                    operands = spread(own, operands)
                    known = self.overloads[name]
                    known.seen[repr((operands, results))] = (operands, results)
                    if len(known.calls) < MOST_BASES and is_plain(operands):
                        known.calls.append(Call([value_of(each) for each in operands]))

    def wanted(self, overload: Any) -> bool:
        if not isinstance(overload, torch._ops.OpOverload):
            return False
        schema = overload._schema
        if schema.is_mutable or not schema.returns:
            return False
        return any(str(result.type) in ("Tensor", "List[Tensor]") for result in schema.returns)

    def note(self, overload: Any, args: Sequence[Any], kwargs: Any, result: Any) -> None:
        if not self.wanted(overload):
            return
        call = in_order(overload, args, kwargs)
        if call is None:
            return
        leaves = [leaf for leaf in tree_flatten(call.arguments)[0] if torch.is_tensor(leaf)]
        if any(leaf.numel() > MOST_ELEMENTS for leaf in leaves):
            return
        own = self.overloads.setdefault(overload.name(), Observed(overload))
        is_several = len(overload._schema.returns) > 1
        results = list(result) if is_several else [result]
        if len(results) != len(overload._schema.returns):
            return
        operands = spread(overload, call.facts())
        given = [
            fact(each) if torch.is_tensor(each) or isinstance(each, (list, tuple)) else None
            for each in results
        ]
        if any(each is ... or (isinstance(each, list) and ... in each) for each in given):
            return
        key = repr((operands, given))
        if key in own.seen:
            return
        own.seen[key] = (operands, given)
        # One call of each kind to make others of.
        kind = repr([shape_of(each) for each in operands])
        if not self.frozen and kind not in own.kinds and len(own.calls) < MOST_BASES:
            own.kinds.add(kind)
            own.calls.append(call)


def shape_of(operand: Any) -> Any:
    """What operands of one kind have in common."""
    if isinstance(operand, tuple):
        return ("tensor", len(operand[0]))
    if isinstance(operand, list):
        return [shape_of(each) for each in operand]
    if isinstance(operand, (bool, str)):
        return operand
    return type(operand).__name__


class Dispatched(TorchDispatchMode):
    """Notes what reaches kernels."""

    def __init__(self, observations: Observations) -> None:
        super().__init__()
        self.observations = observations

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.observations.note(func, args, kwargs or {}, result)
        return result


class Called(TorchFunctionMode):
    """Notes what Python calls, operators that consist of others among it."""

    def __init__(self, observations: Observations) -> None:
        super().__init__()
        self.observations = observations

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        note_packet(self.observations, getattr(func, "__name__", ""), args, kwargs or {}, result)
        return result


def resolve(name: str, args: Sequence[Any], kwargs: Any) -> Any:
    """The overload of aten that takes the arguments; None without one."""
    packet = getattr(torch.ops.aten, name, None) if name.isidentifier() else None
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return None
    try:
        return getattr(packet, torch._C._jit_resolve_packet(f"aten::{name}", *args, **kwargs))
    except (RuntimeError, AttributeError):
        return None


def note_packet(
    observations: Observations, name: str, args: Sequence[Any], kwargs: Any, result: Any
) -> None:
    overload = resolve(name, args, kwargs)
    if overload is not None:
        observations.note(overload, args, kwargs, result)


# ----------------------------------------------------------------------------------------------
# What is run
# ----------------------------------------------------------------------------------------------


def run_samples(observations: Observations, only: str | None) -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    for number, info in enumerate(op_db):
        if only is not None and only not in info.name:
            continue
        if number % 50 == 0:
            print(f"  {number} of {len(op_db)} entries", file=sys.stderr)
        supported = info.supported_dtypes("cpu")
        for dtype in SAMPLE_DTYPES:
            if dtype not in supported:
                continue
            torch.manual_seed(SEED)
            try:
                samples = [*itertools.islice(info.sample_inputs("cpu", dtype), MOST_SAMPLES)]
            except REFUSALS:  # some samples want what isn't installed
                continue
            for index, sample in enumerate(samples):
                args = (sample.input, *sample.args)
                run_sample(observations, info, args, sample.kwargs)
                if index < MOST_TRACED:
                    run_traced(observations, info, args, sample.kwargs)


class Traced(torch.nn.Module):
    """A call of an operator on tensors alone."""

    def __init__(self, function: Any, leaves: list[Any], spec: Any) -> None:
        super().__init__()
        self.function, self.leaves, self.spec = function, leaves, spec

    def forward(self, *tensors: torch.Tensor) -> Any:
        rest = iter(tensors)
        leaves = [next(rest) if torch.is_tensor(leaf) else leaf for leaf in self.leaves]
        args, kwargs = tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)


def run_traced(observations: Observations, info: Any, args: Sequence[Any], kwargs: Any) -> None:
    """Note the operators that a trace has: what TorchScript calls, whatever it consists of."""
    leaves, spec = tree_flatten((tuple(args), kwargs))
    tensors = tuple(leaf for leaf in leaves if torch.is_tensor(leaf))
    try:
        with torch.no_grad():
            traced = torch.jit.trace(
                Traced(info.op, leaves, spec), tensors, check_trace=False, strict=False
            )
        nodes = [*traced.inlined_graph.nodes()]
    except REFUSALS:  # what can't be traced isn't in TorchScript's archives that way
        return
    for node in nodes:
        arguments = [constant_of(each) for each in node.inputs()]
        text = node.schema() if node.kind().startswith("aten::") else "(no schema)"
        if "(no schema)" in text or any(each is ... for each in arguments):
            continue
        schema = torch._C.parse_schema(text)
        packet = getattr(torch.ops.aten, schema.name.partition("::")[2], None)
        overload = getattr(packet, schema.overload_name or "default", None)
        if observations.wanted(overload) and len(arguments) == len(schema.arguments):
            attempt(observations, overload, Call(arguments))


def constant_of(value: Any) -> Any:
    """A value in a trace: a tensor like it, or the constant that it is; ... for others."""
    kind = value.type()
    if isinstance(kind, torch._C.TensorType):
        sizes, dtype = kind.sizes(), kind.dtype()
        if sizes is None or dtype is None:
            return ...
        with torch.no_grad():
            return torch.ones(sizes, dtype=dtype)
    if value.node().kind() == "prim::Constant":
        return value.toIValue()
    if value.node().kind() == "prim::ListConstruct":
        elements = [constant_of(each) for each in value.node().inputs()]
        return ... if any(each is ... for each in elements) else elements
    return ...


def run_simple(observations: Observations, only: str | None) -> None:
    """Call what PyTorch has no samples of, and takes but tensors and numbers."""
    for key, schema in load().items():
        namespace, _, rest = key.partition(".")
        packet, _, name = rest.partition(".")
        overload = getattr(
            getattr(getattr(torch.ops, namespace), packet, None), name or "default", None
        )
        if overload is None or not observations.wanted(overload):
            continue
        if overload.name() in observations.overloads:
            continue
        if only is not None and only not in overload.name() or "inplace" in schema.flags:
            continue
        known = observations.overloads.setdefault(overload.name(), Observed(overload))
        for sizes in ((), (3,), (2, 3), (2, 3, 4, 5)):
            for number in (3, 2.5, True):
                arguments = [simple(argument, sizes, number) for argument in schema.arguments]
                if ... in arguments or len(arguments) != len(overload._schema.arguments):
                    continue
                call = Call(arguments)
                seen = in_child(functools.partial(seen_of, observations, known, call))
                if seen:
                    known.calls.append(call)
                    known.seen.update(seen)


def seen_of(observations: Observations, own: Observed, call: Call) -> dict[str, Any]:
    """What is known of an operator after one more call."""
    return dict(own.seen) if attempt(observations, own.overload, call) else {}


def simple(argument: Argument, sizes: Sequence[int], number: Any) -> Any:
    """A value for an argument; ... for one of a type that this has none for."""
    if argument.default is not None:
        return argument.default_value
    kind = argument.type.name
    if kind == "Optional":
        return None
    if kind == "Tensor":
        return torch.ones(sizes)
    if kind in ("Scalar", "number"):
        return number
    if kind == "float":
        return float(number)
    if kind in ("int", "SymInt"):
        return int(number)
    return bool(number) if kind == "bool" else ...


def run_sample(observations: Observations, info: Any, args: Sequence[Any], kwargs: Any) -> None:
    try:
        with torch.no_grad(), Dispatched(observations), Called(observations):
            result = info.op(*args, **kwargs)
    except REFUSALS:  # samples for other devices and other options
        return
    note_packet(observations, info.aten_name, args, kwargs, result)
    # Operators that consist of others are called by their own name as well.
    overload = resolve(info.aten_name, args, kwargs)
    call = in_order(overload, args, kwargs) if observations.wanted(overload) else None
    if call is not None:
        attempt(observations, overload, call)


def attempt(observations: Observations, overload: torch._ops.OpOverload, call: Call) -> bool:
    """Make a call, which may be refused; whether it wasn't."""
    try:
        with torch.no_grad():
            result = run(overload, call)
    except REFUSALS:  # what PyTorch refuses has no results to explain
        return False
    observations.note(overload, call.arguments, {}, result)
    return True


def tensors_in(call: Call) -> list[tuple[int, int | None]]:
    """Where the tensors are: the argument, and the place in it if it is a list."""
    found: list[tuple[int, int | None]] = []
    for index, value in enumerate(call.arguments):
        if torch.is_tensor(value):
            found.append((index, None))
        elif isinstance(value, (list, tuple)):
            found += [(index, place) for place, each in enumerate(value) if torch.is_tensor(each)]
    return found


def replaced(call: Call, index: int, place: int | None, value: Any) -> Call:
    arguments = list(call.arguments)
    if place is None:
        arguments[index] = value
    else:
        arguments[index] = [*arguments[index]]
        arguments[index][place] = value
    return Call(arguments)


def tensor_at(call: Call, index: int, place: int | None) -> torch.Tensor:
    value = call.arguments[index]
    return value if place is None else value[place]


def reshaped(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Tensors of other shapes."""
    yield tensor.unsqueeze(0)
    if tensor.dim():
        yield tensor.reshape(-1)[:1].reshape(()) if tensor.numel() else tensor
        yield tensor[:1]
        yield tensor[..., :1]
        yield tensor[0] if tensor.shape[0] else tensor
        yield torch.cat([tensor, tensor], 0)
        yield torch.cat([tensor, tensor], -1)
        yield tensor.transpose(0, -1)


def mutants(call: Call, schema: Any) -> Iterator[Call]:
    """Calls that differ in something."""
    places = tensors_in(call)
    for dtype in OTHER_DTYPES:
        everywhere = call
        for index, place in places:
            other = tensor_at(call, index, place).to(dtype)
            everywhere = replaced(everywhere, index, place, other)
            yield replaced(call, index, place, other)
            if other.dim() and other.numel():
                yield replaced(call, index, place, other.reshape(-1)[0])
        yield everywhere
        for index, argument in enumerate(schema.arguments):
            if str(argument.real_type) in ("number", "Optional[number]"):
                for number in (3, 2.5, True, 1 + 1j):
                    yield replaced(everywhere, index, None, number)
    for index, place in places:
        for other in reshaped(tensor_at(call, index, place)):
            yield replaced(call, index, place, other)
    for count in range(8):
        # All tensors alike.
        everywhere = call
        for index, place in places:
            choices = [*reshaped(tensor_at(call, index, place))]
            if count < len(choices):
                everywhere = replaced(everywhere, index, place, choices[count])
        yield everywhere
    for index, argument in enumerate(schema.arguments):
        value = call.arguments[index]
        kind = str(argument.real_type)
        if kind in ("number", "Optional[number]"):
            for number in (3, 2.5, True, 1 + 1j):
                yield replaced(call, index, None, number)
        elif "ScalarType" in kind:
            for dtype in (torch.float64, torch.float16, torch.int64, torch.bool, None):
                yield replaced(call, index, None, dtype)
        elif isinstance(value, bool):
            yield replaced(call, index, None, not value)
        elif isinstance(value, int):
            for number in (0, 1, 2, -1, value + 1, value - 1):
                yield replaced(call, index, None, number)
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], int):
            yield replaced(call, index, None, [number + 1 for number in value])
            yield replaced(call, index, None, [number - 1 for number in value])
            yield replaced(call, index, None, [*value[1:]])
            yield replaced(call, index, None, [*value, 1])
            yield replaced(call, index, None, [*reversed(value)])
        if kind.startswith("Optional") and value is not None:
            yield replaced(call, index, None, None)
        if value is None and kind in ("Optional[int]", "Optional[SymInt]"):
            for number in (0, 1, -1):
                yield replaced(call, index, None, number)
        if value is None and kind in ("Optional[List[int]]", "Optional[List[SymInt]]"):
            for numbers in ([0], [1], [0, 1], [2, 3]):
                yield replaced(call, index, None, numbers)


def categories(call: Call, schema: Any) -> Iterator[Call]:
    """Calls with tensors and numbers of all dtypes, with dimensions and without, in each other's
    company, and without a dtype that is given: what promotion depends on."""
    places = tensors_in(call)[:4]
    numbers = [
        index
        for index, argument in enumerate(schema.arguments)
        if str(argument.real_type) in ("number", "Optional[number]")
    ][: max(0, 4 - len(places))]
    for index, argument in enumerate(schema.arguments):
        if str(argument.real_type) == "Optional[ScalarType]":
            call = replaced(call, index, None, None)
    choices: list[list[tuple[int, int | None, Any]]] = []
    for index, place in places:
        tensor = tensor_at(call, index, place)
        others = [tensor.to(dtype) for dtype in CATEGORIES]
        others += [each.reshape(-1)[0] for each in others if each.dim() and each.numel()]
        choices.append([(index, place, each) for each in others])
    for index in numbers:
        choices.append([(index, None, each) for each in NUMBERS])
    chosen = random.Random(SEED)
    product = 1
    for each in choices:
        product *= len(each)
    combinations: Iterable[Any] = itertools.product(*choices)
    if product > MOST_CATEGORIES:
        combinations = ([chosen.choice(each) for each in choices] for _ in range(MOST_CATEGORIES))
    for combination in combinations if choices else ():
        made = call
        for index, place, value in combination:
            made = replaced(made, index, place, value)
        yield made


def is_small(call: Call) -> bool:
    """Whether a call can't take long: numbers and lists of them tell sizes."""
    product = 1
    for value in tree_flatten(call.arguments)[0]:
        if isinstance(value, int) and not isinstance(value, bool):
            product *= max(abs(value), 1)
    return product <= MOST_ELEMENTS


def run_mutants(observations: Observations, only: str | None) -> None:
    observations.frozen = True
    for number, (name, own) in enumerate(sorted(observations.overloads.items())):
        if only is not None and only not in name:
            continue
        if number % 100 == 0:
            print(f"  {number} of {len(observations.overloads)} operators", file=sys.stderr)
        own.seen.update(in_child(functools.partial(mutants_of, observations, own)))


def attempt_categories(observations: Observations, own: Observed) -> None:
    for call in own.calls[:MOST_CATEGORISED]:
        for other in itertools.islice(categories(call, own.overload._schema), MOST_CATEGORIES):
            attempt(observations, own.overload, other)


def categories_of(observations: Observations, own: Observed) -> dict[str, Any]:
    known = set(own.seen)
    attempt_categories(observations, own)
    return {key: value for key, value in own.seen.items() if key not in known}


def mutants_of(observations: Observations, own: Observed) -> dict[str, Any]:
    chooser = random.Random(SEED)
    known = set(own.seen)
    until = time.monotonic() + MOST_SECONDS
    attempt_categories(observations, own)
    calls = own.calls
    for _ in range(MUTATIONS):
        accepted = []
        for call in calls:
            try:
                made = [*mutants(call, own.overload._schema)]
            except REFUSALS:  # a tensor that can't be changed so
                continue
            chooser.shuffle(made)
            for other in made[:MOST_MUTANTS]:
                if not is_small(other) or time.monotonic() > until:
                    continue
                if attempt(observations, own.overload, other):
                    accepted.append(other)
        # Some of what was made is changed again.
        chooser.shuffle(accepted)
        calls = accepted[:MOST_BASES]
    return {key: value for key, value in own.seen.items() if key not in known}


def in_child(function: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a function gives that may crash: it runs in a process of its own, within limits.

    Kernels aren't safe from arguments that nobody passes.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (2 * MOST_SECONDS, 2 * MOST_SECONDS))
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writing, "wb") as file:
            pickle.dump(function(), file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        data = file.read()
    _, status = os.waitpid(child, 0)
    return cast("dict[str, Any]", pickle.loads(data)) if status == 0 else {}


# ----------------------------------------------------------------------------------------------
# Rules
# ----------------------------------------------------------------------------------------------


def bare(type: Type) -> Type:
    while type.name == "Optional":
        type = type.element
    return type


class Candidates:
    """The rules that may be an operator's, simplest first."""

    def __init__(self, schema: Schema, stated: str | None) -> None:
        self.stated = stated
        self.arguments = schema.arguments
        kinds = [(argument.name, bare(argument.type)) for argument in schema.arguments]
        self.tensors = [name for name, kind in kinds if kind.name == "Tensor"]
        self.lists = [
            name
            for name, kind in kinds
            if kind.name == "List" and bare(kind.element).name == "Tensor"
        ]
        self.numbers = [name for name, kind in kinds if kind.name in ("Scalar", "number")]
        self.dtypes = [name for name, kind in kinds if kind.name == "ScalarType" or name == "dtype"]
        self.ints = [name for name, kind in kinds if kind.name in ("int", "SymInt")]
        self.int_lists = [
            name
            for name, kind in kinds
            if kind.name == "List" and kind.element.name in ("int", "SymInt")
        ]
        self.bools = [name for name, kind in kinds if kind.name == "bool"]
        self.names = {name for name, _ in kinds}

    def of_dtype(self, is_varied: bool) -> Iterator[str]:
        """``is_varied``: operands of several dtypes were seen, so that a constant is one."""
        constants = ("bool", "int64", "int32", "float32", "uint8", "float64", "complex64")
        if is_varied:
            yield from constants
        bases = [f"of({name})" for name in (*self.tensors, *self.lists)]
        groups = [
            *((name,) for name in (*self.lists, *self.numbers)),
            *itertools.combinations((*self.tensors, *self.lists, *self.numbers), 2),
            *itertools.combinations((*self.tensors, *self.numbers), 3),
            (*self.tensors, *self.lists),
            (*self.tensors, *self.lists, *self.numbers),
        ]
        for group in groups:
            rule = f"promote({','.join(group)})"
            if group and rule not in bases:
                bases.append(rule)
        for base in bases:
            yield base
        for base in bases:
            yield f"default({base})"
            yield f"wide({base})"
            yield f"truth({base})"
            yield f"real({base})"
            yield f"real(default({base}))"
            yield f"complex({base})"
            yield f"complex(default({base}))"
        for name in self.dtypes:
            yield f"given({name})"
            for base in bases:
                yield f"given({name},{base})"
                yield f"given({name},default({base}))"
                yield f"given({name},wide({base}))"
                yield f"given({name},real({base}))"
            yield f"given({name},float32)"
            yield f"given({name},int64)"
        if not self.tensors:
            yield from constants

    def of_parts(self) -> Iterator[str]:
        for name in self.tensors[:1]:
            for dim in self.ints:
                yield f"unbind({name},{dim})"
            for number in (*self.ints, *self.int_lists):
                for dim in (*self.ints, "0"):
                    if dim != number:
                        yield f"split({name},{number},{dim})"
                        yield f"chunk({name},{number},{dim})"

    def of_sizes(self) -> Iterator[str]:
        yield "scalar"
        for name in self.tensors:
            yield f"of({name})"
        groups = [
            *((name,) for name in self.lists),
            *itertools.combinations(self.tensors, 2),
            *itertools.combinations(self.tensors, 3),
            (*self.tensors, *self.lists),
        ]
        for group in groups:
            if group:
                yield f"broadcast({','.join(group)})"
        if self.stated is not None:
            yield from self.of_function(self.stated, by_name=False)
        for name in self.int_lists:
            yield f"list({name})"
        for name in self.tensors[:1]:
            for dims in (*self.ints, *self.int_lists):
                yield f"reduce({name},{dims})"
                for keep in self.bools:
                    yield f"reduce({name},{dims},{keep})"
                yield f"reduce({name},{dims},True)"
            for keep in self.bools:
                yield f"reduce({name},None,{keep})"
            for dim, number in itertools.permutations(self.ints, 2):
                yield f"replace({name},{dim},{number})"
            for number in self.ints:
                yield f"append({name},{number})"
            for numbers in self.int_lists:
                yield f"repeat({name},{numbers})"
                yield f"pad({name},{numbers})"
                yield f"last({name},{numbers})"
                for dim in self.ints:
                    yield f"unflatten({name},{dim},{numbers})"
            for other in self.tensors[1:]:
                yield f"product({name},{other})"
                for third in self.tensors[1:]:
                    if third != other:
                        yield f"product({name},{other},{third})"
            yield from self.of_windows()
        for count in (1, 2, 3):
            if self.numbers[:count] and len(self.numbers) >= count:
                yield f"count({','.join(self.numbers[:count])})"
        for function in sorted(FUNCTIONS):
            yield from self.of_function(function, by_name=False)
        for function in sorted(FUNCTIONS):
            yield from self.of_function(function, by_name=True)
        for name in self.tensors:
            yield f"rank({name})"

    def of_windows(self) -> Iterator[str]:
        """Pooling and transposed convolutions, whose arguments have the same names everywhere."""
        own = [
            *(name for name in ("self", "input") if name in self.names),
            *(name for name in ("kernel_size", "stride", "padding") if name in self.names),
        ]
        dilation = "dilation" if "dilation" in self.names else "1"
        if len(own) == 4 and "ceil_mode" in self.names:
            yield f"pool({','.join((*own, dilation, 'ceil_mode'))})"
        names = ("input", "weight", "stride", "padding", "output_padding", "groups", "dilation")
        if self.names.issuperset(names):
            yield f"transposed({','.join(names)})"

    def of_function(self, function: str, by_name: bool) -> Iterator[str]:
        parameters = FUNCTIONS[function]
        if not by_name:
            if len(parameters) <= len(self.arguments):
                names = (argument.name for argument in self.arguments[: len(parameters)])
                yield f"function({','.join((function, *names))})"
            return
        choices: list[list[str]] = []
        for parameter in parameters:
            same = next((own for own in SAME.get(parameter, (parameter,)) if own in self.names), "")
            choices.append([same] if same else ["None", "1", "0", "True", "False"])
        missing = sum(len(each) > 1 for each in choices)
        if missing > 2 or missing >= len(parameters) - 1 or len(parameters) < 2:
            return
        for chosen in itertools.product(*choices):
            yield f"function({','.join((function, *chosen))})"


FUNCTIONS: dict[str, list[str]] = {}

# Names that PyTorch gives to one and the same argument.
SAME = {
    "self": ("self", "input"),
    "input": ("input", "self"),
    "li": ("self", "input"),
    "out": ("output_size",),
    "sizes": ("size", "shape"),
    "dims": ("dim", "dims"),
    "tensor1": ("self",),
    "tensor2": ("other",),
}


def stated_functions() -> dict[str, str]:
    """What PyTorch itself says: by operator, the shape function."""
    from torch.jit._shape_functions import shape_compute_graph_mapping

    found = {}
    for schema, function in shape_compute_graph_mapping.items():
        parsed = torch._C.parse_schema(schema)
        name = f"{parsed.name}.{parsed.overload_name}".rstrip(".")
        called = getattr(function, "name", None) or getattr(function, "__name__", "")
        if called in FUNCTIONS:
            found[name] = called
    return found


def find_rule(
    candidates: Iterable[str],
    kind: str,
    which: int,
    schema: str,
    observed: Sequence[tuple[list[Any], Any]],
    stated: str | None = None,
) -> tuple[str, int] | None:
    """Of the rules that are never wrong the first of those that say most; and how often it does."""
    operands = [each[0] for each in observed]
    expected = [each[1] for each in observed]
    # Most rules are refuted by one of these.
    few = range(0, len(observed), max(1, len(observed) // 24))
    short = [operands[i] for i in few], [expected[i] for i in few]
    best: tuple[str, int] | None = None
    for rule in candidates:
        if not native.check_rule(rule, kind, which, schema, *short)[0]:
            continue
        right, told, said = native.check_rule(rule, kind, which, schema, operands, expected)
        if not right:
            continue
        if kind == "dtype":
            if said == len(observed):
                return rule, said
            continue
        # Ranks tell nothing of sizes, so that they have to be told always.
        if rule.startswith("rank(") and told < len(observed):
            continue
        if kind == "parts":
            if said == len(observed):
                return rule, said
            continue
        least = LEAST_COMPLETE.get(rule.partition("(")[0], 1.0)
        if stated is not None and rule.startswith(f"function({stated},"):
            least = LEAST_COMPLETE_STATED
        if said >= least * len(observed) and (best is None or said > best[1]):
            best = rule, said
            if said == len(observed):
                break
    return best


def rules_of_list(own: Observed) -> tuple[str, str]:
    """An overload's rules for the list of tensors that it gives."""
    text = str(own.overload._schema)
    observed = [
        (operands, results[0])
        for operands, results in own.seen.values()
        if isinstance(results[0], list) and all(isinstance(each, tuple) for each in results[0])
    ]
    if len(observed) < LEAST_CALLS or len(observed) < len(own.seen):
        return NONE, NONE
    candidates = Candidates(table_schema(own.overload), None)
    dtypes = [(operands, parts[0][1]) for operands, parts in observed if parts]
    found = find_rule(candidates.of_dtype(is_varied=False), "dtype", 0, text, dtypes)
    alike = all(len({part[1] for part in parts}) < 2 for _, parts in observed)
    dtype = NONE if found is None or "(" not in found[0] or not alike else found[0]
    sizes = [(operands, [part[0] for part in parts]) for operands, parts in observed]
    found = find_rule(candidates.of_parts(), "parts", 0, text, sizes)
    different = {repr(parts) for _, parts in sizes}
    return dtype, NONE if found is None or len(different) < LEAST_CALLS else found[0]


def rules_of(own: Observed, which: int, stated: str | None) -> tuple[str, str]:
    """An overload's rules for one of its results."""
    schema = own.overload._schema
    text = str(schema)
    observed = [
        (operands, results[which])
        for operands, results in own.seen.values()
        if isinstance(results[which], tuple)
    ]
    # An operator that gives a tensor only sometimes has no type to tell.
    if len(observed) < LEAST_CALLS or len(observed) < len(own.seen):
        return NONE, NONE
    candidates = Candidates(table_schema(own.overload), stated)
    dtypes = [(operands, result[1]) for operands, result in observed]
    sizes = [(operands, result[0]) for operands, result in observed]
    is_varied = len({repr(dtypes_in(operands)) for operands, _ in observed}) > 2
    found = find_rule(candidates.of_dtype(is_varied), "dtype", which, text, dtypes)
    dtype = NONE if found is None else found[0]
    if "(" not in dtype and candidates.tensors:
        # An operand that always has that dtype may be what gives it.
        same = (f"of({name})" for name in candidates.tensors)
        if find_rule(same, "dtype", which, text, dtypes) is not None:
            dtype = NONE
    found = find_rule(candidates.of_sizes(), "sizes", which, text, sizes, stated)
    rule = NONE if found is None else found[0]
    different = {repr(result) for _, result in sizes}
    if rule != "scalar" and len(different) < 4:
        rule = NONE
    if rule == "scalar" and candidates.tensors and len({repr(ranks_in(o)) for o, _ in sizes}) < 3:
        rule = NONE
    return dtype, rule


def dtypes_in(operands: Any) -> Any:
    if isinstance(operands, tuple):
        return operands[1]
    return [dtypes_in(each) for each in operands] if isinstance(operands, list) else None


def ranks_in(operands: Any) -> Any:
    if isinstance(operands, tuple):
        return operands[0]
    return [ranks_in(each) for each in operands] if isinstance(operands, list) else None


def table_schema(overload: torch._ops.OpOverload) -> Schema:
    from torch_mlir.operators._table import parse as parse_schema

    return parse_schema(str(overload._schema))


def is_inferable(schema: Schema) -> bool:
    """Whether an operator gives tensors and writes to nothing: what rules are for."""
    return not schema.is_mutable and any(str(result.type) == "Tensor" for result in schema.results)


def summary_of(rules: dict[str, list[str]]) -> tuple[str, list[str]]:
    """Counts over the operator table, and the operators without rules that tell all."""
    complete, partial, missing = 0, 0, []
    for key, schema in load().items():
        if not is_inferable(schema):
            continue
        own = rules.get(key.replace(".", "::", 1), [])
        told = [
            rule
            for index, result in enumerate(schema.results)
            if str(result.type) == "Tensor"
            for rule in (own[2 * index : 2 * index + 2] or [NONE, NONE])
        ]
        if all(rule != NONE and not rule.startswith("rank(") for rule in told):
            complete += 1
            continue
        partial += any(rule != NONE for rule in told)
        missing.append(key)
    text = (
        f"Of the {complete + len(missing)} operators of the table that give tensors and write to "
        f"nothing,\n{complete} have rules for all, {partial} for a part."
    )
    return text, missing


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=RESULTS_PATH)
    parser.add_argument(
        "--observed", type=Path, metavar="FILE", help="where calls are kept from run to run"
    )
    parser.add_argument("--only", metavar="TEXT", help="operators whose names contain this")
    parser.add_argument(
        "--list", action="store_true", help="write nothing; print which operators have no rules"
    )
    arguments = parser.parse_args(argv)
    if arguments.list:
        text, missing = summary_of(parse(RESULTS_PATH.read_text(encoding="utf-8")))
        print(text, *missing, sep="\n")
        return 0
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    FUNCTIONS.update(native.shape_functions())
    stated = stated_functions()
    observations = Observations()
    if arguments.observed is not None and arguments.observed.exists():
        observations.load(arguments.observed)
        observations.frozen = True
        for own in observations.overloads.values():
            own.seen.update(in_child(functools.partial(categories_of, observations, own)))
    else:
        run_samples(observations, arguments.only)
        run_simple(observations, arguments.only)
        run_mutants(observations, arguments.only)
        if arguments.observed is not None:
            observations.save(arguments.observed)
    rules: dict[str, list[str]] = {}
    counts: dict[str, int] = defaultdict(int)
    for name, own in sorted(observations.overloads.items()):
        found: list[str] = []
        for which, result in enumerate(own.overload._schema.returns):
            if str(result.type) == "List[Tensor]" and which == 0:
                found += rules_of_list(own)
            elif str(result.type) != "Tensor":
                found += [NONE, NONE]
            else:
                found += rules_of(own, which, stated.get(name))
        if any(rule != NONE for rule in found):
            rules[name] = found
        for rule in found:
            counts[rule.partition("(")[0]] += 1
    if arguments.only is not None:
        for name, found in rules.items():
            print(name, *found, len(observations.overloads[name].seen), sep="\t")
        return 0
    text, _ = summary_of(rules)
    print(text, dict(counts), sep="\n")
    part = arguments.output.with_name(arguments.output.name + ".part")
    header = HEADER.format(version=torch.__version__.partition("+")[0], summary=text)
    part.write_text(text_of(rules, header), encoding="utf-8")
    os.replace(part, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
