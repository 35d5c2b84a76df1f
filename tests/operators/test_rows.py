# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator registries of all rows: the file, the programs that write and pack it."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
OPERATORS = ROOT / "torch_mlir/operators"
EMIT = OPERATORS / "emit_rows_cpp.py"
REGENERATE = OPERATORS / "regenerate_rows.py"
# An installed package has none of this.
if not REGENERATE.exists():
    pytest.skip("no source tree", allow_module_level=True)


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    """The modules of the programs, which are run by path, by name."""
    names = ("_table", "_rows", "regenerate", "regenerate_rows", "_emit", "emit_rows_cpp")
    before = {name: sys.modules.pop(name, None) for name in names}
    sys.path.insert(0, str(OPERATORS))
    try:
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(OPERATORS))
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


@pytest.fixture(scope="module")
def _rows(modules: dict[str, ModuleType]) -> ModuleType:
    return modules["_rows"]


@pytest.fixture(scope="module")
def table(modules: dict[str, ModuleType]) -> object:
    return modules["_table"].load(OPERATORS / "table.txt")


@pytest.fixture(scope="module")
def rows(_rows: ModuleType) -> object:
    return _rows.read()


def test_the_rows_are_those_of_the_matrix(rows) -> None:
    matrix = json.loads((ROOT / "pkgs/matrix/rows.json").read_text())
    assert sorted(matrix, key=lambda row: tuple(map(int, row.split("_")))) == list(rows.names)


def test_the_newest_row_has_what_the_table_has(rows, table) -> None:
    newest = {s for schemas in rows.registry(rows.names[-1]).values() for s in schemas}
    assert {schema.text for schema in table.values()} <= newest


@pytest.mark.parametrize(
    ("row", "present"),
    [("2_0", True), ("2_12", True), ("2_13", False), ("2_15", False)],
)
def test_overloads_for_named_tensors_went_with_2_13(rows, row: str, present: bool) -> None:
    overloads = [s.partition("(")[0] for s in rows.registry(row)["aten::full"]]
    assert ("aten::full.names" in overloads) == present


def test_a_changed_schema_is_each_rows_own(rows) -> None:
    name = "aten::_no_grad_uniform_"
    short = f"{name}(Tensor(a!) tensor, float a, float b) -> Tensor(a!)"
    long = f"{name}(Tensor(a!) tensor, float a, float b, Generator? generator=None) -> Tensor(a!)"
    assert rows.registry("2_1")[name] == [short]
    assert rows.registry("2_6")[name] == [long]


def test_overloads_have_the_registrys_order_and_not_the_alphabets(rows) -> None:
    # Another order and `x.to(0)` is another overload.
    order = ["device", "dtype", "other", "dtype_layout", "prim_Device", "prim_dtype", "prim_other"]
    for row in rows.names:
        found = [s.partition("(")[0] for s in rows.registry(row)["aten::to"]]
        assert found == [f"aten::to.{overload}" for overload in order], row


def test_rows_whose_orders_contradict_each_other_keep_theirs(rows) -> None:
    first, *_, last = (rows.registry(row)["aten::pow"] for row in ("2_0", "2_6", "2_15"))
    assert sorted(first) == sorted(last)
    assert first != last


def test_what_is_written_is_read_back(_rows: ModuleType, rows, table, modules) -> None:
    text = modules["regenerate_rows"].rows_text(rows, table)
    assert text == (OPERATORS / "rows.tsv").read_text()
    assert _rows.parse(text, table) == rows


def test_nothing_of_the_table_is_listed_again(table) -> None:
    texts = {schema.text for schema in table.values()}
    lines = (OPERATORS / "rows.tsv").read_text().splitlines()
    schemas = [line.partition("\t")[0] for line in lines if not line.startswith("#")]
    assert [s for s in schemas if s in texts] == []
    whole = [s for s in schemas if "(" in s]
    assert len(whole) == len(set(whole)) > 700


def test_any_orders_are_merged_into_lines_that_give_them_back(modules) -> None:
    draw = random.Random(4)
    for _ in range(300):
        schemas = [(f"a::b.{i}()", draw.choice(["", "conservative"])) for i in range(6)]
        orders = [draw.sample(schemas, draw.randrange(7)) for _ in range(5)]
        lines = modules["regenerate_rows"].merged(orders)
        for row, order in enumerate(orders):
            live = [line for line in lines if line.first <= row <= line.last]
            assert [(line.schema, line.kind) for line in live] == order
    # And no line more than it takes.
    same = [("a::b.x()", ""), ("a::b.y()", "")]
    assert len(modules["regenerate_rows"].merged([same] * 4)) == 2


HEADER = "# The operator table is of PyTorch 9.8.7.\n#\n# Rows: 2_0 2_1 2_2.\n"


@pytest.fixture
def small_table(modules):
    text = "# The operators of PyTorch 9.8.7; written by hand.\na::f(int x) -> int\n"
    return modules["_table"].Table(text)


