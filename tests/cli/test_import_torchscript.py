# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TorchScript archives in the commands: by content, with PyTorch and without."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from torch_mlir import cli, ir

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir.torchscript")

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.full((3, 2), 2.0))

    def forward(self, x, n: int = 3):
        return torch.relu(x @ self.w) * n

    @torch.jit.export
    def halved(self, x):
        return x / 2


class Raises(torch.nn.Module):
    def forward(self, x, xs: list[int]):
        xs.remove(1)
        return x


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The archive of `Net`."""
    path = tmp_path_factory.mktemp("archives") / "net.pt"
    torch.jit.save(torch.jit.script(Net()), str(path))
    return path


def imported(path, *arguments):
    assert cli.main(["import", str(path), *map(str, arguments)]) == 0


def functions(data):
    """By name: the type of each public function, and the names of its operations."""
    module = ir.Module.parse(data, ir.Context())
    module.operation.verify()
    found = {}
    for view in module.body.operations:
        operation = view.operation
        if operation.name == "func.func" and "sym_visibility" not in operation.attributes:
            kind = str(ir.TypeAttr(operation.attributes["function_type"]).value)
            inner = [op.operation.name for op in operation.regions[0].blocks[0].operations]
            found[ir.StringAttr(operation.attributes["sym_name"]).value] = kind, inner
    return found


def test_functions_on_values_are_written(archive, tmp_path):
    out = tmp_path / "net.mlir"
    imported(archive, "--input", "?x3xf32", "-o", out)
    found = functions(out.read_text())
    assert list(found) == ["forward"]
    kind, operations = found["forward"]
    assert kind == "(!torch.vtensor<[?,3],f32>) -> !torch.vtensor<[?,2],f32>"
    assert "torch.aten.relu" in operations
    assert os.listdir(tmp_path) == ["net.mlir"]


class Product(torch.nn.Module):
    def forward(self, x):
        left = torch.ops.aten.tensordot(x, x, [1], [0])
        return left + torch.ops.aten.tensordot(x, x, [0], [0])


def test_operators_without_inference_are_told_if_asked_for(tmp_path, capsys):
    path, out = tmp_path / "product.pt", tmp_path / "product.mlir"
    torch.jit.save(torch.jit.script(Product()), str(path))
    imported(path, "--input", "3x3xf32", "-o", out)
    assert capsys.readouterr().err == ""
    imported(path, "--input", "3x3xf32", "-o", out, "-v")
    told = capsys.readouterr().err
    assert told.startswith(
        "torch-mlir: no shapes or dtypes of its own for aten::tensordot: 2 times, "
    )
    assert "test_import_torchscript.py:" in told


def test_the_content_counts_not_the_name(archive, tmp_path):
    renamed = tmp_path / "net.pt2"
    renamed.write_bytes(archive.read_bytes())
    imported(renamed, "--raw", "-o", tmp_path / "out.mlir")
    assert "torch.class_type" in (tmp_path / "out.mlir").read_text()


@pytest.mark.parametrize("option", [["--raw"], ["--output-type", "raw"]])
def test_the_raw_form_is_the_whole_archive(archive, tmp_path, option):
    out = tmp_path / "net.mlir"
    imported(archive, *option, "-o", out)
    text = out.read_text()
    assert 'torch.method "halved"' in text and 'torch.slot "w"' in text


def test_methods_are_chosen_by_name(archive, tmp_path, complaint):
    out = tmp_path / "net.mlirbc"
    imported(archive, "--method", "halved", "--input", "4xf64", "-o", out)
    assert out.read_bytes().startswith(b"ML\xefR")
    ((kind, _),) = functions(out.read_bytes()).values()
    assert kind == "(!torch.vtensor<[4],f64>) -> !torch.vtensor<[4],f64>"
    assert "doubled" in complaint("import", archive, "--method", "doubled")


def test_parameters_stay_variables_on_request(archive, tmp_path):
    out = tmp_path / "net.mlir"
    imported(archive, "--no-freeze", "--input", "4x3xf32", "-o", out)
    assert "torch.global_slot.get" in out.read_text()


def test_releases_are_chosen_by_name(archive, tmp_path, complaint):
    imported(archive, "--torch-version", "2.6", "-o", tmp_path / "net.mlir")
    line = complaint("import", archive, "--torch-version", "1.5")
    assert "torch_version '1.5' is not one of" in line and "2.6" in line


def test_schemas_of_further_operators(tmp_path, complaint):
    library = torch.library.Library("goofy_cli", "DEF")
    library.define("twist(Tensor x, int by=1) -> Tensor")

    class Twists(torch.nn.Module):
        def forward(self, x):
            return torch.ops.goofy_cli.twist(x, 2)

    path, out = tmp_path / "twists.pt", tmp_path / "twists.mlir"
    torch.jit.save(torch.jit.script(Twists()), str(path))
    assert "goofy_cli::twist" in complaint("import", path)
    schema = "goofy_cli::twist(Tensor x, int by=1) -> Tensor"
    imported(path, "--schema", schema, "-o", out)
    assert 'torch.operator "torch.goofy_cli.twist"' in out.read_text()


def test_inputs_of_files_and_numbers(archive, tmp_path, complaint):
    import numpy as np

    np.save(tmp_path / "x.npy", np.ones((5, 3), np.float32))
    out = tmp_path / "net.mlir"
    imported(archive, "--input", f"@{tmp_path / 'x.npy'}", "--input", "i64=4", "-o", out)
    ((kind, _),) = functions(out.read_text()).values()
    assert kind == "(!torch.vtensor<[5,3],f32>, !torch.int) -> !torch.vtensor<[5,2],f32>"
    assert "in their order" in complaint("import", archive, "--input", "x=5x3xf32")


def test_other_commands_read_archives(archive, tmp_path, capsys):
    assert cli.main(["ops", str(archive), "--input", "4x3xf32"]) == 0
    assert "torch.aten.relu" in capsys.readouterr().out
    arguments = ["run", str(archive), "--input", "1x3xf32=1,2,3"]
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out == "0: 1x2xfloat32 36 36\n"
    assert cli.main(["view", str(archive), "-o", str(tmp_path / "page.html")]) == 0
    assert "relu" in (tmp_path / "page.html").read_text()


def test_a_pipe_with_no_pytorch_installed(archive, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Blocks:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError('no torch', name='torch')\n"
        "sys.meta_path.insert(0, Blocks())\n"
    )
    # An empty part would be the working directory.
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    result = subprocess.run(
        [sys.executable, "-P", "-m", "torch_mlir.cli", "import", "-", "--input", "4x3xf32"],
        input=archive.read_bytes(),
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        capture_output=True,
    )
    assert (result.returncode, result.stderr) == (0, b"")
    ((kind, _),) = functions(result.stdout.decode()).values()
    assert kind.startswith("(!torch.vtensor<[4,3],f32>) -> !torch.vtensor")


def test_what_cannot_be_imported_names_file_operator_and_line(tmp_path, complaint):
    path, out = tmp_path / "raises.pt", tmp_path / "out.mlir"
    torch.jit.save(torch.jit.script(Raises()), str(path))
    line = complaint("import", path, "--input", "2x2xf32", "--input", "[1]", "-o", out)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    number = lines.index("        xs.remove(1)") + 1
    assert f"error: {path}: " in line
    assert "aten::remove" in line and f"test_import_torchscript.py:{number}" in line
    assert not out.exists()


@pytest.mark.parametrize("part", [0, 10, 0.3, 0.9, -1, -22])
def test_an_archive_that_is_cut_short(archive, tmp_path, complaint, part):
    whole = archive.read_bytes()
    path = tmp_path / "cut.pt"
    path.write_bytes(whole[: int(len(whole) * part) if isinstance(part, float) else part])
    assert f"error: {path}: " in complaint("import", path, "-o", tmp_path / "out.mlir")
    assert os.listdir(tmp_path) == ["cut.pt"]


def test_other_files_that_are_called_so(tmp_path, complaint):
    weights, pickled, text = (tmp_path / name for name in ("w.pt", "old.pt", "text.pt"))
    torch.save(torch.nn.Linear(2, 2).state_dict(), weights)
    torch.save(torch.nn.Linear(2, 2), pickled, _use_new_zipfile_serialization=False)
    text.write_text("hello")
    assert "torch.save" in complaint("import", weights)
    for path in (pickled, text):
        assert f"error: {path}: " in complaint("import", path)
    first = tmp_path / "first.pt"
    with zipfile.ZipFile(first, "w") as archive:
        archive.writestr("net/model.json", "{}")
        archive.writestr("net/tensors/0", "")
    assert f"error: {first}: this is an archive of PyTorch 1.0" in complaint("import", first)
    missing = tmp_path / "missing.pt"
    assert f"{missing}: No such file or directory" in complaint("import", missing)


class Writes(torch.nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2


def test_writes_that_callers_do_not_see_are_told(tmp_path, capsys):
    path, out = tmp_path / "writes.pt", tmp_path / "out.mlir"
    torch.jit.save(torch.jit.script(Writes()), str(path))
    imported(path, "--input", "2xf32", "-o", out)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"torch-mlir: warning: {path}: ")
    assert "aten::add_ writes to the argument 'x'" in line
    ((kind, _),) = functions(out.read_text()).values()
    assert kind == "(!torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>"


class Values(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x, n: int = 2) -> tuple[torch.Tensor, torch.Tensor | None, int, bool]:
        return self.linear(x) * n, None, n + 1, n > 1

    @torch.jit.export
    def drifts(self, x):
        return x + torch.rand([2])


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """The archive of `Values`."""
    path = tmp_path_factory.mktemp("archives") / "values.pt"
    torch.jit.save(torch.jit.script(Values()), str(path))
    return path


@pytest.mark.parametrize("backend", ["reference", "iree"])
def test_results_are_compared_with_pytorchs(archive, backend, capsys):
    if backend == "iree":
        pytest.importorskip("iree.runtime")
    arguments = ["run", str(archive), "--input", "4x3xf32", "--backend", backend, "--compare"]
    assert cli.main(arguments) == 0
    *_, verdict = capsys.readouterr().out.splitlines()
    assert verdict.startswith("differs from PyTorch by ")


def test_numbers_and_tuples_are_compared_too(values, capsys):
    arguments = ["run", str(values), "--input", "4x3xf32", "--compare"]
    assert cli.main(arguments) == 0
    first, second, third, _ = capsys.readouterr().out.splitlines()
    assert first.startswith("0: 4x2xfloat32") and (second, third) == ("1: int 3", "2: bool True")


def test_results_that_differ_from_pytorchs(values, complaint, tmp_path):
    arguments = ["run", values, "--method", "drifts", "--input", "2xf32", "--compare"]
    line = complaint(*arguments, "-o", tmp_path / "results.npz")
    assert f"error: {values}: differs from PyTorch by " in line


def test_what_pytorch_cannot_run_is_pytorchs_error(archive, complaint):
    line = complaint("run", archive, "--input", "4x3xf32", "--compare", "--function", "nothing")
    assert f"error: {archive}: " in line and "nothing" in line


def test_compared_through_a_pipe(archive, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(archive.read_bytes())))
    assert cli.main(["run", "-", "--input", "4x3xf32", "--compare"]) == 0
    assert "differs from PyTorch by " in capsys.readouterr().out
