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
import math
import os
import pickle
import random
import re
import resource
import select
import signal
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
# Samples of one entry of op_db with one dtype, and of those traced and differentiated.
MOST_SAMPLES = 16
# Of as many those are chosen, evenly.
MOST_OFFERED = 64
MOST_TRACED = 5
MOST_DERIVED = 5
# Calls of others that an operator without samples is tried with.
MOST_LENT = 60
# Calls of an operator that others are made of, and calls made of each.
MOST_BASES = 12
MOST_MUTANTS = 40
# Calls of which all operands get others' dtypes at once, and how many of each.
MOST_CATEGORISED = 2
MOST_CATEGORIES = 250
# How often calls are changed, one change on the other.
MUTATIONS = 3
# Processor time for what one process does: the samples of an entry, the calls that are made of an
# operator's, or its rules. At four times as much it is ended from outside, as is what waits.
MOST_SECONDS = 2
MOST_WAIT = 120
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
    "product": 0.9,
    "index": 0.5,
    "rank": 0.0,
    "floats": 0.4,
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


def overload_named(name: str) -> torch._ops.OpOverload:
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    found = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    assert isinstance(found, torch._ops.OpOverload)
    return found


def dumped(call: Call) -> bytes | None:
    """A call's arguments; None for what can't be handed to another process."""
    try:
        data = pickle.dumps(call.arguments)
        pickle.loads(data)  # some tensors are written that can't be read
        return data
    except (*REFUSALS, pickle.PicklingError):
        return None


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
    if isinstance(value, torch.ScriptObject) and id(value) in MADE:
        return MADE[id(value)][1]
    return ...


# Objects of custom classes, by identity, and what is known of what they were made of.
MADE: dict[int, tuple[Any, list[Any]]] = {}


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

    def picklable(self, names: Iterable[str] | None = None) -> Any:
        """What was seen, and the calls that can be handed to another process."""
        found = {}
        for name, own in self.overloads.items():
            if names is None or name in names:
                found[name] = (
                    own.seen,
                    [call for call in map(dumped, own.calls) if call is not None],
                )
        return found

    def merge(self, found: Any) -> None:
        """Add what another has seen."""
        for name, (seen, calls) in found.items():
            own = self.overloads.get(name)
            if own is None:
                own = self.overloads[name] = Observed(overload_named(name))
            own.seen.update(seen)
            for call in map(Call, map(pickle.loads, calls)):
                self.keep(own, call, spread(own.overload, call.facts()))

    def keep(self, own: Observed, call: Call, operands: Any) -> None:
        """Keep one call of each kind to make others of."""
        kind = repr([shape_of(each) for each in operands])
        if not self.frozen and kind not in own.kinds and len(own.calls) < MOST_BASES:
            own.kinds.add(kind)
            own.calls.append(call)

    def save(self, path: Path) -> None:
        with path.open("wb") as file:
            pickle.dump({name: own.seen for name, own in self.overloads.items()}, file)

    def load(self, path: Path) -> None:
        # What these import registers operators, which were seen.
        from torch.testing._internal import (  # noqa: F401
            common_methods_invocations,
            common_modules,
            common_quantization,
        )

        with path.open("rb") as file:
            for name, seen in pickle.load(file).items():
                self.overloads[name] = Observed(overload_named(name), seen=seen)

    def wanted(self, overload: Any) -> bool:
        if not isinstance(overload, torch._ops.OpOverload):
            return False
        schema = overload._schema
        if schema.is_mutable or not schema.returns or overload.name() not in table_names():
            return False
        return any(str(result.type) in ("Tensor", "List[Tensor]") for result in schema.returns)

    def note(self, overload: Any, args: Sequence[Any], kwargs: Any, result: Any) -> None:
        if isinstance(result, torch.ScriptObject) and isinstance(overload, torch._ops.OpOverload):
            made_of = in_order(overload, args, kwargs)
            if made_of is not None:
                MADE[id(result)] = result, spread(overload, made_of.facts())
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
        # Nothing is known of these where they come from elsewhere, as the dispatcher's copies do.
        objects = [each for each in tree_flatten(call.arguments)[0] if is_object(each)]
        if any(id(each) not in MADE for each in objects):
            return
        # Of sparse tensors, which no archive is imported with, nothing is known.
        if any(fact(leaf) is ... for leaf in leaves):
            return
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
        self.keep(own, call, operands)


