# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules compile with IREE, and run on PyTorch's tensors as they do in PyTorch."""

from __future__ import annotations

import pickle
import stat
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.export", reason="needs PyTorch 2.1 or newer")

from torch_mlir import fx, ir
from torch_mlir.backends import iree_tools
from torch_mlir.backends.iree import IreeArtifact, IreeBackend, IreeError, group_refusals
from torch_mlir.compiler_utils import TorchMlirCompilerError

REFUSED = """
func.func @main(%a: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32> {
  %0 = torch.operator "torch.vendor.twist"(%a)
    : (!torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32>
    loc(callsite("twist"("user.py":7:3) at "main.py":9:1))
  return %0 : !torch.vtensor<[3],f32>
}
"""


@pytest.fixture(scope="module")
def backend():
    pytest.importorskip("iree.compiler")
    pytest.importorskip("iree.runtime")
    return IreeBackend()


def parse(text: str) -> ir.Module:
    return ir.Module.parse(text, ir.Context())


@pytest.fixture(scope="module")
def identity():
    """The text of a function that gives back what it takes, of the given types."""

    def text(*types: str) -> str:
        names = ", ".join(f"%arg{index}" for index in range(len(types)))
        arguments = ", ".join(f"%arg{index}: {type}" for index, type in enumerate(types))
        joined = ", ".join(types)
        return f"func.func @main({arguments}) -> ({joined}) {{ return {names} : {joined} }}"

    return text


@pytest.mark.iree
def test_every_dtype_goes_in_and_out_bit_by_bit(backend):
    names = (
        "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
        "complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
        "float8_e8m0fnu"
    )
    dtypes = [getattr(torch, name) for name in names.split() if hasattr(torch, name)]
    values = []
    for dtype in dtypes:
        size = torch.empty(0, dtype=dtype).element_size()
        if dtype is torch.bool:
            values.append(torch.tensor([[True, False, False], [False, True, True]]))
        else:
            # Every bit counts, so any bytes do; what is transposed is not contiguous.
            contents = torch.arange(6 * size, dtype=torch.uint8) * 37
            values.append(contents.view(dtype).reshape(3, 2).t())

    class Rows(torch.nn.Module):
        def forward(self, *inputs):
            return tuple(value.reshape(3, 2) for value in inputs)

    program = backend.load(backend.compile(fx.export_and_import(Rows(), *values)))
    for result, value, dtype in zip(program(*values), values, dtypes, strict=True):
        assert result.dtype is dtype
        assert result.shape == (3, 2)
        expected = value.contiguous().reshape(3, 2)
        assert bytes(result.view(torch.uint8).flatten().tolist()) == bytes(
            expected.view(torch.uint8).flatten().tolist()
        ), dtype


@pytest.mark.iree
def test_doubles_are_computed_as_doubles(backend):
    class Model(torch.nn.Module):
        def forward(self, x):
            return x + 1e-12

    x = torch.ones(3, dtype=torch.float64)
    result = backend.load(backend.compile(fx.export_and_import(Model(), x)))(x)
    assert result.dtype is torch.float64
    assert torch.equal(result, x + 1e-12)
    assert not torch.equal(result, x)


@pytest.mark.iree
@pytest.mark.skipif(not hasattr(torch.export, "Dim"), reason="torch.export has no Dim")
def test_open_sizes_take_any_size_and_the_others_only_theirs(backend):
    class Model(torch.nn.Module):
        def forward(self, x):
            return x.cumsum(0) * x.shape[0]

    shapes = {"x": {0: torch.export.Dim("rows")}}
    module = fx.export_and_import(Model(), torch.randn(4, 3), dynamic_shapes=shapes)
    program = backend.load(backend.compile(module))
    for rows in (2, 7):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(program(x), Model()(x))
    with pytest.raises(ValueError, match=r"argument 0 of main has shape \[4, 2\]"):
        program(torch.randn(4, 2))


