# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C++ include file of what operators' schemas became."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OPERATORS = Path(__file__).parents[2] / "torch_mlir/operators"
EMIT = OPERATORS / "emit_versions_cpp.py"
# An installed package has none of this.
if not EMIT.exists():
    pytest.skip("no source tree", allow_module_level=True)

TABLE = """\
# Operators of PyTorch 9.8.7.
aten::new(Tensor self) -> Tensor
aten::same(Tensor self) -> Tensor
aten::twice(Tensor self, int n=1, int m=2) -> Tensor
aten::twice.x(Tensor self) -> Tensor
"""
ROWS = """\
# The operator table is of PyTorch 9.8.7.
# Rows: 9_6 9_7 9_8.
aten::gone(Tensor self) -> Tensor	9_6
aten::gone(Tensor self, str s="?") -> Tensor	9_7
aten::new	9_8
aten::same
aten::twice(Tensor self) -> Tensor	9_6
aten::twice(Tensor self, int n=1) -> Tensor	9_7
aten::twice	9_8
aten::twice.x
"""
VERSION = re.compile(r'^    \{("(?:[^"\\]|\\.)*"), ("(?:[^"\\]|\\.)*")\},$', re.MULTILINE)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it as builds do: by path, with the standard library alone."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(EMIT), *arguments],
        check=False,
        capture_output=True,
        text=True,
    )


def versions_in(text: str) -> list[tuple[str, str]]:
    return [
        (ast.literal_eval(name), ast.literal_eval(rest)) for name, rest in VERSION.findall(text)
    ]


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    (tmp_path / "table.txt").write_text(TABLE)
    (tmp_path / "rows.tsv").write_text(ROWS)
    return ["--table", str(tmp_path / "table.txt"), "--rows", str(tmp_path / "rows.tsv")]


@pytest.fixture(scope="module")
def text() -> str:
    result = run()
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_it_has_what_operators_became_the_newest_first(small: list[str]) -> None:
    result = run(*small)
    assert (result.returncode, result.stderr) == (0, "")
    assert versions_in(result.stdout) == [
        ("aten::gone", '(Tensor self, str s="?") -> Tensor'),
        ("aten::twice", "(Tensor self, int n=1, int m=2) -> Tensor"),
        ("aten::twice", "(Tensor self, int n=1) -> Tensor"),
    ]


def test_names_are_sorted_and_the_newest_of_the_table_stands_first(text: str) -> None:
    versions = versions_in(text)
    names = [name for name, _ in versions]
    table = {
        line.partition("(")[0]: "(" + line.partition("(")[2].partition("\t")[0]
        for line in (OPERATORS / "table.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    }
    assert len(versions) > 50
    assert [name.encode() for name in names] == sorted(name.encode() for name in names)
    newest = dict(reversed(versions))
    in_table = [name for name in newest if name in table]
    assert len(in_table) > 50
    assert [name for name in in_table if newest[name] != table[name]] == []


def test_a_compiler_reads_them_back(text: str, tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on PATH")
    (tmp_path / "SchemaVersions.inc").write_text(text)
    (tmp_path / "main.cpp").write_text(
        "#include <cstdio>\n#include <string_view>\n"
        '#include "SchemaVersions.inc"\n'
        "int main() {\n"
        "  for (const SchemaVersion &each : schemaVersions)\n"
        '    std::printf("%s\\t%s\\n", each.name.data(), each.rest.data());\n}\n'
    )
    command = [compiler, "-std=c++17", "-O0", "-Wall", "-Werror", "main.cpp", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    output = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout
    assert [tuple(line.split("\t")) for line in output.splitlines()] == versions_in(text)


def test_rows_that_cannot_be_read_are_named_and_the_old_output_stays(
    small: list[str], tmp_path: Path
) -> None:
    (tmp_path / "rows.tsv").write_text(ROWS.replace("\t9_7", "\t9_9"))
    output = tmp_path / "SchemaVersions.inc"
    output.write_text("old")
    result = run(*small, "-o", str(output))
    assert result.returncode == 1
    assert re.match(r"emit_versions_cpp: .*rows\.tsv", result.stderr)
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "SchemaVersions.inc",
        "rows.tsv",
        "table.txt",
    ]
