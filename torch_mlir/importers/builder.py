# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One MLIR block while it is being filled, with the constants that it already holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .. import ir
from ..dtypes import DTYPE_TO_INT, LAYOUT_TO_INT, MEMORY_FORMAT_TO_INT
from .errors import Unsupported
from .literals import Literal, LiteralCache
from .types import TypeCache

_create = ir.Operation.create
_INT64 = range(-(2**63), 2**63)


class BlockBuilder:
    """Appends operations to `block`; `location` is given to each of them.

    A constant that the block holds already is used again: what was appended earlier in the same
    block dominates what comes later. Lists are made anew each time, since an operator may write
    to them.
    """

    def __init__(self, block: ir.Block, types: TypeCache, literals: LiteralCache) -> None:
        self.block = block
        self.types = types
        self.literals = literals
        self.context = types.context
        self.location = ir.Location.unknown(types.context)
        self._point = ir.InsertionPoint(block)
        self._constants: dict[Any, ir.Value] = {}
        self._tensors: dict[ir.Attribute, ir.Value] = {}
        self._i64 = ir.IntegerType.get_signless(64, types.context)
        self._i1 = ir.IntegerType.get_signless(1, types.context)

    def emit(
        self,
        name: str,
        results: Sequence[ir.Type],
        operands: Sequence[ir.Value],
        attributes: dict[str, ir.Attribute] | None = None,
        regions: int = 0,
    ) -> ir.Operation:
        """Append the operation `name`."""
        return _create(
            name, results, operands, attributes, None, regions, self.location, self._point
        )

    def value(
        self,
        name: str,
        result: ir.Type,
        operands: Sequence[ir.Value] = (),
        attributes: dict[str, ir.Attribute] | None = None,
    ) -> ir.Value:
        """Append the operation `name`, which has one result, and return that result."""
        return _create(
            name, [result], operands, attributes, None, 0, self.location, self._point
        ).results[0]

    def operator(
        self, name: str, results: Sequence[ir.Type], operands: Sequence[ir.Value]
    ) -> ir.Operation:
        """Append `torch.operator "name"`: an operator that the dialect does not define."""
        attributes: dict[str, ir.Attribute] = {"name": ir.StringAttr.get(name, self.context)}
        return self.emit("torch.operator", results, operands, attributes)

    def constant(self, value: Any) -> ir.Value:
        """`value` as a constant of the block.

        None, bool, int, float, str and `torch.device` have constants of their own; dtypes,
        layouts and memory formats are ints in the Torch dialect.

        Raises:
            Unsupported: no constant holds such a value.
        """
        key: tuple[Any, ...] = (type(value), value)
        if value == 0 and type(value) is float:
            key = (float, math.copysign(1.0, value), 0)  # 0.0 == -0.0
        try:
            found = self._constants.get(key)
        except TypeError:  # What cannot be hashed is refused there.
            return self._new_constant(value)
        if found is None:
            found = self._constants[key] = self._new_constant(value)
        return found

    def _new_constant(self, value: Any) -> ir.Value:
        attribute: ir.Attribute
        types = self.types
        if value is None:
            return self.value("torch.constant.none", types.none)
        if isinstance(value, bool):
            attribute = ir.IntegerAttr.get(self._i1, int(value))
            return self._valued("torch.constant.bool", types.bool, attribute)
        if isinstance(value, int):
            if value not in _INT64:
                raise Unsupported(f"the integer {value} does not fit into 64 bits")
            attribute = ir.IntegerAttr.get(self._i64, value)
            return self._valued("torch.constant.int", types.int, attribute)
        if isinstance(value, float):
            attribute = ir.FloatAttr.get_f64(value)
            return self._valued("torch.constant.float", types.float, attribute)
        if isinstance(value, str):
            attribute = ir.StringAttr.get(value, self.context)
            return self._valued("torch.constant.str", types.str, attribute)
        if isinstance(value, torch.device):
            attribute = ir.StringAttr.get(str(value), self.context)
            return self._valued("torch.constant.device", types.device, attribute)
        return self.constant(number_of(value))

    def _valued(self, name: str, result: ir.Type, attribute: ir.Attribute) -> ir.Value:
        return self.value(name, result, (), {"value": attribute})

    def list_of(self, element: str, values: Sequence[ir.Value]) -> ir.Value:
        """A new list of `values`; `element` spells the element type, as in `list<element>`."""
        return self.value(
            "torch.prim.ListConstruct", self.types.parse(f"!torch.list<{element}>"), values
        )

    def tensor(self, tensor: torch.Tensor, name: str) -> ir.Value:
        """The contents of `tensor` as a `torch.vtensor.literal` of the block."""
        literal: Literal = self.literals.of_tensor(tensor, name)
        found = self._tensors.get(literal.attribute)
        if found is None:
            found = self._valued("torch.vtensor.literal", literal.type, literal.attribute)
            if literal.widened_bool:
                found = self.value(
                    "torch.prims.convert_element_type",
                    self.types.of_tensor(tensor),
                    [found, self.constant(torch.bool)],
                )
            self._tensors[literal.attribute] = found
        return found


def number_of(value: Any) -> int:
    """The int by which the Torch dialect knows a dtype, layout or memory format.

    Raises:
        Unsupported: `value` is none of these.
    """
    for table in (DTYPE_TO_INT, LAYOUT_TO_INT, MEMORY_FORMAT_TO_INT):
        try:
            return table[value]
        except (KeyError, TypeError):
            continue
    raise Unsupported(f"{value!r} ({type(value).__name__}) cannot be written as a constant")
