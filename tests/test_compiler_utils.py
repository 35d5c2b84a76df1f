# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines run in place, and leave a file that reproduces their failure."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import torch_mlir
from torch_mlir import ir
from torch_mlir.compiler_utils import (
    BackendLoweringOptions,
    OutputType,
    TensorPlaceholder,
    TorchMlirCompilerError,
    get_module_name_for_debug_dump,
    lower_mlir_module,
    run_pipeline_with_repro_report,
)

ADDS_CONSTANTS = """
func.func @main() -> i32 {
  %0 = arith.constant 20 : i32
  %1 = arith.constant 22 : i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}
"""
NAMED = """
module @model attributes {torch.debug_module_name = "my model"} {
  func.func @main() -> tensor<4xf32> {
    %0 = arith.constant dense_resource<weight> : tensor<4xf32> loc("user.py":7:3)
    return %0 : tensor<4xf32>
  }
}
"""
TWISTED = """
func.func @main(%a: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32> {
  %0 = torch.operator "torch.vendor.twist"(%a)
    : (!torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32> loc("user.py":7:3)
  return %0 : !torch.vtensor<[3],f32>
}
"""
TO_BACKEND_FORM = "builtin.module(torchdynamo-export-to-torch-backend-pipeline)"


@pytest.fixture
def repro_dir(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def parse(text: str) -> ir.Module:
    return ir.Module.parse(text, ir.Context())


def command_of(message: str) -> list[str]:
    (line,) = re.findall(r"^\$ (.*)$", message, re.MULTILINE)
    return shlex.split(line)


def test_output_types_have_names_in_any_case():
    assert OutputType.get("linalg-on-tensors") is OutputType.LINALG_ON_TENSORS
    assert OutputType.get("Linalg_On_Tensors") is OutputType.LINALG_ON_TENSORS
    assert OutputType.get(OutputType.RAW) is OutputType.RAW
    with pytest.raises(ValueError, match="'llvm' is not one of TORCH, LINALG_ON_TENSORS"):
        OutputType.get("llvm")


def test_placeholders_have_a_shape_with_open_sizes():
    torch = pytest.importorskip("torch")
    given = TensorPlaceholder([3, -1], torch.float16)
    assert (given.shape, given.dtype) == ([3, -1], torch.float16)
    like = TensorPlaceholder.like(torch.ones(3, 4, 5), dynamic_axes=[0, 2])
    assert (like.shape, like.dtype) == ([-1, 4, -1], torch.float32)
    assert TensorPlaceholder.like(torch.ones(3, 4)).shape == [3, 4]


def test_passes_of_this_package_run_here_and_in_place():
    module = parse(ADDS_CONSTANTS)
    assert run_pipeline_with_repro_report(module, "builtin.module(canonicalize)", "Folding") is None
    assert "arith.constant 42 : i32" in str(module)
    assert "arith.addi" not in str(module)


def test_ir_printing_shows_the_module_after_each_pass(capfd):
    run_pipeline_with_repro_report(
        parse(ADDS_CONSTANTS), "builtin.module(canonicalize)", "Folding", enable_ir_printing=True
    )
    err = capfd.readouterr().err
    assert "IR Dump After Canonicalizer" in err
    assert "arith.constant 42 : i32" in err


def test_modules_are_called_as_their_attribute_says():
    assert get_module_name_for_debug_dump(parse("module {}")) == "UnnammedModule"
    assert get_module_name_for_debug_dump(parse(NAMED)) == "my model"


def test_a_failing_pass_leaves_the_module_in_a_file_that_fails_again(repro_dir, tmp_path):
    pipeline = f"builtin.module(snapshot-op-locations{{filename={tmp_path}/none/such.mlir}})"
    with pytest.raises(TorchMlirCompilerError) as caught:
        run_pipeline_with_repro_report(parse(NAMED), pipeline, "")
    message = str(caught.value)
    assert message.startswith("my model compile failed with the following diagnostics:\n")
    assert "No such file or directory" in message
    (path,) = repro_dir.iterdir()
    assert path.name.startswith("my_model-")
    assert "user.py" in path.read_text()
    python, *arguments = command_of(message)
    assert python == "python"
    assert arguments[-2:] == [str(path), pipeline]
    # The package under test, before a source tree that may be on the path.
    found = Path(torch_mlir.__file__).parents[1]
    way = [sys.executable, "-P", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(found), *sys.path])}
    again = subprocess.run(way, capture_output=True, text=True, check=False, env=environment)
    assert again.returncode == 1
    assert "No such file or directory" in again.stderr