def test_the_forms_of_a_line(_rows: ModuleType, small_table) -> None:
    text = (
        f"{HEADER}Fancy := bool\na::f\t-2_1\na::f.y(int z) -> int\t2_1-\na::g() -> ()\t2_1 pure_function\n"
        "a::h() -> ()\tconservative\n"
    )
    rows = _rows.parse(text, small_table)
    assert rows.types == {"Fancy": "bool"}
    assert rows.registry("2_0") == {"a::f": ["a::f(int x) -> int"], "a::h": ["a::h() -> ()"]}
    assert rows.registry("2_1")["a::f"] == ["a::f(int x) -> int", "a::f.y(int z) -> int"]
    assert rows.registry("2_2").keys() == {"a::f", "a::h"}
    assert [o.kind for o in (*rows.overloads["a::g"], *rows.overloads["a::h"])] == [
        "pure_function",
        "conservative",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a::f\n", "doesn't name the rows and the table"),
        (HEADER.replace("9.8.7", "9.8.6"), "run regenerate_rows.py"),
        (f"{HEADER}a::none\n", "<rows>:4: the table has no 'a::none'"),
        (f"{HEADER}a::f\t2_9\n", "<rows>:4"),
        (f"{HEADER}a::f\t2_2-2_0\n", "<rows>:4: what is '2_2-2_0'"),
        (f"{HEADER}a::f\t2_0 2_1\n", "<rows>:4: what is '2_0 2_1'"),
        (f"{HEADER}a::f\na::g() -> ()\na::f.z() -> ()\n", "<rows>:6: lines of a::f stand apart"),
    ],
)
def test_what_is_not_in_the_format_is_refused(
    _rows: ModuleType, small_table, text: str, message: str
) -> None:
    with pytest.raises(sys.modules["_table"].SchemaError, match=re.escape(message)):
        _rows.parse(text, small_table)


def emit(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it as builds do: by path, with the standard library alone."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(EMIT), *arguments],
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def emitted() -> str:
    result = emit("--libtorch", "2.6.0")
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_what_is_packed_is_each_rows_registry(emitted: str, rows) -> None:
    names = re.search(r"rowNames\[\] = \{(.*)\};", emitted)
    numbers = re.search(r"deflatedRows\[\] = \{([\d,\s]*)\}", emitted)
    size = re.search(r"inflatedRowsSize = (\d+);", emitted)
    assert names is not None and numbers is not None and size is not None
    assert re.findall(r'"(\w+)"', names[1]) == list(rows.names)
    deflated = bytes(map(int, numbers[1].split(",")))
    assert len(deflated) < 100_000
    inflated = zlib.decompress(deflated).decode()
    assert len(inflated) == int(size[1])
    registries: list[dict[str, list[str]]] = [{} for _ in rows.names]
    name = ""
    for line in inflated.splitlines():
        if line.startswith("@"):
            name = line[1:]
        elif not line.startswith("="):
            assert line[2:4] in ("f ", "c ", "p ")
            for row in range(ord(line[0]) - ord("A"), ord(line[1]) - ord("A") + 1):
                registries[row].setdefault(name, []).append(name + line[4:])
    assert registries == [rows.registry(row) for row in rows.names]


@pytest.mark.parametrize(
    ("libtorch", "row"),
    [("1.13.1", "2_0"), ("2.6.0", "2_6"), ("2.6.1a0", "2_6"), ("2.10.0", "2_10")],
)
def test_libtorchs_own_code_gets_its_own_row_or_the_next(libtorch: str, row: str, rows) -> None:
    found = re.search(r"sourceRow = (\d+);", emit("--libtorch", libtorch).stdout)
    assert found is not None
    assert rows.names[int(found[1])] == row


@pytest.mark.parametrize(
    ("libtorch", "message"), [("9.0", "newer than the newest row"), ("main", "is no version")]
)
def test_a_libtorch_of_no_row_is_refused(libtorch: str, message: str, tmp_path: Path) -> None:
    output = tmp_path / "RowSchemas.inc"
    result = emit("--libtorch", libtorch, "-o", str(output))
    assert result.returncode == 1
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def regenerate(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(REGENERATE), *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_the_installed_pytorchs_registry_is_its_rows() -> None:
    result = regenerate("--check", PYTHONWARNINGS="ignore")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_an_operator_too_many_is_found(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import torch\nlibrary = torch.library.Library('aten', 'FRAGMENT')\n"
        "library.define('one_too_many(Tensor x) -> Tensor')\n"
    )
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    result = regenerate("--check", PYTHONPATH=paths, PYTHONWARNINGS="ignore")
    assert result.returncode == 1
    assert "aten::one_too_many" in result.stderr


def test_a_folder_without_pytorch_is_named_and_the_old_file_stays(tmp_path: Path) -> None:
    output = tmp_path / "rows.tsv"
    output.write_text("old")
    folder = tmp_path / "torch"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise OSError('libcudart.so.13 is missing')\n")
    result = regenerate("-o", str(output), str(tmp_path))
    assert result.returncode == 1
    assert str(tmp_path) in result.stderr and "libcudart.so.13 is missing" in result.stderr
    assert output.read_text() == "old"
