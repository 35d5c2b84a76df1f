# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch-mlir ops`: what a model uses, how often, and what a compiler registers."""

from __future__ import annotations

import json
import sys

import pytest

from torch_mlir import cli

MODULE = """
func.func @main(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {
  %w = torch.vtensor.literal(dense<1.0> : tensor<2xf32>) : !torch.vtensor<[2],f32>
  %int0 = torch.constant.int 0
  %l = torch.prim.ListConstruct %int0 : (!torch.int) -> !torch.list<int>
  %0 = torch.aten.relu %x : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>
  %1 = torch.aten.relu %0 : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>
  %2 = torch.operator "torch.my.thing"(%1) : (!torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>
  return %2 : !torch.vtensor<[2],f32>
}
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.mlir"
    path.write_text(MODULE)
    return str(path)


def test_text_has_the_most_frequent_first(model, capsys):
    assert cli.main(["ops", model]) == 0
    assert capsys.readouterr().out == (
        "     2 torch.aten.relu\n     1 torch.my.thing\n2 operators, 3 calls\n"
    )


def test_json_tells_what_iree_registers(model, capsys):
    pytest.importorskip("iree.compiler")
    assert cli.main(["ops", model, "--format", "json", "--target", "iree"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"operator": "torch.aten.relu", "count": 2, "registered": True},
        {"operator": "torch.my.thing", "count": 1, "registered": False},
    ]


def test_a_models_operators_are_counted(script, capsys):
    assert cli.main(["ops", f"{script}:build", "--format", "json"]) == 0
    counts = {row["operator"]: row["count"] for row in json.loads(capsys.readouterr().out)}
    assert (counts["torch.aten.relu"], counts["torch.aten.mm"]) == (2, 3)


@pytest.mark.parametrize("command", ["ops", "import"])
def test_a_target_that_is_not_installed_is_named(script, complaint, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "iree.compiler", None)
    line = complaint(command, f"{script}:program", "--target", "iree")
    assert "install iree-base-compiler" in line


def test_iree_is_asked_itself(script, capsys):
    compiler = pytest.importorskip("iree.compiler.ir")
    assert cli.main(["ops", f"{script}:build", "--format", "json", "--target", "iree"]) == 0
    rows = json.loads(capsys.readouterr().out)
    context = compiler.Context()
    assert len(rows) > 2
    for row in rows:
        assert row["registered"] == context.is_registered_operation(row["operator"])
