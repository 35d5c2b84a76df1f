# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--input`: what each spelling means, and what of it can't be understood."""

from __future__ import annotations

import argparse

import pytest

from torch_mlir.cli.inputs import (
    FileSpec,
    Input,
    OpenSize,
    TensorSpec,
    ValueSpec,
    parse_input,
    torch_dtype_name,
)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("1x3x224x224xf32", TensorSpec((1, 3, 224, 224), "float32")),
        ("tensor<2x3xbf16>", TensorSpec((2, 3), "bfloat16")),
        ("f32", TensorSpec((), "float32")),
        ("0x4xi1", TensorSpec((0, 4), "bool")),
        ("2xcomplex<f32>", TensorSpec((2,), "complex64")),
        ("2x2xi64=1,2,3,4", TensorSpec((2, 2), "int64", (1, 2, 3, 4))),
        ("2xui8=0 255", TensorSpec((2,), "uint8", (0, 255))),
        ("3xi1=true,0,1", TensorSpec((3,), "bool", (True, False, True))),
        ("2xf16=-1.5,1e3", TensorSpec((2,), "float16", (-1.5, 1000.0))),
        ("1xcomplex<f64>=1+2j", TensorSpec((1,), "complex128", (1 + 2j,))),
        ("?x128xi64", TensorSpec((OpenSize(), 128), "int64")),
        (
            "[batch]x[seq=2:512]xi64",
            TensorSpec((OpenSize("batch"), OpenSize("seq", 2, 512)), "int64"),
        ),
        ("[b=:8]x[s=3:]xf32", TensorSpec((OpenSize("b", None, 8), OpenSize("s", 3)), "float32")),
        ("[n@4]x2xf32", TensorSpec((OpenSize("n", size=4), 2), "float32")),
        ("[n=2:16@4]xf32=7", TensorSpec((OpenSize("n", 2, 16, 4),), "float32", (7.0,))),
        ("i64=3", ValueSpec(3)),
        ("f64=0.5", ValueSpec(0.5)),
        ("i1=1", ValueSpec(True)),
        ("true", ValueSpec(True)),
        ("None", ValueSpec(None)),
        ("3", ValueSpec(3)),
        ('"text"', ValueSpec("text")),
        ("[1, 2]", ValueSpec([1, 2])),
        ("@x.npy", FileSpec("x.npy")),
        ("@x.npz:key", FileSpec("x.npz", "key")),
        ("@C:/x.npy", FileSpec("C:/x.npy")),
        ("@a:b.npz:c", FileSpec("a:b.npz", "c")),
    ],
)
def test_spellings(text, spec):
    assert parse_input(text) == Input(text, None, spec)
    # `==` takes True for 1.
    if isinstance(spec, ValueSpec):
        assert type(parse_input(text).spec.value) is type(spec.value)
    # The same by name, even where there are more of `=`.
    assert parse_input(f"mask={text}") == Input(f"mask={text}", "mask", spec)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "neither a tensor"),
        ("4x8xf31", "neither a tensor"),
        ("4x8x", "neither a tensor"),
        ("-1xf32", "neither a tensor"),
        ("two words", "neither a tensor"),
        ("x=", "neither a tensor"),
        ("[b", "neither a tensor"),
        ("[1b]xf32", "is no open size"),
        ("[b=4:2]x8xf32", "has no size between its bounds"),
        ("[b=4:8@9]xf32", "has its example out of its bounds"),
        ("?x2xf32=1,2", "elements are given for an open size"),
        ("2xi1=yes,no", "'yes' is not bool"),
        ("2xi64=1,2.5", "'2.5' is not an integer"),
        ("2xf32=1,,2", "'' is not float32"),
        ("i64=1,2", "a scalar has one value"),
        ("2xui8=0,256", "256 is not from 0 to 255"),
        ("2xsi8=-129,0", "-129 is not from -128 to 127"),
        ("2xui1", "no tensor has elements of type 'ui1'"),
    ],
)
def test_what_cannot_be_understood_is_quoted(text, says):
    with pytest.raises(argparse.ArgumentTypeError) as raised:
        parse_input(text)
    assert repr(text) in str(raised.value)
    assert says in str(raised.value)


def test_every_element_type_has_pytorchs_dtype():
    torch = pytest.importorskip("torch")
    names = {
        "f16": "half", "bf16": "bfloat16", "f32": "float", "f64": "double", "i1": "bool",
        "i8": "int8", "si8": "int8", "ui8": "uint8", "i16": "short", "si32": "int", "si64": "long",
        "complex<f16>": "chalf", "complex<f32>": "cfloat", "complex<f64>": "cdouble",
        "f8E5M2": "float8_e5m2", "f8E4M3FN": "float8_e4m3fn",
    }  # fmt: skip
    for element, name in names.items():
        if hasattr(torch, name):  # PyTorch 2.0 lacks fp8
            assert getattr(torch, torch_dtype_name(element)) is getattr(torch, name)
