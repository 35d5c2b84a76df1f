# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models, inputs and outputs that can't be used: exit code 1, one line, nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from torch_mlir import cli


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("fails", "KeyError: 'weights'"),
        ("exits", "exits exits"),
        ("nothing", "it gives None"),
        ("absent", "has no 'absent'"),
        ("Net", "give an --input for each argument of forward(x, scale=None)"),
        ("Net(out='x')", "TypeError"),
        ("Net(", "neither a file nor module:Class"),
        ("Net(out=open)", "the arguments are Python literals"),
    ],
)
def test_what_a_script_gives_is_no_model(script, tmp_path, complaint, name, says):
    out = tmp_path / "out.mlir"
    line = complaint("import", f"{script}:{name}", "-o", out)
    assert f"{script}:{name}" in line
    assert says in line
    assert os.listdir(tmp_path) == []


def test_a_users_exception_names_the_line(script, complaint):
    number = script.read_text().splitlines().index('    raise KeyError("weights")') + 1
    assert f"{script}:{number}, in fails" in complaint("import", f"{script}:fails")


def test_a_broken_script_names_file_and_line(script, tmp_path, complaint):
    path = tmp_path / "broken.py"
    path.write_text("x = 1\ndef build(:\n")
    line = complaint("import", f"{path}:build")
    assert "SyntaxError" in line and "broken.py, line 2" in line


def test_modules_and_scripts_that_are_not_there(script, tmp_path, complaint):
    assert "no Python module 'no_such_module'" in complaint("import", "no_such_module:Net")
    assert "No such file" in complaint("import", f"{tmp_path}/none.py:build")
    assert "say which function" in complaint("import", script)


def test_inputs_that_do_not_fit(script, tmp_path, complaint):
    model = f"{script}:Net"
    assert "cannot be exported" in complaint("import", model, "--input", "4x7xf32")
    assert "forward(x, scale=None)" in complaint(
        "import", model, "--input", "4x8xf32", "--input", "y=4x8xf32"
    )
    missing = tmp_path / "none.npy"
    assert f"{missing}: No such file" in complaint("import", model, "--input", f"@{missing}")
    text = tmp_path / "text.npy"
    text.write_text("hello")
    assert f"{text}: not a .npy file" in complaint("import", model, "--input", f"@{text}")


@pytest.mark.parametrize("spec", ["4x8xf31", "4x8x", "[b", "[b=4:2]x8xf32", "2xi1=yes,no", "i64=a"])
def test_an_input_that_cannot_be_read_is_wrong_usage(capsys, spec):
    with pytest.raises(SystemExit) as exit:
        cli.main(["import", "m.py:Net", "--input", spec])
    assert exit.value.code == 2
    assert repr(spec) in capsys.readouterr().err.splitlines()[-1]


def test_mlir_that_is_none(tmp_path, complaint):
    path = tmp_path / "model.mlir"
    path.write_text("module {\n  func.func @main( {\n}\n")
    assert f"{path}: not MLIR that is known here: line 2" in complaint("ops", path)
    path.write_text("")
    assert f"{path}: holds no function" in complaint("ops", path)
    assert "is MLIR, not a model" in complaint("import", path)


def test_a_read_only_folder(script, tmp_path, complaint, monkeypatch):
    # Root may write anywhere; so ask the permission that the command asks for.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    line = complaint("import", f"{script}:build", "-o", tmp_path / "model.mlir")
    assert f"cannot write {tmp_path}/model.mlir: Permission denied" in line


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_full_tmpfs_keeps_what_was_there(script, tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    command = (
        'mount -t tmpfs -o size=16k tmpfs "$1" || exit 77; echo old >"$1/model.mlirbc"; '
        '"$2" -P -m torch_mlir.cli import "torch.nn:Linear(256, 256)" --input 1x256xf32 '
        '-o "$1/model.mlirbc"; code=$?; ls -A "$1"; cat "$1/model.mlirbc"; exit $code'
    )
    result = subprocess.run(
        ["unshare", "-m", "sh", "-c", command, "sh", folder, sys.executable],
        check=False,
        capture_output=True,
        text=True,
    )
    if result.returncode == 77 or "unshare" in result.stderr:
        pytest.skip("no mounts here")
    assert result.returncode == 1
    assert "No space left on device" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout.splitlines() == ["model.mlirbc", "old"]


def test_an_interrupt_is_130(script, tmp_path, capsys):
    out = tmp_path / "out.mlir"
    assert cli.main(["import", f"{script}:interrupts", "-o", str(out)]) == 130
    assert capsys.readouterr().err == "torch-mlir: interrupted\n"
    assert os.listdir(tmp_path) == []
