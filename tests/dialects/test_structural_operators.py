# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The structural operators: their text, and what their verifiers refuse."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from torch_mlir.passmanager import PassManager

from torch_mlir import ir

PROGRAM = Path(__file__).with_name("structural_operators.mlir").read_text()


def parse(text: str | bytes) -> ir.Module:
    return ir.Module.parse(text)


@pytest.fixture(autouse=True)
def context():
    with ir.Context() as context, ir.Location.unknown():
        yield context


def test_the_text_comes_back_as_it_was_written() -> None:
    body = "".join(line for line in PROGRAM.splitlines(True) if not line.startswith("//"))
    assert str(parse(PROGRAM)).strip() == body.strip()


def test_the_program_has_every_structural_operator() -> None:
    source = Path(__file__).parents[2] / "torch_mlir/csrc/dialect/TorchOps.td"
    defined = set(re.findall(r'def Torch_\w+Op\s*: Torch_\w*Op<"([\w.]+)"', source.read_text()))
    # Names that the TableGen class completes.
    constants = {"bool", "device", "float", "int", "none", "str"}
    defined -= constants | {"dtype", "shape"}
    defined |= {f"constant.{t}" for t in constants} | {"dtype.calculate", "shape.calculate"}
    used = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        used.add(op.name.removeprefix("torch."))
        return ir.WalkResult.ADVANCE

    parse(PROGRAM).operation.walk(visit)
    assert len(defined) > 60
    # A terminator of regions that upstream's dialect no longer has.
    assert defined - used == {"global_slot.init"}


def again(program: str | bytes) -> str:
    """The text of a program that is read in a context of its own.

    A second resource of one name gets another name in the same context.
    """
    with ir.Context():
        return str(parse(program))


def test_bytecode_holds_the_program() -> None:
    module = parse(PROGRAM)
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    assert again(buffer.getvalue()) == str(module)


def test_the_generic_form_is_the_same_program() -> None:
    module = parse(PROGRAM)
    assert again(module.operation.get_asm(print_generic_op_form=True)) == str(module)


@pytest.mark.parametrize(
    "text",
    [
        "%0 = torch.prim.TupleConstruct  :  -> !torch.tuple<>",
        "torch.prim.TupleUnpack %0 : !torch.tuple<> -> ",
        "torch.prim.ListUnpack %1 : !torch.list<int> -> ",
        '"torch.prim.Print"() : () -> ()',
        '%2 = "torch.prim.tolist"() : () -> !torch.list<int>',
        "torch.operator_terminator  : ",
    ],
)
def test_nothing_at_all_is_read_as_it_is_printed(text: str) -> None:
    program = """
        %0 = torch.prim.TupleConstruct : -> !torch.tuple<>
        torch.prim.TupleUnpack %0 : !torch.tuple<> ->
        %1 = torch.prim.ListConstruct : () -> !torch.list<int>
        torch.prim.ListUnpack %1 : !torch.list<int> ->
        torch.prim.Print()
        %2 = torch.prim.tolist() : -> !torch.list<int>
        torch.operator "x"() : () -> () { torch.operator_terminator : }
    """
    printed = str(parse(program))
    assert text in printed
    assert again(printed) == printed


