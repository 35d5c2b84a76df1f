# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch-mlir import`: what it writes, how it fails, and that it leaves nothing half-written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile

import pytest

from torch_mlir import cli, ir
from torch_mlir.cli import main_import
from torch_mlir.version import __version__


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A saved program: relu(x) @ w."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.export", reason="needs PyTorch 2.1 or newer")

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3, 2))

        def forward(self, x):
            return torch.relu(x) @ self.w

    path = tmp_path_factory.mktemp("programs") / "model.pt2"
    torch.export.save(torch.export.export(Model(), (torch.ones(4, 3),)), str(path))
    return path


def run(*arguments, stdin=None, **options):
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "torch_mlir.cli", *map(str, arguments)],
        input=stdin,
        check=False,
        capture_output=True,
        **options,
    )


def parsed(data):
    module = ir.Module.parse(data, ir.Context())
    module.operation.verify()
    return [op.operation.name for op in module.body.operations[0].regions[0].blocks[0].operations]


EXPECTED = ["torch.aten.relu", "torch.vtensor.literal", "torch.aten.mm", "func.return"]


def test_text_to_a_file(program, tmp_path):
    out = tmp_path / "model.mlir"
    assert cli.main(["import", str(program), "-o", str(out)]) == 0
    assert parsed(out.read_text()) == EXPECTED
    assert os.listdir(tmp_path) == ["model.mlir"]


def test_bytecode_by_suffix_and_by_option(program, tmp_path):
    for name, options in (("a.mlirbc", []), ("b.mlir", ["--emit", "bytecode"])):
        out = tmp_path / name
        assert cli.main(["import", str(program), "-o", str(out), *options]) == 0
        assert out.read_bytes().startswith(b"ML\xefR")
        assert parsed(out.read_bytes()) == EXPECTED


def test_text_is_written_into_a_bytecode_name_on_request(program, tmp_path):
    out = tmp_path / "model.mlirbc"
    assert cli.main(["import", str(program), "-o", str(out), "--emit", "text"]) == 0
    assert out.read_text().startswith("module")


def test_standard_streams(program):
    result = run("import", "-", stdin=program.read_bytes())
    assert result.returncode == 0, result.stderr
    assert parsed(result.stdout.decode()) == EXPECTED
    # Ours is quiet in a pipe; PyTorch logs a line where Triton is missing.
    lines = result.stderr.decode().splitlines()
    assert [line for line in lines if not re.match(r"W\d{4} .*triton not found", line)] == []


def test_names_and_locations(program, tmp_path):
    out = tmp_path / "model.mlir"
    arguments = ["import", str(program), "-o", str(out), "--func-name", "f", "--locations"]
    assert cli.main(arguments) == 0
    assert "func.func @f(" in out.read_text()
    assert "test_import.py" in out.read_text()


def test_no_decompositions(program, tmp_path):
    out = tmp_path / "model.mlir"
    assert cli.main(["import", str(program), "-o", str(out), "--no-decompose"]) == 0
    assert "torch.aten.matmul" in out.read_text()


def test_an_old_file_is_replaced_and_a_link_is_followed(program, tmp_path):
    real, link = tmp_path / "real.mlir", tmp_path / "link.mlir"
    real.write_text("old")
    link.symlink_to(real)
    assert cli.main(["import", str(program), "-o", str(link)]) == 0
    assert link.is_symlink()
    assert parsed(real.read_text()) == EXPECTED


def test_version_and_help():
    for arguments in (["--version"], ["import", "--version"]):
        result = run(*arguments)
        printed = result.stdout.decode().strip()
        assert (result.returncode, printed) == (0, f"torch-mlir {__version__}")
    for arguments in (["--help"], ["import", "--help"]):
        result = run(*arguments)
        assert result.returncode == 0
        assert b"usage: torch-mlir" in result.stdout


@pytest.mark.parametrize(
    "arguments", [[], ["import"], ["import", "a", "--emit", "json"], ["frobnicate"]]
)
def test_wrong_usage_is_2(arguments):
    assert run(*arguments).returncode == 2


def complaint(capsys, *arguments):
    """The one line on standard error of a command that fails with 1."""
    assert cli.main(["import", *map(str, arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("torch-mlir: error: ")
    return line


def test_bad_input_is_1_and_one_line(program, tmp_path, capsys):
    out = tmp_path / "out.mlir"
    whole = program.read_bytes()
    (tmp_path / "truncated.pt2").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.pt2").touch()
    (tmp_path / "text.pt2").write_text("hello")
    with zipfile.ZipFile(tmp_path / "other.pt2", "w") as archive:
        archive.writestr("readme", "not a program")
    for name in ("truncated.pt2", "empty.pt2", "text.pt2", "other.pt2", "missing.pt2"):
        assert str(tmp_path / name) in complaint(capsys, tmp_path / name, "-o", out)
    assert "No such file" in complaint(capsys, tmp_path / "missing.pt2", "-o", out)
    assert "is a directory" in complaint(capsys, tmp_path, "-o", out)
    assert not out.exists()


def test_an_output_that_cannot_be_written(program, tmp_path, capsys):
    line = complaint(capsys, program, "-o", tmp_path / "no" / "such" / "model.mlir")
    assert "cannot write" in line and "No such file or directory" in line
    assert "Is a directory" in complaint(capsys, program, "-o", tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk(program, capsys):
    assert "No space left" in complaint(capsys, program, "-o", "/dev/full")


def test_a_failed_write_leaves_the_old_file(program, tmp_path, monkeypatch, capsys):
    out = tmp_path / "model.mlir"
    out.write_text("old")

    def fails(module, file, *rest):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(main_import, "write", fails)
    assert "No space left" in complaint(capsys, program, "-o", out)
    assert out.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.mlir"]


def test_a_reader_that_goes_away(program):
    command = f"{sys.executable} -P -m torch_mlir.cli import {program} | true"
    result = subprocess.run(
        ["sh", "-c", command + "; :"], check=False, capture_output=True, text=True
    )
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


def test_a_program_that_cannot_be_imported_names_operator_and_line(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.export", reason="needs PyTorch 2.1 or newer")

    class Model(torch.nn.Module):
        def forward(self, x):
            return (x + 1).mul_(2)

    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(Model(), (torch.tensor(2.0),)), str(path))
    line = complaint(capsys, path, "--no-decompose")
    assert str(path) in line
    assert "aten.mul_.Tensor, argument 'self'" in line
    assert "test_import.py" in line


def test_without_pytorch_the_message_says_what_is_missing(program, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Blocks:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch':\n"
        "            raise ModuleNotFoundError('no torch', name='torch')\n"
        "sys.meta_path.insert(0, Blocks())\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    result = run("import", program, env={**os.environ, "PYTHONPATH": path})
    assert result.returncode == 1
    assert b"needs PyTorch 2.1 or newer" in result.stderr
    assert len(result.stderr.splitlines()) == 1
