# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imported modules lower to what compilers read, and compute the same afterwards."""

from __future__ import annotations

import re
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.export", reason="needs PyTorch 2.1 or newer")

from torch_mlir import fx, ir, lowering
from torch_mlir.compiler_utils import OutputType, TorchMlirCompilerError

needs_compiler = pytest.mark.iree
LINALG_DIALECTS = {
    "arith", "builtin", "cf", "func", "linalg", "math", "ml_program", "scf", "tensor",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _repro_files(tmp_path, monkeypatch):
    """Failures leave their files where tests clean up."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture(autouse=True)
def _compiler(request):
    if request.node.get_closest_marker("iree"):
        pytest.importorskip("iree.compiler")


@pytest.fixture
def agree():
    """Compile a lowered module, run it, and compare with calling the model."""
    pytest.importorskip("iree.runtime")
    from torch_mlir.backends.iree import IreeBackend

    def check(module, model, *runs):
        backend = IreeBackend()
        program = backend.load(backend.compile(module))
        for inputs in runs:
            actual, expected = program(*inputs), model(*inputs)
            torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)

    return check


def dialects(module: ir.Module) -> set[str]:
    found = set()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        found.add(operation.name.split(".")[0])
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def signature(module: ir.Module) -> str:
    (function,) = module.body.operations
    return str(function.attributes["function_type"])


def mlp() -> tuple[torch.nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4), torch.nn.Softmax(-1)]
    return torch.nn.Sequential(*layers).eval(), torch.randn(2, 8)


def conv_net() -> tuple[torch.nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    layers = [
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 4, 3),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(4, 2),
    ]
    return torch.nn.Sequential(*layers).eval(), torch.randn(1, 3, 8, 8)


@needs_compiler
@pytest.mark.parametrize(
    ("make", "types"),
    [
        (mlp, "(tensor<2x8xf32>) -> tensor<2x4xf32>"),
        (conv_net, "(tensor<1x3x8x8xf32>) -> tensor<1x2xf32>"),
    ],
)
def test_linalg_on_tensors(make, types, agree):
    model, x = make()
    module = fx.export_and_import(model, x, output_type="linalg-on-tensors")
    assert module.operation.verify()
    assert signature(module) == types
    assert dialects(module) <= LINALG_DIALECTS
    assert "linalg" in dialects(module)
    agree(module, model, (x,))


@needs_compiler
@pytest.mark.skipif(not hasattr(torch.export, "Dim"), reason="torch.export has no Dim")
def test_open_sizes_stay_open(agree):
    model, x = mlp()
    module = fx.export_and_import(
        model,
        x,
        dynamic_shapes={"input": {0: torch.export.Dim("rows")}},
        output_type=OutputType.LINALG_ON_TENSORS,
    )
    assert signature(module) == "(tensor<?x8xf32>) -> tensor<?x4xf32>"
    agree(module, model, (x,), (torch.randn(5, 8),))


@needs_compiler
def test_the_torch_dialect_in_backend_form_computes_the_same(agree):
    model, x = conv_net()
    module = fx.export_and_import(model, x, output_type="torch")
    assert dialects(module) == {"builtin", "func", "torch"}
    expected = "(!torch.vtensor<[1,3,8,8],f32>) -> !torch.vtensor<[1,2],f32>"
    assert signature(module) == expected
    agree(module, model, (x,))


@needs_compiler
def test_backend_form_decomposes_all_but_the_legal_operators():
    text = """
    func.func @main(%a: !torch.vtensor<[2,3],f32>, %w: !torch.vtensor<[4,3],f32>)
        -> !torch.vtensor<[2,4],f32> {
      %none = torch.constant.none
      %0 = torch.aten.linear %a, %w, %none
        : !torch.vtensor<[2,3],f32>, !torch.vtensor<[4,3],f32>, !torch.none
        -> !torch.vtensor<[2,4],f32>
      return %0 : !torch.vtensor<[2,4],f32>
    }
    """
    decomposed = lowering.lower(ir.Module.parse(text, ir.Context()), "torch")
    assert "torch.aten.linear" not in str(decomposed)
    assert "torch.aten.transpose" in str(decomposed)
    for name in ("aten.linear", "torch.aten.linear"):
        module = ir.Module.parse(text, ir.Context())
        lowering.lower(module, "torch", backend_legal_ops=[name, "aten.foo"])
        assert "torch.aten.linear" in str(module)


@needs_compiler
def test_names_that_no_operator_has_are_refused():
    module = ir.Module.parse("module {}", ir.Context())
    with pytest.raises(ValueError, match="'aten.linear}' is no operator's name"):
        lowering.lower(module, "torch", backend_legal_ops=["aten.linear}"])


@needs_compiler
def test_an_extra_library_that_is_not_there_is_named(tmp_path):
    tensor = "!torch.vtensor<[3],f32>"
    text = f"""
    func.func @main(%a: {tensor}) -> {tensor} {{
      %0 = torch.operator "torch.vendor.twist"(%a) : ({tensor}) -> {tensor}
      return %0 : {tensor}
    }}
    """
    module = ir.Module.parse(text, ir.Context())
    missing = str(tmp_path / "library.mlir")
    with pytest.raises(TorchMlirCompilerError, match=f"extra-library file at {missing}"):
        lowering.lower(module, "torch", extra_library=missing)


@needs_compiler
@pytest.mark.parametrize(("allowed", "initial"), [(True, "0xFF800000"), (False, "-3.40282347E+38")])
def test_non_finite_values_only_where_they_are_allowed(allowed, initial):
    module = fx.export_and_import(
        torch.nn.MaxPool2d(2),
        torch.randn(1, 1, 4, 4),
        output_type="linalg-on-tensors",
        allow_non_finites=allowed,
    )
    assert f"arith.constant {initial} : f32" in str(module)


@needs_compiler
def test_contents_of_weights_stay_in_their_blobs_whatever_sign_their_integers_get(agree):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(64, 32))
            self.register_buffer("rows", torch.arange(63, -1, -1))
            self.register_buffer("bytes", torch.arange(64, dtype=torch.uint8).reshape(64, 1))

        def forward(self, x):
            return x @ self.weight[self.rows].t() + self.bytes.t()

    torch.manual_seed(0)
    model, x = Model(), torch.randn(2, 32)
    module = fx.export_and_import(model, x, output_type="linalg-on-tensors")
    constants = re.findall(r"arith.constant dense_resource<(\S+)> : (\S+)", str(module))
    # The names are those of the program's tensors, as the blobs are.
    assert sorted(constants) == [
        ("bytes", "tensor<64x1xi8>"),
        ("rows", "tensor<64xi64>"),
        ("weight", "tensor<64x32xf32>"),
    ]
    agree(module, model, (x,))
    with torch.no_grad():
        model.weight.mul_(2)
    agree(module, model, (x,))


@needs_compiler
def test_the_module_is_lowered_in_place_and_keeps_its_context_and_locations():
    model, x = mlp()
    module = fx.export_and_import(model, x)
    context = module.context
    assert lowering.lower(module, "LINALG_ON_TENSORS") is module
    assert module.context is context
    assert "linalg" in dialects(module)
    assert "linear.py" in module.operation.get_asm(enable_debug_info=True)


@needs_compiler
def test_raw_is_left_alone():
    module = ir.Module.parse("func.func @main() { return }", ir.Context())
    before = str(module)
    assert str(lowering.lower(module, "raw")) == before
    with pytest.raises(ValueError, match="nothing lowers to output_type 'raw'"):
        lowering.lower_backend_form(module, OutputType.RAW)


@needs_compiler
def test_operations_of_dialects_that_are_not_registered_come_in_generic_form(agree):
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.sort(x, -1)[0]

    x = torch.randn(2, 5)
    with pytest.warns(UserWarning, match=r"not register, in MLIR's generic form: tm_tensor.sort"):
        module = fx.export_and_import(Model(), x, output_type="linalg-on-tensors")
    assert '"tm_tensor.sort"(' in str(module)
    assert module.operation.verify()
    agree(module, Model(), (x,))


@needs_compiler
def test_operators_that_the_passes_do_not_know_are_named_and_the_module_stays_as_it_was():
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.special.i0(x)

    x = torch.randn(3)
    with pytest.raises(TorchMlirCompilerError) as caught:
        fx.export_and_import(Model(), x, decomposition_table={}, output_type="linalg-on-tensors")
    message = str(caught.value)
    assert "Lowering TorchFX IR -> Torch Backend IR failed" in message
    assert "[torch.aten.special_i0]" in message
    assert re.search(r"test_lowering\.py:\d+:\d+: failed to legalize", message)

    module = fx.export_and_import(Model(), x, decomposition_table={}, target="iree")
    before = str(module)
    with pytest.raises(TorchMlirCompilerError):
        lowering.lower(module, "linalg-on-tensors")
    assert str(module) == before


@needs_compiler
@pytest.mark.parametrize("output_type", ["tosa", "stablehlo"])
def test_output_types_without_passes_are_refused_before_the_export(output_type):
    class Model(torch.nn.Module):
        def forward(self, x):
            raise AssertionError("exported")

    with pytest.raises(TorchMlirCompilerError) as caught:
        fx.export_and_import(Model(), torch.ones(2), output_type=output_type)
    message = str(caught.value)
    assert f"output_type {output_type!r}: the installed iree-base-compiler has no passes" in message
    assert f"torch-backend-to-{output_type}-backend-pipeline" in message


@pytest.mark.parametrize("output_type", ["torch", "linalg-on-tensors", "tosa", "stablehlo"])
def test_where_iree_is_missing_the_package_is_named_before_the_export(output_type, monkeypatch):
    class Model(torch.nn.Module):
        def forward(self, x):
            raise AssertionError("exported")

    class Refuses:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] == "iree":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    for name in [name for name in sys.modules if name.split(".")[0] == "iree"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Refuses(), *sys.meta_path])
    with pytest.raises(TorchMlirCompilerError) as caught:
        fx.export_and_import(Model(), torch.ones(2), output_type=output_type)
    assert f"output_type {output_type!r}" in str(caught.value)
    assert "pip install iree-base-compiler" in str(caught.value)


@needs_compiler
def test_verbose_prints_each_stage(capsys):
    model, x = mlp()
    fx.export_and_import(model, x, output_type="linalg-on-tensors", verbose=True)
    raw, torch_form, linalg = re.split(r"\n=+\n", capsys.readouterr().out)
    assert "torch.aten" in raw
    assert torch_form.startswith("Torch Backend IR\n")
    assert "torch.aten.mm" in torch_form
    assert linalg.startswith("Linalg-on-Tensors Backend IR\n")
    assert "linalg.matmul" in linalg


@needs_compiler
def test_ir_printing_shows_the_module_after_each_pass(capfd):
    model, x = mlp()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PyTorch's own
        fx.export_and_import(model, x, output_type="linalg-on-tensors")
        assert capfd.readouterr().err == ""
        fx.export_and_import(model, x, output_type="linalg-on-tensors", enable_ir_printing=True)
    err = capfd.readouterr().err
    assert "IR Dump After ReduceOpVariants" in err
    assert "IR Dump After ConvertTorchToLinalg" in err


@needs_compiler
@pytest.mark.skipif(
    not hasattr(torch.fx.experimental.proxy_tensor, "make_fx"), reason="this PyTorch has no make_fx"
)
def test_stateless_graphs_lower_too(agree):
    from torch.fx.experimental.proxy_tensor import make_fx

    def function(x, y):
        return torch.relu(x @ y)

    x, y = torch.randn(2, 3), torch.randn(3, 4)
    graph = make_fx(function, tracing_mode="fake")(x, y)
    module = fx.stateless_fx_import(graph, output_type="linalg-on-tensors")
    assert signature(module) == "(tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>"
    agree(module, function, (x, y))