@functools.cache
def table_names() -> frozenset[str]:
    """The operators of the table, as PyTorch writes them."""
    return frozenset(key.replace(".", "::", 1) for key in load())


def is_object(value: Any) -> bool:
    """Whether it's one of a custom class: packed parameters."""
    return isinstance(value, torch.ScriptObject)


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
        if isinstance(func, torch._ops.OpOverload):
            self.observations.note(func, args, kwargs or {}, result)
        elif isinstance(func, torch._ops.OpOverloadPacket):
            name = func._qualified_op_name
            note_packet(self.observations, name, args, kwargs or {}, result)
        else:
            name = getattr(func, "__name__", "")
            note_packet(self.observations, f"aten::{name}", args, kwargs or {}, result)
        return result


def resolve(name: str, args: Sequence[Any], kwargs: Any) -> Any:
    """The overload, of a name such as aten::add, that takes the arguments; None without one."""
    namespace, _, rest = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), rest, None) if rest.isidentifier() else None
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return None
    try:
        overload = torch._C._jit_resolve_packet(name, *args, **kwargs)
        return getattr(packet, overload or "default")
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


class Progress:
    """A line on a terminal that says how far it is."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done = what, total, 0
        self.lost: list[str] = []
        self.began = time.monotonic()

    def step(self) -> None:
        self.done += 1
        if sys.stderr.isatty():
            print(f"\r{self.what}: {self.done} of {self.total}\x1b[K", end="", file=sys.stderr)

    def end(self) -> None:
        took = time.monotonic() - self.began
        start = "\r" if sys.stderr.isatty() else ""
        lost = f", not in time: {', '.join(self.lost)}" if self.lost else ""
        print(f"{start}{self.what}: {self.total} in {took:.0f} s{lost}", file=sys.stderr)


def run_samples(observations: Observations, jobs: int) -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    tasks = [(info.name, functools.partial(samples_of, info)) for info in op_db]
    for _, found in in_children("samples", tasks, jobs):
        observations.merge(found)


def samples_of(info: Any) -> Any:
    """What the samples of an entry of op_db show."""
    observations = Observations()
    until = time.process_time() + MOST_SECONDS
    supported = info.supported_dtypes("cpu")
    names = {info.aten_name, *(alias.name.replace(".", "_") for alias in info.aliases)}
    for number, dtype in enumerate(each for each in SAMPLE_DTYPES if each in supported):
        torch.manual_seed(SEED)
        # The first dtype has all samples: others differ in little but it.
        most = MOST_SAMPLES if number == 0 else MOST_TRACED
        try:
            samples = [*itertools.islice(info.sample_inputs("cpu", dtype), MOST_OFFERED)]
        except REFUSALS:  # some samples want what isn't installed
            continue
        for index, sample in enumerate(evenly(samples, most)):
            if time.process_time() > until:
                break
            args = (sample.input, *sample.args)
            run_sample(observations, info.op, names, args, sample.kwargs)
            if index < MOST_TRACED and number in (0, 3):
                run_traced(observations, info, args, sample.kwargs)
            if index < MOST_DERIVED and number == 0 and dtype.is_floating_point:
                run_derived(observations, info, args, sample.kwargs)
    return observations.picklable()


def evenly(samples: Sequence[Any], most: int) -> Iterator[Any]:
    """At most so many, from the first on."""
    step = max(1, -(-len(samples) // most))
    return itertools.islice(samples, 0, None, step)


def run_derived(observations: Observations, info: Any, args: Sequence[Any], kwargs: Any) -> None:
    """Note the operators that derivatives are made of."""
    leaves, spec = tree_flatten((tuple(args), kwargs))
    leaves = [
        leaf.detach().clone().requires_grad_()
        if torch.is_tensor(leaf) and leaf.is_floating_point() and leaf.layout is torch.strided
        else leaf
        for leaf in leaves
    ]
    inputs = [leaf for leaf in leaves if torch.is_tensor(leaf) and leaf.requires_grad]
    again, named = tree_unflatten(leaves, spec)
    try:
        with Dispatched(observations):
            results = tree_flatten(info.op(*again, **named))[0]
            results = [each for each in results if torch.is_tensor(each) and each.requires_grad]
            if results and inputs:
                grads = [torch.ones_like(each) for each in results]
                torch.autograd.grad(results, inputs, grads, allow_unused=True)
    except REFUSALS:  # what has no derivative
        return


def run_modules(observations: Observations, jobs: int) -> None:
    """Run PyTorch's samples of modules, and these and its models for quantisation quantised."""
    from torch.testing._internal import common_quantization
    from torch.testing._internal.common_modules import module_db

    tasks = [(info.name, functools.partial(modules_of, info)) for info in module_db]
    for _, found in in_children("modules", tasks, jobs):
        observations.merge(found)
    models = {
        name: each
        for name, each in sorted(vars(common_quantization).items())
        if isinstance(each, type) and issubclass(each, torch.nn.Module) and "QAT" not in name
    }
    tasks = [
        *((info.name, functools.partial(quantised_of, module_samples(info))) for info in module_db),
        *(
            (name, functools.partial(quantised_of, model_samples(own)))
            for name, own in models.items()
        ),
    ]
    for _, found in in_children("quantised modules", tasks, jobs):
        observations.merge(found)


