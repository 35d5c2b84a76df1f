# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operators of the table in the dialect: text, bytecode, verifier, effects."""

from __future__ import annotations

import io

import pytest
import schema_programs
from torch_mlir.passmanager import PassManager

from torch_mlir import ir, operators

TABLE = operators.load()


@pytest.fixture(autouse=True)
def context():
    with ir.Context() as context, ir.Location.unknown():
        yield context


@pytest.fixture(scope="module")
def every_operator() -> str:
    """A program that calls every operator of the table."""
    return "".join(
        schema_programs.function(schema, f"f{i}") for i, schema in enumerate(TABLE.values())
    )


def test_every_operator_is_registered(context: ir.Context) -> None:
    _ = context.dialects["torch"]
    missing = [key for key in TABLE if not context.is_registered_operation(f"torch.{key}")]
    assert missing == []
    assert not context.is_registered_operation("torch.aten.no_such_operator")


def test_every_operator_is_called_as_its_schema_says(every_operator: str) -> None:
    called = []
    module = ir.Module.parse(every_operator)

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.startswith("torch."):
            called.append(op.name.removeprefix("torch."))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    assert called == list(TABLE)
    assert module.operation.verify()


def test_every_operators_text_comes_back(every_operator: str) -> None:
    module = ir.Module.parse(every_operator)
    text = str(module)
    assert '"torch.' not in text
    assert str(ir.Module.parse(text)) == text
    generic = module.operation.get_asm(print_generic_op_form=True)
    again = ir.Module.parse(text).operation.get_asm(print_generic_op_form=True)
    assert again == generic


def test_every_operators_bytecode_comes_back(every_operator: str) -> None:
    module = ir.Module.parse(every_operator)
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    assert str(ir.Module.parse(buffer.getvalue())) == str(module)


def test_attributes_come_back_between_operands_and_types() -> None:
    text = (
        "func.func private @f(%a: !torch.vtensor) -> !torch.vtensor {\n"
        '%0 = torch.aten.relu %a {note = "kept"} : !torch.vtensor -> !torch.vtensor\n'
        "return %0 : !torch.vtensor\n}"
    )
    module = ir.Module.parse(text)
    op = module.body.operations[0].regions[0].blocks[0].operations[0].operation
    assert op.attributes["note"].value == "kept"
    assert str(op).endswith(
        'torch.aten.relu %arg0 {note = "kept"} : !torch.vtensor -> !torch.vtensor'
    )


def in_function(body: str) -> str:
    return (
        "func.func private @f(%v: !torch.vtensor, %t: !torch.tensor, %i: !torch.int, "
        "%f: !torch.float, %b: !torch.bool, %n: !torch.none, %s: !torch.str, "
        "%num: !torch.number, %fi: !torch.union<float, int>, %on: !torch.optional<vtensor>, "
        "%d: !torch.Device, %od: !torch.optional<Device>, %vs: !torch.list<vtensor>, "
        "%ts: !torch.list<tensor>, %ovs: !torch.list<optional<vtensor>>, "
        f"%is: !torch.list<int>, %x: i64) {{\n{body}\nreturn\n}}"
    )


@pytest.mark.parametrize(
    "body",
    [
        "%0 = torch.aten.add.Tensor %v, %t, %i : !torch.vtensor, !torch.tensor, !torch.int -> !torch.vtensor",
        "%0 = torch.aten.add.Tensor %v, %v, %f : !torch.vtensor, !torch.vtensor, !torch.float -> !torch.vtensor",
        "%0 = torch.aten.add.Tensor %v, %v, %num : !torch.vtensor, !torch.vtensor, !torch.number -> !torch.vtensor",
        "%0 = torch.aten.add.Tensor %v, %v, %fi : !torch.vtensor, !torch.vtensor, !torch.union<float, int> -> !torch.vtensor",
        "%0 = torch.aten.add.Tensor %v, %v, %b : !torch.vtensor, !torch.vtensor, !torch.bool -> !torch.vtensor",
        "%0 = torch.aten.linear %v, %v, %n : !torch.vtensor, !torch.vtensor, !torch.none -> !torch.vtensor",
        "%0 = torch.aten.linear %v, %v, %on : !torch.vtensor, !torch.vtensor, !torch.optional<vtensor> -> !torch.vtensor",
        "%0 = torch.aten.linear %v, %v, %v : !torch.vtensor, !torch.vtensor, !torch.vtensor -> !torch.vtensor",
        "%0 = torch.aten.index.Tensor %v, %vs : !torch.vtensor, !torch.list<vtensor> -> !torch.vtensor",
        "%0 = torch.aten.index.Tensor %v, %ovs : !torch.vtensor, !torch.list<optional<vtensor>> -> !torch.vtensor",
        "%0 = torch.aten.item %v : !torch.vtensor -> !torch.int",
        "%0 = torch.aten.item %v : !torch.vtensor -> !torch.number",
        "%0 = torch.aten.relu_ %t : !torch.tensor -> !torch.tensor",
        "%0 = torch.aten.zeros %is, %i, %n, %od, %n : !torch.list<int>, !torch.int, !torch.none, !torch.optional<Device>, !torch.none -> !torch.vtensor",
        (
            "%bs = torch.prim.ListConstruct %b, %b, %b : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>\n"
            "%0:3 = torch.aten.native_layer_norm_backward %v, %v, %is, %v, %v, %n, %n, %bs : !torch.vtensor, !torch.vtensor, !torch.list<int>, !torch.vtensor, !torch.vtensor, !torch.none, !torch.none, !torch.list<bool> -> !torch.vtensor, !torch.none, !torch.none"
        ),
        "%0 = torch.aten.format(%s, %i, %n) : !torch.str, !torch.int, !torch.none -> !torch.str",
        "torch.prim.Print(%s, %i) : !torch.str, !torch.int",
        "torch.aten.sym_constrain_range %i, %n, %n : !torch.int, !torch.none, !torch.none",
    ],
)
def test_what_fits_a_schema_is_accepted(body: str) -> None:
    assert ir.Module.parse(in_function(body)).operation.verify()


