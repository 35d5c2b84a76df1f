# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of values before a module runs: fake tensors, symbolic numbers, and less.

A tensor whose rank and dtype are known is a fake tensor; its open sizes are unbacked symbols. One
that lacks either is an `OpenTensor`. Numbers are Python's where they are known, `SymInt` and the
like where they aren't, and `UNKNOWN` stands for anything else.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv

from ... import ir
from .value_types import TensorType

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)

# Sizes that stand for all others, ranks and dtypes likewise: see `concretizations`.
_SIZES = (1, 2, 5, 64)
_RANKS = (0, 1, 2, 3, 4, 5)
_DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool)
_MOST_TRIALS = 128


class _Unknown:
    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = _Unknown()
"""A value that nothing is known of but its type."""


@dataclass(frozen=True)
class OpenTensor:
    """A tensor whose rank, or dtype, or both, are None: not known.

    Both may be known if PyTorch's fake tensors can't have the open sizes.
    """

    shape: tuple[int | None, ...] | None
    dtype: torch.dtype | None


class Contradiction(ValueError):
    """Two things are known of a tensor that can't both hold."""


class _NegativeSize(Exception):
    """A size can't be that small: another one would be less than 0."""


def any_leaf(value: Any, holds: Callable[[Any], bool]) -> bool:
    """Whether something holds for a value, or for what is in it."""
    if isinstance(value, (list, tuple)):
        return any(any_leaf(element, holds) for element in value)
    if isinstance(value, dict):
        return any(any_leaf(element, holds) for pair in value.items() for element in pair)
    return holds(value)


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with its tensors and numbers changed; lists, tuples and dicts are made anew."""
    if isinstance(value, (list, tuple)):
        return type(value)(map_leaves(element, change) for element in value)
    if isinstance(value, dict):
        return {key: map_leaves(element, change) for key, element in value.items()}
    return change(value)


def known_int(size: Any) -> int | None:
    """A size as an int, None if it is open."""
    if type(size) is int:
        return size
    found: int | None = size.node.maybe_as_int()
    return found


def facts_of(value: Any) -> tuple[tuple[int | None, ...] | None, torch.dtype | None] | None:
    """Shape and dtype of a tensor as far as they are known; None for other values."""
    if isinstance(value, OpenTensor):
        return value.shape, value.dtype
    if isinstance(value, torch.Tensor):
        return tuple(map(known_int, value.shape)), value.dtype
    return None


def describe(value: Any) -> Any:
    """What is known of a value, without which symbols: equal where as much is known."""
    if isinstance(value, SYMBOLIC):
        known = value.node.maybe_as_int() if isinstance(value, torch.SymInt) else None
        return type(value).__name__ if known is None else known
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple(map(describe, value))
    if isinstance(value, dict):
        return tuple((describe(key), describe(element)) for key, element in value.items())
    facts = facts_of(value)
    if facts is not None:
        return facts
    return (type(value).__name__, value) if isinstance(value, (bool, int, float)) else value


def join_shapes(
    a: Sequence[int | None] | None, b: Sequence[int | None] | None
) -> tuple[int | None, ...] | None:
    """What two shapes have in common."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def meet(
    a: tuple[Sequence[int | None] | None, torch.dtype | None],
    b: tuple[Sequence[int | None] | None, torch.dtype | None],
) -> tuple[tuple[int | None, ...] | None, torch.dtype | None]:
    """What two descriptions of one tensor say together.

    Raises:
        Contradiction: they can't both hold.
    """
    (shape, dtype), (other_shape, other_dtype) = a, b
    if dtype is not None and other_dtype is not None and dtype is not other_dtype:
        raise Contradiction(f"its dtype is {other_dtype}, and not {dtype}")
    if shape is None or other_shape is None:
        both = other_shape if shape is None else shape
        return (None if both is None else tuple(both)), dtype or other_dtype
    if len(shape) != len(other_shape) or any(
        x is not None and y is not None and x != y for x, y in zip(shape, other_shape, strict=True)
    ):
        raise Contradiction(f"its shape is {list(other_shape)}, and not {list(shape)}")
    sizes = tuple(y if x is None else x for x, y in zip(shape, other_shape, strict=True))
    return sizes, dtype or other_dtype


_QUANTIZED = frozenset(
    getattr(torch, name)
    for name in ("qint8", "quint8", "qint32", "quint4x2", "quint2x4")
    if hasattr(torch, name)
)


