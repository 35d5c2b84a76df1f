# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of the torch dialect: text, parameters, what is refused."""

from __future__ import annotations

import pytest

from torch_mlir import ir
from torch_mlir._mlir_libs import _torchMlir
from torch_mlir.dialects import torch as torch_d


@pytest.fixture(autouse=True)
def context():
    with ir.Context() as context, ir.Location.unknown():
        yield context


TEXTS = [
    "!torch.vtensor",
    "!torch.vtensor<*,f32>",
    "!torch.vtensor<[],f32>",
    "!torch.vtensor<[2,?],unk>",
    "!torch.vtensor<[2,?],f32,#sparse_tensor.encoding<"
    "{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>>",
    "!torch.vtensor<[2,3],si64>",
    "!torch.vtensor<[2],ui8>",
    "!torch.vtensor<[2],si4>",
    "!torch.vtensor<[2],i1>",
    "!torch.vtensor<[2],bf16>",
    "!torch.vtensor<[2],f8E4M3FN>",
    "!torch.vtensor<[2],f4E2M1FN>",
    "!torch.vtensor<[2],complex<f64>>",
    "!torch.vtensor<[2],!torch.qint8>",
    "!torch.tensor",
    "!torch.tensor<[?,3],f64>",
    "!torch.int",
    "!torch.float",
    "!torch.bool",
    "!torch.str",
    "!torch.none",
    "!torch.number",
    "!torch.any",
    "!torch.Device",
    "!torch.Generator",
    "!torch.LinearParams",
    "!torch.qint8",
    "!torch.quint8",
    "!torch.qint16",
    "!torch.qint32",
    "!torch.quint4x2",
    "!torch.quint2x4",
    "!torch.list<int>",
    '!torch.list<list<nn.Module<"__torch__.M">>>',
    "!torch.list<vtensor<[2],!torch.qint8>>",
    "!torch.optional<vtensor>",
    "!torch.tuple<>",
    "!torch.tuple<int, vtensor<[2],f32>>",
    "!torch.union<>",
    "!torch.union<float, int>",
    "!torch.dict<str, list<int>>",
    '!torch.nn.Module<"a \\22quoted\\22 name">',
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_type_prints_as_it_was_read(text: str) -> None:
    assert str(ir.Type.parse(text)) == text


def test_a_tensor_of_which_nothing_is_known_has_no_parameters() -> None:
    assert str(ir.Type.parse("!torch.vtensor<*,unk>")) == "!torch.vtensor"
    assert str(ir.Type.parse("!torch.tensor<*,unk>")) == "!torch.tensor"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("!torch.vtensor<[2],i32>", "integers are signed (si32) or unsigned (ui32)"),
        ("!torch.vtensor<[2],index>", "a tensor can't have the dtype 'index'"),
        ("!torch.vtensor<[2],tf32>", "a tensor can't have the dtype 'tf32'"),
        ("!torch.vtensor<[2],!torch.int>", "a tensor can't have the dtype '!torch.int'"),
        ("!torch.tensor<[2],tuple<>>", "a tensor can't have the dtype 'tuple<>'"),
        ("!torch.vtensor<[-2],f32>", "a size can't be negative"),
        ("!torch.vtensor<[2]>", "expected ','"),
        ("!torch.vtensor<[2],qint8>", "expected a dtype"),
        ("!torch.vtensor<[2],f32,12>", "expected an attribute that describes a sparse layout"),
        ("!torch.list<i64>", "the torch dialect has no type 'i64'"),
        ("!torch.list<!torch.int>", "expected valid keyword"),
        ("!torch.dict<int>", "expected ','"),
        ("!torch.vtesnor", "the torch dialect has no type 'vtesnor'"),
    ],
)
def test_what_is_no_type_is_refused(text: str, message: str) -> None:
    with pytest.raises(ir.MLIRError) as error:
        ir.Type.parse(text)
    assert message in str(error.value)


def test_a_type_has_its_own_class() -> None:
    for text, name in [
        ("!torch.vtensor<[2],f32>", "ValueTensorType"),
        ("!torch.tensor", "NonValueTensorType"),
        ("!torch.optional<int>", "OptionalType"),
        ("!torch.quint8", "QUInt8Type"),
        ('!torch.nn.Module<"M">', "NnModuleType"),
    ]:
        assert type(ir.Type.parse(text)) is getattr(torch_d, name)


