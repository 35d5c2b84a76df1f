# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What only TorchScript's programs have, on the reference backend: types asked for, text, no value."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch_mlir.backends.reference import ExecutionError

ASKED = """
func.func @main(%x: !torch.any) -> !torch.bool {{
  %0 = torch.operator "torch.prim.isinstance"(%x) {{types = [{types}]}}
    : (!torch.any) -> !torch.bool
  return %0 : !torch.bool
}}"""


@pytest.mark.parametrize(
    ("types", "has", "lacks"),
    [
        ("!torch.int", [1], [True, 1.0, None]),
        ("!torch.bool", [False], [0]),
        ("!torch.float, !torch.str", [0.5, "a"], [1]),
        ("!torch.optional<int>", [None, 3], ["3"]),
        ("!torch.list<int>", [[1, 2], []], [[1, "a"], (1,)]),
        ("!torch.tuple<int, str>", [(1, "a")], [(1,), ("a", 1), [1, "a"]]),
        ("!torch.dict<str, list<float>>", [{"a": [0.5]}], [{"a": [1]}, {1: [0.5]}]),
        ("!torch.union<int, none>", [None, 1], [1.5]),
        ("!torch.number", [1, 0.5, 1j], [True, "1"]),
        ("!torch.Device", [torch.device("cpu")], ["cpu"]),
        ("!torch.tensor", [torch.ones(1)], [1.0]),
        ("!torch.any", [object()], []),
    ],
)
def test_values_are_of_their_types(run, types, has, lacks):
    for value in has:
        assert run(ASKED.format(types=types), value) is True
    for value in lacks:
        assert run(ASKED.format(types=types), value) is False


def test_numbers_are_written_as_torchscript_writes_them(run):
    text = run(
        """
func.func @main(%x: !torch.float, %n: !torch.int)
    -> (!torch.str, !torch.str, !torch.str) {
  %pattern = torch.constant.str "{}|{}"
  %old = torch.constant.str "%s|%d"
  %0 = torch.aten.str %x : !torch.float -> !torch.str
  %1 = torch.aten.format(%pattern, %x, %n)
    : !torch.str, !torch.float, !torch.int -> !torch.str
  %2 = torch.prim.TupleConstruct %0, %n : !torch.str, !torch.int -> !torch.tuple<str, int>
  %3 = torch.aten.percentFormat(%old, %2) : !torch.str, !torch.tuple<str, int> -> !torch.str
  return %0, %1, %3 : !torch.str, !torch.str, !torch.str
}""",
        2.0,
        3,
    )
    assert text == ("2.", "2.|3", "2.|3")


UNINITIALIZED = """
func.func @main(%which: !torch.bool, %x: !torch.int) -> !torch.int {
  %none = torch.prim.Uninitialized : !torch.int
  %message = torch.constant.str "no value"
  %nothing = torch.constant.none
  %0 = torch.prim.If %which -> (!torch.int) {
    torch.prim.If.yield %x : !torch.int
  } else {
    torch.prim.RaiseException %message, %nothing : !torch.str, !torch.none
    torch.prim.If.yield %none : !torch.int
  }
  return %0 : !torch.int
}"""


def test_what_has_no_value_is_of_every_type(run):
    assert run(UNINITIALIZED, True, 3) == 3
    with pytest.raises(ExecutionError, match="no value"):
        run(UNINITIALIZED, False, 3)
