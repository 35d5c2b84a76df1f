# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dialect's own operations on the reference backend: containers, branches, objects, symbols."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch_mlir.backends.reference import ExecutionError

# Containers and casts


def test_lists_tuples_and_dicts(run):
    got = run(
        """
func.func @main(%a: !torch.int, %b: !torch.float)
    -> (!torch.list<int>, !torch.tuple<int, float>, !torch.dict<str, int>, !torch.list<int>) {
  %key = torch.constant.str "k"
  %0 = torch.prim.ListConstruct %a, %a : (!torch.int, !torch.int) -> !torch.list<int>
  %1 = torch.prim.TupleConstruct %a, %b : !torch.int, !torch.float -> !torch.tuple<int, float>
  %2 = torch.prim.DictConstruct keys(%key : !torch.str) values(%a : !torch.int)
    -> !torch.dict<str, int>
  %3 = torch.prim.ListConstruct : () -> !torch.list<int>
  return %0, %1, %2, %3
    : !torch.list<int>, !torch.tuple<int, float>, !torch.dict<str, int>, !torch.list<int>
}""",
        4,
        0.5,
    )
    assert got == ([4, 4], (4, 0.5), {"k": 4}, [])


def test_elements_of_lists_and_tuples(run):
    got = run(
        """
func.func @main(%list: !torch.list<int>, %tuple: !torch.tuple<int, float>)
    -> (!torch.int, !torch.int, !torch.int, !torch.float, !torch.float) {
  %int1 = torch.constant.int 1
  %0:2 = torch.prim.ListUnpack %list : !torch.list<int> -> !torch.int, !torch.int
  %1:2 = torch.prim.TupleUnpack %tuple : !torch.tuple<int, float> -> !torch.int, !torch.float
  %2 = torch.prim.TupleIndex %tuple, %int1 : !torch.tuple<int, float>, !torch.int -> !torch.float
  return %0#1, %0#0, %1#0, %1#1, %2
    : !torch.int, !torch.int, !torch.int, !torch.float, !torch.float
}""",
        [1, 2],
        (3, 0.5),
    )
    assert got == (2, 1, 3, 0.5, 0.5)


def test_a_list_of_another_length_is_not_unpacked(run):
    with pytest.raises(ExecutionError, match="ListUnpack at .*2 elements are wanted.* are 3"):
        run(
            """
func.func @main(%list: !torch.list<int>) -> !torch.int {
  %0:2 = torch.prim.ListUnpack %list : !torch.list<int> -> !torch.int, !torch.int
  return %0#0 : !torch.int
}""",
            [1, 2, 3],
        )


def test_casts_leave_the_value_as_it_is(run):
    x = torch.ones(2)
    number, some, tensor = run(
        """
func.func @main(%number: !torch.number, %int: !torch.int, %x: !torch.vtensor<[2],f32>)
    -> (!torch.int, !torch.optional<int>, !torch.vtensor) {
  %0 = torch.prim.unchecked_cast %number : !torch.number -> !torch.int
  %1 = torch.derefine %int : !torch.int to !torch.optional<int>
  %2 = torch.tensor_static_info_cast %x : !torch.vtensor<[2],f32> to !torch.vtensor
  return %0, %1, %2 : !torch.int, !torch.optional<int>, !torch.vtensor
}""",
        3,
        4,
        x,
    )
    assert (number, some) == (3, 4) and tensor is x


# Tensors that are written to

WRITTEN = "!torch.tensor<[3],f32>"
VALUE = "!torch.vtensor<[3],f32>"


def test_arguments_that_are_no_values_are_written_in_place(run):
    x = torch.tensor([1.0, 2.0, 3.0])
    got = run(
        f"""
func.func @main(%x: {WRITTEN}) -> {VALUE} {{
  %before = torch.copy.to_vtensor %x : {VALUE}
  %sine = torch.aten.sin %before : {VALUE} -> {VALUE}
  torch.overwrite.tensor.contents %sine overwrites %x : {VALUE}, {WRITTEN}
  return %before : {VALUE}
}}""",
        x,
    )
    assert got.tolist() == [1.0, 2.0, 3.0]
    torch.testing.assert_close(x, torch.tensor([1.0, 2.0, 3.0]).sin())