RELU = "schema: aten::relu(Tensor self) -> Tensor"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            (
                "%0 = torch.aten.add.Tensor %v, %i, %i : !torch.vtensor, !torch.int, !torch.int"
                " -> !torch.vtensor"
            ),
            (
                "'torch.aten.add.Tensor' op operand #1 ('other') must be Tensor, but got '!torch.int'; "
                "schema: aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
            ),
        ),
        (
            "%0 = torch.aten.relu %v : !torch.vtensor -> !torch.int",
            f"'torch.aten.relu' op result #0 must be Tensor, but got '!torch.int'; {RELU}",
        ),
        (
            "%0 = torch.aten.relu %v, %v : !torch.vtensor, !torch.vtensor -> !torch.vtensor",
            f"'torch.aten.relu' op expected 1 operand, but got 2; {RELU}",
        ),
        (
            '%0 = "torch.aten.relu"() : () -> !torch.vtensor',
            f"'torch.aten.relu' op expected 1 operand, but got 0; {RELU}",
        ),
        (
            '"torch.aten.relu"(%v) : (!torch.vtensor) -> ()',
            f"'torch.aten.relu' op expected 1 result, but got 0; {RELU}",
        ),
        (
            '%0 = "torch.aten.relu"(%v) ({}) : (!torch.vtensor) -> !torch.vtensor',
            f"'torch.aten.relu' op takes neither regions nor successors; {RELU}",
        ),
        (
            "%0 = torch.aten.relu_ %v : !torch.vtensor -> !torch.vtensor",
            (
                "operand #0 ('self') must be Tensor(a!), but got '!torch.vtensor', which is a value "
                "and can't be written to; schema: aten::relu_(Tensor(a!) self) -> Tensor(a!)"
            ),
        ),
        (
            "torch.aten._foreach_abs_ %vs : !torch.list<vtensor>",
            (
                "operand #0 ('self') must be Tensor(a!)[], but got '!torch.list<vtensor>', which is "
                "a value and can't be written to"
            ),
        ),
        (
            (
                "%0 = torch.aten.transpose.int %v, %i, %f : !torch.vtensor, !torch.int, !torch.float"
                " -> !torch.vtensor"
            ),
            "operand #2 ('dim1') must be int, but got '!torch.float'",
        ),
        (
            "%0 = torch.aten.cat %is, %i : !torch.list<int>, !torch.int -> !torch.vtensor",
            "operand #0 ('tensors') must be Tensor[], but got '!torch.list<int>'",
        ),
        (
            "%0 = torch.aten.format(%i) : !torch.int -> !torch.str",
            "operand #0 ('self') must be str, but got '!torch.int'",
        ),
        (
            "%0 = torch.aten.format() : -> !torch.str",
            "expected at least 1 operand, but got 0",
        ),
        (
            '"torch.prim.Print"(%x) : (i64) -> ()',
            "operand #0 must have a type of the torch dialect, but got 'i64'",
        ),
        (
            '%0 = "torch.aten.Bool.int"(%x) : (i64) -> !torch.bool',
            "operand #0 ('a') must be int, but got 'i64'",
        ),
    ],
)
def test_what_does_not_fit_a_schema_is_refused(body: str, message: str) -> None:
    with pytest.raises(ir.MLIRError) as error:
        ir.Module.parse(in_function(body))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%0 = torch.aten.relu.default %v : !torch.vtensor -> !torch.vtensor",
            (
                "'torch.aten.relu.default' isn't in the torch dialect; its overloads are "
                "torch.aten.relu"
            ),
        ),
        (
            (
                "%0 = torch.aten.transpose %v, %i, %i : !torch.vtensor, !torch.int, !torch.int"
                " -> !torch.vtensor"
            ),
            (
                "'torch.aten.transpose' isn't in the torch dialect; its overloads are "
                "torch.aten.transpose.int"
            ),
        ),
        (
            "torch.my.op",
            (
                "'torch.my.op' isn't in the torch dialect; an operator that the "
                'dialect doesn\'t know is written as torch.operator "my.op"(...)'
            ),
        ),
        (
            '"torch.my.op"() : () -> ()',
            (
                "unregistered operation 'torch.my.op' found in dialect ('torch') that does not allow "
                "unknown operations"
            ),
        ),
    ],
)
def test_an_operator_that_does_not_exist_is_named(body: str, message: str) -> None:
    with pytest.raises(ir.MLIRError) as error:
        ir.Module.parse(in_function(body))
    assert message in str(error.value)


