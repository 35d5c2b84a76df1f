# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference backend as its users have it: calls, results, errors, fake tensors, memory."""

from __future__ import annotations

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

from torch_mlir import backends, ir
from torch_mlir.backends.reference import ExecutionError, ReferenceBackend, UnsupportedOperation
from torch_mlir.compiler_utils import TorchMlirCompilerError

IDENTITY = "func.func {} @{}(%x: !torch.int) -> !torch.int {{ return %x : !torch.int }}\n"

TANH = """
func.func @main(%x: !torch.vtensor<[2,?],f32>) -> !torch.vtensor<[2,?],f32> {
  %0 = torch.aten.tanh %x : !torch.vtensor<[2,?],f32> -> !torch.vtensor<[2,?],f32>
  return %0 : !torch.vtensor<[2,?],f32>
}"""


def test_backends_are_got_by_name():
    assert {"reference", "iree"} <= set(backends.NAMES)
    backend = backends.get("reference", device="meta")
    assert isinstance(backend, ReferenceBackend) and backend.device == torch.device("meta")


def test_other_names_and_options_are_refused():
    with pytest.raises(ValueError, match="no backend 'tpu': there are iree, reference"):
        backends.get("tpu")
    with pytest.raises(TypeError, match="threads"):
        backends.get("reference", threads=2)


# Functions


def test_the_only_public_function_is_called(reference):
    assert reference(IDENTITY.format("private", "main") + IDENTITY.format("", "f"))(3) == 3


def test_main_is_called_among_several(reference):
    functions = IDENTITY.format("", "f") + IDENTITY.format("", "main")
    assert reference(functions.replace("return %x", "return %x", 1))(3) == 3


def test_none_of_several_is_called_unless_it_is_main(reference):
    program = reference(IDENTITY.format("", "f") + IDENTITY.format("", "g"))
    with pytest.raises(ValueError, match="none of the functions is called main: f, g"):
        program(3)
    assert program.function("g")(4) == 4


def test_functions_that_there_are_not(reference):
    with pytest.raises(ValueError, match="no function 'h': there are f, g"):
        reference(IDENTITY.format("", "f") + IDENTITY.format("private", "g")).function("h")


@pytest.mark.parametrize(
    ("returned", "kinds", "expected"),
    [("", "", None), ("%x : !torch.int", "!torch.int", 5)]
    + [("%x, %x : !torch.int, !torch.int", "!torch.int, !torch.int", (5, 5))],
)
def test_results_come_bare_several_as_a_tuple_none_as_none(run, returned, kinds, expected):
    program = f"func.func @main(%x: !torch.int) -> ({kinds}) {{ return {returned} }}"
    assert run(program, 5) == expected


# Values that don't fit


@pytest.mark.parametrize(
    ("kind", "value", "wrong"),
    [
        ("vtensor<[2,?],f32>", torch.zeros(3, 1), r"its shape is \[3, 1\]"),
        ("vtensor<[2,?],f32>", torch.zeros(2), r"its shape is \[2\]"),
        ("vtensor<[2,?],f32>", torch.zeros(2, 1, dtype=torch.int64), "its dtype is torch.int64"),
        ("tensor<*,f32>", torch.zeros(1).double(), "its dtype is torch.float64"),
        ("vtensor", 3, "a tensor is wanted, and it is int"),
        ("int", 2.5, "int or SymInt is wanted, and it is 2.5"),
        ("int", True, "it is True"),
        ("float", 1, "it is 1"),
        ("bool", 1, "it is 1"),
        ("str", None, "it is None"),
        ("none", 0, "None is wanted, and it is 0"),
        ("list<int>", (1, 2), "list is wanted"),
    ],
)
def test_arguments_of_other_types_are_refused(run, kind, value, wrong):
    with pytest.raises(ValueError, match=f"argument 1 of main has type .*{wrong}"):
        run(f"func.func @main(%n: !torch.int, %x: !torch.{kind}) {{ return }}", 1, value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("vtensor<[2,?],f32>", torch.zeros(2, 0)),
        ("vtensor<*,unk>", torch.zeros(3)),
        ("vtensor<[],si64>", torch.tensor(3)),
        ("optional<int>", None),
        ("optional<int>", 4),
        ("number", 2.5),
        ("tuple<int, str>", (1, "a")),
    ],
)
def test_arguments_that_fit(run, kind, value):
    program = f"func.func @main(%x: !torch.{kind}) -> !torch.{kind} {{ return %x : !torch.{kind} }}"
    result = run(program, value)
    assert result is value or result == value


