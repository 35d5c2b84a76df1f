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


@pytest.fixture(scope="module")
def archive(script, tmp_path_factory):
    """A saved program's path."""
    import torch

    path = tmp_path_factory.mktemp("programs") / "model.pt2"
    program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
    torch.export.save(program, path)
    return path


@pytest.mark.parametrize("part", [0, 1, 64, 0.5, 0.9, -1, -22, -200])
@pytest.mark.parametrize("command", ["import", "run", "ops", "view"])
def test_an_archive_that_is_cut_short(archive, tmp_path, complaint, command, part):
    whole = archive.read_bytes()
    length = int(len(whole) * part) if isinstance(part, float) else part
    path, out = tmp_path / "cut.pt2", tmp_path / "out.npz"
    path.write_bytes(whole[:length])
    line = complaint(command, path, "-o", out)
    assert f"{path}: not a .pt2 archive, or one that is cut short" in line
    assert os.listdir(tmp_path) == ["cut.pt2"]


def test_an_archive_with_damaged_contents(archive, tmp_path, complaint):
    whole = bytearray(archive.read_bytes())
    # The zip's directory at the end stays whole; what it points to doesn't.
    start, end = 100, len(whole) // 2
    whole[start:end] = bytes(end - start)
    path = tmp_path / "damaged.pt2"
    path.write_bytes(whole)
    assert f"{path}: PyTorch" in complaint("import", path)


def test_other_things_that_pytorch_writes(script, tmp_path, complaint):
    import torch

    weights = tmp_path / "weights.pt2"
    torch.save(torch.nn.Linear(2, 2).state_dict(), weights)
    assert f"{weights}: holds what torch.save wrote" in complaint("import", weights)


def test_files_that_are_no_archive(tmp_path, complaint):
    text, empty = tmp_path / "text.pt2", tmp_path / "empty.pt2"
    text.write_text("hello")
    empty.touch()
    for path in (text, empty):
        assert f"{path}: not a .pt2 archive" in complaint("ops", path)
    assert f"{tmp_path}: is a directory, not a model" in complaint("view", tmp_path)
    missing = tmp_path / "missing.pt2"
    assert f"{missing}: No such file or directory" in complaint("run", missing)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("raise ZeroDivisionError('at import')", "ZeroDivisionError: at import"),
        ("import no_such_module_of_a_script", "No module named 'no_such_module_of_a_script'"),
        ("import sys; sys.exit(4)", "exits when it is imported"),
        ("build = ", "SyntaxError: invalid syntax"),
    ],
)
def test_a_script_that_fails_when_it_is_imported(script, tmp_path, complaint, text, says):
    path = tmp_path / "fails_at_import.py"
    path.write_text(f"import torch\n{text}\n")
    line = complaint("import", f"{path}:build", "-o", tmp_path / "out.mlir")
    assert f"{path}:build" in line
    assert says in line
    assert not (tmp_path / "out.mlir").exists()


def test_an_exception_in_forward_names_its_line(script, tmp_path, complaint):
    path = tmp_path / "forward.py"
    path.write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        raise LookupError('no table')\n"
    )
    line = complaint("import", f"{path}:Net", "--input", "2xf32", "-o", tmp_path / "out.mlir")
    assert "LookupError: no table" in line
    assert f"{path}:4, in forward" in line


def test_an_operator_without_translation_is_named(script, tmp_path, complaint):
    path = tmp_path / "writes.py"
    path.write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return (x + 1).mul_(2)\n"
    )
    arguments = ["import", f"{path}:Net", "--input", "2xf32", "--no-decompose"]
    line = complaint(*arguments, "-o", tmp_path / "out.mlir")
    assert "aten.mul_.Tensor" in line
    assert "writes.py:4" in line or 'writes.py", line 4' in line


def test_arguments_that_a_program_does_not_take(archive, tmp_path, complaint):
    assert f"{archive}: " in complaint("run", archive, "--input", "4x3xf32", "--input", "1xf32")
    assert f"{archive}: " in complaint("run", archive, "--input", "4x3xf32", "--input", "z=1xf32")
    mlir = tmp_path / "relu.mlir"
    assert cli.main(["import", "torch.nn:ReLU", "--input", "3xf32", "-o", str(mlir)]) == 0
    assert "main takes 1 arguments, 0 are given" in complaint("run", mlir)
    assert "takes 1 arguments, 2 are given" in complaint(
        "run", mlir, "--input", "3xf32", "--input", "3xf32"
    )
    assert "have no names for arguments: x" in complaint("run", mlir, "--input", "x=3xf32")
    assert "absent" in complaint("run", mlir, "--input", "3xf32", "--function", "absent")


@pytest.mark.parametrize("command", ["import", "run", "ops", "view"])
def test_outputs_that_cannot_be_written(archive, tmp_path, complaint, command):
    out = tmp_path / "absent" / "out.npz"
    assert f"cannot write {out}: No such file or directory" in complaint(
        command, archive, "-o", out
    )
    (tmp_path / "folder.npz").mkdir()
    folder = tmp_path / "folder.npz"
    assert f"cannot write {folder}: Is a directory" in complaint(command, archive, "-o", folder)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [["completion", "bash"], ["ops"], ["view"]])
def test_a_full_device(archive, complaint, arguments):
    if arguments != ["completion", "bash"]:
        arguments = [*arguments, archive]
    line = complaint(*arguments, "-o", "/dev/full")
    assert "cannot write /dev/full: No space left on device" in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(archive, tmp_path, complaint):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    out = folder / "out.mlir"
    assert f"cannot write {out}: Permission denied" in complaint("import", archive, "-o", out)


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