@pytest.mark.iree
def test_scalars_and_shapes_without_elements_or_dimensions(backend, identity):
    types = (
        "!torch.int",
        "!torch.float",
        "!torch.bool",
        "!torch.vtensor<[0,3],f32>",
        "!torch.vtensor<[],si64>",
    )
    program = backend.load(backend.compile(parse(identity(*types))))
    empty, scalar = torch.zeros(0, 3), torch.tensor(-(2**40))
    results = program(2**40, 0.1, True, empty, scalar)
    assert results[:3] == (2**40, 0.1, True)
    assert [type(value) for value in results[:3]] == [int, float, bool]
    assert results[3].shape == (0, 3)
    assert results[3].dtype is torch.float32
    assert torch.equal(results[4], scalar)


@pytest.mark.iree
def test_what_is_written_to_an_input_is_written_in_place(backend):
    class Cache(torch.nn.Module):
        def forward(self, cache, x):
            cache.add_(x)
            return cache * 2

    cache, x = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)
    module = fx.export_and_import(
        Cache(), cache.clone(), x, experimental_support_mutation=True, target="iree"
    )
    program = backend.load(backend.compile(module))
    # Not contiguous: the results have to find their way to the right places.
    written = cache.t().contiguous().t()
    for _ in range(2):
        expected = cache.add_(x) * 2
        assert torch.equal(program(written, x), expected)
        assert torch.equal(written, cache)


@pytest.mark.iree
def test_what_an_input_held_is_not_what_is_written_to_it(backend):
    class Swap(torch.nn.Module):
        def forward(self, x, y):
            held, twice = x.clone(), x * 2
            x.add_(y)
            return held, twice, x.clone(), y.clone()

    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)
    module = fx.export_and_import(
        Swap(), x.clone(), y, experimental_support_mutation=True, target="iree"
    )
    written = x.clone()
    results = backend.load(backend.compile(module))(written, y)
    for result, expected in zip(results, Swap()(x, y), strict=True):
        assert torch.equal(result, expected)
    assert torch.equal(written, x)


@pytest.mark.iree
def test_views_that_pytorch_resolves_lazily_are_resolved(backend, identity):
    program = backend.load(backend.compile(parse(identity("!torch.vtensor<[2],complex<f32>>"))))
    value = torch.tensor([1 + 2j, 3 - 4j]).conj()
    assert value.is_conj()
    assert torch.equal(program(value), value)
    parameter = torch.nn.Parameter(torch.tensor([1j, 2]))
    assert torch.equal(program(parameter), parameter)
    assert not program(parameter).requires_grad


@pytest.mark.iree
def test_one_result_is_bare_none_is_none_and_functions_have_names(backend):
    tensor = "!torch.vtensor<[2],f32>"
    text = (
        f"func.func @none(%a: {tensor}) {{ return }}\n"
        f"func.func @main(%a: {tensor}) -> {tensor} {{ return %a : {tensor} }}\n"
        f"func.func private @hidden(%a: {tensor}) -> {tensor} {{ return %a : {tensor} }}\n"
    )
    program = backend.load(backend.compile(parse(text)))
    x = torch.tensor([1.0, 2.0])
    assert program.function("none")(x) is None
    assert torch.equal(program(x), x)
    assert torch.equal(program.function("main")(x), x)
    with pytest.raises(ValueError, match="no function 'hidden': there are none, main"):
        program.function("hidden")


@pytest.mark.iree
def test_among_functions_without_a_main_the_call_names_them(backend):
    tensor = "!torch.vtensor<[2],f32>"
    functions = [
        f"func.func @{name}(%a: {tensor}) -> {tensor} {{ return %a : {tensor} }}" for name in "ab"
    ]
    program = backend.load(backend.compile(parse("\n".join(functions))))
    with pytest.raises(ValueError, match="called main: a, b"):
        program(torch.ones(2))