# Makes a module anew, and gives its arguments.
Sample = tuple[Callable[[], torch.nn.Module], Sequence[Any], dict[str, Any]]


def module_samples(
    info: Any, dtype: torch.dtype = torch.float32, is_training: bool = False
) -> Iterator[Sample]:
    torch.manual_seed(SEED)
    for sample in info.module_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=False, training=is_training
    ):
        made, given = sample.constructor_input, sample.forward_input
        yield (
            functools.partial(info.module_cls, *made.args, **made.kwargs),
            given.args,
            given.kwargs,
        )


def model_samples(made: Callable[[], torch.nn.Module]) -> Iterator[Sample]:
    torch.manual_seed(SEED)
    inputs = made().get_example_inputs()  # type: ignore[operator]
    yield made, inputs, {}
    if all(torch.is_tensor(each) and each.dim() for each in inputs):
        yield made, tuple(torch.cat([each, each]) for each in inputs), {}


def modules_of(info: Any) -> Any:
    """What the samples of a module show."""
    observations = Observations()
    until = time.process_time() + MOST_SECONDS
    for dtype, is_training in itertools.product((torch.float32, torch.float64), (False, True)):
        try:
            for make, args, kwargs in module_samples(info, dtype, is_training):
                if time.process_time() > until:
                    break
                module = make().to(dtype).train(is_training)
                run_sample(observations, module, (), args, kwargs)
        except REFUSALS:  # samples for other devices
            continue
    return observations.picklable()


class Made(TorchFunctionMode):
    """Notes what objects of custom classes are made of."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if is_object(result) and isinstance(func, torch._ops.OpOverloadPacket):
            note_packet(Observations(), func._qualified_op_name, args, kwargs or {}, result)
        return result


def quantised_of(samples: Iterator[Sample]) -> Any:
    """What modules show when they are quantised. What takes packed parameters is called with other
    arguments here: these can't be handed to another process."""
    from torch.ao import quantization

    observations = Observations()
    until = time.process_time() + MOST_SECONDS
    qconfigs = (quantization.default_qconfig, quantization.default_per_channel_qconfig)
    try:
        for make, args, kwargs in samples:
            for qconfig in (*qconfigs, None):
                if time.process_time() > until:
                    break
                torch.manual_seed(SEED)
                try:
                    with torch.no_grad(), Made():
                        module = quantised(make().eval(), qconfig, args, kwargs)
                except REFUSALS:  # what can't be quantised so
                    continue
                run_sample(observations, module, (), args, kwargs)
    except REFUSALS:  # samples for other devices, models without any
        pass
    for own in observations.overloads.values():
        own.calls = [
            call for call in own.calls if any(map(is_object, tree_flatten(call.arguments)[0]))
        ]
        if own.calls and time.process_time() < until:
            categories_of(observations, own)
            mutants_of(observations, own, until)
    return observations.picklable()


