# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs Torch-dialect IR with the installed PyTorch: what the importer's tests hold it against.

It reads the module's text, resource blobs included, and knows nothing of the importer. Operators
are looked up in `torch.ops` by the operation's name.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from torch_mlir import ir

_DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i1": torch.bool,
    "ui8": torch.uint8,
    "si8": torch.int8,
    "si16": torch.int16,
    "si32": torch.int32,
    "si64": torch.int64,
    "complex<f16>": torch.complex32,
    "complex<f32>": torch.complex64,
    "complex<f64>": torch.complex128,
    "!torch.qint8": torch.qint8,
    "!torch.quint8": torch.quint8,
    "!torch.qint32": torch.qint32,
    **{
        text: getattr(torch, name)
        for text, name in (
            ("ui16", "uint16"),
            ("ui32", "uint32"),
            ("ui64", "uint64"),
            ("f8E5M2", "float8_e5m2"),
            ("f8E4M3FN", "float8_e4m3fn"),
            ("f8E5M2FNUZ", "float8_e5m2fnuz"),
            ("f8E4M3FNUZ", "float8_e4m3fnuz"),
            ("f8E8M0FNU", "float8_e8m0fnu"),
            ("f4E2M1FN", "float4_e2m1fn_x2"),
            ("ui4", "uint4"),
        )
        if hasattr(torch, name)
    },
}


def run(module: ir.Module, *inputs: Any, function: str = "main") -> list[Any]:
    """What `function` returns for `inputs`; `!torch.tensor` inputs are written to."""
    text = str(module)
    blobs = dict(re.findall(r'^\s*("?[^\s":]+"?): "0x([0-9A-Fa-f]*)"', text, re.MULTILINE))
    blobs = {name.strip('"'): bytes.fromhex(data)[4:] for name, data in blobs.items()}
    parsed = ir.Module.parse(text, ir.Context())
    parsed.operation.verify()
    for operation in parsed.body.operations:
        if ir.StringAttr(operation.attributes["sym_name"]).value == function:
            return _Frame(blobs).block(operation.regions[0].blocks[0], inputs)
    raise KeyError(function)


class _Frame:
    def __init__(self, blobs: dict[str, bytes]) -> None:
        self.blobs = blobs
        self.values: dict[ir.Value, Any] = {}

    def block(self, block: ir.Block, inputs: Any) -> list[Any]:
        """Run a block; the operands of its terminator."""
        arguments = list(block.arguments)
        assert len(arguments) == len(inputs), (len(arguments), len(inputs))
        for argument, value in zip(arguments, inputs):
            _check(argument.type, value)
            self.values[argument] = value
        for operation in block.operations:
            operation = operation.operation
            operands = [self.values[operand] for operand in operation.operands]
            if operation.name in (
                "func.return",
                "torch.prim.If.yield",
                "torch.prim.Loop.condition",
            ):
                return operands
            results = self.run(operation, operands)
            assert len(results) == len(operation.results), operation.name
            for result, value in zip(operation.results, results):
                _check(result.type, value)
                self.values[result] = value
        raise AssertionError("a block without a terminator")

    def run(self, operation: ir.Operation, operands: list[Any]) -> list[Any]:
        name = operation.name
        attributes = operation.attributes
        if name == "torch.constant.none":
            return [None]
        if name == "torch.constant.bool":
            return ["true" in str(attributes["value"])]
        if name == "torch.constant.int":
            return [ir.IntegerAttr(attributes["value"]).value]
        if name == "torch.constant.float":
            return [ir.FloatAttr(attributes["value"]).value]
        if name == "torch.constant.str":
            return [ir.StringAttr(attributes["value"]).value]
        if name == "torch.constant.device":
            return [torch.device(ir.StringAttr(attributes["value"]).value)]
        if name == "torch.vtensor.literal":
            return [self.literal(str(attributes["value"]))]
        if name == "torch.prim.ListConstruct":
            return [operands]
        if name == "torch.prim.ListUnpack":
            return list(operands[0])
        if name == "torch.prim.NumToTensor.Scalar":
            return [torch.tensor(operands[0], dtype=_tensor_type(operation.results[0].type)[1])]
        if name in ("torch.copy.to_vtensor", "torch.tensor_static_info_cast"):
            return [operands[0].clone()]
        if name == "torch.overwrite.tensor.contents":
            operands[1].copy_(operands[0])
            return []
        if name == "torch.symbolic_int":
            return [ir.StringAttr(attributes["symbol_name"]).value]
        if name == "torch.bind_symbolic_shape":
            return []
        if name == "torch.runtime.assert":
            if not operands[0]:
                raise RuntimeError(ir.StringAttr(attributes["message"]).value)
            return []
        if name == "torch.prim.If":
            return self.block(operation.regions[0 if operands[0] else 1].blocks[0], ())
        if name == "torch.prim.Loop":
            limit, condition, *carried = operands
            iteration = 0
            while condition and iteration < limit:
                body = operation.regions[0].blocks[0]
                condition, *carried = self.block(body, (iteration, *carried))
                iteration += 1
            return carried
        if name == "torch.operator":
            name = ir.StringAttr(attributes["name"]).value
        return _call(name, operands)

    def literal(self, text: str) -> torch.Tensor:
        """A tensor from `dense<…> : tensor<…>` or `dense_resource<…> : tensor<…>`."""
        contents, _, kind = text.rpartition(" : ")
        *sizes, element = re.fullmatch(r"tensor<((?:\d+x)*)(.+)>", kind).groups()
        shape = [int(size) for size in sizes[0].split("x") if size]
        dtype = _DTYPES[element]
        if contents.startswith("dense_resource<"):
            name = contents[len("dense_resource<") : -1].strip('"')
            data = torch.tensor(list(self.blobs[name]), dtype=torch.uint8)
            return data.view(dtype).reshape(shape)
        value = contents[len("dense<") : -1]
        if not value:
            return torch.empty(shape, dtype=dtype)
        if value.startswith("["):
            numbers = re.findall(r"[^\[\],\s]+", value)
            each = [self.literal(f"dense<{number}> : tensor<{element}>") for number in numbers]
            return torch.stack(each).reshape(shape)
        if value.startswith(("0x", '"0x')):
            raw = int(value.strip('"')[2:], 16)
            width = torch.empty((), dtype=dtype).element_size()
            data = torch.frombuffer(bytearray(raw.to_bytes(width, "little")), dtype=torch.uint8)
            return data.view(dtype)[0].expand(shape)
        if value.startswith("("):
            return torch.full(shape, complex(*map(float, value[1:-1].split(","))), dtype=dtype)
        number = {"true": True, "false": False}.get(value)
        if number is None:
            number = float(value) if dtype.is_floating_point else int(value)
        return torch.full(
            shape, number, dtype=torch.float64 if dtype.is_floating_point else dtype
        ).to(dtype)