@pytest.mark.iree
def test_arguments_that_do_not_fit_are_refused_by_name(backend, identity):
    types = ("!torch.vtensor<[2,?],f32>", "!torch.int", "!torch.bool")
    program = backend.load(backend.compile(parse(identity(*types))))
    good = torch.ones(2, 5)
    with pytest.raises(ValueError, match="main takes 3 arguments, 1 are given"):
        program(good)
    with pytest.raises(ValueError, match=r"argument 0 of main has dtype torch.float64, .*\[2,\?\]"):
        program(good.double(), 1, True)
    with pytest.raises(ValueError, match=r"argument 0 of main has shape \[2\]"):
        program(torch.ones(2), 1, True)
    with pytest.raises(TypeError, match="argument 0 of main has to be a tensor"):
        program([1.0], 1, True)
    with pytest.raises(TypeError, match="argument 1 of main has to be a Python int, not 1.5"):
        program(good, 1.5, True)
    with pytest.raises(TypeError, match="argument 2 of main has to be a Python bool, not 1"):
        program(good, 1, 1)
    with pytest.raises(ValueError, match="sparse_coo"):
        program(good.to_sparse(), 1, True)


@pytest.mark.iree
def test_modules_on_builtin_tensors_compile_too(backend):
    text = """
    func.func @main(%x: tensor<?x3xf32>, %n: tensor<3xi64>) -> (tensor<?x3xf32>, tensor<3xi64>) {
      %c = arith.constant dense<[1, 2, 3]> : tensor<3xi64>
      %d = arith.addi %n, %c : tensor<3xi64>
      %0 = arith.addf %x, %x : tensor<?x3xf32>
      return %0, %d : tensor<?x3xf32>, tensor<3xi64>
    }
    """
    x, n = torch.randn(4, 3), torch.tensor([10, 20, 30])
    doubled, moved = backend.load(backend.compile(parse(text)))(x, n)
    assert torch.equal(doubled, x + x)
    assert torch.equal(moved, torch.tensor([11, 22, 33]))


@pytest.mark.iree
def test_an_artifact_can_be_stored_and_runs_on_another_device(backend, identity):
    artifact = backend.compile(parse(identity("!torch.vtensor<[2],bf16>")))
    stored = pickle.loads(pickle.dumps(artifact))
    x = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    assert torch.equal(IreeBackend(device="local-sync").load(stored)(x), x)


@pytest.mark.iree
def test_another_target_and_flags_that_override_ours(identity):
    pytest.importorskip("iree.compiler")
    pytest.importorskip("iree.runtime")
    module = parse(identity("!torch.vtensor<[2],f64>"))
    x = torch.tensor([0.1, 0.2], dtype=torch.float64)
    vmvx = IreeBackend("vmvx")
    assert torch.equal(vmvx.load(vmvx.compile(module))(x), x)
    with pytest.raises(IreeError, match="Unknown CPU"):
        IreeBackend(flags=["--iree-llvmcpu-target-cpu=skylakish"]).compile(module)


@pytest.mark.iree
def test_a_refusal_names_the_operator_and_the_users_line(backend, capfd):
    with pytest.raises(IreeError) as caught:
        backend.compile(parse(REFUSED))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.operation == "torch.vendor.twist"
    assert diagnostic.location == "user.py:7:3"
    assert diagnostic.message.startswith("failed to legalize operation 'torch.operator'")
    message = str(caught.value)
    assert message.splitlines()[0] == "IREE does not compile the module for llvm-cpu:"
    assert "user.py:7:3: failed to legalize" in message
    assert "torch.vendor.twist" in message
    assert isinstance(caught.value, TorchMlirCompilerError)
    assert capfd.readouterr() == ("", "")


@pytest.mark.iree
def test_targets_devices_and_binaries_that_do_not_exist(backend, identity):
    module = parse(identity("!torch.vtensor<[2],f32>"))
    with pytest.raises(IreeError, match="target backend 'abacus' not registered"):
        IreeBackend("abacus").compile(module)
    with pytest.raises(IreeError, match="--no-such-flag"):
        IreeBackend(flags=["--no-such-flag"]).compile(module)
    with pytest.raises(TorchMlirCompilerError, match="no device 'abacus'"):
        IreeBackend(device="abacus").load(backend.compile(module))
    with pytest.raises(TorchMlirCompilerError, match="does not load the module on 'local-task'"):
        backend.load(IreeArtifact(b"no flatbuffer", {}))