def test_a_copy_is_written_apart_from_the_value(run):
    x = torch.ones(3)
    got = run(
        f"""
func.func @main(%x: {VALUE}) -> {WRITTEN} {{
  %int1 = torch.constant.int 1
  %copy = torch.copy.to_tensor %x : {WRITTEN}
  %0 = torch.aten.add_.Scalar %copy, %int1, %int1
    : {WRITTEN}, !torch.int, !torch.int -> {WRITTEN}
  return %copy : {WRITTEN}
}}""",
        x,
    )
    assert got.tolist() == [2.0] * 3 and x.tolist() == [1.0] * 3


def test_views_of_what_is_written_to_see_it(run):
    x = torch.zeros(3)
    got = run(
        f"""
func.func @main(%x: {WRITTEN}) -> !torch.tensor<[1,3],f32> {{
  %int0 = torch.constant.int 0
  %int7 = torch.constant.int 7
  %view = torch.aten.unsqueeze %x, %int0 : {WRITTEN}, !torch.int -> !torch.tensor<[1,3],f32>
  %0 = torch.aten.fill_.Scalar %x, %int7 : {WRITTEN}, !torch.int -> {WRITTEN}
  return %view : !torch.tensor<[1,3],f32>
}}""",
        x,
    )
    assert got.tolist() == [[7.0] * 3]


# Control flow

FACTORIAL = """
func.func @main(%n: !torch.int) -> !torch.int {
  %true = torch.constant.bool true
  %int1 = torch.constant.int 1
  %0 = torch.prim.Loop %n, %true, init(%int1) {
  ^bb0(%i: !torch.int, %product: !torch.int):
    %next = torch.aten.add.int %i, %int1 : !torch.int, !torch.int -> !torch.int
    %more = torch.aten.mul.int %product, %next : !torch.int, !torch.int -> !torch.int
    torch.prim.Loop.condition %true, iter(%more : !torch.int)
  } : (!torch.int, !torch.bool, !torch.int) -> !torch.int
  return %0 : !torch.int
}"""


@pytest.mark.parametrize(("count", "product"), [(0, 1), (1, 1), (5, 120)])
def test_loops_run_as_often_as_they_are_told(run, count, product):
    assert run(FACTORIAL, count) == product


def test_loops_end_when_their_condition_does(run):
    program = """
func.func @main(%start: !torch.int, %limit: !torch.int, %begins: !torch.bool)
    -> (!torch.int, !torch.int) {
  %forever = torch.constant.int 9223372036854775807
  %int0 = torch.constant.int 0
  %int2 = torch.constant.int 2
  %0:2 = torch.prim.Loop %forever, %begins, init(%start, %int0) {
  ^bb0(%i: !torch.int, %value: !torch.int, %last: !torch.int):
    %twice = torch.aten.mul.int %value, %int2 : !torch.int, !torch.int -> !torch.int
    %on = torch.aten.lt.int %twice, %limit : !torch.int, !torch.int -> !torch.bool
    torch.prim.Loop.condition %on, iter(%twice, %i : !torch.int, !torch.int)
  } : (!torch.int, !torch.bool, !torch.int, !torch.int) -> (!torch.int, !torch.int)
  return %0#0, %0#1 : !torch.int, !torch.int
}"""
    assert run(program, 1, 20, True) == (32, 4)
    assert run(program, 1, 20, False) == (1, 0)


def test_only_the_branch_that_is_chosen_runs(run):
    program = """
func.func @main(%which: !torch.bool, %x: !torch.int) -> (!torch.int, !torch.bool) {
  %true = torch.constant.bool true
  %false = torch.constant.bool false
  %0:2 = torch.prim.If %which -> (!torch.int, !torch.bool) {
    %negated = torch.aten.neg.int %x : !torch.int -> !torch.int
    torch.prim.If.yield %negated, %which : !torch.int, !torch.bool
  } else {
    torch.runtime.assert %false, "the other branch"
    torch.prim.If.yield %x, %true : !torch.int, !torch.bool
  }
  return %0#0, %0#1 : !torch.int, !torch.bool
}"""
    assert run(program, True, 3) == (-3, True)
    with pytest.raises(ExecutionError, match="the other branch"):
        run(program, False, 3)