class Symbols:
    """Makes and relates abstract values; its symbols belong to one `ShapeEnv`."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.environment = ShapeEnv()
        self.mode = FakeTensorMode(shape_env=self.environment, allow_non_fake_inputs=True)

    def size(self) -> torch.SymInt:
        """A size that isn't known."""
        made = self.environment.create_unbacked_symint()
        _mark_as_size(made)
        return made

    def tensor(
        self, shape: Sequence[Any] | None, dtype: torch.dtype | None
    ) -> torch.Tensor | OpenTensor:
        """A tensor of which this much is known; None for an open size, rank or dtype."""
        if shape is None or dtype is None:
            return OpenTensor(None if shape is None else tuple(shape), dtype)
        if dtype in _QUANTIZED:  # no fake tensor has one of these
            return OpenTensor(tuple(shape), dtype)
        sizes = [self.size() if size is None else size for size in shape]
        try:
            return torch.empty(sizes, dtype=dtype, device=self.device)
        except GuardOnDataDependentSymNode:  # before 2.2 not all sizes can be symbols
            return OpenTensor(tuple(map(known_int, sizes)), dtype)

    def of_type(self, kind: ir.Type) -> Any:
        """A value of which its type is known."""
        tensor = TensorType.of(kind)
        if tensor is not None:
            return UNKNOWN if is_encoded(kind) else self.tensor(tensor.shape, tensor.dtype)
        make = _NUMBERS.get(str(kind))
        if make is not None:
            return getattr(self.environment, make, lambda: UNKNOWN)()
        return None if str(kind) == "!torch.none" else UNKNOWN

    def narrow(self, value: Any, kind: ir.Type) -> Any:
        """A value of which its type is known as well.

        Raises:
            Contradiction: it can't have that type.
        """
        tensor = TensorType.of(kind)
        if value is UNKNOWN:
            return self.of_type(kind)
        facts = facts_of(value)
        if facts is None or tensor is None or is_encoded(kind):
            return value
        shape, dtype = meet((tensor.shape, tensor.dtype), facts)
        if isinstance(value, OpenTensor):
            return value if (shape, dtype) == facts else self.tensor(shape, dtype)
        for wanted, size in zip(shape or (), value.shape, strict=True):
            if wanted is not None and known_int(size) is None:
                torch._check(size == wanted)
        return value

    def join(self, a: Any, b: Any) -> Any:
        """A value of which no more is known than of either."""
        if a is b:
            return a
        facts, other = facts_of(a), facts_of(b)
        if facts is not None and other is not None:
            shape = join_shapes(facts[0], other[0])
            dtype = facts[1] if facts[1] is other[1] else None
            if shape is None or dtype is None or isinstance(a, OpenTensor):
                return self.tensor(shape, dtype)
            return self.tensor(
                [
                    x if known is None and _is_same(x, y) else known
                    for known, x, y in zip(shape, a.shape, b.shape, strict=True)
                ],
                dtype,
            )
        if isinstance(a, (list, tuple)) and type(a) is type(b) and len(a) == len(b):
            return type(a)(map(self.join, a, b))
        for kinds, make in _KINDS:
            if isinstance(a, kinds) and isinstance(b, kinds):
                if _is_same(a, b):
                    return a
                return getattr(self.environment, make, lambda: UNKNOWN)()
        if type(a) is type(b) and isinstance(a, (str, torch.device)) and a == b:
            return a
        return UNKNOWN

    def renamed(self, value: Any, names: dict[Any, Any]) -> Any:
        """A value with symbols of its own; `names` has the new symbol of each."""

        def change(leaf: Any) -> Any:
            if isinstance(leaf, torch.SymInt):
                for symbol in leaf.node.expr.free_symbols - set(names):
                    names[symbol] = self.size_like(leaf, symbol).node.expr
                return self._substituted(leaf, names)
            if isinstance(leaf, torch.Tensor) and is_symbolic(leaf):
                return self.tensor([change(size) for size in leaf.shape], leaf.dtype)
            if isinstance(leaf, torch.SymBool):
                return getattr(self.environment, _NUMBERS["!torch.bool"])()
            if isinstance(leaf, torch.SymFloat):
                return getattr(self.environment, _NUMBERS["!torch.float"])()
            return leaf

        return map_leaves(value, change)

    def size_like(self, of: torch.SymInt, symbol: Any) -> torch.SymInt:
        """A symbol with the range of `symbol`, which is one of those of `of`."""
        made = self.environment.create_unbacked_symint()
        if bool(of.node.expr.is_nonnegative) or of.node.expr != symbol:
            _mark_as_size(made)
        return made

    def restored(self, value: Any, names: Mapping[Any, Any]) -> Any:
        """A value with the symbols that `renamed` took away, where it has the new ones."""
        back = {new: old for old, new in names.items()}

        def change(leaf: Any) -> Any:
            if isinstance(leaf, torch.SymInt) and known_int(leaf) is None:
                known = leaf.node.expr.free_symbols <= set(back)
                return self._substituted(leaf, back) if known else leaf
            if isinstance(leaf, torch.Tensor) and is_symbolic(leaf):
                return self.tensor([change(size) for size in leaf.shape], leaf.dtype)
            return leaf

        return map_leaves(value, change)

    def _substituted(self, size: torch.SymInt, names: Mapping[Any, Any]) -> Any:
        return self.environment.create_symintnode(size.node.expr.xreplace(dict(names)), hint=None)

    def sizes(self, values: Sequence[Any]) -> tuple[int, ...]:
        """The sizes that `concretizations` uses: one alone where none is open."""

        def is_sized(leaf: Any) -> bool:
            if isinstance(leaf, OpenTensor):
                return leaf.shape is None or None in leaf.shape
            return is_symbolic(leaf)

        return _SIZES if any_leaf(list(values), is_sized) else _SIZES[:1]

    def concretizations(self, values: Sequence[Any]) -> Iterator[tuple[int, list[Any]]]:
        """Values in the place of `values`, of which everything is known; and the size used.

        Each symbol is one size after the other, each open rank and dtype takes some values. What
        holds for all these is taken to hold for any: the sizes hold 1, a number that is even, one
        that is odd, and one that is large, so that only what doesn't depend on a size is constant.
        There are none for values that are `UNKNOWN`, or too many of which too little is known.
        """
        opens: list[OpenTensor] = []

        def visit(leaf: Any) -> bool:
            if isinstance(leaf, OpenTensor):
                opens.append(leaf)
            return leaf is UNKNOWN or isinstance(leaf, (torch.SymFloat, torch.SymBool))

        unknown = [any_leaf(value, visit) for value in values]
        if any(unknown):
            return
        choices = [
            list(
                itertools.product(
                    _RANKS if tensor.shape is None else (None,),
                    _DTYPES if tensor.dtype is None else (tensor.dtype,),
                )
            )
            for tensor in opens
        ]
        sizes = self.sizes(values)
        count = len(sizes)
        for choice in choices:
            count *= len(choice)
        if count > _MOST_TRIALS:
            return
        for size, *chosen in itertools.product(sizes, *choices):
            remaining = iter(chosen)

            def change(leaf: Any, size: int = size, remaining: Any = remaining) -> Any:
                if isinstance(leaf, OpenTensor):
                    rank, dtype = next(remaining)
                    shape = [size] * rank if leaf.shape is None else leaf.shape
                    return self.tensor([size if s is None else s for s in shape], dtype)
                if isinstance(leaf, torch.SymInt):
                    return _evaluated(leaf, size)
                if isinstance(leaf, torch.Tensor) and is_symbolic(leaf):
                    lengths = [_evaluated(length, size) for length in leaf.shape]
                    if min(lengths, default=0) < 0:
                        raise _NegativeSize
                    return self.tensor(lengths, leaf.dtype)
                return leaf

            try:
                concrete = [map_leaves(value, change) for value in values]
            except _NegativeSize:
                continue
            yield size, concrete


