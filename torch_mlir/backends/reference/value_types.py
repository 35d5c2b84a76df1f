# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a type of the Torch dialect says of the value that is there when a module runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from ... import ir
from .literals import DTYPES

# Tells what is wrong with a value, None if it has the type.
Check = Callable[[Any], str | None]

# `!torch.vtensor<[2,?],f32>`; `*` is any rank and `unk` any dtype.
_TENSOR = re.compile(r"^!torch\.(v?)tensor(?:<(?:\[([^\]]*)\]|\*),([^,>]+(?:<[^>]*>)?)(?:,.*)?>)?$")


class TensorType:
    """A type of tensors.

    Attributes:
        is_value: the tensor is a value; others can be written to.
        shape: the sizes, None where they are open; None if the rank is open.
        dtype: None if it is open.
    """

    def __init__(
        self, is_value: bool, shape: tuple[int | None, ...] | None, dtype: torch.dtype | None
    ) -> None:
        self.is_value = is_value
        self.shape = shape
        self.dtype = dtype

    @staticmethod
    def of(kind: ir.Type) -> TensorType | None:
        """What a type says, None for one that is no tensor type."""
        match = _TENSOR.match(str(kind))
        if match is None:
            return None
        value, sizes, element = match.groups()
        shape = None
        if sizes is not None:
            shape = tuple(
                None if size.strip() == "?" else int(size) for size in sizes.split(",") if size
            )
        return TensorType(bool(value), shape, DTYPES.get(element or "unk"))

    def check(self, value: Any) -> str | None:
        """What is wrong with a tensor."""
        if not isinstance(value, torch.Tensor):
            return f"a tensor is wanted, and it is {type(value).__name__}"
        if self.dtype is not None and value.dtype is not self.dtype:
            return f"its dtype is {value.dtype}"
        if self.shape is None:
            return None
        shape = value.shape
        if len(shape) != len(self.shape) or any(
            wanted is not None and wanted != size
            for wanted, size in zip(self.shape, shape, strict=False)
        ):
            return f"its shape is {list(shape)}"
        return None


class Uninitialized:
    """What stands where a program has no value, and looks at none; of every type."""


UNINITIALIZED = Uninitialized()


def _instance(*kinds: type) -> Check:
    names = " or ".join(kind.__name__ for kind in kinds)

    def check(value: Any) -> str | None:
        if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
            return None
        return f"{names} is wanted, and it is {value!r}"

    return check


def _none(value: Any) -> str | None:
    return None if value is None else f"None is wanted, and it is {value!r}"


_CHECKS: dict[str, Check] = {
    "!torch.int": _instance(int, torch.SymInt),
    "!torch.float": _instance(float, torch.SymFloat),
    "!torch.bool": _instance(bool, torch.SymBool),
    "!torch.str": _instance(str),
    "!torch.none": _none,
}


def check_of(kind: ir.Type) -> Check | None:
    """What holds a value against a type; None for types that say nothing about it."""
    tensor = TensorType.of(kind)
    text = str(kind)
    if tensor is not None:
        check: Check | None = tensor.check
    elif text.startswith("!torch.list<"):
        check = _instance(list)
    else:
        check = _CHECKS.get(text)
    if check is None:
        return None
    held = check
    return lambda value: None if value is UNINITIALIZED else held(value)
