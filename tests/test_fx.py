# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public calls: their parameters are upstream's, and output types are honoured."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap

import pytest

from torch_mlir.compiler_utils import OutputType, TensorPlaceholder


def python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", *options, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
    )


WITHOUT_TORCH = """
    import sys

    class Blocks:
        def find_spec(self, name, path=None, target=None):
            if name == "torch":
                raise ModuleNotFoundError("No module named 'torch'", name="torch")

    sys.meta_path.insert(0, Blocks())
"""


@pytest.mark.parametrize(
    ("spec", "member"),
    [
        ("raw", OutputType.RAW),
        ("RAW", OutputType.RAW),
        ("torch", OutputType.TORCH),
        ("linalg-on-tensors", OutputType.LINALG_ON_TENSORS),
        ("Linalg_On_Tensors", OutputType.LINALG_ON_TENSORS),
        ("tosa", OutputType.TOSA),
        ("stablehlo", OutputType.STABLEHLO),
        (OutputType.TOSA, OutputType.TOSA),
    ],
)
def test_output_types_by_name(spec, member):
    assert OutputType.get(spec) is member


def test_an_unknown_output_type_lists_the_known_ones():
    with pytest.raises(ValueError, match="'onnx' is not one of TORCH, LINALG_ON_TENSORS, TOSA"):
        OutputType.get("onnx")


def test_placeholders_leave_dynamic_axes_open():
    torch = pytest.importorskip("torch")
    placeholder = TensorPlaceholder.like(torch.ones(3, 4, dtype=torch.int8), dynamic_axes=[1])
    assert placeholder.shape == [3, -1]
    assert placeholder.dtype is torch.int8


def test_without_pytorch_the_message_says_what_is_missing():
    result = python(
        textwrap.dedent(WITHOUT_TORCH)
        + textwrap.dedent("""
        import torch_mlir.ir
        try:
            import torch_mlir.fx
        except ImportError as error:
            print(error)
    """)
    )
    assert "needs PyTorch 2.1 or newer beside torch_mlir" in result.stdout, result.stderr


def test_importing_ir_does_not_import_pytorch():
    result = python("import sys, torch_mlir.ir; print('torch' in sys.modules)")
    assert result.stdout.strip() == "False", result.stderr


def test_parameters_of_export_and_import():
    fx = pytest.importorskip("torch_mlir.fx")
    parameters = inspect.signature(fx.export_and_import).parameters
    defaults = {
        "output_type": OutputType.RAW,
        "fx_importer": None,
        "dynamic_shapes": None,
        "strict": False,
        "experimental_support_mutation": False,
        "import_symbolic_shape_expressions": False,
        "hooks": None,
        "decomposition_table": None,
        "func_name": "main",
        "enable_graph_printing": False,
        "verbose": False,
        "enable_ir_printing": False,
        "backend_legal_ops": None,
        "allow_non_finites": True,
    }
    for name, default in defaults.items():
        assert parameters[name].default == default, name
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY, name


def test_parameters_of_stateless_fx_import():
    fx = pytest.importorskip("torch_mlir.fx")
    assert list(inspect.signature(fx.stateless_fx_import).parameters) == [
        "gm",
        "output_type",
        "fx_importer",
        "hooks",
        "model_name",
        "enable_graph_printing",
        "verbose",
        "enable_ir_printing",
        "backend_legal_ops",
        "allow_non_finites",
    ]


def test_output_types_that_need_a_lowering_say_so():
    torch = pytest.importorskip("torch")
    fx = pytest.importorskip("torch_mlir.fx")
    with pytest.raises(fx.TorchMlirCompilerError, match="'tosa'"):
        fx.export_and_import(torch.nn.ReLU(), torch.ones(2), output_type="tosa")


def test_verbose_prints_the_module(capsys):
    torch = pytest.importorskip("torch")
    fx = pytest.importorskip("torch_mlir.fx")
    fx.export_and_import(torch.nn.ReLU(), torch.ones(2), verbose=True)
    assert "torch.aten.relu" in capsys.readouterr().out


def test_graph_printing_prints_the_graph(capsys):
    torch = pytest.importorskip("torch")
    fx = pytest.importorskip("torch_mlir.fx")
    fx.export_and_import(torch.nn.ReLU(), torch.ones(2), enable_graph_printing=True)
    assert "torch.ops.aten.relu.default" in capsys.readouterr().out


def test_upstreams_module_names_lead_to_the_same_classes():
    fx = pytest.importorskip("torch_mlir.fx")
    from torch_mlir.extras import fx_decomp_util, fx_importer

    assert fx_importer.FxImporter is fx.FxImporter
    assert fx_importer.FxImporterHooks is fx.FxImporterHooks
    assert fx_importer.InputInfo is fx.InputInfo
    assert fx_decomp_util.get_decomposition_table is fx.get_decomposition_table