def _call(name: str, operands: list[Any]) -> list[Any]:
    _, namespace, packet, *overload = name.split(".")
    target = getattr(getattr(torch.ops, namespace), packet)
    target = getattr(target, overload[0] if overload else "default")
    positional, keywords = [], {}
    dtypes = {number: dtype for dtype, number in _numbers().items()}
    for argument, value in zip(target._schema.arguments, operands):
        kind = str(getattr(argument, "real_type", argument.type))
        if "ScalarType" in kind and value is not None:
            value = dtypes[value]
        elif "MemoryFormat" in kind and value is not None:
            value = [torch.contiguous_format, torch.preserve_format, torch.channels_last][value]
        elif "Layout" in kind and value is not None:
            value = _LAYOUTS[value]
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            positional.append(value)
    result = target(*positional, **keywords)
    count = len(target._schema.returns)
    return [] if count == 0 else [result] if count == 1 else list(result)


# By c10::Layout; the third is MKL-DNN's.
_LAYOUTS = {
    0: torch.strided, 1: torch.sparse_coo, 2: torch.sparse_csr, 4: torch.sparse_csc,
    5: torch.sparse_bsr, 6: torch.sparse_bsc,
}  # fmt: skip


def _numbers() -> dict[torch.dtype, int]:
    """c10::ScalarType by dtype, from PyTorch itself: what `torch.empty` of each number gives."""
    order = (
        "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool "
        "qint8 quint8 qint32 bfloat16"
    )
    numbers = {getattr(torch, name): number for number, name in enumerate(order.split())}
    if hasattr(torch, "float4_e2m1fn_x2"):
        numbers[torch.float4_e2m1fn_x2] = 45
    if hasattr(torch, "uint4"):
        numbers[torch.uint4] = 33
    return numbers


def _tensor_type(kind: ir.Type) -> tuple[list[str], torch.dtype]:
    match = re.fullmatch(r"!torch\.v?tensor<\[([^\]]*)\],(.+)>", str(kind))
    return [size for size in match[1].split(",") if size], _DTYPES[match[2].split(",#")[0]]


def _check(kind: ir.Type, value: Any) -> None:
    """The type that the module gives a value is the one that the value has."""
    text = str(kind)
    if text.startswith(("!torch.vtensor<", "!torch.tensor<")):
        sizes, dtype = _tensor_type(kind)
        assert value.dtype is dtype, (text, value.dtype)
        assert len(sizes) == value.dim(), (text, value.shape)
        for size, actual in zip(sizes, value.shape):
            assert size in ("?", str(actual)), (text, value.shape)