def test_branches_without_results_write(run):
    program = """
func.func @main(%which: !torch.bool, %list: !torch.list<int>) {
  %int1 = torch.constant.int 1
  torch.prim.If %which -> () {
    %0 = torch.aten.append.t %list, %int1 : !torch.list<int>, !torch.int -> !torch.list<int>
    torch.prim.If.yield
  } else {
    torch.prim.If.yield
  }
  return
}"""
    written, left = [], []
    assert run(program, True, written) is None and run(program, False, left) is None
    assert written == [1] and left == []


def test_functions_call_each_other_and_themselves(reference):
    program = reference(
        """
func.func @fibonacci(%n: !torch.int) -> !torch.int {
  %int1 = torch.constant.int 1
  %int2 = torch.constant.int 2
  %small = torch.aten.lt.int %n, %int2 : !torch.int, !torch.int -> !torch.bool
  %0 = torch.prim.If %small -> (!torch.int) {
    torch.prim.If.yield %n : !torch.int
  } else {
    %a = torch.aten.sub.int %n, %int1 : !torch.int, !torch.int -> !torch.int
    %b = torch.aten.sub.int %n, %int2 : !torch.int, !torch.int -> !torch.int
    %x = func.call @fibonacci(%a) : (!torch.int) -> !torch.int
    %y = func.call @fibonacci(%b) : (!torch.int) -> !torch.int
    %sum = torch.aten.add.int %x, %y : !torch.int, !torch.int -> !torch.int
    torch.prim.If.yield %sum : !torch.int
  }
  return %0 : !torch.int
}
func.func @main(%n: !torch.int) -> (!torch.int, !torch.int) {
  %0:2 = func.call @both(%n) : (!torch.int) -> (!torch.int, !torch.int)
  return %0#0, %0#1 : !torch.int, !torch.int
}
func.func private @both(%n: !torch.int) -> (!torch.int, !torch.int) {
  %0 = func.call @fibonacci(%n) : (!torch.int) -> !torch.int
  return %n, %0 : !torch.int, !torch.int
}"""
    )
    assert program(10) == (10, 55)
    assert program.function("fibonacci")(7) == 13


@pytest.mark.parametrize("kind", ["shape", "dtype"])
def test_bodies_beside_their_own_shapes_and_dtypes_run(run, kind):
    listed = {"shape": ("shapes", "!torch.list<int>"), "dtype": ("dtypes", "!torch.int")}
    word, told = listed[kind]
    value = {
        "shape": "torch.prim.ListConstruct : () -> !torch.list<int>",
        "dtype": "torch.constant.int 6",
    }
    got = run(
        f"""
func.func @main(%x: !torch.vtensor<[],f32>) -> !torch.vtensor {{
  %0 = torch.{kind}.calculate {{
    %1 = torch.aten.neg %x : !torch.vtensor<[],f32> -> !torch.vtensor
    torch.{kind}.calculate.yield %1 : !torch.vtensor
  }} {word} {{
    %2 = {value[kind]}
    torch.{kind}.calculate.yield.{word} %2 : {told}
  }} : !torch.vtensor
  return %0 : !torch.vtensor
}}""",
        torch.tensor(2.0),
    )
    assert got.item() == -2.0


# Symbolic shapes

SYMBOLS = """
func.func @main(%x: !torch.vtensor<[?,?],f32>, %y: !torch.vtensor<[?],f32>)
    -> !torch.vtensor<[?],f32> {
  %s = torch.symbolic_int "s0" {min_val = 2, max_val = 6} : !torch.int
  torch.bind_symbolic_shape %y, [%s], affine_map<()[s0] -> (s0 * 2 + 1)> : !torch.vtensor<[?],f32>
  torch.bind_symbolic_shape %x, [%s], affine_map<()[s0] -> (s0, s0 floordiv 2)>
    : !torch.vtensor<[?,?],f32>
  torch.bind_symbolic_shape %y, [%s], affine_map<()[s0] -> (s0 * 2 + 1)> : !torch.vtensor<[?],f32>
  %0 = torch.aten.neg %y : !torch.vtensor<[?],f32> -> !torch.vtensor<[?],f32>
  return %0 : !torch.vtensor<[?],f32>
}"""


