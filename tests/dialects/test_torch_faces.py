# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The torch dialect's Python classes and functions."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torch_mlir import ir
from torch_mlir.dialects import _torch_operators as faces
from torch_mlir.dialects import func
from torch_mlir.dialects import torch as torch_d
from torch_mlir.operators import load, lookup


@pytest.fixture
def block() -> Iterator[ir.Block]:
    """An empty block with two `!torch.vtensor<[2],f32>` arguments, insertion point at its end."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        tensor = ir.Type.parse("!torch.vtensor<[2],f32>")
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ir.FunctionType.get([tensor, tensor], []))
        entry = function.add_entry_block()
        with ir.InsertionPoint(entry):
            yield entry
            func.ReturnOp([])
        module.operation.verify()


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("aten.add.Tensor", "AtenAddTensorOp"),
        ("aten.add_.Tensor", "AtenAdd_TensorOp"),
        ("aten._convolution.deprecated", "Aten_ConvolutionDeprecatedOp"),
        ("aten.__and__.Tensor", "Aten__And__TensorOp"),
        ("aten.__getitem__.Dict_str", "Aten__Getitem__DictStrOp"),
        ("aten.div_.Scalar_mode", "AtenDiv_ScalarModeOp"),
        ("aten.max_pool2d_with_indices", "AtenMaxPool2dWithIndicesOp"),
        ("aten.size", "AtenSizeOp"),
        ("prim.NumToTensor.Scalar", "PrimNumToTensorScalarOp"),
        ("prims.convert_element_type", "PrimsConvertElementTypeOp"),
        (
            "quantized_decomposed.quantize_per_tensor",
            "QuantizedDecomposedQuantizePerTensorOp",
        ),
    ],
)
def test_classes_have_upstreams_names(key: str, name: str) -> None:
    assert faces.class_name(key) == name
    assert getattr(torch_d, name).OPERATION_NAME == f"torch.{key}"


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("AtenAddTensorOp", "result self_ other alpha"),
        ("AtenMaxDimOp", "values indices self_ dim keepdim"),
        (
            "AtenMaxPool2dWithIndicesOp",
            "result0 result1 self_ kernel_size stride padding dilation ceil_mode",
        ),
        ("AtenAddIntOp", "a b *results"),
        ("PrimDeviceOp", "a *results"),
        ("AtenSizeOp", "result self_"),
        ("AtenSortIntOp", "self_ reverse"),
        ("AtenUniformOp", "result self_ from_ to generator"),
        ("AtenFormatOp", "operands_ *results"),
        ("QuantizedLinearOp", "Y X W_prepack Y_scale_i Y_zero_point_i"),
    ],
)
def test_constructors_take_what_upstreams_take(name: str, parameters: str) -> None:
    found = inspect.signature(getattr(torch_d, name).__init__).parameters
    positional = [p.name for p in found.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    keyword = {p.name for p in found.values() if p.kind is p.KEYWORD_ONLY}
    expected = parameters.split()
    assert positional == ["self", *(p for p in expected if not p.startswith("*"))]
    assert keyword == {p[1:] for p in expected if p.startswith("*")} | {"loc", "ip"}


def test_names_and_constructors_of_upstreams_bindings() -> None:
    """Every class of upstream's that is made from the table here, read from its generated module.

    TORCH_MLIR_UPSTREAM names a folder with upstream's package, unpacked.
    """
    if "TORCH_MLIR_UPSTREAM" not in os.environ:
        pytest.skip("TORCH_MLIR_UPSTREAM names no folder with upstream's torch_mlir")
    upstream = Path(os.environ["TORCH_MLIR_UPSTREAM"])
    text = (upstream / "torch_mlir/dialects/_torch_ops_gen.py").read_text()
    compared = 0
    differing = []
    for node in ast.parse(text).body:
        if not isinstance(node, ast.ClassDef) or "OpView" not in ast.unparse(node.bases[0]):
            continue
        values = {s.targets[0].id: s.value for s in node.body if isinstance(s, ast.Assign)}  # type: ignore[attr-defined]
        key = ast.literal_eval(values["OPERATION_NAME"]).removeprefix("torch.")
        if key not in load() or key in faces.structural_classes():
            continue
        constructor = next(f for f in node.body if getattr(f, "name", "") == "__init__")
        assert isinstance(constructor, ast.FunctionDef)
        theirs = [a.arg for a in constructor.args.args]
        accessors = {f.name for f in node.body if isinstance(f, ast.FunctionDef)} - {"__init__"}
        ours = getattr(torch_d, node.name, None)
        if ours is None or ours.OPERATION_NAME != f"torch.{key}":
            differing.append((key, node.name))
            continue
        found = inspect.signature(ours.__init__).parameters.values()
        names = [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]
        if names != theirs or not accessors <= set(dir(ours)):
            differing.append((key, f"{theirs} {names}"))
        compared += 1
    assert compared > 700
    # PyTorch 2.15 calls `out_dtype` `output_dtype`.
    assert [k for k, _ in differing] == ["quantized_decomposed.dequantize_per_channel_group"]


def test_an_operation_is_made_and_its_operands_have_names(block: ir.Block) -> None:
    alpha = torch_d.ConstantIntOp(2)
    tensor = block.arguments[0].type
    op = torch_d.AtenAddTensorOp(tensor, block.arguments[0], block.arguments[1], alpha)
    assert op.get_asm(assume_verified=True) == (
        "%0 = torch.aten.add.Tensor %arg0, %arg1, %int2 : "
        "!torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>, !torch.int -> !torch.vtensor<[2],f32>"
    )
    assert op.self_ == block.arguments[0]
    assert op.other == block.arguments[1]
    assert op.alpha == alpha.result
    assert op.result.type == tensor


def test_a_view_of_an_operation_has_the_class(block: ir.Block) -> None:
    op = ir.Operation.create(
        "torch.aten.relu", results=[block.arguments[0].type], operands=[block.arguments[0]]
    )
    assert isinstance(op.operation.opview, torch_d.AtenReluOp)
    assert not isinstance(op.operation.opview, torch_d.AtenTanhOp)


def test_an_operation_that_is_looked_at_before_its_class_has_it_all_the_same() -> None:
    # Classes stay for the life of a process, hence one of its own.
    code = (
        "from torch_mlir import ir\n"
        "text = 'func.func @f(%a: !torch.int) { torch.aten.neg.int %a : !torch.int -> !torch.int'\n"
        "with ir.Context():\n"
        "    module = ir.Module.parse(text + '\\n return }')\n"
        "    op = module.body.operations[0].body.blocks[0].operations[0]\n"
        "    print(type(op).__name__, op.a)\n"
        "from torch_mlir.dialects import torch as torch_d\n"
        "assert type(op) is torch_d.AtenNegIntOp\n"
    )
    result = subprocess.run(
        [sys.executable, "-P", "-c", code], check=False, capture_output=True, text=True
    )
    printed = "AtenNegIntOp BlockArgument(<block argument> of type '!torch.int' at index: 0)"
    assert (result.stdout.strip(), result.stderr) == (printed, "")


def test_several_results_have_names(block: ir.Block) -> None:
    one, true = torch_d.ConstantIntOp(0), torch_d.ConstantBoolOp(True)
    values = ir.Type.parse("!torch.vtensor<[1],f32>")
    indices = ir.Type.parse("!torch.vtensor<[1],si64>")
    op = torch_d.AtenMaxDimOp(values, indices, block.arguments[0], one, keepdim=true)
    assert (op.values.type, op.indices.type) == (values, indices)
    assert op.values == op.results[0]
    assert op.indices == op.results[1]


def test_result_types_that_follow_from_the_schema_are_left_out(block: ir.Block) -> None:
    one = torch_d.ConstantIntOp(1)
    total = torch_d.AtenAddIntOp(one, one)
    assert str(total.result.type) == "!torch.int"
    assert str(torch_d.AtenGtIntOp(total, one).result.type) == "!torch.bool"
    assert str(torch_d.PrimDeviceOp(block.arguments[0]).result.type) == "!torch.Device"
    given = torch_d.AtenAddIntOp(one, one, results=[one.result.type])
    assert given.result.type == one.result.type


def test_functions_give_results(block: ir.Block) -> None:
    one = torch_d.constant_int(1)
    tensor = block.arguments[0].type
    total = torch_d.aten_add_Tensor(tensor, block.arguments[0], block.arguments[1], one)
    assert isinstance(total, ir.OpResult)
    assert total.owner.name == "torch.aten.add.Tensor"
    values = torch_d.aten_max_dim(tensor, tensor, total, one, torch_d.constant_bool(False))
    assert [v.type for v in values] == [tensor, tensor]


def test_operators_are_found_by_pytorchs_names(block: ir.Block) -> None:
    a, b = block.arguments
    one = torch_d.ConstantIntOp(1)
    op = torch_d.ops.aten.add.Tensor(a, alpha=one, other=b, results=[a.type])
    assert isinstance(op, torch_d.AtenAddTensorOp)
    assert list(op.operands) == [a, b, one.result]
    assert torch_d.ops.aten.relu(op, results=[a.type]).name == "torch.aten.relu"
    assert torch_d.ops.aten.relu.default(op, results=[a.type]).name == "torch.aten.relu"
    assert str(torch_d.ops.aten.size.int(a, one).result.type) == "!torch.int"
    assert len(torch_d.ops.prim.Print(a, b).operands) == 2


@pytest.mark.parametrize(
    ("operands", "named", "message"),
    [
        (2, {}, r"missing: alpha: aten::add\.Tensor\(Tensor self, Tensor other"),
        (2, {"other": 0, "alpha": 0}, "twice: other"),
        (2, {"alpha": 0, "beta": 0}, "unknown: beta"),
        (4, {}, "4 operands"),
    ],
)
def test_operands_that_do_not_fit_are_told(
    block: ir.Block, operands: int, named: dict[str, int], message: str
) -> None:
    a = block.arguments[0]
    with pytest.raises(TypeError, match=message):
        torch_d.ops.aten.add.Tensor(*[a] * operands, results=[a.type], **dict.fromkeys(named, a))


def test_missing_result_types_are_told(block: ir.Block) -> None:
    with pytest.raises(TypeError, match=r"aten\.relu: results= is needed: aten::relu"):
        torch_d.ops.aten.relu(block.arguments[0])


def test_names_that_are_none_are_told() -> None:
    with pytest.raises(AttributeError, match=r"AtenNonsenseOp.*nor one of the operator table"):
        _ = torch_d.AtenNonsenseOp
    with pytest.raises(ImportError, match="AtenNonsenseOp"):
        from torch_mlir.dialects.torch import AtenNonsenseOp  # noqa: F401
    with pytest.raises(AttributeError, match=r"aten\.nonsense: not in the operator table"):
        _ = torch_d.ops.aten.nonsense
    with pytest.raises(AttributeError, match="no overload 'Nonsense': default, out"):
        _ = torch_d.ops.aten.relu.Nonsense
    with pytest.raises(AttributeError, match="nonsense: no namespace"):
        _ = torch_d.ops.nonsense
    with pytest.raises(TypeError, match=r"aten\.div_: name an overload: Scalar, Scalar_mode"):
        torch_d.ops.aten.div_()


def test_every_operator_has_a_class() -> None:
    # Classes stay registered for the life of a process, hence one of its own.
    code = (
        "from torch_mlir.dialects import torch as d, _torch_operators as f\n"
        "from torch_mlir.operators import load\n"
        "classes = [f.op_class(k) for k in load()]\n"
        "assert [c.OPERATION_NAME for c in classes] == [f'torch.{k}' for k in load()]\n"
        "print(len(classes))"
    )
    result = subprocess.run(
        [sys.executable, "-P", "-c", code], check=False, capture_output=True, text=True
    )
    assert (result.stdout.strip(), result.stderr) == (str(len(load())), "")


def test_dir_lists_everything() -> None:
    names = set(dir(torch_d))
    assert {"AtenAddTensorOp", "aten_add_Tensor", "ConstantIntOp", "PrimIfOp", "ops"} <= names
    assert {faces.class_name(key) for key in load()} <= names
    spelled = {
        ".".join((n, o, *(() if v == "default" else (v,))))
        for n in dir(torch_d.ops)
        for o in dir(getattr(torch_d.ops, n))
        for v in dir(getattr(getattr(torch_d.ops, n), o))
    }
    assert spelled == set(load())


def test_a_class_says_its_schema_and_stays_the_same() -> None:
    assert torch_d.AtenReluOp.__doc__ == "aten::relu(Tensor self) -> Tensor"
    assert torch_d.AtenReluOp.SCHEMA is lookup("aten.relu")
    assert torch_d.AtenReluOp is faces.op_class("aten.relu")
    assert torch_d.ops.aten.relu.default.__doc__ == "aten::relu(Tensor self) -> Tensor"


def test_structural_operators_keep_the_classes_of_their_own() -> None:
    assert torch_d.PrimUncheckedCastOp is faces.op_class("prim.unchecked_cast")
    assert torch_d.PrimUncheckedCastOp.__module__.endswith("_torch_ops_gen")


def test_importing_makes_no_classes() -> None:
    code = (
        "from torch_mlir.dialects import torch, _torch_operators as f;"
        "assert torch.ConstantIntOp; print(f.op_class.cache_info().currsize)"
    )
    result = subprocess.run(
        [sys.executable, "-P", "-c", code], check=False, capture_output=True, text=True
    )
    assert (result.stdout.strip(), result.stderr) == ("0", "")


def test_register_dialect_loads_it() -> None:
    with ir.Context() as context:
        torch_d.register_dialect(context)
        assert context.is_registered_operation("torch.aten.add.Tensor")


LITERAL = "dense<1.0> : tensor<2x3xf32>"


def test_literals_and_copies_infer_their_types() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            contents = ir.Attribute.parse(LITERAL)
            value = torch_d.ValueTensorLiteralOp(contents)
            tensor = torch_d.NonValueTensorLiteralOp(contents)
            types = [
                value.result.type,
                tensor.result.type,
                torch_d.CopyToNonValueTensorOp(value.result).result.type,
                torch_d.CopyToValueTensorOp(tensor.result).result.type,
                torch_d.vtensor_literal(ir.Attribute.parse("dense<1> : tensor<ui8>")).type,
                # What is said of a tensor in memory may be less.
                torch_d.tensor_literal(contents, results=[ir.Type.parse("!torch.tensor")]).type,
            ]
        assert module.operation.verify()
    assert [str(kind) for kind in types] == [
        "!torch.vtensor<[2,3],f32>",
        "!torch.tensor<[2,3],f32>",
        "!torch.tensor<[2,3],f32>",
        "!torch.vtensor<[2,3],f32>",
        "!torch.vtensor<[],ui8>",
        "!torch.tensor",
    ]


def test_what_has_no_type_is_not_made() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            value = torch_d.ValueTensorLiteralOp(ir.Attribute.parse(LITERAL)).result
            with pytest.raises(ir.MLIRError, match=r"a !torch.tensor is copied"):
                torch_d.CopyToValueTensorOp(value)
            for operator in (torch_d.ValueTensorLiteralOp, torch_d.NonValueTensorLiteralOp):
                with pytest.raises(ir.MLIRError, match="isn't the elements of a tensor"):
                    operator(ir.Attribute.parse("1 : i64"))
        assert len(module.body.operations) == 1
