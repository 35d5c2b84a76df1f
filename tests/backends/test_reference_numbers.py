# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on Python's values give on the reference backend what Python gives."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

I, F, B, S = "!torch.int", "!torch.float", "!torch.bool", "!torch.str"
LIST = "!torch.list<int>"


@pytest.fixture
def apply(run):
    """Run one operator on inputs of the given types."""

    def call(name, kinds, result, *inputs):
        places = [f"%arg{number}" for number in range(len(kinds))]
        arguments = ", ".join(map("{}: {}".format, places, kinds))
        return run(
            f"""
func.func @main({arguments}) -> {result} {{
  %0 = torch.{name} {", ".join(places)} : {", ".join(kinds)} -> {result}
  return %0 : {result}
}}""",
            *inputs,
        )

    return call


@pytest.mark.parametrize(
    ("name", "kinds", "result", "inputs", "expected"),
    [
        ("aten.add.int", (I, I), I, (7, -2), 5),
        ("aten.sub.int", (I, I), I, (7, -2), 9),
        ("aten.mul.int", (I, I), I, (7, -2), -14),
        ("aten.floordiv.int", (I, I), I, (7, -2), -4),
        ("aten.remainder.int", (I, I), I, (7, -2), -1),
        ("aten.neg.int", (I,), I, (7,), -7),
        ("aten.pow.int_to_int", (I, I), I, (3, 39), 3**39),
        ("aten.div.int", (I, I), F, (7, 2), 3.5),
        ("aten.add.float_int", (F, I), F, (0.5, 2), 2.5),
        ("aten.sub.float", (F, F), F, (0.5, 2.0), -1.5),
        ("aten.mul.float", (F, F), F, (0.5, 3.0), 1.5),
        ("aten.div.float", (F, F), F, (1.0, 4.0), 0.25),
        ("aten.ceil.float", (F,), I, (-1.5,), -1),
        ("aten.sqrt.int", (I,), F, (2,), math.sqrt(2)),
        ("aten.Float.Scalar", (I,), F, (3,), 3.0),
        ("aten.Int.float", (F,), I, (-2.7,), -2),
        ("aten.Int.bool", (B,), I, (True,), 1),
        ("aten.Bool.int", (I,), B, (4,), True),
        ("aten.eq.int", (I, I), B, (4, 4), True),
        ("aten.ne.int", (I, I), B, (4, 4), False),
        ("aten.lt.int", (I, I), B, (4, 4), False),
        ("aten.le.int", (I, I), B, (4, 4), True),
        ("aten.gt.float_int", (F, I), B, (4.5, 4), True),
        ("aten.ge.int", (I, I), B, (3, 4), False),
        ("aten.eq.str", (S, S), B, ("a", "b"), False),
        ("aten.__not__", (B,), B, (True,), False),
        ("aten.__and__.bool", (B, B), B, (True, False), False),
        ("aten.__or__.bool", (B, B), B, (True, False), True),
        ("prim.min.int", (I, I), I, (3, 4), 3),
        ("prim.max.int", (I, I), I, (3, 4), 4),
        ("prim.min.self_int", (LIST,), I, ([3, 1, 2],), 1),
        ("prim.max.self_int", (LIST,), I, ([3, 1, 2],), 3),
        ("aten.__range_length", (I, I, I), I, (0, 10, 3), 4),
        ("aten.__derive_index", (I, I, I), I, (2, 1, 3), 7),
        ("aten.__getitem__.t", (LIST, I), I, ([3, 1, 2], -1), 2),
        ("aten.__contains__.int_list", (LIST, I), B, ([3, 1], 1), True),
        ("aten.len.t", (LIST,), I, ([3, 1, 2],), 3),
        ("aten.len.str", (S,), I, ("abc",), 3),
        ("aten.add.t", (LIST, LIST), LIST, ([1], [2, 3]), [1, 2, 3]),
        ("aten.add.str", (S, S), S, ("a", "b"), "ab"),
        ("aten.slice.t", (LIST, I, I, I), LIST, ([1, 2, 3, 4], 0, 4, 2), [1, 3]),
        ("aten.eq.int_list", (LIST, LIST), B, ([1], [1]), True),
        ("aten.__is__", (I, "!torch.none"), B, (1, None), False),
        ("aten.__isnot__", (I, "!torch.none"), B, (1, None), True),
        ("aten.keys.str", ("!torch.dict<str, int>",), "!torch.list<str>", ({"a": 1},), ["a"]),
        (
            "aten.__contains__.str",
            ("!torch.dict<str, int>", S),
            B,
            ({"a": 1}, "b"),
            False,
        ),
        ("aten.__getitem__.Dict_str", ("!torch.dict<str, int>", S), I, ({"a": 1}, "a"), 1),
        ("aten.get.default_str", ("!torch.dict<str, int>", S, I), I, ({"a": 1}, "b", 5), 5),
        ("aten.mul.left_t", (LIST, I), LIST, ([1, 2], 2), [1, 2, 1, 2]),
        ("aten.sorted.any", (LIST,), LIST, ([3, 1, 2],), [1, 2, 3]),
        ("aten.str", (I,), S, (-3,), "-3"),
    ],
)
def test_numbers_strings_and_containers(apply, name, kinds, result, inputs, expected):
    got = apply(name, kinds, result, *inputs)
    assert got == expected and type(got) is type(expected)


