# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `--input` says: `1x3x224x224xf32`, `mask=[batch]x?xi1`, `i64=3`, `@file.npy`.

Read without PyTorch, which `values.py` needs only for what numpy has no dtype for.
"""

from __future__ import annotations

import argparse
import ast
import re
from dataclasses import dataclass
from typing import Any

_ELEMENT = r"(?:bf16|f(?:16|32|64)|f8E\w+|[su]?i(?:1|8|16|32|64)|complex<f(?:16|32|64)>)"
_DIM = r"(?:\d+|\?|\[[^\]]*\])"
_TENSOR = re.compile(rf"(?P<dims>(?:{_DIM}x)*)(?P<element>{_ELEMENT})\Z")
_SYMBOL = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:=(?P<low>\d+)?:(?P<high>\d+)?)?(?:@(?P<size>\d+))?")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_WORDS = {"none": None, "true": True, "false": False}


@dataclass(frozen=True)
class OpenSize:
    """A size that an export leaves open; `size` is how large its example is."""

    name: str | None = None
    low: int | None = None
    high: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class TensorSpec:
    """A tensor: `dtype` by PyTorch's name, elements random or (one for all, or each) given."""

    shape: tuple[int | OpenSize, ...]
    dtype: str
    elements: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class ValueSpec:
    """A Python value as it is."""

    value: Any


@dataclass(frozen=True)
class FileSpec:
    """What a file holds, or what it holds under `key`."""

    path: str
    key: str | None = None


Spec = TensorSpec | ValueSpec | FileSpec


@dataclass(frozen=True)
class Input:
    """One `--input`: an argument by position, or by `name`."""

    text: str
    name: str | None
    spec: Spec


def parse_input(text: str) -> Input:
    """What one `--input` says.

    Raises:
        argparse.ArgumentTypeError: it can't be understood.
    """
    name, equals, rest = text.partition("=")
    if equals and _NAME.match(name) and not _TENSOR.match(name):
        return Input(text, name, _parse_spec(rest, text))
    return Input(text, None, _parse_spec(text, text))


def torch_dtype_name(element: str) -> str:
    """PyTorch's name of an MLIR element type: `si64` and `i64` are `int64`, `i1` is `bool`.

    Raises:
        ValueError: no dtype of PyTorch has such elements.
    """
    if element == "bf16":
        return "bfloat16"
    if element == "i1":
        return "bool"
    if match := re.fullmatch(r"(u|s?)i(8|16|32|64)", element):
        return f"{'u' if match[1] == 'u' else ''}int{match[2]}"
    if match := re.fullmatch(r"f(16|32|64)", element):
        return f"float{match[1]}"
    if match := re.fullmatch(r"complex<f(16|32|64)>", element):
        return f"complex{2 * int(match[1])}"
    if match := re.fullmatch(r"f8(E\w+)", element):
        return f"float8_{match[1].lower()}"
    raise ValueError(f"no tensor has elements of type {element!r}")


def _parse_spec(text: str, whole: str) -> Spec:
    if text.startswith("@"):
        return _file(text[1:])
    # `=` stands within brackets too.
    head, values = _split_values(text)
    head = head.strip()
    if head.startswith("tensor<") and head.endswith(">"):
        match = _TENSOR.match(head[len("tensor<") : -1])
        scalar = False
    else:
        match = _TENSOR.match(head)
        scalar = match is not None and not match["dims"]
    if match is None:
        return ValueSpec(_python_value(text, whole))
    try:
        dtype = torch_dtype_name(match["element"])
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{whole!r}: {error}") from error
    if values is None:
        return TensorSpec(_shape(match["dims"], whole), dtype)
    texts = re.split(r"\s*,\s*|\s+", values.strip())
    elements = tuple(_element(value, dtype, whole) for value in texts)
    if scalar:
        if len(elements) != 1:
            raise argparse.ArgumentTypeError(f"{whole!r}: a scalar has one value")
        return ValueSpec(elements[0])
    shape = _shape(match["dims"], whole)
    if any(isinstance(size, OpenSize) and size.size is None for size in shape):
        raise argparse.ArgumentTypeError(f"{whole!r}: elements are given for an open size")
    return TensorSpec(shape, dtype, elements)


def _split_values(text: str) -> tuple[str, str | None]:
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "=" and depth == 0:
            return text[:position], text[position + 1 :]
    return text, None


def _shape(dims: str, whole: str) -> tuple[int | OpenSize, ...]:
    return tuple(_dim(dim[:-1], whole) for dim in re.findall(rf"{_DIM}x", dims))


def _dim(text: str, whole: str) -> int | OpenSize:
    if text == "?":
        return OpenSize()
    if not text.startswith("["):
        return int(text)
    match = _SYMBOL.fullmatch(text[1:-1].replace(" ", ""))
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{whole!r}: {text} is no open size; write [name], [name=2:16] or [name=2:16@4]"
        )
    low, high, size = (int(found) if (found := match[key]) else None for key in _BOUNDS)
    if low is not None and high is not None and low > high:
        raise argparse.ArgumentTypeError(f"{whole!r}: {text} has no size between its bounds")
    if size is not None and not (low or 0) <= size <= (size if high is None else high):
        raise argparse.ArgumentTypeError(f"{whole!r}: {text} has its example out of its bounds")
    return OpenSize(match["name"], low, high, size)


_BOUNDS = ("low", "high", "size")


def _element(text: str, dtype: str, whole: str) -> Any:
    """One element of a tensor, as the Python number that `dtype` holds."""
    try:
        if dtype == "bool":
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        if dtype.startswith("complex"):
            return complex(text)
        if "float" in dtype:
            return float(text)
        value = int(text)
    except (KeyError, ValueError):
        kind = dtype if dtype == "bool" or "float" in dtype or "complex" in dtype else "an integer"
        raise argparse.ArgumentTypeError(f"{whole!r}: {text!r} is not {kind}") from None
    unsigned, bits = dtype.startswith("u"), int(dtype.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{whole!r}: {text} is not from {low} to {high}")
    return value


def _python_value(text: str, whole: str) -> Any:
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        raise argparse.ArgumentTypeError(
            f"{whole!r} is neither a tensor (1x3xf32), a value (i64=3, true) nor @file"
        ) from None


def _file(text: str) -> FileSpec:
    path, colon, key = text.rpartition(":")
    # A path may hold a colon of its own; a key comes after the file's suffix.
    if colon and re.search(r"\.(npz|pt|pth|safetensors)\Z", path):
        return FileSpec(path, key)
    return FileSpec(text)