def test_sizes_that_follow_their_symbols(run):
    for size in (2, 5, 6):
        x, y = torch.zeros(size, size // 2), torch.ones(2 * size + 1)
        assert torch.equal(run(SYMBOLS, x, y), -y)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((7, 3), (15,), "the size s0 is 7, and not in 2 … 6"),
        ((4, 3), (9,), "a size is 3, and has to be s0 floordiv 2 = 2"),
        ((4, 2), (8,), r"a size is 8, and has to be s0 \* 2 \+ 1 = 9"),
    ],
)
def test_sizes_that_do_not(run, x, y, message):
    with pytest.raises(ExecutionError, match=f"bind_symbolic_shape at .*{message}"):
        run(SYMBOLS, torch.zeros(x), torch.zeros(y))


def test_one_symbol_has_one_size(run):
    program = """
func.func @main(%x: !torch.vtensor<[?],f32>, %y: !torch.vtensor<[?],f32>) {
  %s = torch.symbolic_int "n" {min_val = 0, max_val = 9223372036854775807} : !torch.int
  torch.bind_symbolic_shape %x, [%s], affine_map<()[s0] -> (s0)> : !torch.vtensor<[?],f32>
  torch.bind_symbolic_shape %y, [%s], affine_map<()[s0] -> (s0)> : !torch.vtensor<[?],f32>
  return
}"""
    assert run(program, torch.zeros(3), torch.zeros(3)) is None
    with pytest.raises(ExecutionError, match="the size n is 3, and 4 elsewhere"):
        run(program, torch.zeros(3), torch.zeros(4))


def test_assertions(run):
    program = """
func.func @main(%holds: !torch.bool) {
  torch.runtime.assert %holds, "must hold" loc("user.py":7:3)
  return
}"""
    assert run(program, True) is None
    with pytest.raises(ExecutionError, match=r'must hold .*"user.py":7:3'):
        run(program, False)


# Global slots and objects

SLOTS = """
torch.global_slot @count : !torch.int
torch.global_slot "private" @table : !torch.tensor
torch.global_slot.module_initializer {
  %int5 = torch.constant.int 5
  %0 = torch.tensor.literal(dense<[1.0, 2.0]> : tensor<2xf32>) : !torch.tensor
  torch.initialize.global_slots [
    @count(%int5 : !torch.int)
    @table(%0 : !torch.tensor)
  ]
}
func.func @main() -> (!torch.int, !torch.tensor) {
  %int1 = torch.constant.int 1
  %0 = torch.global_slot.get @count : !torch.int
  %1 = torch.aten.add.int %0, %int1 : !torch.int, !torch.int -> !torch.int
  torch.global_slot.set @count = %1 : !torch.int
  %2 = torch.global_slot.get @table : !torch.tensor
  %3 = torch.aten.add_.Scalar %2, %int1, %int1
    : !torch.tensor, !torch.int, !torch.int -> !torch.tensor
  return %1, %2 : !torch.int, !torch.tensor
}"""


def test_global_slots_keep_what_calls_leave_in_them(reference):
    program, other = reference(SLOTS), reference(SLOTS)
    count, table = program()
    assert count == 6 and table.tolist() == [2.0, 3.0]
    count, table = program()
    assert count == 7 and table.tolist() == [3.0, 4.0]
    assert other()[0] == 6


OBJECTS = """
func.func private @scaled(%self: !torch.nn.Module<"Layer">, %x: !torch.tensor) -> !torch.tensor {
  %w = torch.prim.GetAttr %self["w"] : !torch.nn.Module<"Layer"> -> !torch.tensor
  %0 = torch.aten.mul.Tensor %x, %w : !torch.tensor, !torch.tensor -> !torch.tensor
  return %0 : !torch.tensor
}
func.func private @counted(%self: !torch.nn.Module<"Net">, %x: !torch.tensor) -> !torch.tensor {
  %int1 = torch.constant.int 1
  %n = torch.prim.GetAttr %self["calls"] : !torch.nn.Module<"Net"> -> !torch.int
  %more = torch.aten.add.int %n, %int1 : !torch.int, !torch.int -> !torch.int
  torch.prim.SetAttr %self["calls"] = %more : !torch.nn.Module<"Net">, !torch.int
  %layer = torch.prim.GetAttr %self["layer"]
    : !torch.nn.Module<"Net"> -> !torch.nn.Module<"Layer">
  %0 = torch.prim.CallMethod %layer["forward"] (%x)
    : !torch.nn.Module<"Layer">, (!torch.tensor) -> !torch.tensor
  return %0 : !torch.tensor
}
torch.class_type @Layer {
  torch.attr "w" : !torch.tensor
  torch.method "forward", @scaled
}
torch.class_type @Net {
  torch.attr "layer" : !torch.nn.Module<"Layer">
  torch.attr "calls" : !torch.int
  torch.method "forward", @counted
}
%w = torch.tensor.literal(dense<[2.0, 3.0]> : tensor<2xf32>) : !torch.tensor
%int0 = torch.constant.int 0
%layer = torch.nn_module {
  torch.slot "w", %w : !torch.tensor
} : !torch.nn.Module<"Layer">
%net = torch.nn_module {
  torch.slot "layer", %layer : !torch.nn.Module<"Layer">
  torch.slot "calls", %int0 : !torch.int
} : !torch.nn.Module<"Net">
"""


