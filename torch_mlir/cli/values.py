# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors for programs: random ones, given ones, and those that files hold.

Random numbers come from numpy, so that a seed means the same with and without PyTorch.
"""

from __future__ import annotations

import io
import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .errors import CommandError, one_line
from .inputs import FileSpec, Input, OpenSize, TensorSpec, ValueSpec, torch_dtype_name
from .streams import output, read_file

# safetensors' names of dtypes (its README, "Format") that are not MLIR's in capitals.
_SAFETENSORS_DTYPES = {
    "BOOL": "i1", "U8": "ui8", "U16": "ui16", "U32": "ui32", "U64": "ui64", "BF16": "bf16",
    "C64": "complex<f32>", "F8_E4M3": "f8E4M3FN", "F8_E5M2": "f8E5M2", "F8_E8M0": "f8E8M0FNU",
}  # fmt: skip

# The sizes of open dimensions: no 0 or 1, which exports specialise on, and no two alike, which
# would look like one size.
_EXAMPLE_SIZES = (3, 5, 7, 11, 13, 17, 19, 23)


class Values:
    """Makes the arguments that `--input` asks for.

    Args:
        seed: of the random numbers.
        torch: PyTorch, if tensors are to be its own; None makes numpy arrays.
    """

    def __init__(self, seed: int, torch: ModuleType | None) -> None:
        self._random = np.random.default_rng(seed)
        self._torch = torch
        self._named: dict[str, int] = {}
        self._unnamed = 0

    def of_inputs(self, inputs: Sequence[Input]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments by position and by name.

        Raises:
            CommandError: a file can't be read, or a dtype needs PyTorch.
        """
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for given in inputs:
            values = self._of_spec(given)
            if given.name is None:
                args.extend(values)
            elif given.name in kwargs:
                raise CommandError(f"--input {given.text}: {given.name!r} is given twice")
            elif len(values) != 1:
                raise CommandError(
                    f"--input {given.text}: the file holds {len(values)} tensors; "
                    "say which, as in @file.npz:key"
                )
            else:
                kwargs[given.name] = values[0]
        return tuple(args), kwargs

    def _of_spec(self, given: Input) -> list[Any]:
        spec = given.spec
        if isinstance(spec, ValueSpec):
            return [spec.value]
        if isinstance(spec, FileSpec):
            return self._of_file(spec)
        return [self.tensor(spec, given.text)]

    def size(self, dim: int | OpenSize) -> int:
        """How large an open size is in the example; the same each time that its name comes."""
        if isinstance(dim, int):
            return dim
        if dim.size is not None:
            chosen = dim.size
        elif dim.name in self._named:
            return self._named[dim.name]
        else:
            chosen = _EXAMPLE_SIZES[self._unnamed % len(_EXAMPLE_SIZES)]
            self._unnamed += 1
            if dim.low is not None and chosen < dim.low:
                chosen = dim.low + chosen
            if dim.high is not None:
                chosen = min(chosen, dim.high)
        if dim.name is not None:
            self._named[dim.name] = chosen
        return chosen

    def tensor(self, spec: TensorSpec, text: str) -> Any:
        """A tensor of `spec`; `text` is what messages call it.

        Floating-point elements are normally distributed, integers and bools are 0 or 1.
        """
        shape = tuple(self.size(dim) for dim in spec.shape)
        try:
            return self._converted(self._elements(shape, spec, text), spec.dtype, text)
        except (MemoryError, ValueError) as error:  # numpy's two ways to say it
            raise CommandError(f"--input {text}: too large a tensor: {one_line(error)}") from error

    def _elements(self, shape: tuple[int, ...], spec: TensorSpec, text: str) -> Any:
        if spec.elements is None:
            return self._random_elements(shape, spec.dtype)
        # Python's numbers alone don't tell how large an integer is.
        dtype = np.dtype(spec.dtype) if spec.dtype.startswith(("int", "uint")) else None
        if len(spec.elements) == 1:
            return np.full(shape, spec.elements[0], dtype)
        if len(spec.elements) != math.prod(shape):
            raise CommandError(
                f"--input {text}: {len(spec.elements)} elements are given, "
                f"{math.prod(shape)} are wanted"
            )
        return np.array(spec.elements, dtype).reshape(shape)

    def _random_elements(self, shape: tuple[int, ...], dtype: str) -> Any:
        if dtype.startswith("complex"):
            return self._random.standard_normal(shape) + 1j * self._random.standard_normal(shape)
        if "float" in dtype:
            return self._random.standard_normal(shape)
        return self._random.integers(0, 2, shape)

    def _converted(self, elements: Any, dtype: str, text: str) -> Any:
        if self._torch is not None:
            wanted = getattr(self._torch, dtype, None)
            if wanted is None:
                raise CommandError(
                    f"--input {text}: PyTorch {self._torch.__version__} has no dtype {dtype}"
                )
            return self._torch.from_numpy(np.asarray(elements)).to(wanted)
        try:
            return np.asarray(elements).astype(np.dtype(dtype))
        except TypeError:
            raise CommandError(
                f"--input {text}: numpy has no dtype {dtype}, and PyTorch is not installed"
            ) from None

    def _of_file(self, spec: FileSpec) -> list[Any]:
        held = _read(spec.path, self._torch)
        if spec.key is None:
            return [self._own(value, spec.path) for value in held.values()]
        if spec.key not in held:
            keys = ", ".join(held) or "nothing"
            raise CommandError(f"{spec.path}: holds no {spec.key!r}, but {keys}")
        return [self._own(held[spec.key], spec.path)]

    def _own(self, value: Any, path: str) -> Any:
        if isinstance(value, np.ndarray) and self._torch is not None:
            # A copy: programs may write to their arguments, and a file's bytes are read-only.
            own = np.ascontiguousarray(value).copy().reshape(value.shape)
            try:
                return self._torch.from_numpy(own)
            except TypeError as error:
                raise CommandError(f"{path}: PyTorch has no dtype {value.dtype}") from error
        if not isinstance(value, np.ndarray) and self._torch is None and hasattr(value, "numpy"):
            return value.numpy()
        return value