@pytest.mark.iree
def test_passes_of_the_torch_dialect_run_in_iree(repro_dir):
    pytest.importorskip("iree.compiler")
    text = """
    func.func @main(%a: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32> {
      %0 = torch.aten.relu %a : !torch.vtensor<[3],f32> -> !torch.vtensor<[3],f32>
      return %0 : !torch.vtensor<[3],f32>
    }
    """
    module = parse(text)
    run_pipeline_with_repro_report(module, TO_BACKEND_FORM, "")
    assert "torch.aten.relu" in str(module)
    run_pipeline_with_repro_report(
        module, "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline)", ""
    )
    assert "linalg.generic" in str(module)
    assert "torch" not in str(module)
    assert not list(repro_dir.iterdir())


@pytest.mark.iree
def test_a_failure_in_iree_names_the_operator_and_tells_how_to_rerun(repro_dir):
    pytest.importorskip("iree.compiler")
    from torch_mlir.backends import iree_tools

    with pytest.raises(TorchMlirCompilerError) as caught:
        run_pipeline_with_repro_report(parse(TWISTED), TO_BACKEND_FORM, "Lowering it")
    message = str(caught.value)
    assert message.startswith("Lowering it failed with the following diagnostics:\nuser.py:7:3: ")
    assert "[torch.vendor.twist]" in message
    tool, *arguments = command_of(message)
    (path,) = repro_dir.iterdir()
    assert arguments == [f"--pass-pipeline={TO_BACKEND_FORM}", str(path)]
    assert path.name.startswith("UnnammedModule-")
    for way in (arguments, ["--run-reproducer", str(path)]):
        again = subprocess.run(
            [iree_tools.find(tool), *way], capture_output=True, text=True, check=False
        )
        assert again.returncode == 1
        assert "user.py:7:3: error: failed to legalize operation 'torch.operator'" in again.stderr


def test_a_pipeline_that_nobody_knows_is_named(repro_dir):
    with pytest.raises(TorchMlirCompilerError, match="'no-such-pass' does not refer to a regist"):
        run_pipeline_with_repro_report(parse("module {}"), "builtin.module(no-such-pass)", "It")


def test_without_iree_the_package_is_named(monkeypatch):
    from torch_mlir.backends import iree_tools

    monkeypatch.setattr(iree_tools, "_installed", lambda module: False)
    with pytest.raises(TorchMlirCompilerError) as caught:
        run_pipeline_with_repro_report(parse("module {}"), TO_BACKEND_FORM, "Lowering")
    message = str(caught.value)
    assert message.startswith("Lowering needs passes that torch_mlir does not have")
    assert "pip install iree-base-compiler" in message


@pytest.mark.iree
def test_backend_form_lowers_on_its_own(capsys):
    pytest.importorskip("iree.compiler")
    text = """
    func.func @main(%a: !torch.vtensor<[1,4],f32>) -> !torch.vtensor<[1],f32> {
      %false = torch.constant.bool false
      %int1 = torch.constant.int 1
      %0, %1 = torch.aten.max.dim %a, %int1, %false
        : !torch.vtensor<[1,4],f32>, !torch.int, !torch.bool
        -> !torch.vtensor<[1],f32>, !torch.vtensor<[1],si64>
      return %0 : !torch.vtensor<[1],f32>
    }
    """
    module = parse(text)
    assert lower_mlir_module(False, OutputType.TORCH, module) is module
    assert "torch.aten.max.dim" in str(module)
    assert capsys.readouterr().out == ""
    options = BackendLoweringOptions(allow_non_finites=False)
    assert lower_mlir_module(True, OutputType.LINALG_ON_TENSORS, module, options) is module
    assert "0xFF800000" not in str(module)
    assert "-3.40282347E+38" in str(module)
    out = capsys.readouterr().out
    assert out.index("Torch Backend IR") < out.index("Linalg-on-Tensors Backend IR")