def run(passes: str, body: str) -> str:
    module = ir.Module.parse(body)
    PassManager.parse(f"builtin.module({passes})").run(module.operation)
    return str(module)


def twice(schema: operators.Schema, used: bool) -> str:
    """A function that calls an operator twice with the same operands."""
    text = schema_programs.function(schema, "f")
    head, call, _tail, _ = text.split("\n", 3)
    again = call.replace("%r:", "%q:")
    if not used:
        types = ", ".join("!torch." + schema_programs.mlir_type(r.type) for r in schema.results)
        return "\n".join([head.replace(f"({types}) {{", "() {"), call, again, "return", "}"])
    count = len(schema.results)
    results = head[head.index("-> (") + 4 : head.rindex(")")]
    return "\n".join(
        [
            head.replace(f"-> ({results})", f"-> ({results}, {results})"),
            call,
            again,
            "return "
            + ", ".join([f"%r#{i}" for i in range(count)] + [f"%q#{i}" for i in range(count)])
            + f" : {results}, {results}",
            "}",
        ]
    )


def of_values(schema: operators.Schema) -> bool:
    """Whether all that the operator takes and gives are values: nothing can be written to."""
    return not any(
        kind in schema_programs.mlir_type(a.type)
        for a in (*schema.arguments, *schema.results)
        for kind in ("any", "list", "dict", "Generator")
    ) and not (schema.is_vararg or schema.is_varret)


def calls(text: str, schema: operators.Schema) -> int:
    return text.count(f"torch.{schema.key} ")


def test_two_equal_calls_become_one_exactly_where_an_operator_is_pure() -> None:
    wrong = []
    for schema in TABLE.values():
        if schema.is_mutable or not schema.results or not schema.arguments or not of_values(schema):
            continue
        left = calls(run("cse", twice(schema, used=True)), schema)
        if left != (1 if schema.is_pure else 2):
            wrong.append(schema.key)
    assert wrong == []


def test_an_unused_call_goes_exactly_where_an_operator_is_pure() -> None:
    wrong = []
    for schema in TABLE.values():
        if schema.is_vararg or schema.is_varret or schema.is_mutable or not schema.arguments:
            continue
        left = calls(run("canonicalize", twice(schema, used=False)), schema)
        if left != (0 if schema.is_pure else 2):
            wrong.append(schema.key)
    assert wrong == []


def test_a_write_stays_and_reads_around_it_stay_apart() -> None:
    text = run(
        "cse,canonicalize",
        in_function(
            "%0 = torch.aten.sin %t : !torch.tensor -> !torch.vtensor\n"
            "%1 = torch.aten.relu_ %t : !torch.tensor -> !torch.tensor\n"
            "%2 = torch.aten.sin %t : !torch.tensor -> !torch.vtensor\n"
            "%3 = torch.aten.sin %t : !torch.tensor -> !torch.vtensor\n"
            "torch.prim.Print(%0, %2, %3) : !torch.vtensor, !torch.vtensor, !torch.vtensor"
        ),
    )
    assert text.count("torch.aten.sin ") == 2
    assert text.count("torch.aten.relu_ ") == 1


def test_new_tensors_in_memory_stay_apart() -> None:
    text = run(
        "cse",
        in_function(
            "%0 = torch.aten.sin %v : !torch.vtensor -> !torch.tensor\n"
            "%1 = torch.aten.sin %v : !torch.vtensor -> !torch.tensor\n"
            "%2 = torch.aten.relu_ %0 : !torch.tensor -> !torch.tensor\n"
            "torch.prim.Print(%0, %1) : !torch.tensor, !torch.tensor"
        ),
    )
    assert text.count("torch.aten.sin ") == 2


@pytest.mark.parametrize(
    ("name", "kinds", "expected"),
    [
        ("torch.aten.add.int", ("int", "int"), ["!torch.int"]),
        ("torch.aten.div.int", ("int", "int"), ["!torch.float"]),
        ("torch.aten.eq.int", ("int", "int"), ["!torch.bool"]),
        ("torch.prim.dtype", ("vtensor",), ["!torch.int"]),
        ("torch.prim.device", ("vtensor",), ["!torch.Device"]),
        ("torch.aten.str", ("any",), ["!torch.str"]),
    ],
)
def test_a_result_that_the_schema_alone_types_is_inferred(
    context: ir.Context, name: str, kinds: tuple[str, ...], expected: list[str]
) -> None:
    _ = context.dialects["torch"]
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        operands = [
            ir.Operation.create(
                "torch.prim.Uninitialized", [ir.Type.parse(f"!torch.{kind}")]
            ).result
            for kind in kinds
        ]
        op = ir.Operation.create(name, operands=operands, infer_type=True)
    assert [str(r.type) for r in op.results] == expected
    assert module.operation.verify()
