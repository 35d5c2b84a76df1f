# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of an archive's methods, held against PyTorch's own."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from archives import Case
from torch.utils._pytree import tree_flatten

Call = Callable[[str, Sequence[Any]], Any]


def hold(case: Case, archive: bytes, call: Call, *, flat: bool = False) -> None:
    """Make a case's calls with PyTorch and with `call`, in one order, and compare.

    `call` takes a method's name and all of its arguments, default ones included. Of functions on
    values (`flat`) what the results' containers hold is compared, and not what they write to.
    """
    loaded = torch.jit.load(io.BytesIO(archive), map_location="cpu")
    for method, runs in case.calls.items():
        schema = loaded._c._get_method(method).schema
        for run in runs:
            complete = [*run, *(a.default_value for a in schema.arguments[1 + len(run) :])]
            given, own = copy.deepcopy(list(run)), copy.deepcopy(complete)
            torch.manual_seed(0)
            with torch.no_grad():
                expected = getattr(loaded, method)(*given)
            torch.manual_seed(0)
            result = call(method, own)
            if flat:
                result, expected = _leaves(result), _leaves(expected)
            same(f"{method}{run}", result, expected)
            if not flat:
                # What a call writes to its arguments, both write.
                same(f"the arguments of {method}{run}", own[: len(given)], given)


def _leaves(results: Any) -> list[Any]:
    """What results consist of; None is no result of a function on values."""
    return [leaf for leaf in tree_flatten(results)[0] if leaf is not None]


def inputs_of(case: Case, archive: bytes) -> dict[str, list[Any]]:
    """By method, what the arguments of its first call are: tensors, and None for the others."""
    loaded = torch.jit.load(io.BytesIO(archive), map_location="cpu")
    inputs = {}
    for method, runs in case.calls.items():
        schema = loaded._c._get_method(method).schema
        complete = [*runs[0], *(a.default_value for a in schema.arguments[1 + len(runs[0]) :])]
        inputs[method] = [value if isinstance(value, torch.Tensor) else None for value in complete]
    return inputs


def same(what: str, ours: Any, theirs: Any) -> None:
    """Hold a result against PyTorch's; containers by their elements.

    Raises:
        AssertionError: they differ.
    """
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, torch.Tensor), f"{what}: {type(ours)}"
        if theirs.is_quantized:
            assert ours.is_quantized and ours.dtype is theirs.dtype, what
            ours, theirs = ours.dequantize(), theirs.dequantize()
        assert ours.dtype is theirs.dtype and ours.shape == theirs.shape, (
            f"{what}: {ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
        )
        if not theirs.is_floating_point() and not theirs.is_complex():
            assert torch.equal(ours, theirs), what
        elif theirs.element_size() == 1:
            assert torch.equal(ours.view(torch.uint8), theirs.view(torch.uint8)), what
        elif theirs.dtype is torch.complex32:
            same(what, torch.view_as_real(ours), torch.view_as_real(theirs))
        else:
            torch.testing.assert_close(ours, theirs, equal_nan=True)
    elif isinstance(theirs, (list, tuple)):
        assert isinstance(ours, list if isinstance(theirs, list) else tuple), what
        assert len(ours) == len(theirs), what
        for number, pair in enumerate(zip(ours, theirs, strict=True)):
            same(f"{what}[{number}]", *pair)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), what
        for key, value in theirs.items():
            same(f"{what}[{key!r}]", ours[key], value)
    elif isinstance(theirs, float):
        assert type(ours) is float, what
        both_nan = math.isnan(ours) and math.isnan(theirs)
        assert ours == theirs or both_nan, f"{what}: {ours}, not {theirs}"
    else:
        assert type(ours) is type(theirs) and ours == theirs, f"{what}: {ours!r}, not {theirs!r}"