def _mark_as_size(number: torch.SymInt) -> None:
    """Let PyTorch know that a symbol isn't negative, and is the size of something."""
    if hasattr(torch, "_check_is_size"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # newer releases need no telling
            torch._check_is_size(number)
    else:
        torch.sym_constrain_range_for_size(number, min=None, max=None)


def is_symbolic(value: Any) -> bool:
    """Whether a tensor has open sizes, or a number isn't known."""
    if isinstance(value, torch.Tensor):
        return value.layout is torch.strided and any(known_int(s) is None for s in value.shape)
    return isinstance(value, SYMBOLIC)


def is_encoded(kind: ir.Type) -> bool:
    """Whether a tensor type has a layout beside its shape and its dtype."""
    return ",#" in str(kind)


def _evaluated(size: Any, number: int) -> int:
    known = known_int(size)
    if known is not None:
        return known
    expression = size.node.expr
    return int(
        expression.xreplace({symbol: _integer(number) for symbol in expression.free_symbols})
    )


def _integer(number: int) -> Any:
    import sympy  # type: ignore[import-untyped, unused-ignore]  # PyTorch needs it too

    return sympy.Integer(number)


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, SYMBOLIC) or isinstance(b, SYMBOLIC):
        return type(a) is type(b) and bool(a.node.expr == b.node.expr)
    return type(a) is type(b) and bool(a == b)


# What the ShapeEnv calls to make a number.
_NUMBERS = {
    "!torch.int": "create_unbacked_symint",
    "!torch.float": "create_unbacked_symfloat",
    "!torch.bool": "create_unbacked_symbool",
}
_KINDS = (
    ((bool, torch.SymBool), _NUMBERS["!torch.bool"]),
    ((int, torch.SymInt), _NUMBERS["!torch.int"]),
    ((float, torch.SymFloat), _NUMBERS["!torch.float"]),
)
