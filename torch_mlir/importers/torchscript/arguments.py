# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of a method's arguments before it is called: shapes and dtypes.

No PyTorch is needed: dtypes go by their names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_ANNOTATION = re.compile(r"(?P<dims>(?:(?:\d+|\?)x)*)(?P<element>[a-zA-Z]\S*)\Z")

# MLIR's names of element types; without a sign, integers are PyTorch's signed ones.
_ELEMENT_TO_DTYPE = {
    "i1": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "complex<f16>": "complex32", "complex<f32>": "complex64", "complex<f64>": "complex128",
    "f8E5M2": "float8_e5m2", "f8E4M3FN": "float8_e4m3fn", "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E8M0FNU": "float8_e8m0fnu",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "si8": "int8", "si16": "int16", "si32": "int32", "si64": "int64",
    "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64",
}  # fmt: skip

# Of two names the later: signs are written.
_DTYPE_TO_ELEMENT = {dtype: element for element, dtype in _ELEMENT_TO_DTYPE.items()}


@dataclass(frozen=True)
class TensorArgument:
    """A tensor argument: its shape, where -1 is an open size, and its dtype by PyTorch's name."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def element_type(self) -> str:
        """MLIR's name of the dtype in the Torch dialect.

        Raises:
            ValueError: it has none there.
        """
        try:
            return _DTYPE_TO_ELEMENT[self.dtype]
        except KeyError:
            raise ValueError(f"the Torch dialect has no arguments of dtype {self.dtype}") from None

    @staticmethod
    def parse(text: str) -> TensorArgument:
        """The argument that e.g. `2x?x224xf32` describes, or `f32` for a tensor without sizes.

        Raises:
            ValueError: it is not written so, or no dtype of PyTorch has such elements.
        """
        match = _ANNOTATION.match(text)
        if match is None:
            raise ValueError(f"{text!r} is no tensor; write sizes and dtype as in 2x?x224xf32")
        dtype = _ELEMENT_TO_DTYPE.get(match["element"])
        if dtype is None:
            raise ValueError(f"{text!r}: no dtype of PyTorch is called {match['element']!r} here")
        dims = match["dims"].split("x")[:-1]
        return TensorArgument(tuple(-1 if dim == "?" else int(dim) for dim in dims), dtype)

    @staticmethod
    def of(value: Argument) -> TensorArgument | None:
        """What an example, a placeholder or an annotation says; None if it says nothing.

        Raises:
            ValueError: the annotation can't be read.
            TypeError: it is neither.
        """
        if value is None or isinstance(value, (TensorArgument, bool, int, float)):
            return value if isinstance(value, TensorArgument) else None
        if isinstance(value, str):
            return TensorArgument.parse(value)
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            shape = tuple(int(size) for size in value.shape)
            return TensorArgument(shape, str(value.dtype).removeprefix("torch."))
        raise TypeError(
            f"an argument is described by a tensor, a TensorPlaceholder or text such as "
            f"'2x?xf32', and by None if it is no tensor; not by a {type(value).__name__}"
        )


Argument = Any
"""A tensor, a TensorPlaceholder, a TensorArgument, text that `TensorArgument.parse` reads, or None."""


def of_methods(inputs: Sequence[Any] | Mapping[str, Sequence[Any]] | None) -> Described:
    """What is known of the arguments of each method; a sequence is about `forward`.

    Raises:
        ValueError: an annotation can't be read.
        TypeError: what is given describes no argument.
    """
    if inputs is None:
        return {}
    if isinstance(inputs, (str, bytes)):
        raise TypeError("inputs is a sequence with one item for each argument")
    by_method = inputs if isinstance(inputs, Mapping) else {"forward": inputs}
    return {
        method: [TensorArgument.of(value) for value in values]
        for method, values in by_method.items()
    }


Described = dict[str, list[TensorArgument | None]]
"""By method: its arguments without the object, None where nothing is known."""
