# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C++ include file that builds make of the operator table."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torch_mlir.operators import load

EMIT = Path(__file__).parents[2] / "torch_mlir/operators/emit_cpp.py"
ROW = re.compile(r'TORCH_OPERATOR\("([^"]+)", "((?:[^"\\]|\\.)*)", "([^"]*)", "([^"]*)", (0x\w+)\)')


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it as builds do: by path, with the standard library alone."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(EMIT), *arguments],
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def text() -> str:
    result = run()
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


@pytest.fixture(scope="module")
def rows(text: str) -> dict[str, tuple[str, str, str, int]]:
    return {m[1]: (m[2], m[3], m[4], int(m[5], 16)) for m in ROW.finditer(text)}


@pytest.fixture(scope="module")
def bits(text: str) -> dict[str, int]:
    found = re.findall(r"^TORCH_OPERATOR_FLAG\((\w+), (0x\w+)\)$", text, re.MULTILINE)
    return {name: int(bit, 16) for name, bit in found}


def test_every_operator_has_a_row_and_rows_are_sorted_by_byte(
    rows: dict[str, tuple[str, str, str, int]],
) -> None:
    assert rows.keys() == load().keys()
    assert [key.encode() for key in rows] == sorted(key.encode() for key in rows)


@pytest.mark.parametrize(
    ("key", "operands", "results"),
    [
        ("aten.add.Tensor", "TTS", "T"),
        ("aten.add_.Tensor", "!TTS", "!T"),
        ("aten.add.out", "TTS!T", "!T"),
        ("aten.index.Tensor", "TL?T", "T"),
        ("aten.sum.dim_IntList", "T?Lib?d", "T"),
        ("aten.empty.memory_format", "Li?d?d?D?b?d", "T"),
        ("aten.unbind_copy.int_out", "Ti!LT", ""),
        ("aten.append.t", "!LAA", "!LA"),
        ("aten.keys.str", "X", "Ls"),
        ("aten.native_layer_norm", "TLi?T?Tf", "TTT"),
        ("aten.rand.generator", "Li?G?d?d?D?b", "T"),
        ("aten.format", "s*", "s"),
        ("prim.Print", "*", ""),
        ("prim.TupleUnpack", "A", "*"),
        ("aten.warn", "si", ""),
        ("quantized.linear", "TPfi", "T"),
        ("prim.device", "T", "D"),
        ("prim.IgnoredPythonOp", "*", "N"),
    ],
)
def test_kinds(
    rows: dict[str, tuple[str, str, str, int]], key: str, operands: str, results: str
) -> None:
    assert rows[key][1:3] == (operands, results)


def test_flags_are_the_tables_and_the_schemas(
    rows: dict[str, tuple[str, str, str, int]], bits: dict[str, int]
) -> None:
    assert len(set(bits.values())) == len(bits) <= 32
    assert all(bit.bit_count() == 1 for bit in bits.values())
    for key, schema in load().items():
        names = {name for name, bit in bits.items() if rows[key][3] & bit}
        derived = {"mutates"} if schema.is_mutable else set()
        derived |= {"aliases"} if schema.is_aliasing else set()
        assert names == schema.flags | derived, key


def test_a_compiler_reads_the_schemas_back(text: str, tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on PATH")
    (tmp_path / "OperatorTable.inc").write_text(text)
    (tmp_path / "main.cpp").write_text(
        "#include <cstdio>\n"
        "#define TORCH_OPERATOR(name, schema, operands, results, flags) \\\n"
        '  std::printf("%s\\t%s\\n", name, schema);\n'
        'int main() {\n#include "OperatorTable.inc"\n}\n'
    )
    command = [compiler, "-std=c++17", "-O0", "-Wall", "-Werror", "main.cpp", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    output = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout
    read = dict(line.split("\t") for line in output.splitlines())
    assert read == {key: schema.text for key, schema in load().items()}


def test_output_is_the_same_in_a_file_and_nothing_is_left_beside_it(
    text: str, tmp_path: Path
) -> None:
    output = tmp_path / "OperatorTable.inc"
    assert run("-o", str(output)).returncode == 0
    assert output.read_text() == text
    assert list(tmp_path.iterdir()) == [output]


def test_an_unknown_type_is_refused_and_the_old_output_stays(tmp_path: Path) -> None:
    table = tmp_path / "table.txt"
    table.write_text("# h\naten::x(Quaternion q) -> Tensor\n")
    output = tmp_path / "OperatorTable.inc"
    output.write_text("old")
    result = run("--table", str(table), "-o", str(output))
    assert result.returncode == 1
    assert "no kind for the type Quaternion" in result.stderr
    assert output.read_text() == "old"


def test_a_table_that_is_missing_is_named(tmp_path: Path) -> None:
    result = run("--table", str(tmp_path / "none.txt"))
    assert result.returncode == 1
    assert "none.txt" in result.stderr
    assert "Traceback" not in result.stderr