def quantised(module: torch.nn.Module, qconfig: Any, args: Any, kwargs: Any) -> torch.nn.Module:
    """A module quantised with what it computes on arguments, or dynamically without a qconfig."""
    from torch.ao import quantization

    if qconfig is None:
        return cast(
            "torch.nn.Module", quantization.quantize_dynamic(torch.nn.Sequential(module))[0]
        )
    wrapped = quantization.QuantWrapper(module)
    wrapped.qconfig = qconfig
    prepared = quantization.prepare(wrapped)
    prepared(*args, **kwargs)
    return cast("torch.nn.Module", quantization.convert(prepared))


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


def run_lent(observations: Observations, only: str | None, jobs: int) -> None:
    """Call what PyTorch has no samples of: as others are called that take the same, and with
    simple tensors and numbers."""
    lenders: dict[tuple[str, ...], list[Observed]] = defaultdict(list)
    for _, own in sorted(observations.overloads.items()):
        lenders[kinds_of(own.overload)].append(own)
    tasks = []
    for key, schema in load().items():
        namespace, _, rest = key.partition(".")
        packet, _, name = rest.partition(".")
        overload = getattr(
            getattr(getattr(torch.ops, namespace), packet, None), name or "default", None
        )
        if overload is None or not observations.wanted(overload):
            continue
        if overload.name() in observations.overloads or "inplace" in schema.flags:
            continue
        if only is not None and not re.search(only, overload.name()):
            continue
        calls = [
            call
            for round in itertools.zip_longest(
                *(own.calls for own in lenders.get(kinds_of(overload), ()))
            )
            for call in round
            if call is not None
        ]
        tasks.append((overload, functools.partial(lent_of, overload, schema, calls[:MOST_LENT])))
    for _, found in in_children("operators without samples", tasks, jobs):
        observations.merge(found)


def kinds_of(overload: torch._ops.OpOverload) -> tuple[str, ...]:
    return tuple(str(argument.real_type) for argument in overload._schema.arguments)


def lent_of(overload: torch._ops.OpOverload, schema: Schema, calls: Sequence[Call]) -> Any:
    """What an operator does with others' arguments, or with simple ones."""
    observations = Observations()
    until = time.process_time() + MOST_SECONDS
    made = [*calls]
    for sizes in ((), (3,), (2, 3), (2, 3, 4, 5)):
        for number in (3, 2.5, True, 1):
            for dtype in (torch.float32, torch.int64, torch.quint8, torch.qint8, torch.qint32):
                arguments = [simple(each, sizes, number, dtype) for each in schema.arguments]
                if ... not in arguments and len(arguments) == len(overload._schema.arguments):
                    made.append(Call(arguments))
    for call in made:
        if time.process_time() > until:
            break
        if is_small(call):
            attempt(observations, overload, call)
    return observations.picklable({overload.name()})


def simple(argument: Argument, sizes: Sequence[int], number: Any, dtype: torch.dtype) -> Any:
    """A value for an argument; ... for one of a type that this has none for."""
    if argument.default is not None:
        return argument.default_value
    kind = argument.type.name
    if kind == "Optional":
        return None
    if kind == "Tensor":
        # Small enough for indices, and not all alike: what sizes depend on values shows.
        values = (torch.arange(math.prod(sizes)) % 2).reshape(sizes)
        if dtype in (torch.quint8, torch.qint8, torch.qint32):
            return torch.quantize_per_tensor(values.float(), 0.1, 0, dtype)
        return values.to(dtype)
    if kind == "List" and argument.type.element.name in ("int", "SymInt"):
        return [int(number)] * (argument.type.size or len(sizes))
    if kind == "List" and argument.type.element.name == "Tensor":
        return [torch.ones(sizes, dtype=torch.float32)] * 2
    if kind == "ScalarType":
        return dtype
    if kind in ("Scalar", "number"):
        return number
    if kind == "float":
        return float(number)
    if kind in ("int", "SymInt"):
        return int(number)
    return bool(number) if kind == "bool" else ...