@pytest.mark.parametrize(
    ("type", "why"),
    [
        ("!torch.list<int>", "tensors, int, float and bool"),
        ("!torch.str", "tensors, int, float and bool"),
        ("!torch.vtensor<[2],complex<f16>>", "no tensors of complex<f16>"),
    ],
)
def test_types_without_a_counterpart_are_refused_before_compiling(type, why, identity):
    with pytest.raises(TorchMlirCompilerError) as caught:
        IreeBackend().compile(parse(identity("!torch.int", type)))
    assert "argument 1 of main has type " + type in str(caught.value)
    assert why in str(caught.value)


def test_a_module_without_functions_is_refused():
    with pytest.raises(TorchMlirCompilerError, match="no public function"):
        IreeBackend().compile(parse("module {}"))


def test_where_iree_is_missing_the_packages_are_named(monkeypatch, identity):
    for name in [name for name in sys.modules if name.split(".")[0] == "iree"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [Refuses(), *sys.meta_path])
    with pytest.raises(TorchMlirCompilerError, match="pip install iree-base-compiler"):
        IreeBackend().compile(parse(identity("!torch.int")))
    with pytest.raises(TorchMlirCompilerError, match="pip install iree-base-runtime"):
        IreeBackend().load(IreeArtifact(b"", {}))


class Refuses:
    """Finds no module of IREE's."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "iree":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Put a Python script in the place of IREE's tools."""

    def make(body: str) -> None:
        path = tmp_path / "tool"
        path.write_text(f"#!{sys.executable}\nimport os, sys\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(iree_tools, "find", lambda name: str(path))

    return make


def test_a_compiler_that_crashes_is_an_error_that_tells_its_last_words(tool):
    tool("sys.stderr.write('x.cpp:3: Assertion `fine` failed.\\n'); sys.stderr.flush(); os.abort()")
    with pytest.raises(IreeError) as caught:
        IreeBackend().compile(parse(REFUSED))
    message = caught.value.diagnostics[0].message
    assert message == "iree-compile crashed (SIGABRT): x.cpp:3: Assertion `fine` failed."


def test_a_compiler_that_reads_nothing_of_a_large_module_is_an_error_too(tool):
    tool("sys.exit('error: no room')")
    large = "\n".join(
        f'func.func @f{index}(%a: !torch.int) attributes {{note = "{"x" * 1000}"}} {{ return }}'
        for index in range(300)
    )
    with pytest.raises(IreeError, match="no room"):
        IreeBackend().compile(parse(large))


def test_a_compiler_that_fails_without_a_word_is_an_error_with_its_exit_code(tool):
    tool("sys.exit(3)")
    with pytest.raises(IreeError, match="iree-compile failed with exit code 3"):
        IreeBackend().compile(parse(REFUSED))


def test_refusals_are_grouped_by_message_and_operation(tool):
    def refuse(line: str) -> IreeError:
        tool(f"sys.exit({line!r})")
        with pytest.raises(IreeError) as caught:
            IreeBackend().compile(parse(REFUSED))
        return caught.value

    illegal = "failed to legalize operation 'torch.operator' that was explicitly marked illegal"
    errors = {
        model: refuse(f'{place}: error: {illegal}: %1 = "torch.operator"(%0) <{{name = "{op}"}}>')
        for model, place, op in [
            ("one", "a.py:1:1", "torch.aten.stft"),
            ("two", "b.py:2:2", "torch.aten.istft"),
            ("three", "c.py:3:3", "torch.aten.stft"),
        ]
    }
    errors["four"] = refuse("d.py:4:4: error: 'tensor.cast' op operand type tensor<2xf32> is bad")
    errors["five"] = refuse("e.py:5:5: error: 'tensor.cast' op operand type tensor<?xf32> is bad")
    errors["six"] = ValueError("something else\nand more")
    assert group_refusals(errors) == {
        ("'tensor.cast' op operand type <…> is bad", ""): ["four", "five"],
        (illegal, "torch.aten.stft"): ["one", "three"],
        ("ValueError: something else", ""): ["six"],
        (illegal, "torch.aten.istft"): ["two"],
    }
