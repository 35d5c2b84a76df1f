# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What FX says of a value, as a type of the Torch dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .. import ir
from ..dtypes import DTYPE_TO_ELEMENT_TYPE
from .errors import Unsupported
from .sparsity import encoding, is_sparse

_SCALARS: dict[type, str] = {
    int: "!torch.int",
    float: "!torch.float",
    bool: "!torch.bool",
    str: "!torch.str",
    type(None): "!torch.none",
    torch.SymInt: "!torch.int",
    torch.SymFloat: "!torch.float",
    torch.SymBool: "!torch.bool",
    complex: "!torch.number",
    torch.device: "!torch.Device",
    torch.Generator: "!torch.Generator",
    # The dialect numbers these.
    torch.dtype: "!torch.int",
    torch.layout: "!torch.int",
    torch.memory_format: "!torch.int",
}


class TypeCache:
    """The types of one MLIR context, each text parsed once.

    `sparse` says whether the module's reader knows sparse tensors.
    """

    def __init__(self, context: ir.Context, sparse: bool = True) -> None:
        self.context = context
        self._sparse = sparse
        self._parsed: dict[str, ir.Type] = {}
        self._vtensors: dict[tuple[tuple[int | None, ...], torch.dtype], ir.Type] = {}
        self.int = self.parse("!torch.int")
        self.float = self.parse("!torch.float")
        self.bool = self.parse("!torch.bool")
        self.str = self.parse("!torch.str")
        self.none = self.parse("!torch.none")
        self.device = self.parse("!torch.Device")
        self.number = self.parse("!torch.number")
        self._scalars = {kind: self.parse(text) for kind, text in _SCALARS.items()}

    def parse(self, text: str) -> ir.Type:
        """The type that `text` spells."""
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = ir.Type.parse(text, self.context)
        return found

    def element_text(self, dtype: torch.dtype) -> str:
        """How MLIR spells `dtype` as an element type.

        Raises:
            Unsupported: the dialect has no such element type.
        """
        try:
            return DTYPE_TO_ELEMENT_TYPE[dtype]
        except KeyError:
            raise Unsupported(f"tensors of {dtype} have no type in the Torch dialect") from None

    def vtensor(self, shape: Sequence[Any], dtype: torch.dtype) -> ir.Type:
        """`!torch.vtensor<[shape],dtype>`; a size that is not a plain int is `?`."""
        key = (tuple([size if type(size) is int else None for size in shape]), dtype)
        found = self._vtensors.get(key)
        if found is None:
            found = self._vtensors[key] = self.parse(self._tensor_text("vtensor", *key))
        return found

    def mutable_tensor(self, shape: Sequence[Any], dtype: torch.dtype) -> ir.Type:
        """`!torch.tensor<[shape],dtype>`: a tensor whose contents can be overwritten."""
        sizes = tuple([size if type(size) is int else None for size in shape])
        return self.parse(self._tensor_text("tensor", sizes, dtype))

    def _tensor_text(
        self,
        stem: str,
        sizes: tuple[int | None, ...],
        dtype: torch.dtype,
        encoding: str | None = None,
    ) -> str:
        shape = ",".join("?" if size is None else str(size) for size in sizes)
        layout = "" if encoding is None else f",{encoding}"
        return f"!torch.{stem}<[{shape}],{self.element_text(dtype)}{layout}>"

    def builtin_tensor(self, shape: Sequence[int], dtype: torch.dtype) -> ir.Type:
        """`tensor<shape x dtype>`, the type of a literal's contents."""
        sizes = "".join(f"{size}x" for size in shape)
        return self.parse(f"tensor<{sizes}{self.element_text(dtype)}>")

    def of_tensor(self, tensor: torch.Tensor) -> ir.Type:
        """The value-semantics type of a tensor, real or fake.

        Raises:
            Unsupported: a layout or a dtype that the dialect, or the module's reader, lacks.
        """
        if tensor.layout is torch.strided:
            return self.vtensor(tensor.shape, tensor.dtype)
        if not is_sparse(tensor):
            raise Unsupported(f"tensors of layout {tensor.layout} are not imported")
        if not self._sparse:
            raise Unsupported(
                f"the module's reader has no sparse tensors, and this has layout {tensor.layout}"
            )
        sizes = tuple([size if type(size) is int else None for size in tensor.shape])
        return self.parse(self._tensor_text("vtensor", sizes, tensor.dtype, encoding(tensor)))

    def of_value(self, value: Any) -> ir.Type:
        """The type of a value that FX recorded, or of a plain Python value.

        Raises:
            Unsupported: nothing in the Torch dialect corresponds.
        """
        if isinstance(value, torch.Tensor):
            return self.of_tensor(value)
        scalar = self._scalars.get(type(value))
        if scalar is not None:
            return scalar
        if isinstance(value, (list, tuple)):
            return self.parse(f"!torch.list<{self._list_element(value)}>")
        if isinstance(value, Mapping):
            key, element = self._list_element(list(value)), self._list_element([*value.values()])
            return self.parse(f"!torch.dict<{key}, {element}>")
        raise Unsupported(
            f"a value of type {type(value).__name__} has no type in the Torch dialect"
        )

    def _list_element(self, values: Sequence[Any]) -> str:
        kinds = {
            "vtensor" if isinstance(value, torch.Tensor) else _SCALARS.get(type(value), "")[7:]
            for value in values
        }
        if len(kinds) != 1 or "" in kinds:
            names = ", ".join(sorted({type(value).__name__ for value in values})) or "nothing"
            raise Unsupported(f"a list that holds {names} has no type in the Torch dialect")
        return kinds.pop()

    def of_node(self, node: torch.fx.Node) -> ir.Type:
        """The type of what `node` produces, from its `val` or else its `tensor_meta`.

        Raises:
            Unsupported: the node carries neither, or nothing corresponds.
        """
        meta = node.meta
        value = meta.get("val")
        if value is None and "val" not in meta:
            tensor_meta = meta.get("tensor_meta")
            if tensor_meta is None:
                raise Unsupported(
                    "the node records no value (`val`) and no `tensor_meta`: "
                    "run torch.export, or fake tensor propagation, on the graph first"
                )
            return self.vtensor(tensor_meta.shape, tensor_meta.dtype)
        return self.of_value(value)