def test_another_number_of_arguments_is_refused(run):
    with pytest.raises(ValueError, match="main takes 1 arguments, 2 are given"):
        run(TANH, torch.zeros(2, 1), torch.zeros(2, 1))


def test_results_that_are_not_of_their_type_are_told(reference):
    program = """
func.func @main(%x: !torch.vtensor<[?],f32>) -> !torch.vtensor<[3],f64> {
  %0 = torch.operator "torch.aten.relu"(%x)
    : (!torch.vtensor<[?],f32>) -> !torch.vtensor<[3],f64> loc("user.py":7:3)
  return %0 : !torch.vtensor<[3],f64>
}"""
    with pytest.raises(
        ExecutionError, match=r'aten.relu" at "user.py":7:3: result 0 has type .*float32'
    ):
        reference(program)(torch.zeros(3))
    # Unless nobody wants to know.
    assert reference(program, is_checking=False)(torch.zeros(3)).dtype is torch.float32


def test_operations_that_fail_are_named_with_place_and_operands(run):
    with pytest.raises(
        ExecutionError,
        match=r'torch.aten.mm at "user.py":7:3: .*\(operands: float32\[2, 3\], float32\[2, 3\]\)',
    ) as failure:
        run(
            """
func.func @main(%x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],f32> {
  %0 = torch.aten.mm %x, %x : !torch.vtensor<[2,3],f32>, !torch.vtensor<[2,3],f32>
    -> !torch.vtensor<[2,3],f32> loc("user.py":7:3)
  return %0 : !torch.vtensor<[2,3],f32>
}""",
            torch.zeros(2, 3),
        )
    assert isinstance(failure.value.__cause__, RuntimeError)
    assert "(2x3 and 2x3)" in str(failure.value.__cause__)


# Modules that don't compile


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            'torch.operator "torch.vendor.twist"() : () -> () loc("user.py":7:3)\nreturn',
            r'torch.operator "torch.vendor.twist" at "user.py":7:3: .* has no operator vendor.twist',
        ),
        (
            'torch.operator "torch.aten.relu"() : () -> ()\nreturn',
            "aten.relu takes 1 arguments, and 0 are given",
        ),
        (
            '%1 = torch.operator "vendor.twist"() : () -> !torch.int\nreturn',
            'torch.operator "vendor.twist" .*no operation of the Torch dialect',
        ),
        ("return\n^bb1:\nreturn", "the function 'main' has 2 blocks"),
    ],
)
def test_what_is_not_supported_is_told_before_anything_runs(reference, body, message):
    with pytest.raises(UnsupportedOperation, match=message) as failure:
        reference(f"func.func @main() {{\n{body}\n}}")
    assert isinstance(failure.value, TorchMlirCompilerError)


def test_functions_that_are_only_declared_can_not_be_called(reference):
    program = reference(
        """
func.func private @elsewhere()
func.func @main() {
  func.call @elsewhere() : () -> ()
  return
}"""
    )
    with pytest.raises(
        (UnsupportedOperation, ExecutionError), match="'elsewhere' is only declared"
    ):
        program()


# Devices and fake tensors


def test_devices_of_the_module_stand_for_the_backends(reference):
    program = reference(
        """
func.func @main() -> (!torch.vtensor<[3],f32>, !torch.Device) {
  %int3 = torch.constant.int 3
  %none = torch.constant.none
  %size = torch.prim.ListConstruct %int3 : (!torch.int) -> !torch.list<int>
  %device = torch.constant.device "cuda:1"
  %0 = torch.aten.ones %size, %none, %none, %device, %none
    : !torch.list<int>, !torch.none, !torch.none, !torch.Device, !torch.none
    -> !torch.vtensor<[3],f32>
  return %0, %device : !torch.vtensor<[3],f32>, !torch.Device
}"""
    )
    tensor, device = program()
    assert tensor.tolist() == [1.0] * 3 and device == torch.device("cpu")


def test_fake_tensors_give_fake_tensors(reference):
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    mode = FakeTensorMode()
    result = reference(TANH)(mode.from_tensor(torch.zeros(2, 5)))
    assert isinstance(result, FakeTensor) and result.shape == (2, 5)


