# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What MODEL may name: scripts' and modules' classes, functions and objects, in every form."""

from __future__ import annotations

import sys

import pytest

from torch_mlir import cli
from torch_mlir.cli.errors import CommandError
from torch_mlir.cli.references import MlirText, PythonObject, SavedProgram, resolve

FORMS = """
import torch

class Scale(torch.nn.Module):
    def __init__(self, by=2.0, *, shift=0):
        super().__init__()
        self.by, self.shift = by, shift

    def forward(self, x, y=None):
        z = x * self.by + self.shift
        return z if y is None else z + y

class Constant(torch.nn.Module):
    def forward(self):
        return torch.full((2,), 3.0)

class Outer:
    class Inner(Constant):
        pass

def with_args():
    return Scale(), (torch.ones(2),)

def with_one_tensor():
    return Scale(), torch.ones(2)

def with_kwargs():
    return Scale(), (torch.ones(2),), {"y": torch.ones(2)}

def with_shapes():
    n = torch.export.Dim("n", min=2, max=9)
    return Scale(), (torch.ones(2),), {}, {"x": {0: n}}

def with_program():
    return torch.export.export(Scale(3.0), (torch.ones(2),))

def of(by, shift=1):
    return Scale(by, shift=shift), (torch.ones(2),)

def too_much():
    return Scale(), (), {}, {}, 5

def with_bad_kwargs():
    return Scale(), (torch.ones(2),), 7

instance = Constant()
pair = (Scale(), (torch.ones(2),))
number = 7

def __getattr__(name):
    if name == "exported":
        return with_program()
    raise AttributeError(name)
"""


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    pytest.importorskip("torch")
    pytest.importorskip("torch.export", reason="needs PyTorch 2.1 or newer")
    path = tmp_path_factory.mktemp("forms") / "forms.py"
    path.write_text(FORMS)
    return path


def printed(capsys, model, *arguments):
    assert cli.main(["run", str(model), *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "inputs", "result"),
    [
        ("with_args", [], "2xfloat32 2 2"),
        ("with_one_tensor", [], "2xfloat32 2 2"),
        ("with_kwargs", [], "2xfloat32 3 3"),
        ("with_shapes", [], "2xfloat32 2 2"),
        ("with_program", [], "2xfloat32 3 3"),
        ("with_program", ["2xf32=2"], "2xfloat32 6 6"),
        ("exported", [], "2xfloat32 3 3"),
        ("pair", [], "2xfloat32 2 2"),
        ("instance", [], "2xfloat32 3 3"),
        ("Constant", [], "2xfloat32 3 3"),
        ("Outer.Inner", [], "2xfloat32 3 3"),
        ("Scale", ["3xf32=1"], "3xfloat32 2 2 2"),
        ("Scale(5)", ["1xf32=1"], "1xfloat32 5"),
        ("Scale(by=5, shift=-1)", ["1xf32=1"], "1xfloat32 4"),
        ("Scale", ["1xf32=1", "y=1xf32=7"], "1xfloat32 9"),
        ("of(4)", [], "2xfloat32 5 5"),
        # What is said by --input takes the place of the script's own example.
        ("of(4)", ["1xf32=2"], "1xfloat32 9"),
    ],
)
def test_forms(forms, capsys, name, inputs, result):
    options = [option for spec in inputs for option in ("--input", spec)]
    assert printed(capsys, f"{forms}:{name}", *options) == f"0: {result}\n"


def test_a_scripts_dynamic_shapes_stay_open(forms, tmp_path):
    out = tmp_path / "model.mlir"
    assert cli.main(["import", f"{forms}:with_shapes", "-o", str(out)]) == 0
    assert "!torch.vtensor<[?],f32>" in out.read_text()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("number", "number is a int, not a model"),
        ("instance()", "instance is a "),
        ("too_much", "gives 5 things; at most four are wanted"),
        ("with_bad_kwargs", "keyword arguments are a dict; it gives a int"),
        ("of", "missing 1 required positional argument: 'by'"),
        ("Outer.Absent", "has no 'Outer.Absent'"),
        ("of(1)(2)", "literals"),
        ("of(**{})", "literals"),
    ],
)
def test_forms_that_are_none(forms, complaint, name, says):
    line = complaint("ops", f"{forms}:{name}")
    assert f"{forms}:{name}" in line
    assert says in line


def test_modules_are_found_in_the_working_directory(forms, capsys, monkeypatch):
    monkeypatch.chdir(forms.parent)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.delitem(sys.modules, "forms", raising=False)
    try:
        assert printed(capsys, "forms:Constant") == "0: 2xfloat32 3 3\n"
    finally:
        sys.modules.pop("forms", None)


def test_a_script_may_import_its_neighbours(forms, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "neighbour_of_a_script.py").write_text("by = 6.0\n")
    script = tmp_path / "uses.py"
    script.write_text(f"from neighbour_of_a_script import by\n{FORMS}\ndef six(): return of(by)\n")
    assert printed(capsys, f"{script}:six") == "0: 2xfloat32 7 7\n"


def test_evaluation_mode_unless_training_is_asked_for(capsys):
    pytest.importorskip("torch.export", reason="needs PyTorch 2.1 or newer")
    arguments = ["torch.nn:Dropout(1.0)", "--input", "2xf32=3"]
    assert printed(capsys, *arguments) == "0: 2xfloat32 3 3\n"
    assert printed(capsys, *arguments, "--train") == "0: 2xfloat32 0 0\n"


def test_names_are_read_without_running_anything(tmp_path):
    assert resolve("a.b:C.d(1, k=[2])") == PythonObject(
        "a.b:C.d(1, k=[2])", "a.b", False, "C.d", (1,), {"k": [2]}
    )
    assert resolve("a:f()").args == ()
    assert resolve("a:f").args is None
    for wrong in ("a b:C", "a:", ":C", "a:1", "a:C(1", "a-b:C"):
        with pytest.raises(CommandError, match="neither a file nor module:Class"):
            resolve(wrong)
    mlir = tmp_path / "with:colon.mlir"
    mlir.write_text("module {}")
    assert resolve(str(mlir)) == MlirText(str(mlir), b"module {}")


def test_a_saved_program_with_any_name(forms, tmp_path, capsys):
    torch = pytest.importorskip("torch")
    path = tmp_path / "with:colon.zip"
    program = torch.export.export(torch.nn.ReLU(), (torch.tensor([-1.0, 2.0]),))
    torch.export.save(program, tmp_path / "model.pt2")
    (tmp_path / "model.pt2").rename(path)
    assert isinstance(resolve(str(path)), SavedProgram)
    assert printed(capsys, path, "--input", "2xf32=-1,4") == "0: 2xfloat32 0 4\n"