def run_sample(
    observations: Observations,
    function: Any,
    names: Iterable[str],
    args: Sequence[Any],
    kwargs: Any,
) -> None:
    """Call a function that operators of aten are named as, and note what it calls."""
    try:
        with torch.no_grad(), Dispatched(observations), Called(observations):
            function(*args, **kwargs)
        if isinstance(function, torch.nn.Module):
            # Some take shorter ways that are closed while Python's calls are noted.
            with torch.no_grad(), Dispatched(observations):
                function(*args, **kwargs)
    except REFUSALS:  # samples for other devices and other options
        return
    for name in sorted(names):
        # Operators that consist of others are called by their own name as well.
        overload = resolve(f"aten::{name}", args, kwargs)
        if observations.wanted(overload):
            call = in_order(overload, args, kwargs)
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


def cast_to(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of another dtype; quantized ones have none but their own."""
    return tensor if tensor.is_quantized else tensor.to(dtype)


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
            other = cast_to(tensor_at(call, index, place), dtype)
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
            dtypes = (torch.float64, torch.float16, torch.int64, torch.bool, None)
            for dtype in (*dtypes, torch.quint8, torch.qint8, torch.qint32):
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
        others = [cast_to(tensor, dtype) for dtype in CATEGORIES]
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


def run_mutants(observations: Observations, only: str | None, jobs: int) -> None:
    observations.frozen = True
    tasks = [
        # A call that crashes takes what its process has seen with it.
        (own, functools.partial(calls, observations, own))
        for name, own in sorted(observations.overloads.items())
        if only is None or re.search(only, name)
        for calls in (categories_of, mutants_of)
    ]
    for own, seen in in_children("operators", tasks, jobs):
        own.seen.update(seen)


def categories_of(observations: Observations, own: Observed) -> dict[str, Any]:
    """What an operator does with operands of other dtypes."""
    known = set(own.seen)
    for call in own.calls[:MOST_CATEGORISED]:
        for other in itertools.islice(categories(call, own.overload._schema), MOST_CATEGORIES):
            attempt(observations, own.overload, other)
    return {key: value for key, value in own.seen.items() if key not in known}


def mutants_of(
    observations: Observations, own: Observed, until: float | None = None
) -> dict[str, Any]:
    """What an operator does in calls that differ in something from those that were seen."""
    chooser = random.Random(SEED)
    known = set(own.seen)
    until = until or time.process_time() + MOST_SECONDS
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
                if not is_small(other) or time.process_time() > until:
                    continue
                if attempt(observations, own.overload, other):
                    accepted.append(other)
        # Some of what was made is changed again.
        chooser.shuffle(accepted)
        calls = accepted[:MOST_BASES]
    return {key: value for key, value in own.seen.items() if key not in known}


@dataclass
class Child:
    about: Any
    process: int
    reading: int
    until: float
    data: bytearray = field(default_factory=bytearray)
    is_done: bool = False
    result: Any = None


def in_children(
    what: str, tasks: Sequence[tuple[Any, Callable[[], Any]]], jobs: int
) -> Iterator[tuple[Any, Any]]:
    """What functions give that may crash, wait forever or take all memory: each runs in a process
    of its own, within limits. Gives what each is about, and its result, in their order; those
    that give none are left out.

    Kernels aren't safe from arguments that nobody passes.
    """
    progress = Progress(what, len(tasks))
    waiting = [*reversed(tasks)]
    children: list[Child] = []
    while waiting or children:
        while waiting and sum(not child.is_done for child in children) < jobs:
            children.append(start(*waiting.pop()))
        running = {child.reading: child for child in children if not child.is_done}
        ready, _, _ = select.select(list(running), [], [], 0.5)
        for descriptor, child in running.items():
            part = os.read(descriptor, 1 << 20) if descriptor in ready else b""
            child.data += part
            is_late = time.monotonic() > child.until
            if part and not is_late or descriptor not in ready and not is_late:
                continue
            if is_late:
                os.kill(child.process, signal.SIGKILL)
            os.close(descriptor)
            _, status = os.waitpid(child.process, 0)
            child.is_done = True
            progress.step()
            if status == 0:
                child.result = pickle.loads(bytes(child.data))
            else:
                progress.lost.append(name_of(child.about))
            child.data.clear()
        while children and children[0].is_done:
            child = children.pop(0)
            if child.result is not None:
                yield child.about, child.result
    progress.end()


def name_of(about: Any) -> str:
    if isinstance(about, Observed):
        about = about.overload
    return about if isinstance(about, str) else about.name()


def start(about: Any, function: Callable[[], Any]) -> Child:
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (4 * MOST_SECONDS, 4 * MOST_SECONDS))
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        status = 1
        try:
            data = pickle.dumps(function())
            with os.fdopen(writing, "wb") as file:
                file.write(data)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    return Child(about, process, reading, time.monotonic() + MOST_WAIT)


# ----------------------------------------------------------------------------------------------
# Rules
# ----------------------------------------------------------------------------------------------


def bare(type: Type) -> Type:
    while type.name == "Optional":
        type = type.element
    return type


@functools.cache
def makers() -> dict[str, list[Schema]]:
    """By class: the operators that make objects of it from tensors, those of fewest arguments
    first."""
    found: dict[str, list[Schema]] = defaultdict(list)
    for schema in load().values():
        kinds = [result.type.name for result in schema.results]
        taken = [bare(argument.type).name for argument in schema.arguments[:1]]
        if len(kinds) == 1 and kinds[0].startswith("__torch__.") and taken == ["Tensor"]:
            found[kinds[0]].append(schema)
    for schemas in found.values():
        schemas.sort(key=lambda schema: len(schema.arguments))
    return found


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
        self.texts = [name for name, kind in kinds if kind.name == "str"]
        self.optional_lists = [
            name
            for name, kind in kinds
            if kind.name == "List"
            and kind.element.name == "Optional"
            and bare(kind.element).name == "Tensor"
        ]
        # Arguments by their names; those that packed parameters are made of are parts of these.
        self.names = {name: name for name, _ in kinds}
        # Tensors, and those in short lists and in packed parameters.
        self.parts = [f"part({name},{i})" for name in self.lists for i in (0, 1)]
        for name, kind in kinds:
            for maker in makers().get(kind.name, ()):
                for index, argument in enumerate(maker.arguments):
                    self.names.setdefault(argument.name, f"part({name},{index})")
                    if argument.name != name and bare(argument.type).name == "Tensor":
                        part = f"part({name},{index})"
                        if part not in self.parts:
                            self.parts.append(part)

    def of_dtype(self, is_varied: bool) -> Iterator[str]:
        """``is_varied``: operands of several dtypes were seen, so that a constant is one."""
        constants = ("bool", "int64", "int32", "float32", "uint8", "float64", "complex64")
        if is_varied:
            yield from constants
        bases = [f"of({name})" for name in (*self.tensors, *self.lists)]
        bases += [f"of({name})" for name in self.parts if not name.endswith(",0)")]
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
        for name in self.numbers:
            yield f"number({name})"
        for name in self.tensors:
            yield f"stored(of({name}))"
        for name in self.dtypes:
            yield f"given({name})"
            for base in bases:
                yield f"given({name},{base})"
                yield f"given({name},default({base}))"
                yield f"given({name},wide({base}))"
                yield f"given({name},real({base}))"
            yield f"given({name},float32)"
            yield f"given({name},int64)"
            for number in self.numbers:
                yield f"given({name},number({number}))"
        if not self.tensors:
            yield from constants
        for base in bases:
            yield f"floats({base})"

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
        for name in (*self.tensors, *self.parts):
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
                        yield f"product({other},{third})"
            for source in (*self.tensors[1:], *self.parts):
                for place in (0, 1, -1):
                    number = f"size({source},{place})"
                    yield f"replace({name},-1,{number})"
                    yield f"replace({name},1,{number})"
                    for flag in self.bools:
                        yield f"replace({name},-1,twice({number},{flag}))"
            for indices in (*self.optional_lists, *self.lists):
                yield f"index({name},{indices})"
            yield from self.of_windows()
        for text in self.texts:
            for operands in self.lists:
                yield f"einsum({text},{operands})"
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
            *(name for name in ("self", "input", "qx") if name in self.names),
            *(
                self.names[name]
                for name in ("kernel_size", "stride", "padding")
                if name in self.names
            ),
        ]
        dilation = self.names.get("dilation", "1")
        if len(own) == 4 and "ceil_mode" in self.names:
            yield f"pool({','.join((*own, dilation, 'ceil_mode'))})"
        names = ("weight", "stride", "padding", "output_padding", "groups", "dilation")
        if set(names) <= self.names.keys():
            rest = ",".join(self.names[name] for name in names)
            yield f"transposed({self.tensors[0]},{rest})"
        windows = ("kernel_size", "dilation", "padding", "stride")
        if set(windows) <= self.names.keys():
            yield f"columns({self.tensors[0]},{','.join(self.names[name] for name in windows)})"
        if {"output_size", "kernel_size"} <= self.names.keys():
            yield f"image({self.tensors[0]},output_size,kernel_size)"

    def of_function(self, function: str, by_name: bool) -> Iterator[str]:
        parameters = FUNCTIONS[function]
        if not by_name:
            if len(parameters) <= len(self.arguments):
                names = (argument.name for argument in self.arguments[: len(parameters)])
                yield f"function({','.join((function, *names))})"
            return
        choices: list[list[str]] = []
        for parameter in parameters:
            known = (own for own in SAME.get(parameter, (parameter,)) if own in self.names)
            same = next((self.names[own] for own in known), "")
            if not same and parameter in ("input", "self") and self.tensors:
                same = self.tensors[0]
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
    "weight": ("weight", "W", "w"),
    "bias": ("bias", "B", "b"),
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
        right, _, said = native.check_rule(rule, kind, which, schema, *short)
        if not right or (said == 0 and not rule.startswith("rank(")):
            continue
        right, told, said = native.check_rule(rule, kind, which, schema, operands, expected)
        if not right:
            continue
        least = LEAST_COMPLETE.get(rule.partition("(")[0], 1.0)
        if kind == "dtype":
            if said >= least * len(observed):
                return rule, said
            continue
        # Ranks tell nothing of sizes, so that they have to be told always.
        if rule.startswith("rank(") and told < len(observed):
            continue
        if kind == "parts":
            if said == len(observed):
                return rule, said
            continue
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
    # An operand's own sizes are the simplest that there are.
    if rule != "scalar" and len(different) < (2 if rule.startswith("of(") else 4):
        rule = NONE
    if rule == "scalar" and candidates.tensors and len({repr(ranks_in(o)) for o, _ in sizes}) < 3:
        rule = NONE
    return dtype, rule


def rules_of_all(own: Observed, stated: str | None) -> list[str]:
    """An overload's rules, two for each result."""
    found: list[str] = []
    for which, result in enumerate(own.overload._schema.returns):
        if str(result.type) == "List[Tensor]" and which == 0:
            found += rules_of_list(own)
        elif str(result.type) != "Tensor":
            found += [NONE, NONE]
        else:
            found += rules_of(own, which, stated)
    return found


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
    parser.add_argument(
        "--check", action="store_true", help="write nothing; say whether the file would change"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument(
        "--only", metavar="REGEX", help="print the rules of operators whose names match alone"
    )
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
    else:
        run_samples(observations, arguments.jobs)
        run_modules(observations, arguments.jobs)
        run_lent(observations, arguments.only, arguments.jobs)
        run_mutants(observations, arguments.only, arguments.jobs)
        if arguments.observed is not None:
            observations.save(arguments.observed)
    rules: dict[str, list[str]] = {}
    tasks = [
        (own, functools.partial(rules_of_all, own, stated.get(name)))
        for name, own in sorted(observations.overloads.items())
        if arguments.only is None or re.search(arguments.only, name)
    ]
    for own, found in in_children("rules", tasks, arguments.jobs):
        if any(rule != NONE for rule in found):
            rules[own.overload.name()] = found
    if arguments.only is not None:
        for name, found in rules.items():
            print(name, *found, len(observations.overloads[name].seen), sep="\t")
        return 0
    text, _ = summary_of(rules)
    print(text)
    header = HEADER.format(version=torch.__version__.partition("+")[0], summary=text)
    written = text_of(rules, header)
    if arguments.check:
        before = parse(arguments.output.read_text(encoding="utf-8"), str(arguments.output))
        for name in sorted(before.keys() | rules.keys()):
            if before.get(name) != rules.get(name):
                print(name, before.get(name), rules.get(name), sep="\t")
        return int(before != rules)
    part = arguments.output.with_name(arguments.output.name + ".part")
    part.write_text(written, encoding="utf-8")
    os.replace(part, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