def test_a_type_without_parameters_is_made_by_its_class() -> None:
    plain = [t for t in TEXTS if "<" not in t]
    assert len(plain) == 18
    for text in plain:
        parsed = ir.Type.parse(text)
        assert type(parsed).get() == parsed


def test_a_tensor_type_gives_its_parameters_back() -> None:
    f32 = ir.F32Type.get()
    made = torch_d.ValueTensorType.get([2, -1], f32)
    assert str(made) == "!torch.vtensor<[2,?],f32>"
    assert (made.sizes, made.dtype, made.sparsity) == ([2, -1], f32, None)
    assert torch_d.ValueTensorType.get([], f32).sizes == []
    unranked = torch_d.NonValueTensorType.get(dtype=f32)
    assert str(unranked) == "!torch.tensor<*,f32>"
    assert (unranked.sizes, unranked.dtype) == (None, f32)
    assert torch_d.ValueTensorType.get() == ir.Type.parse("!torch.vtensor")


def test_containers_give_back_what_they_hold() -> None:
    int_, str_ = torch_d.IntType.get(), torch_d.StringType.get()
    assert torch_d.ListType.get(int_).contained_type == int_
    assert torch_d.OptionalType.get(str_).contained_type == str_
    assert torch_d.TupleType.get([int_, str_]).contained_types == [int_, str_]
    assert torch_d.UnionType.get([]).contained_types == []
    made = torch_d.DictType.get(str_, int_)
    assert (made.key_type, made.value_type) == (str_, int_)
    assert torch_d.NnModuleType.get("a.B").class_name == "a.B"


def test_a_class_refuses_what_makes_no_type() -> None:
    with pytest.raises(ValueError, match="can't have the dtype 'i32'"):
        torch_d.ValueTensorType.get([2], ir.IntegerType.get_signless(32))
    with pytest.raises(ValueError, match="can't have the size -7"):
        torch_d.ValueTensorType.get([-7], ir.F32Type.get())
    with pytest.raises(ValueError, match="!torch.list holds types of the torch dialect"):
        torch_d.ListType.get(ir.F32Type.get())
    with pytest.raises(ValueError, match="Cannot cast type to IntType"):
        torch_d.IntType(torch_d.FloatType.get())


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("dense<1> : tensor<2xi64>", "!torch.vtensor<[2],si64>"),
        ("dense<1> : tensor<2xui8>", "!torch.vtensor<[2],ui8>"),
        ("dense<true> : tensor<i1>", "!torch.vtensor<[],i1>"),
        ("dense<1.0> : tensor<2x3xbf16>", "!torch.vtensor<[2,3],bf16>"),
    ],
)
def test_a_literals_type_follows_from_its_attribute(attribute: str, expected: str) -> None:
    made = torch_d.ValueTensorType.from_attribute(ir.Attribute.parse(attribute))
    assert str(made) == expected


@pytest.mark.parametrize("attribute", ["5 : i64", "dense<1> : tensor<2xindex>"])
def test_what_holds_no_tensors_elements_makes_no_type(attribute: str) -> None:
    with pytest.raises(ValueError, match="not the elements of a tensor"):
        torch_d.ValueTensorType.from_attribute(ir.Attribute.parse(attribute))


@pytest.mark.parametrize(
    ("sub", "super", "holds"),
    [
        ("int", "int", True),
        ("int", "any", True),
        ("int", "number", True),
        ("bool", "number", False),
        ("none", "optional<int>", True),
        ("optional<int>", "optional<number>", True),
        ("optional<int>", "int", False),
        ("int", "union<float, int>", True),
        ("union<float, int>", "number", True),
        ("union<float, none>", "number", False),
        ("optional<int>", "union<int, none>", True),
        ("list<int>", "list<number>", False),
        ("tuple<int, none>", "tuple<number, optional<int>>", True),
        ("tuple<int>", "tuple<int, int>", False),
        ("vtensor<[2,3],f32>", "vtensor<[?,3],f32>", True),
        ("vtensor<[2,3],f32>", "vtensor<*,unk>", True),
        ("vtensor<[2,3],f32>", "optional<vtensor>", True),
        ("vtensor<[?,3],f32>", "vtensor<[2,3],f32>", False),
        ("vtensor<[2],f32>", "vtensor<[2],f64>", False),
        ("vtensor<[2],f32>", "tensor", False),
    ],
)
def test_subtypes(sub: str, super: str, holds: bool) -> None:
    types = [ir.Type.parse(f"!torch.{t}") for t in (sub, super)]
    assert _torchMlir.is_subtype(*types) is holds
