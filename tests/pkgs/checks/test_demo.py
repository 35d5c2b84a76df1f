"""The demonstration, on models small enough to compile in a second."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from torch_mlir import ir

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "pkgs/checks/demo"))

import demo
from models import BasicBlock, Model


def linear() -> Model:
    return Model("one layer", nn.Linear(3, 4), (torch.rand(2, 3),))


def noisy() -> Model:
    # Eager's answer differs from call to call, so nothing can agree with it.
    class Shifted(nn.Module):
        shift = 0.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.shift += 1.0
            return x + self.shift

    return Model("shifted", Shifted(), (torch.rand(2, 3),))


def test_a_model_goes_from_eager_to_iree_and_agrees(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "MODELS", (linear,))
    assert demo.main(["-o", str(tmp_path / "out")]) == 0
    title, heading, row = capsys.readouterr().out.splitlines()
    assert f"PyTorch {torch.__version__}" in title
    columns = ["model", "operators", "MLIR", "export", "import", "compile", "largest", "error"]
    assert heading.split() == [*columns, "file"]
    assert row.startswith("one layer ")
    path = Path(row.split()[-1])
    assert path == tmp_path / "out/one_layer.mlir"
    assert "torch.aten." in path.read_text()
    assert [file.name for file in path.parent.iterdir()] == ["one_layer.mlir"]


def test_numbers_that_differ_end_in_1_and_are_marked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "MODELS", (noisy, linear))
    assert demo.main(["-o", str(tmp_path)]) == 1
    _, _, wrong, right = capsys.readouterr().out.splitlines()
    assert "FAILED" in wrong
    assert "FAILED" not in right


def test_a_terminal_sees_each_step_and_a_pipe_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "MODELS", (linear,))
    demo.main(["-o", str(tmp_path)])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    demo.main(["-o", str(tmp_path)])
    steps = capsys.readouterr().err
    assert "one layer (1 of 1)" in steps
    assert [step in steps for step in ("export", "import", "compile", "compare")] == [True] * 4


def test_the_error_is_a_part_of_the_largest_number_wanted() -> None:
    want = [np.array([4.0, -8.0]), np.array([1.0])]
    assert demo.largest_error([np.array([4.0, -7.0]), np.array([1.0])], want) == 1 / 8
    assert demo.largest_error(want, want) == 0


def test_results_of_other_shapes_are_no_answer() -> None:
    with pytest.raises(ValueError, match=r"shapes \[\(2,\)\], wanted \[\(1, 2\)\]"):
        demo.largest_error([np.ones(2)], [np.ones((1, 2))])


def test_a_nan_does_not_pass() -> None:
    error = demo.largest_error([np.array([np.nan])], [np.array([1.0])])
    assert not demo.Row("m", 1, 1, 0, 0, 0, error, Path("m.mlir")).passed


def test_operators_are_counted_without_constants() -> None:
    with ir.Context():
        module = ir.Module.parse("""
            func.func @main(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {
              %one = torch.constant.int 1
              %0 = torch.aten.relu %x : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>
              %1 = torch.aten.add.Tensor %0, %x, %one : !torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>, !torch.int -> !torch.vtensor<[2],f32>
              return %1 : !torch.vtensor<[2],f32>
            }""")
        assert demo.count_operators(module.operation) == 2


@pytest.mark.parametrize(("stride", "channels"), [(1, 8), (2, 8), (1, 16)])
def test_a_residual_block_starts_as_its_shortcut_when_its_body_is_zero(
    stride: int, channels: int
) -> None:
    block = BasicBlock(8, channels, stride).eval()
    with torch.no_grad():
        for parameter in block.body.parameters():
            parameter.zero_()
        image = torch.rand(1, 8, 6, 6)
        got = block(image)
        assert got.shape == (1, channels, 6 // stride, 6 // stride)
        assert torch.equal(got, torch.relu(block.shortcut(image)))