def test_methods_of_objects_call_their_classes_functions(reference):
    program = reference(OBJECTS)
    root = program.objects[-1]
    assert [found.kind for found in program.objects] == ["Layer", "Net"]
    forward = program.function("counted")
    assert forward(root, torch.ones(2)).tolist() == [2.0, 3.0]
    assert forward(root, torch.full((2,), 2.0)).tolist() == [4.0, 6.0]
    assert root.attributes["calls"] == 2


# Operators that PyTorch learns elsewhere, and ones without a schema


@pytest.fixture(scope="module")
def library():
    library = torch.library.Library("mlir_reference_tests", "DEF")
    library.define("twist(Tensor x, *, int by=1) -> (Tensor, int)")
    library.impl("twist", lambda x, by=1: (x.roll(by), by), "CPU")
    library.define("halve_(Tensor(a!) x) -> ()")
    library.impl("halve_", _halve, "CPU")
    return library


def _halve(x):
    x.div_(2)


def test_custom_operators_are_called_by_name(run, library):
    rolled, by = run(
        f"""
func.func @main(%x: {VALUE}, %by: !torch.int) -> ({VALUE}, !torch.int) {{
  %0:2 = torch.operator "torch.mlir_reference_tests.twist"(%x, %by)
    : ({VALUE}, !torch.int) -> ({VALUE}, !torch.int)
  return %0#0, %0#1 : {VALUE}, !torch.int
}}""",
        torch.arange(3.0),
        2,
    )
    assert rolled.tolist() == [1.0, 2.0, 0.0] and by == 2


def test_what_a_custom_operator_writes_is_written(run, library):
    x = torch.tensor([2.0, 4.0, 6.0])
    run(
        f"""
func.func @main(%x: {WRITTEN}) {{
  torch.operator "torch.mlir_reference_tests.halve_"(%x) : ({WRITTEN}) -> ()
  return
}}""",
        x,
    )
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_with_a_result_more_it_gives_what_it_would_write(run, library):
    x = torch.tensor([2.0, 4.0, 6.0])
    got = run(
        f"""
func.func @main(%x: {VALUE}) -> {VALUE} {{
  %0 = torch.operator "torch.mlir_reference_tests.halve_"(%x) : ({VALUE}) -> {VALUE}
  return %0 : {VALUE}
}}""",
        x,
    )
    assert got.tolist() == [1.0, 2.0, 3.0] and x.tolist() == [2.0, 4.0, 6.0]


def test_integers_are_read_as_quantised_tensors(run):
    got = run(
        """
func.func @main(%x: !torch.tensor, %scale: !torch.float, %zero: !torch.int) -> !torch.tensor {
  %0 = torch.per_tensor_affine.create %x, %scale, %zero
    : !torch.tensor, !torch.float, !torch.int -> !torch.tensor
  %1 = torch.aten.dequantize.self %0 : !torch.tensor -> !torch.tensor
  return %1 : !torch.tensor
}""",
        torch.tensor([0, 3, 5], dtype=torch.uint8),
        0.5,
        3,
    )
    assert got.tolist() == [-1.5, 0.0, 1.0]


def test_bernoulli_of_a_value_leaves_it(run):
    x = torch.full((3,), 5.0)
    got = run(
        f"""
func.func @main(%x: {VALUE}, %p: !torch.float) -> {VALUE} {{
  %none = torch.constant.none
  %0 = torch.valsem.aten.bernoulli.float %x, %p, %none
    : {VALUE}, !torch.float, !torch.none -> {VALUE}
  return %0 : {VALUE}
}}""",
        x,
        1.0,
    )
    assert got.tolist() == [1.0] * 3 and x.tolist() == [5.0] * 3