def test_what_python_refuses_is_refused(apply):
    with pytest.raises(RuntimeError, match="aten.floordiv.int at .*[Dd]ivi.* by (0|zero)"):
        apply("aten.floordiv.int", (I, I), I, 1, 0)
    with pytest.raises(RuntimeError, match="aten.__range_length .*must not be zero"):
        apply("aten.__range_length", (I, I, I), I, 0, 3, 0)
    with pytest.raises(RuntimeError, match="result 0 has type !torch.int, but .*0.25"):
        apply("aten.pow.int_to_int", (I, I), I, 2, -2)


T = "!torch.vtensor<[2,3],f32>"


@pytest.mark.parametrize(
    ("name", "kinds", "result", "inputs", "expected"),
    [
        ("aten.size", (T,), LIST, (), [2, 3]),
        ("aten.size.int", (T, I), I, (-1,), 3),
        ("aten.dim", (T,), I, (), 2),
        ("aten.numel", (T,), I, (), 6),
        ("aten.len.Tensor", (T,), I, (), 2),
        ("aten.is_floating_point", (T,), B, (), True),
        # c10::ScalarType of float, and of strided.
        ("prim.dtype", (T,), I, (), 6),
        ("prim.layout", (T,), I, (), 0),
        ("prim.device", (T,), "!torch.Device", (), torch.device("cpu")),
    ],
)
def test_what_tensors_are(apply, name, kinds, result, inputs, expected):
    assert apply(name, kinds, result, torch.zeros(2, 3), *inputs) == expected


@pytest.mark.parametrize(
    ("name", "element", "result", "value"),
    [
        ("aten.Int.Tensor", "si64", I, 5),
        ("aten.Float.Tensor", "f32", F, 0.5),
        ("aten.Bool.Tensor", "i1", B, True),
        ("aten.item", "si64", "!torch.number", 5),
    ],
)
def test_the_element_of_a_tensor(apply, name, element, result, value):
    got = apply(name, (f"!torch.vtensor<[],{element}>",), result, torch.tensor(value))
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    ("value", "kind", "element", "dtype"),
    [
        (3, I, "si64", torch.int64),
        (0.1, F, "f64", torch.float64),
        (True, B, "i1", torch.bool),
        (3, I, "f32", torch.float32),
    ],
)
def test_numbers_become_tensors_of_the_type_s_dtype(apply, value, kind, element, dtype):
    got = apply("prim.NumToTensor.Scalar", (kind,), f"!torch.vtensor<[],{element}>", value)
    assert torch.equal(got, torch.tensor(value, dtype=dtype))


def test_writes_to_a_list_are_seen_through_every_name_of_it(run):
    given = [5, 6]
    got = run(
        """
func.func @main(%given: !torch.list<int>) -> (!torch.list<int>, !torch.int) {
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %int7 = torch.constant.int 7
  %same = torch.aten.append.t %given, %int7
    : !torch.list<int>, !torch.int -> !torch.list<int>
  %0 = torch.aten._set_item.t %same, %int0, %int1
    : !torch.list<int>, !torch.int, !torch.int -> !torch.list<int>
  torch.aten.insert.t %given, %int1, %int0 : !torch.list<int>, !torch.int, !torch.int
  torch.aten.Delete.t %given, %int0 : !torch.list<int>, !torch.int
  torch.aten.reverse.t %given : !torch.list<int>
  %last = torch.aten.pop.t %given, %int0 : !torch.list<int>, !torch.int -> !torch.int
  return %same, %last : !torch.list<int>, !torch.int
}""",
        given,
    )
    assert got == ([6, 0], 7) and given == [6, 0]


def test_writes_to_a_dict_are_seen(run):
    given = {"a": 1}
    got = run(
        """
func.func @main(%given: !torch.dict<str, int>) -> (!torch.int, !torch.int) {
  %a = torch.constant.str "a"
  %b = torch.constant.str "b"
  %int7 = torch.constant.int 7
  torch.aten._set_item.str %given, %b, %int7 : !torch.dict<str, int>, !torch.str, !torch.int
  %0 = torch.aten.setdefault.str %given, %b, %int7
    : !torch.dict<str, int>, !torch.str, !torch.int -> !torch.int
  %1 = torch.aten.pop.Dict_str %given, %a : !torch.dict<str, int>, !torch.str -> !torch.int
  return %0, %1 : !torch.int, !torch.int
}""",
        given,
    )
    assert got == (7, 1) and given == {"b": 7}


