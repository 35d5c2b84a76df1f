# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refinement finds the shapes and dtypes that types leave out, and those that PyTorch gives."""

from __future__ import annotations

import re
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.export", reason="needs PyTorch 2.1 or newer")

from torch.fx.experimental import symbolic_shapes  # noqa: E402
from types_of import forget_types  # noqa: E402

from torch_mlir import fx, ir  # noqa: E402
from torch_mlir.backends.reference import ExecutionError, refine  # noqa: E402
from torch_mlir.compiler_utils import TensorPlaceholder  # noqa: E402

has_dims = pytest.mark.skipif(
    not hasattr(symbolic_shapes, "guard_or_false"),
    reason="this PyTorch needs the data for most open sizes",
)


def refined(text: str, **arguments: Any) -> str:
    """A module's text after refinement; the module is verified."""
    with ir.Context():
        module = ir.Module.parse(text)
        assert refine(module, arguments or None) is module
        assert module.operation.verify()
        return str(module)


def result_types(text: str) -> list[str]:
    """The types of what the public function returns."""
    return re.findall(r"!torch\.v?tensor(?:<[^>]*>)?", re.search(r"\n    return .*", text)[0])


class Encoder(torch.nn.Module):
    """Attention and a layer of neurons on tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(11, 8)
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, ids):
        return self.layer(self.table(ids)).mean(1)


class Branches(torch.nn.Module):
    """Control flow on data."""

    def forward(self, x):
        def more(x):
            return torch.cat([x, x], 1)

        def less(x):
            return torch.cat([x.relu(), x * 2], 1)

        return torch.cond(x.sum() > 0, more, less, (x,)) @ x.new_ones(6, 2)


class Convolutions(torch.nn.Sequential):
    """A small net on images."""

    def __init__(self) -> None:
        super().__init__(
            torch.nn.Conv2d(3, 4, 3, stride=2), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
            torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.LazyLinear(5),
        )  # fmt: skip


def images() -> Any:
    return torch.randn(2, 3, 17, 13)


@pytest.mark.parametrize(
    ("make", "inputs", "dynamic"),
    [
        (Encoder, lambda: torch.arange(12).reshape(3, 4) % 11, None),
        (Convolutions, images, None),
        pytest.param(
            Encoder, lambda: torch.arange(12).reshape(3, 4) % 11, {0: "batch", 1: "length"},
            marks=has_dims,
        ),
        pytest.param(Convolutions, images, {0: "batch"}, marks=has_dims),
        pytest.param(Branches, lambda: torch.randn(4, 3), None, marks=has_dims),
        pytest.param(Branches, lambda: torch.randn(4, 3), {0: "rows"}, marks=has_dims),
    ],
)  # fmt: skip
def test_types_that_were_taken_away_come_back(make, inputs, dynamic):
    x = inputs()
    model = make().eval()
    model(x)
    shapes = None
    if dynamic is not None:
        shapes = ({axis: torch.export.Dim(name, max=1000) for axis, name in dynamic.items()},)
    module = fx.export_and_import(
        model, x, dynamic_shapes=shapes, import_symbolic_shape_expressions=dynamic is not None
    )
    before = str(module)
    assert forget_types(module) > 2 and str(module) != before
    refine(module)
    assert str(module) == before


def test_arguments_can_be_described():
    text = """
      func.func @main(%x: !torch.tensor, %n: !torch.int) -> !torch.tensor {
        %y = torch.aten.gt.Scalar %x, %n : !torch.tensor, !torch.int -> !torch.tensor
        return %y : !torch.tensor
      }"""
    assert result_types(refined(text)) == ["!torch.tensor<*,i1>"]
    for described, shape in (
        (TensorPlaceholder([-1, 4], torch.float16), "[?,4]"),
        (torch.zeros(3, 4), "[3,4]"),
    ):
        found = refined(text, main=[described, None])
        dtype = {torch.float16: "f16", torch.float32: "f32"}[described.dtype]
        assert f"@main(%arg0: !torch.tensor<{shape},{dtype}>, %arg1: !torch.int)" in found
        assert result_types(found) == [f"!torch.tensor<{shape},i1>"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"main": []}, "main takes 1 arguments, 0 are described"),
        ({"man": [None]}, "no function 'man': there are main"),
        ({"main": [torch.zeros(3)]}, r"argument 0 of main has type .*\[3\], and not \[2\]"),
        ({"main": [torch.zeros(2).long()]}, "argument 0 of main has type .*its dtype is torch.int"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(arguments, message):
    text = """
      func.func @main(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {
        return %x : !torch.vtensor<[2],f32>
      }"""
    with pytest.raises(ValueError, match=message):
        refined(text, **arguments)


def test_branches_join_what_they_give():
    found = refined("""
      func.func @main(%c: !torch.bool, %x: !torch.vtensor<[2,3],f32>, %y: !torch.vtensor<[4,3],f32>)
          -> (!torch.vtensor, !torch.vtensor) {
        %none = torch.constant.none
        %r:2 = torch.prim.If %c -> (!torch.vtensor, !torch.vtensor) {
          %a = torch.aten.relu %x : !torch.vtensor<[2,3],f32> -> !torch.vtensor
          torch.prim.If.yield %a, %a : !torch.vtensor, !torch.vtensor
        } else {
          %b = torch.aten.relu %y : !torch.vtensor<[4,3],f32> -> !torch.vtensor
          %s = torch.aten.sum %y, %none : !torch.vtensor<[4,3],f32>, !torch.none -> !torch.vtensor
          torch.prim.If.yield %b, %s : !torch.vtensor, !torch.vtensor
        }
        return %r#0, %r#1 : !torch.vtensor, !torch.vtensor
      }""")
    assert result_types(found) == ["!torch.vtensor<[?,3],f32>", "!torch.vtensor<*,f32>"]
    assert "!torch.vtensor<[2,3],f32> to !torch.vtensor<[?,3],f32>" in found
    assert "!torch.vtensor<[],f32> to !torch.vtensor<*,f32>" in found


def test_only_the_branch_that_is_taken_counts():
    found = refined("""
      func.func @main(%x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor {
        %int2 = torch.constant.int 2
        %rank = torch.aten.dim %x : !torch.vtensor<[2,3],f32> -> !torch.int
        %c = torch.aten.eq.int %rank, %int2 : !torch.int, !torch.int -> !torch.bool
        %r = torch.prim.If %c -> (!torch.vtensor) {
          %a = torch.aten.relu %x : !torch.vtensor<[2,3],f32> -> !torch.vtensor
          torch.prim.If.yield %a : !torch.vtensor
        } else {
          %none = torch.constant.none
          %b = torch.aten.sum %x, %none : !torch.vtensor<[2,3],f32>, !torch.none -> !torch.vtensor
          torch.prim.If.yield %b : !torch.vtensor
        }
        return %r : !torch.vtensor
      }""")
    assert result_types(found) == ["!torch.vtensor<[2,3],f32>"]
    # The other branch never runs; it keeps its types.
    assert (
        "torch.aten.sum %arg0, %none : !torch.vtensor<[2,3],f32>, !torch.none -> !torch.vtensor\n"
        in found
    )


def test_branches_that_raise_give_nothing():
    found = refined("""
      func.func @main(%c: !torch.bool, %x: !torch.vtensor<[2],f32>) -> !torch.vtensor {
        %r = torch.prim.If %c -> (!torch.vtensor) {
          %a = torch.aten.relu %x : !torch.vtensor<[2],f32> -> !torch.vtensor
          torch.prim.If.yield %a : !torch.vtensor
        } else {
          %none = torch.constant.none
          %text = torch.constant.str "no"
          torch.prim.RaiseException %text, %none : !torch.str, !torch.none
          %u = torch.prim.Uninitialized : !torch.vtensor
          torch.prim.If.yield %u : !torch.vtensor
        }
        return %r : !torch.vtensor
      }""")
    assert result_types(found) == ["!torch.vtensor<[2],f32>"]


LOOP = """
  func.func @main(%n: !torch.int, %x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor {
    %true = torch.constant.bool true
    %int0 = torch.constant.int 0
    %int3 = torch.constant.int 3
    %first = torch.aten.relu %x : !torch.vtensor<[2,3],f32> -> !torch.vtensor
    %r = torch.prim.Loop LIMIT, %true, init(%first) {
    ^bb0(%i: !torch.int, %carried: !torch.vtensor):
      %l = torch.prim.ListConstruct %carried, %x : (!torch.vtensor, !torch.vtensor<[2,3],f32>)
        -> !torch.list<vtensor>
      %next = torch.aten.cat %l, %int0 : !torch.list<vtensor>, !torch.int -> !torch.vtensor
      torch.prim.Loop.condition %true, iter(%next : !torch.vtensor)
    } : (!torch.int, !torch.bool, !torch.vtensor) -> !torch.vtensor
    return %r : !torch.vtensor
  }"""


def test_loops_carry_what_all_iterations_have_in_common():
    found = refined(LOOP.replace("LIMIT", "%n"))
    assert result_types(found) == ["!torch.vtensor<[?,3],f32>"]


def test_loops_of_a_known_length_are_followed_to_their_end():
    found = refined(LOOP.replace("LIMIT", "%int3"))
    # 2 + 3 · 2 rows; what the loop carries has fewer at first.
    assert result_types(found) == ["!torch.vtensor<[8,3],f32>"]
    assert "^bb0(%arg2: !torch.int, %arg3: !torch.vtensor<[?,3],f32>)" in found


def test_private_functions_get_what_their_calls_have_in_common():
    found = refined("""
      func.func @main(%x: !torch.vtensor<[2,3],f32>, %y: !torch.vtensor<[2,5],f32>)
          -> (!torch.vtensor, !torch.vtensor) {
        %a = torch.aten.relu %x : !torch.vtensor<[2,3],f32> -> !torch.vtensor
        %b = torch.aten.relu %y : !torch.vtensor<[2,5],f32> -> !torch.vtensor
        %c = call @squared(%a) : (!torch.vtensor) -> !torch.vtensor
        %d = call @squared(%b) : (!torch.vtensor) -> !torch.vtensor
        return %c, %d : !torch.vtensor, !torch.vtensor
      }
      func.func private @squared(%x: !torch.vtensor) -> !torch.vtensor {
        %y = torch.aten.mul.Tensor %x, %x : !torch.vtensor, !torch.vtensor -> !torch.vtensor
        return %y : !torch.vtensor
      }""")
    assert "@squared(%arg0: !torch.vtensor<[2,?],f32>) -> !torch.vtensor<[2,?],f32>" in found
    # Each caller knows more.
    assert result_types(found) == ["!torch.vtensor<[2,3],f32>", "!torch.vtensor<[2,5],f32>"]


def test_functions_that_call_themselves_keep_their_arguments():
    found = refined("""
      func.func @main(%n: !torch.int, %x: !torch.vtensor<[2],f32>) -> !torch.vtensor {
        %a = torch.aten.relu %x : !torch.vtensor<[2],f32> -> !torch.vtensor
        %r = call @again(%n, %a) : (!torch.int, !torch.vtensor) -> !torch.vtensor
        return %r : !torch.vtensor
      }
      func.func private @again(%n: !torch.int, %x: !torch.vtensor) -> !torch.vtensor {
        %int0 = torch.constant.int 0
        %c = torch.aten.gt.int %n, %int0 : !torch.int, !torch.int -> !torch.bool
        %r = torch.prim.If %c -> (!torch.vtensor) {
          %l = torch.prim.ListConstruct %x, %x : (!torch.vtensor, !torch.vtensor)
            -> !torch.list<vtensor>
          %y = torch.aten.cat %l, %int0 : !torch.list<vtensor>, !torch.int -> !torch.vtensor
          %s = func.call @again(%int0, %y) : (!torch.int, !torch.vtensor) -> !torch.vtensor
          torch.prim.If.yield %s : !torch.vtensor
        } else {
          torch.prim.If.yield %x : !torch.vtensor
        }
        return %r : !torch.vtensor
      }""")
    # Neither the rank nor the dtype of what it may get is known.
    assert "@again(%arg0: !torch.int, %arg1: !torch.vtensor) -> !torch.vtensor {" in found
    assert result_types(found) == ["!torch.vtensor"]


def test_objects_lend_their_attributes():
    found = refined(
        """
      func.func private @forward(%self: !torch.nn.Module<"M">, %x: !torch.tensor) -> !torch.tensor {
        %weight = torch.prim.GetAttr %self["weight"] : !torch.nn.Module<"M"> -> !torch.tensor
        %count = torch.prim.GetAttr %self["count"] : !torch.nn.Module<"M"> -> !torch.tensor
        %y = torch.aten.mm %weight, %x : !torch.tensor, !torch.tensor -> !torch.tensor
        torch.prim.SetAttr %self["count"] = %y : !torch.nn.Module<"M">, !torch.tensor
        %z = torch.aten.relu %count : !torch.tensor -> !torch.tensor
        return %y : !torch.tensor
      }
      torch.class_type @M {
        torch.attr private "weight" : !torch.tensor
        torch.attr private "count" : !torch.tensor
        torch.method "forward", @forward
      }
      %w = torch.tensor.literal(dense<1.0> : tensor<4x3xf32>) : !torch.tensor<[4,3],f32>
      %c = torch.tensor.literal(dense<1.0> : tensor<7xf32>) : !torch.tensor<[7],f32>
      torch.nn_module {
        torch.slot "weight", %w : !torch.tensor<[4,3],f32>
        torch.slot "count", %c : !torch.tensor<[7],f32>
      } : !torch.nn.Module<"M">
      """,
        forward=[None, TensorPlaceholder([3, -1], torch.float32)],
    )
    assert '%arg0["weight"] : !torch.nn.Module<"M"> -> !torch.tensor<[4,3],f32>' in found
    assert result_types(found) == ["!torch.tensor<[4,?],f32>"]
    # Who sets an attribute may change its shape.
    assert '%arg0["count"] : !torch.nn.Module<"M"> -> !torch.tensor\n' in found


def test_tensors_that_are_written_to_stay_themselves():
    found = refined("""
      func.func @main(%x: !torch.tensor, %y: !torch.vtensor<[2],f32>) {
        %v = torch.copy.to_vtensor %x : !torch.vtensor
        %z = torch.aten.relu %y : !torch.vtensor<[2],f32> -> !torch.vtensor
        torch.overwrite.tensor.contents %z overwrites %x : !torch.vtensor, !torch.tensor
        return
      }""")
    assert "torch.tensor_static_info_cast %1 : !torch.vtensor<[2],f32> to !torch.vtensor\n" in found
    assert "overwrites %arg0 : !torch.vtensor, !torch.tensor\n" in found


def test_lists_that_a_loop_fills_are_unknown_after_it():
    found = refined("""
      func.func @main(%n: !torch.int, %x: !torch.tensor<[2],f32>) -> !torch.tensor {
        %true = torch.constant.bool true
        %int0 = torch.constant.int 0
        %l = torch.prim.ListConstruct %x : (!torch.tensor<[2],f32>) -> !torch.list<tensor>
        torch.prim.Loop %n, %true, init() {
        ^bb0(%i: !torch.int):
          %m = torch.aten.append.t %l, %x : !torch.list<tensor>, !torch.tensor<[2],f32>
            -> !torch.list<tensor>
          torch.prim.Loop.condition %true, iter()
        } : (!torch.int, !torch.bool) -> ()
        %y = torch.aten.cat %l, %int0 : !torch.list<tensor>, !torch.int -> !torch.tensor
        return %y : !torch.tensor
      }""")
    assert result_types(found) == ["!torch.tensor"]


def test_operators_without_a_kernel_give_what_their_types_say():
    found = refined("""
      func.func @main(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor {
        %y = torch.operator "torch.nobody.knows"(%x) : (!torch.vtensor<[2],f32>)
          -> !torch.vtensor<[?,3],f16>
        %z = torch.aten.t %y : !torch.vtensor<[?,3],f16> -> !torch.vtensor
        return %z : !torch.vtensor
      }""")
    assert result_types(found) == ["!torch.vtensor<[3,?],f16>"]


def test_sizes_that_the_data_tells_stay_open():
    found = refined("""
      func.func @main(%x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor {
        %y = torch.aten.nonzero %x : !torch.vtensor<[2,3],f32> -> !torch.vtensor
        return %y : !torch.vtensor
      }""")
    assert result_types(found) == ["!torch.vtensor<[?,2],si64>"]


def test_what_can_not_hold_is_told_with_its_place():
    wrong = """
      func.func @main(%x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor {
        %y = torch.aten.t %x : !torch.vtensor<[2,3],f32> -> !torch.vtensor<[2,3],f32>
            loc("model.py":7:3)
        %z = torch.aten.relu %y : !torch.vtensor<[2,3],f32> -> !torch.vtensor
        return %z : !torch.vtensor
      }"""
    with pytest.raises(ExecutionError, match=r'torch.aten.t at "model.py":7:3: .*\[3, 2\]'):
        refined(wrong)
    fails = """
      func.func @main(%x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor {
        %y = torch.aten.mm %x, %x : !torch.vtensor<[2,3],f32>, !torch.vtensor<[2,3],f32>
          -> !torch.vtensor loc("model.py":8:3)
        return %y : !torch.vtensor
      }"""
    with ir.Context():
        module = ir.Module.parse(fails)
        before = str(module)
        with pytest.raises(ExecutionError, match='torch.aten.mm at "model.py":8:3: RuntimeError'):
            refine(module)
        assert str(module) == before
