# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Local variables and `with` statements of TorchScript's interpreter."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch_mlir import backends, ir  # noqa: E402
from torch_mlir.backends.reference import ExecutionError, UnsupportedOperation  # noqa: E402


def program(text: str):
    return backends.get("reference").compile(ir.Module.parse(text, ir.Context()))


def test_variables_hold_what_was_stored_last():
    run = program("""
      func.func @main(%x: !torch.int, %y: !torch.int) -> (!torch.int, !torch.int) {
        torch.prim.Store "v", %x : !torch.int
        %a = torch.prim.Load "v" : !torch.int
        torch.prim.Store "v", %y : !torch.int
        %b = torch.prim.Load "v" : !torch.int
        return %a, %b : !torch.int, !torch.int
      }""")
    assert run(3, 5) == (3, 5)


def test_variables_of_one_call_are_not_there_in_the_next():
    run = program("""
      func.func @main(%c: !torch.bool, %x: !torch.int) -> !torch.int {
        torch.prim.If %c -> () {
          torch.prim.Store "v", %x : !torch.int
          torch.prim.If.yield
        } else {
          torch.prim.If.yield
        }
        %a = torch.prim.Load "v" : !torch.int
        return %a : !torch.int
      }""")
    assert run(True, 7) == 7
    with pytest.raises(ExecutionError, match="the variable 'v' has no value yet"):
        run(False, 7)


WITH = """
  torch.class_type @Guard {
    torch.attr private "log" : !torch.list<str>
    torch.method "__enter__", @enter
    torch.method "__exit__", @leave
  }
  torch.class_type @Plain {
  }
  func.func private @enter(%self: !torch.nn.Module<"Guard">) -> !torch.none {
    %log = torch.prim.GetAttr %self["log"] : !torch.nn.Module<"Guard"> -> !torch.list<str>
    %text = torch.constant.str "entered"
    %l = torch.aten.append.t %log, %text : !torch.list<str>, !torch.str -> !torch.list<str>
    %none = torch.constant.none
    return %none : !torch.none
  }
  func.func private @leave(%self: !torch.nn.Module<"Guard">, %kind: !torch.none,
                           %value: !torch.none, %trace: !torch.none) -> !torch.none {
    %log = torch.prim.GetAttr %self["log"] : !torch.nn.Module<"Guard"> -> !torch.list<str>
    %text = torch.constant.str "left"
    %l = torch.aten.append.t %log, %text : !torch.list<str>, !torch.str -> !torch.list<str>
    return %kind : !torch.none
  }
  func.func @main() -> !torch.list<str> {
    %guard = torch.prim.CreateObject !torch.nn.Module<"KIND">
    %log = torch.prim.ListConstruct : () -> !torch.list<str>
    torch.prim.SetAttr %guard["log"] = %log : !torch.nn.Module<"KIND">, !torch.list<str>
    %e = torch.prim.Enter %guard : !torch.nn.Module<"KIND">
    %text = torch.constant.str "inside"
    %l = torch.aten.append.t %log, %text : !torch.list<str>, !torch.str -> !torch.list<str>
    %x = torch.prim.Exit %guard : !torch.nn.Module<"KIND"> -> !torch.none
    return %log : !torch.list<str>
  }"""


def test_with_statements_enter_and_leave():
    assert program(WITH.replace("KIND", "Guard"))() == ["entered", "inside", "left"]


def test_objects_that_can_not_be_entered_are_refused_by_name():
    with pytest.raises(UnsupportedOperation, match="'Plain' has no method '__enter__'"):
        program(WITH.replace("KIND", "Plain"))