def test_literals_are_fake_among_fake_tensors(reference):
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    program = reference(
        """
func.func @main(%x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,4],f32> {
  %0 = torch.vtensor.literal(dense<1.0> : tensor<3x4xf32>) : !torch.vtensor<[3,4],f32>
  %1 = torch.aten.mm %x, %0
    : !torch.vtensor<[2,3],f32>, !torch.vtensor<[3,4],f32> -> !torch.vtensor<[2,4],f32>
  return %1 : !torch.vtensor<[2,4],f32>
}"""
    )
    result = program(FakeTensorMode().from_tensor(torch.zeros(2, 3)))
    assert isinstance(result, FakeTensor) and result.shape == (2, 4)
    # And real again among real ones.
    assert torch.equal(program(torch.ones(2, 3)), torch.full((2, 4), 3.0))


def test_symbolic_sizes_stay_symbols(reference):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

    try:
        from torch.fx.experimental.symbolic_shapes import StatelessSymbolicContext
    except ImportError:
        pytest.skip("this PyTorch names the symbols of a fake tensor otherwise")
    mode = FakeTensorMode(shape_env=ShapeEnv())
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC])
    x = mode.from_tensor(torch.zeros(5), symbolic_context=context)
    result = reference(
        """
func.func @main(%x: !torch.vtensor<[?],f32>) -> !torch.vtensor<[?],f32> {
  %int0 = torch.constant.int 0
  %int2 = torch.constant.int 2
  %none = torch.constant.none
  %n = torch.aten.size.int %x, %int0 : !torch.vtensor<[?],f32>, !torch.int -> !torch.int
  %more = torch.aten.mul.int %n, %int2 : !torch.int, !torch.int -> !torch.int
  %size = torch.prim.ListConstruct %more : (!torch.int) -> !torch.list<int>
  %0 = torch.aten.new_zeros %x, %size, %none, %none, %none, %none
    : !torch.vtensor<[?],f32>, !torch.list<int>, !torch.none, !torch.none, !torch.none,
      !torch.none -> !torch.vtensor<[?],f32>
  return %0 : !torch.vtensor<[?],f32>
}"""
    )(x)
    (size,) = result.shape
    assert isinstance(size, torch.SymInt)
    assert size.node.expr == 2 * x.shape[0].node.expr


# Memory


def test_values_are_let_go_after_their_last_use(reference):
    made = []
    library = torch.library.Library("mlir_memory_tests", "DEF")
    library.define("make(Tensor x) -> Tensor")
    library.define("count(Tensor x) -> int")

    def make(x):
        made.append(weakref.ref(result := x + 1))
        return result

    library.impl("make", make, "CPU")
    library.impl("count", lambda x: sum(ref() is not None for ref in made), "CPU")
    tensor = "!torch.vtensor<[2],f32>"
    program = reference(
        f"""
func.func @main(%x: {tensor}) -> ({tensor}, !torch.int) {{
  %0 = torch.operator "torch.mlir_memory_tests.make"(%x) : ({tensor}) -> {tensor}
  %1 = torch.operator "torch.mlir_memory_tests.make"(%0) : ({tensor}) -> {tensor}
  %2 = torch.operator "torch.mlir_memory_tests.make"(%0) : ({tensor}) -> {tensor}
  %3 = torch.operator "torch.mlir_memory_tests.make"(%2) : ({tensor}) -> {tensor}
  %4 = torch.operator "torch.mlir_memory_tests.count"(%x) : ({tensor}) -> !torch.int
  return %1, %4 : {tensor}, !torch.int
}}"""
    )
    result, alive = program(torch.zeros(2))
    # Only what is returned; %3 is read by nothing.
    assert alive == 1 and result.tolist() == [2.0, 2.0]
    del result
    assert [ref() for ref in made] == [None] * 4


def test_a_program_keeps_the_memory_of_its_module(reference):
    text = """
func.func @main() -> !torch.vtensor<[512],si64> {{
  %0 = torch.vtensor.literal(dense<[{}]> : tensor<512xsi64>) : !torch.vtensor<[512],si64>
  return %0 : !torch.vtensor<[512],si64>
}}""".format(", ".join(map(str, range(512))))
    context = ir.Context()
    module = ir.Module.parse(text, context)
    program = ReferenceBackend().compile(module)
    del module, context
    gc.collect()
    assert program().tolist() == list(range(512))