REFUSED = {
    "a class's member": (
        "torch.class_type @c { %i = torch.constant.int 1 }",
        "'torch.constant.int' op isn't allowed in a torch.class_type",
    ),
    "two members of one name": (
        'torch.class_type @c { torch.attr "a" : !torch.int\n torch.attr "a" : !torch.int }',
        "has two members named 'a'",
    ),
    "a method without a function": (
        'torch.class_type @c { torch.method "f", @f }',
        "'@f' isn't a function",
    ),
    "a method's public function": (
        (
            'torch.class_type @c { torch.method "f", @f }\n'
            'func.func @f(%s: !torch.nn.Module<"c">) { return }'
        ),
        "'@f' must be private",
    ),
    "a method's declared function": (
        'torch.class_type @c { torch.method "f", @f }\nfunc.func private @f(!torch.nn.Module<"c">)',
        "'@f' is declared, not defined",
    ),
    "a method of another class": (
        (
            'torch.class_type @c { torch.method "f", @f }\n'
            'func.func private @f(%s: !torch.nn.Module<"d">) { return }'
        ),
        "'@f' must take '!torch.nn.Module<\"c\">' first",
    ),
    "an object of no class": (
        '%m = torch.nn_module {} : !torch.nn.Module<"c">',
        "there is no torch.class_type @c",
    ),
    "an object without a slot": (
        (
            'torch.class_type @c { torch.attr "a" : !torch.int }\n'
            '%m = torch.nn_module {} : !torch.nn.Module<"c">'
        ),
        "has 0 slots, but the class has 1 attributes",
    ),
    "an object with another slot": (
        (
            'torch.class_type @c { torch.attr "a" : !torch.int }\n%i = torch.constant.int 1\n'
            '%m = torch.nn_module { torch.slot "b", %i : !torch.int } : !torch.nn.Module<"c">'
        ),
        "must give 'a', of type '!torch.int', a value",
    ),
    "a slot's type": (
        (
            'torch.global_slot @s : !torch.int\n%x = torch.constant.str "x"\n'
            "torch.global_slot.set @s = %x : !torch.str"
        ),
        "sets '!torch.str', but the slot holds '!torch.int'",
    ),
    "a slot that isn't there": (
        "%x = torch.global_slot.get @s : !torch.int",
        "there is no torch.global_slot @s",
    ),
    "a slot without a value": (
        (
            "torch.global_slot @s : !torch.int\n"
            "torch.global_slot.module_initializer { torch.initialize.global_slots [ ] }"
        ),
        "gives @s no value",
    ),
    "a slot with two values": (
        (
            "torch.global_slot @s : !torch.int\n"
            "torch.global_slot.module_initializer {\n%x = torch.constant.int 1\n"
            "torch.initialize.global_slots [ @s(%x : !torch.int) @s(%x : !torch.int) ] }"
        ),
        "gives @s two values",
    ),
    "two initialisers": (
        "torch.global_slot.module_initializer { torch.initialize.global_slots [ ] }\n" * 2,
        "stands twice in its module",
    ),
    "a list's element": (
        (
            "%i = torch.constant.int 1\n"
            "%l = torch.prim.ListConstruct %i : (!torch.int) -> !torch.list<str>"
        ),
        "element #0 must be a subtype of '!torch.str', but got '!torch.int'",
    ),
    "a dict's value": (
        (
            '%s = torch.constant.str "x"\n'
            "%d = torch.prim.DictConstruct keys(%s : !torch.str) values(%s : !torch.str) "
            "-> !torch.dict<str, int>"
        ),
        "value #0 must be a subtype of '!torch.int', but got '!torch.str'",
    ),
    "a tuple's elements": (
        (
            "%i = torch.constant.int 1\n"
            "%t = torch.prim.TupleConstruct %i : !torch.int -> !torch.tuple<str>"
        ),
        "no subtype of the result's type '!torch.tuple<str>'",
    ),
    "what a tuple unpacks to": (
        (
            "%i = torch.constant.int 1\n"
            "%t = torch.prim.TupleConstruct %i : !torch.int -> !torch.tuple<int>\n"
            "%u = torch.prim.TupleUnpack %t : !torch.tuple<int> -> !torch.str"
        ),
        "the results make a '!torch.tuple<str>', but the operand is a '!torch.tuple<int>'",
    ),
    "a literal's dtype": (
        "%v = torch.vtensor.literal(dense<1> : tensor<2xi64>) : !torch.vtensor<[2],f32>",
        (
            "has elements of '!torch.vtensor<[2],si64>', but the result's type is "
            "'!torch.vtensor<[2],f32>'"
        ),
    ),
    "a literal's shape": (
        "%v = torch.tensor.literal(dense<1> : tensor<2xi64>) : !torch.tensor<[3],si64>",
        "no subtype of the result's type '!torch.tensor<[3],si64>'",
    ),
    "a literal of no tensor": (
        "%v = torch.vtensor.literal(5 : i64) : !torch.vtensor<[],si64>",
        "expected the elements of a tensor with a dtype that PyTorch has, but got 'i64'",
    ),
    "a refining derefine": (
        (
            "func.func private @f(%x: !torch.optional<int>) {\n"
            "%y = torch.derefine %x : !torch.optional<int> to !torch.int\nreturn }"
        ),
        "are cast incompatible",
    ),
    "an unrefining unchecked_cast": (
        (
            "func.func private @f(%x: !torch.int) {\n"
            "%y = torch.prim.unchecked_cast %x : !torch.int -> !torch.optional<int>\nreturn }"
        ),
        "are cast incompatible",
    ),
    "a cast to another rank": (
        (
            "func.func private @f(%x: !torch.vtensor<[],f32>) {\n"
            "%y = torch.tensor_static_info_cast %x : !torch.vtensor<[],f32> to "
            "!torch.vtensor<[?],f32>\nreturn }"
        ),
        "are cast incompatible",
    ),
    "an overwritten tensor of another shape": (
        (
            "func.func private @f(%v: !torch.vtensor<[?],f32>, %t: !torch.tensor<[1],f32>) {\n"
            "torch.overwrite.tensor.contents %v overwrites %t : !torch.vtensor<[?],f32>, "
            "!torch.tensor<[1],f32>\nreturn }"
        ),
        "the overwritten tensor has the value's type, in memory",
    ),
    "what a branch yields": (
        (
            "%b = torch.constant.bool true\n%i = torch.constant.int 1\n"
            "%r = torch.prim.If %b -> (!torch.str) {\n torch.prim.If.yield %i : !torch.int\n"
            "} else {\n torch.prim.If.yield %i : !torch.int\n}"
        ),
        "successor operand type #0 '!torch.int' should match successor input type #0 '!torch.str'",
    ),
    "a loop's region": (
        (
            "%b = torch.constant.bool true\n%i = torch.constant.int 1\n"
            "torch.prim.Loop %i, %b, init() {\n^bb0(%x: !torch.str):\n"
            "  torch.prim.Loop.condition %b, iter()\n} : (!torch.int, !torch.bool) -> ()"
        ),
        "the region takes the number of the iteration",
    ),
    "a symbol that isn't one": (
        (
            "func.func private @f(%t: !torch.vtensor<[?],f32>) {\n%i = torch.constant.int 1\n"
            "torch.bind_symbolic_shape %t, [%i], affine_map<()[s0] -> (s0)> : "
            "!torch.vtensor<[?],f32>\nreturn }"
        ),
        "symbol #0 must come from a torch.symbolic_int",
    ),
    "a symbol too few": (
        (
            "func.func private @f(%t: !torch.vtensor<[?],f32>) {\n"
            "torch.bind_symbolic_shape %t, [], affine_map<()[s0] -> (s0)> : "
            "!torch.vtensor<[?],f32>\nreturn }"
        ),
        "the expressions have 1 symbols, but 0 are given",
    ),
    "an expression too many": (
        (
            "func.func private @f(%t: !torch.vtensor<[?],f32>) {\n"
            "torch.bind_symbolic_shape %t, [], affine_map<() -> (1, 2)> : "
            "!torch.vtensor<[?],f32>\nreturn }"
        ),
        "has 2 expressions for a tensor of rank 1",
    ),
    "a bound of no tensor": (
        "func.func private @f(!torch.int {torch.type_bound = !torch.vtensor})",
        "'torch.type_bound' belongs on an argument of a tensor type",
    ),
    "a bound that is no type": (
        "func.func private @f(!torch.vtensor {torch.type_bound = 1})",
        "'torch.type_bound' must be a tensor type of the torch dialect",
    ),
    "another argument attribute": (
        "func.func private @f(!torch.vtensor {torch.type_buond = !torch.vtensor})",
        "the torch dialect has no argument attribute 'torch.type_buond'",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(ir.MLIRError) as error:
        parse(text)
    assert message in str(error.value)


def run(passes: str, text: str) -> str:
    module = parse(text)
    PassManager.parse(f"builtin.module({passes})").run(module.operation)
    return str(module)


def test_equal_constants_become_one() -> None:
    text = run(
        "canonicalize",
        """
        func.func @f() -> (!torch.int, !torch.int, !torch.vtensor<[1],f32>, !torch.vtensor<[1],f32>,
                           !torch.none, !torch.none, !torch.bool, !torch.bool) {
          %0 = torch.constant.int 1
          %1 = torch.constant.int 1
          %2 = torch.vtensor.literal(dense<1.0> : tensor<1xf32>) : !torch.vtensor<[1],f32>
          %3 = torch.vtensor.literal(dense<1.0> : tensor<1xf32>) : !torch.vtensor<[1],f32>
          %4 = torch.constant.none
          %5 = torch.constant.none
          %6 = torch.constant.bool true
          %7 = torch.constant.bool true
          return %0, %1, %2, %3, %4, %5, %6, %7 : !torch.int, !torch.int, !torch.vtensor<[1],f32>,
            !torch.vtensor<[1],f32>, !torch.none, !torch.none, !torch.bool, !torch.bool
        }
        """,
    )
    assert text.count("torch.constant") == 3
    assert text.count("torch.vtensor.literal") == 1


def test_a_new_tensor_in_memory_stays_apart_from_its_like() -> None:
    text = run(
        "cse",
        """
        func.func @f() -> (!torch.tensor, !torch.tensor) {
          %0 = torch.tensor.literal(dense<1.0> : tensor<1xf32>) : !torch.tensor
          %1 = torch.tensor.literal(dense<1.0> : tensor<1xf32>) : !torch.tensor
          return %0, %1 : !torch.tensor, !torch.tensor
        }
        """,
    )
    assert text.count("torch.tensor.literal") == 2


def test_lists_become_one_only_where_nothing_can_write_to_them() -> None:
    read = """
        func.func @f(%t: !torch.vtensor, %i: !torch.int) -> (!torch.vtensor, !torch.vtensor) {
          %0 = torch.prim.ListConstruct %i, %i : (!torch.int, !torch.int) -> !torch.list<int>
          %1 = torch.prim.ListConstruct %i, %i : (!torch.int, !torch.int) -> !torch.list<int>
          %2 = torch.aten.view %t, %0 : !torch.vtensor, !torch.list<int> -> !torch.vtensor
          %3 = torch.aten.view %t, %1 : !torch.vtensor, !torch.list<int> -> !torch.vtensor
          return %2, %3 : !torch.vtensor, !torch.vtensor
        }
    """
    text = run("cse", read)
    assert text.count("ListConstruct") == 1
    assert text.count("aten.view") == 1

    written = """
        func.func @f(%i: !torch.int) -> (!torch.list<int>, !torch.list<int>) {
          %0 = torch.prim.ListConstruct %i : (!torch.int) -> !torch.list<int>
          %1 = torch.prim.ListConstruct %i : (!torch.int) -> !torch.list<int>
          %2 = torch.aten.append.t %0, %i : !torch.list<int>, !torch.int -> !torch.list<int>
          return %0, %1 : !torch.list<int>, !torch.list<int>
        }
    """
    text = run("cse", written)
    assert text.count("ListConstruct") == 2
    assert text.count("aten.append.t") == 1


def test_what_is_not_used_goes_where_it_does_nothing() -> None:
    text = run(
        "canonicalize",
        """
        func.func @f(%b: !torch.bool, %i: !torch.int, %v: !torch.vtensor) {
          %0 = torch.prim.If %b -> (!torch.int) {
            %1 = torch.aten.add.int %i, %i : !torch.int, !torch.int -> !torch.int
            torch.prim.If.yield %1 : !torch.int
          } else {
            torch.prim.If.yield %i : !torch.int
          }
          %2 = torch.prim.ListConstruct %i : (!torch.int) -> !torch.list<int>
          %3 = torch.copy.to_tensor %v : !torch.tensor
          torch.runtime.assert %b, "kept"
          return
        }
        """,
    )
    body = [line.split()[0] for line in text.splitlines()[2:-2]]
    assert body == ["torch.runtime.assert", "return"]


def test_functions_with_torch_operators_are_inlined() -> None:
    text = run(
        "inline",
        """
        func.func private @g(%i: !torch.int) -> !torch.int {
          %0 = torch.aten.add.int %i, %i : !torch.int, !torch.int -> !torch.int
          return %0 : !torch.int
        }
        func.func @f(%i: !torch.int) -> !torch.int {
          %0 = call @g(%i) : (!torch.int) -> !torch.int
          return %0 : !torch.int
        }
        """,
    )
    assert "call" not in text
    assert "torch.aten.add.int" in text