def test_lists_are_sorted_and_extended_in_place(run):
    given = [3, 1]
    got = run(
        """
func.func @main(%given: !torch.list<int>) -> !torch.list<int> {
  %true = torch.constant.bool true
  %int1 = torch.constant.int 1
  %int2 = torch.constant.int 2
  %0 = torch.aten.add_.t %given, %given
    : !torch.list<int>, !torch.list<int> -> !torch.list<int>
  torch.aten.remove.int %given, %int1 : !torch.list<int>, !torch.int
  torch.aten.sort.int %given, %true : !torch.list<int>, !torch.bool
  %1 = torch.aten.mul_.t %given, %int2 : !torch.list<int>, !torch.int -> !torch.list<int>
  return %0 : !torch.list<int>
}""",
        given,
    )
    assert got == given == [3, 3, 1, 3, 3, 1]


def test_tensors_are_made_of_nested_lists(run):
    got = run(
        """
func.func @main(%data: !torch.list<list<int>>, %dtype: !torch.int) -> !torch.tensor {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.aten.tensor %data, %dtype, %none, %false
    : !torch.list<list<int>>, !torch.int, !torch.none, !torch.bool -> !torch.tensor
  return %0 : !torch.tensor
}""",
        [[1, 2], [3, 4]],
        7,  # c10::ScalarType of double
    )
    assert torch.equal(got, torch.tensor([[1, 2], [3, 4]], dtype=torch.float64))


def test_copies_of_a_list_are_others(run):
    given = [1]
    got = run(
        """
func.func @main(%given: !torch.list<int>) -> !torch.list<int> {
  %int2 = torch.constant.int 2
  %copy = torch.aten.list.t %given : !torch.list<int> -> !torch.list<int>
  %0 = torch.aten.append.t %copy, %int2 : !torch.list<int>, !torch.int -> !torch.list<int>
  return %copy : !torch.list<int>
}""",
        given,
    )
    assert got == [1, 2] and given == [1]


def test_text_is_formatted_and_printed(run, capsys):
    got = run(
        """
func.func @main(%n: !torch.int) -> !torch.str {
  %text = torch.constant.str "{} of {}"
  %float = torch.constant.float 2.500000e+00
  %0 = torch.aten.format(%text, %n, %float)
    : !torch.str, !torch.int, !torch.float -> !torch.str
  torch.prim.Print(%0, %n) : !torch.str, !torch.int
  return %0 : !torch.str
}""",
        3,
    )
    assert got == "3 of 2.5" and capsys.readouterr().out == "3 of 2.5 3\n"


def test_exceptions_are_raised(run):
    with pytest.raises(RuntimeError, match="prim.RaiseException .*out of luck"):
        run(
            """
func.func @main() {
  %text = torch.constant.str "out of luck"
  %none = torch.constant.none
  torch.prim.RaiseException %text, %none : !torch.str, !torch.none
  return
}"""
        )


@pytest.mark.parametrize(
    ("ranks", "dtypes"),
    [
        ((1, 1), (torch.int32, torch.float32)),
        ((1, 0), (torch.int8, torch.int64)),
        ((1, None), (torch.int8, torch.float32)),
        ((0, None), (torch.float16, torch.float32)),
        ((2, 1, None), (torch.bfloat16, torch.float16, torch.int64)),
    ],
)
def test_dtypes_promote_as_pytorch_promotes_them(run, ranks, dtypes):
    # c10::ScalarType.
    numbers = {
        torch.int8: 1, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
        torch.bfloat16: 15,
    }  # fmt: skip
    got = run(
        """
func.func @main(%ranks: !torch.list<optional<int>>, %dtypes: !torch.list<int>) -> !torch.int {
  %0 = torch.promote_dtypes %ranks, %dtypes
    : (!torch.list<optional<int>>, !torch.list<int>) -> !torch.int
  return %0 : !torch.int
}""",
        list(ranks),
        [numbers[dtype] for dtype in dtypes],
    )
    operands = [
        torch.ones((), dtype=dtype).item() if rank is None else torch.ones([1] * rank, dtype=dtype)
        for rank, dtype in zip(ranks, dtypes)
    ]
    total = operands[0]
    for operand in operands[1:]:
        total = total + operand
    assert got == numbers[total.dtype]


@pytest.mark.parametrize(
    ("name", "dtype", "kind", "given", "expected"),
    [
        ("aten.Int.Tensor", "f32", I, torch.tensor(-2.75), -2),
        ("aten.Int.Tensor", "i1", I, torch.tensor(True), 1),
        ("aten.Float.Tensor", "si64", F, torch.tensor(3), 3.0),
        ("aten.Bool.Tensor", "f32", B, torch.tensor(0.5), True),
    ],
)
def test_a_tensor_becomes_a_number_of_the_kind_that_is_asked_for(
    run, name, dtype, kind, given, expected
):
    tensor = f"!torch.vtensor<[],{dtype}>"
    result = run(
        f"""
func.func @main(%arg0: {tensor}) -> {kind} {{
  %0 = torch.{name} %arg0 : {tensor} -> {kind}
  return %0 : {kind}
}}""",
        given,
    )
    assert result == expected and type(result) is type(expected)
    overload = getattr(torch.ops.aten, name.split(".")[1]).Tensor
    assert overload(given) == expected
