# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a computation takes and gives, and whether a module and arguments are of that kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from .. import ir
from ..dtypes import DTYPE_TO_ELEMENT_TYPE

Kind = Literal["tensor", "int", "float", "bool"]

# Numbers that PyTorch makes parameters of, so that another value isn't another graph.
_NUMBERS: dict[str, tuple[Kind, type]] = {
    "!torch.int": ("int", int),
    "!torch.float": ("float", float),
    "!torch.bool": ("bool", bool),
}
_CLASSES: dict[Kind, type] = dict(_NUMBERS.values())
_LOWERED = ("torch.", "func.", "builtin.module")


class ModuleError(ValueError):
    """A module isn't fully lowered, or isn't what its signature says."""


@dataclass(frozen=True)
class ValueType:
    """The type of a parameter or a result.

    Attributes:
        kind: `tensor`; or `int`, `float` or `bool` for a parameter that is a Python number.
        shape: the sizes of a tensor, () for a number.
        dtype: the dtype of a tensor; that of PyTorch's scalar for a number.
    """

    kind: Kind
    shape: tuple[int, ...]
    dtype: torch.dtype

    def __str__(self) -> str:
        if self.kind != "tensor":
            return self.kind
        return f"{str(self.dtype).removeprefix('torch.')}{list(self.shape)}"

    @property
    def mlir(self) -> str:
        """The type as a module has it: `!torch.vtensor<[2,3],f32>`, `!torch.int`."""
        if self.kind != "tensor":
            return f"!torch.{self.kind}"
        sizes = ",".join(map(str, self.shape))
        return f"!torch.vtensor<[{sizes}],{DTYPE_TO_ELEMENT_TYPE[self.dtype]}>"

    def mismatch(self, value: Any) -> str | None:
        """How `value` isn't of this type; None if it is."""
        wanted = _CLASSES.get(self.kind)
        if wanted is not None:
            return None if type(value) is wanted else f"is a {type(value).__name__}, not {self}"
        if not isinstance(value, torch.Tensor):
            return f"is a {type(value).__name__}, not {self}"
        if value.device.type != "cpu" or value.layout != torch.strided:
            return f"is a {value.layout} tensor on {value.device}, not a dense one on the CPU"
        if tuple(value.shape) != self.shape or value.dtype != self.dtype:
            return f"is {ValueType('tensor', tuple(value.shape), value.dtype)}, not {self}"
        return None


@dataclass(frozen=True)
class Signature:
    """What the function `main` of a module takes and gives, in order.

    Attributes:
        parameters: the types of its arguments.
        results: the types of its results, which are tensors.
    """

    parameters: tuple[ValueType, ...]
    results: tuple[ValueType, ...]

    @staticmethod
    def of(
        module: ir.Module,
        parameters: Sequence[tuple[tuple[int, ...], torch.dtype]],
        results: Sequence[tuple[tuple[int, ...], torch.dtype]],
    ) -> Signature:
        """The signature of `main`, of the shapes and dtypes that PyTorch tells.

        Raises:
            ModuleError: `main` isn't there, or hasn't so many parameters.
        """
        inputs = _main_type(module).inputs
        if len(inputs) != len(parameters):
            raise ModuleError(
                f"main takes {len(inputs)} arguments, and PyTorch gives {len(parameters)}"
            )
        kinds = [_NUMBERS.get(str(each), ("tensor", torch.Tensor))[0] for each in inputs]
        return Signature(
            tuple(
                ValueType(kind, tuple(shape), dtype)
                for kind, (shape, dtype) in zip(kinds, parameters, strict=True)
            ),
            tuple(ValueType("tensor", tuple(shape), dtype) for shape, dtype in results),
        )

    def check_module(self, module: ir.Module) -> None:
        """See that a module verifies, is fully lowered, and has the function of this signature.

        Fully lowered: it has operations of the Torch dialect alone, none of them
        `torch.operator`, which stands for an operator that the dialect doesn't know.

        Raises:
            MLIRError: MLIR's verifier finds something wrong.
            ModuleError: the rest isn't so; the message names the operation and its place.
        """
        module.operation.verify()

        # An exception in the visitor would lose its type on the way through MLIR.
        wrong: list[str] = []

        def visit(operation: ir.Operation) -> ir.WalkResult:
            name = operation.name
            if name != "torch.operator" and name.startswith(_LOWERED):
                return ir.WalkResult.ADVANCE
            shown = operation.attributes["name"] if name == "torch.operator" else name
            wrong.append(f"{shown} isn't lowered, at {operation.location}")
            return ir.WalkResult.INTERRUPT

        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        if wrong:
            raise ModuleError(wrong[0])
        found = _main_type(module)
        for what, types, wanted in (
            ("argument", found.inputs, self.parameters),
            ("result", found.results, self.results),
        ):
            if len(types) != len(wanted):
                raise ModuleError(f"main has {len(types)} {what}s, not {len(wanted)}")
            for number, (actual, expected) in enumerate(zip(types, wanted, strict=True)):
                if str(actual) != expected.mlir:
                    raise ModuleError(f"{what} {number} is {actual}, not {expected.mlir}")

    def check_arguments(self, arguments: Sequence[Any]) -> None:
        """See that arguments are of the parameters' types.

        Raises:
            ValueError: one isn't; the message tells which.
        """
        _check("argument", arguments, self.parameters)

    def check_results(self, results: Sequence[Any]) -> None:
        """See that results are of the results' types.

        Raises:
            ValueError: one isn't; the message tells which.
        """
        _check("result", results, self.results)


def _check(what: str, values: Sequence[Any], types: Sequence[ValueType]) -> None:
    if len(values) != len(types):
        raise ValueError(f"there are {len(values)} {what}s, not {len(types)}")
    for number, (value, type_) in enumerate(zip(values, types, strict=True)):
        mismatch = type_.mismatch(value)
        if mismatch is not None:
            raise ValueError(f"{what} {number} {mismatch}")


def _main_type(module: ir.Module) -> ir.FunctionType:
    for view in module.body.operations:
        operation = view.operation
        if operation.name != "func.func":
            continue
        if ir.StringAttr(operation.attributes["sym_name"]).value == "main":
            return ir.FunctionType(ir.TypeAttr(operation.attributes["function_type"]).value)
    raise ModuleError("the module has no function main")