def _read(path: str, torch: ModuleType | None) -> Mapping[str, Any]:
    """The tensors of a file by their keys; one without a key has the empty one."""
    suffix = Path(path).suffix
    data = read_file(path)
    try:
        if suffix == ".npy":
            return {"": np.load(io.BytesIO(data), allow_pickle=False)}
        if suffix == ".npz":
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        if suffix == ".safetensors":
            return dict(_safetensors(data, torch))
        if suffix in (".pt", ".pth"):
            return _pt(data)
    except CommandError as error:
        raise CommandError(f"{path}: {error}") from error
    except ImportError as error:
        raise CommandError(f"{path}: a {suffix} file needs PyTorch: {error}") from error
    except Exception as error:  # damaged files raise zlib.error, TokenError and many more
        raise CommandError(f"{path}: not a {suffix} file: {one_line(error)}") from error
    raise CommandError(f"{path}: a tensor file ends in .npy, .npz, .pt or .safetensors")


def _pt(data: bytes) -> Mapping[str, Any]:
    import torch

    try:
        held = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # pickle.UnpicklingError, RuntimeError, ... by the file's kind
        raise CommandError(f"PyTorch can't load it: {one_line(error)}") from error
    if isinstance(held, Mapping):
        return {str(key): value for key, value in held.items()}
    if isinstance(held, (list, tuple)):
        return {str(position): value for position, value in enumerate(held)}
    return {"": held}


def _safetensors(data: bytes, torch: ModuleType | None) -> Iterator[tuple[str, Any]]:
    """An 8-byte length, a JSON header of that length, and the tensors' bytes."""
    (length,) = struct.unpack_from("<Q", data)
    start = 8 + length
    header = json.loads(data[8:start])
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (start + offset for offset in entry["data_offsets"])
        if not start <= begin <= end <= len(data):
            raise CommandError("the file is cut short")
        element = _SAFETENSORS_DTYPES.get(entry["dtype"], entry["dtype"].lower())
        dtype = torch_dtype_name(element)
        if torch is not None:
            flat = torch.frombuffer(bytearray(data[begin:end]) or bytearray(1), dtype=torch.uint8)[
                : end - begin
            ].view(getattr(torch, dtype))
        else:
            try:
                flat = np.frombuffer(data[begin:end], np.dtype(dtype))
            except TypeError:
                raise CommandError(f"numpy has no dtype {dtype}; install PyTorch") from None
        yield name, flat.reshape(entry["shape"])


def as_array(value: Any) -> Any:
    """A result as a numpy array: a tensor, an array or a number.

    What numpy has no dtype for is widened to float32.
    """
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):
        tensor = value.detach().cpu()
        try:
            return tensor.numpy()
        except (TypeError, RuntimeError):
            return tensor.resolve_conj().resolve_neg().float().numpy()
    return np.asarray(value)


def describe(value: Any) -> str:
    """A result's type in one line: `2x3xfloat32`, or a Python value's type."""
    if not hasattr(value, "shape"):
        return type(value).__name__
    dtype = str(value.dtype).removeprefix("torch.")
    return "x".join([*map(str, value.shape), dtype])


def save_results(path: str, results: Sequence[Any], torch: ModuleType | None) -> None:
    """Write results to a .npz (`result_0`, …), a .npy (if there is one) or a .pt (a list).

    Raises:
        CommandError: the path has another suffix, or can't be written.
    """
    suffix = Path(path).suffix
    with output(path) as file:
        if suffix == ".npz":
            arrays = {f"result_{i}": as_array(value) for i, value in enumerate(results)}
            np.savez(file, **arrays)
        elif suffix == ".npy":
            np.save(file, as_array(results[0]))
        elif torch is not None:
            torch.save([_tensor(torch, value) for value in results], file)


def _tensor(torch: ModuleType, value: Any) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
