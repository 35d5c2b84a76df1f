# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants and literals on the reference backend are the values that the text says."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

DTYPES = [
    (element, getattr(torch, name))
    for element, name in (
        ("ui8", "uint8"),
        ("ui16", "uint16"),
        ("ui32", "uint32"),
        ("ui64", "uint64"),
        ("si8", "int8"),
        ("si16", "int16"),
        ("si32", "int32"),
        ("si64", "int64"),
        ("f16", "float16"),
        ("bf16", "bfloat16"),
        ("f32", "float32"),
        ("f64", "float64"),
        ("f8E5M2", "float8_e5m2"),
        ("f8E4M3FN", "float8_e4m3fn"),
        ("f8E5M2FNUZ", "float8_e5m2fnuz"),
        ("f8E4M3FNUZ", "float8_e4m3fnuz"),
    )
    if hasattr(torch, name)
]


def literal(contents: str, shape: str, element: str, blob: str = "") -> str:
    sizes = "".join(f"{size}x" for size in shape.split(",") if size)
    kind = f"!torch.vtensor<[{shape}],{element}>"
    resources = f'\n{{-# dialect_resources: {{ builtin: {{ w: "0x{blob}" }} }} #-}}' * bool(blob)
    return f"""
func.func @main() -> {kind} {{
  %0 = torch.vtensor.literal({contents} : tensor<{sizes}{element}>) : {kind}
  return %0 : {kind}
}}{resources}"""


@pytest.mark.parametrize(("element", "dtype"), DTYPES)
@pytest.mark.parametrize(
    ("contents", "shape", "numbers"),
    [
        ("[[0, 1, 2], [3, 4, 6]]", "2,3", [[0, 1, 2], [3, 4, 6]]),
        ("6", "2,3", [[6, 6, 6], [6, 6, 6]]),
        ("6", "1", [6]),
        ("3", "", 3),
    ],
    ids=["listed", "splat", "one", "no dimensions"],
)
def test_elements_that_the_text_lists(run, element, dtype, contents, shape, numbers):
    if "f" in element:
        contents = contents.translate({ord(digit): f"{digit}.0" for digit in "012346"})
    result = run(literal(f"dense<{contents}>", shape, element))
    assert result.dtype is dtype and result.is_contiguous()
    assert result.to(torch.float64).tolist() == numbers


@pytest.mark.parametrize(("element", "dtype"), DTYPES)
def test_elements_in_a_blob(run, element, dtype):
    # Some alignment, then the contents as they lie in memory.
    raw = torch.tensor([0, 1, 2, 3, 4, 6]).to(torch.float64).to(dtype).view(torch.uint8)
    blob = "08000000" + bytes(raw.tolist()).hex()
    result = run(literal("dense_resource<w>", "2,3", element, blob))
    assert result.dtype is dtype
    assert result.to(torch.float64).tolist() == [[0, 1, 2], [3, 4, 6]]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 17])
def test_bools_are_bits_in_the_text_and_bytes_in_a_blob(run, count):
    bits = [index % 3 == 0 for index in range(count)]
    listed = ", ".join("true" if bit else "false" for bit in bits)
    assert run(literal(f"dense<[{listed}]>", str(count), "i1")).tolist() == bits
    blob = "01000000" + bytes(bits).hex()
    assert run(literal("dense_resource<w>", str(count), "i1", blob)).tolist() == bits


@pytest.mark.parametrize("value", [True, False])
def test_splats_of_bools(run, value):
    result = run(literal(f"dense<{str(value).lower()}>", "3,5", "i1"))
    assert torch.equal(result, torch.full((3, 5), value))


@pytest.mark.parametrize(
    ("element", "dtype"), [("complex<f32>", torch.complex64), ("complex<f64>", torch.complex128)]
)
def test_complex_elements(run, element, dtype):
    listed = run(literal("dense<[(1.0, -2.0), (0.5, 4.0)]>", "2", element))
    assert listed.dtype is dtype and listed.tolist() == [1 - 2j, 0.5 + 4j]
    assert run(literal("dense<(1.0, -2.0)>", "2", element)).tolist() == [1 - 2j, 1 - 2j]


def test_no_elements_at_all(run):
    result = run(literal("dense<>", "0,3", "f32"))
    assert result.shape == (0, 3) and result.dtype is torch.float32


def test_floats_that_no_decimal_spells(run):
    result = run(literal("dense<[0x7F800000, 0xFF800000, 0x7FC00000]>", "3", "f32"))
    assert result[:2].tolist() == [float("inf"), float("-inf")] and result[2].isnan()


def test_a_literal_of_no_value_is_new_in_each_call(run, reference):
    program = reference(
        """
func.func @main() -> !torch.tensor {
  %0 = torch.tensor.literal(dense<[1.0, 2.0]> : tensor<2xf32>) : !torch.tensor
  %int1 = torch.constant.int 1
  %1 = torch.aten.add_.Scalar %0, %int1, %int1
    : !torch.tensor, !torch.int, !torch.int -> !torch.tensor
  return %0 : !torch.tensor
}"""
    )
    assert program().tolist() == [2.0, 3.0]
    assert program().tolist() == [2.0, 3.0]


@pytest.mark.parametrize("contents", ["dense<[1.0, 2.0]>", "dense<1.0>", "dense_resource<w>"])
def test_what_a_caller_does_to_a_result_stays_out_of_the_module(reference, contents):
    blob = "04000000" + "0000803f" * 2 if "resource" in contents else ""
    program = reference(literal(contents, "2", "f32", blob))
    first = program()
    before = first.tolist()
    first.add_(5)
    assert program().tolist() == before


def test_views_of_a_literal_stay_out_of_the_module_too(reference):
    program = reference(
        """
func.func @main() -> !torch.list<vtensor> {
  %0 = torch.vtensor.literal(dense<[1.0, 2.0]> : tensor<2xf32>) : !torch.vtensor<[2],f32>
  %int0 = torch.constant.int 0
  %1 = torch.aten.select.int %0, %int0, %int0
    : !torch.vtensor<[2],f32>, !torch.int, !torch.int -> !torch.vtensor<[],f32>
  %2 = torch.prim.ListConstruct %1 : (!torch.vtensor<[],f32>) -> !torch.list<vtensor>
  return %2 : !torch.list<vtensor>
}"""
    )
    program()[0].fill_(9)
    assert program()[0].item() == 1.0


@pytest.mark.parametrize(
    ("constant", "kind", "value"),
    [
        ("int -5", "int", -5),
        ("int 9223372036854775807", "int", 2**63 - 1),
        ("float 2.5e-01", "float", 0.25),
        ("bool true", "bool", True),
        ("bool false", "bool", False),
        ('str "a\\22b"', "str", 'a"b'),
        ('device "cpu"', "Device", torch.device("cpu")),
        ('device "meta"', "Device", torch.device("meta")),
        ("none", "none", None),
    ],
)
def test_constants(run, constant, kind, value):
    result = run(
        f"""
func.func @main() -> !torch.{kind} {{
  %0 = torch.constant.{constant}
  return %0 : !torch.{kind}
}}"""
    )
    assert result == value and type(result) is type(value)


@pytest.mark.parametrize(("attribute", "value"), [("3 : i64", 3), ("2.5 : f64", 2.5)])
def test_constants_that_are_some_number(run, attribute, value):
    result = run(
        f"""
func.func @main() -> !torch.number {{
  %0 = "torch.constant.number"() <{{value = {attribute}}}> : () -> !torch.number
  return %0 : !torch.number
}}"""
    )
    assert result == value and type(result) is type(value)
