# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PyTorch versions in pkgs/matrix/rows.json, and how Nix hands them out."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

MATRIX = Path(__file__).parents[3] / "pkgs/matrix"
ROWS: dict[str, Any] = json.loads((MATRIX / "rows.json").read_text())
SCHEMA: dict[str, Any] = json.loads((MATRIX / "rows.schema.json").read_text())

needs_nix = pytest.mark.skipif(shutil.which("nix-instantiate") is None, reason="no Nix here")


def every_wheel() -> list[tuple[str, str, dict[str, str]]]:
    """Row name, interpreter and wheel, for all that the file lists."""
    return [(row, python, w) for row in ROWS for python, w in ROWS[row]["wheels"].items()]


@pytest.fixture(scope="module")
def validate() -> Callable[[Any], Any]:
    return fastjsonschema.compile(SCHEMA)


def test_the_rows_satisfy_the_schema(validate: Callable[[Any], Any]) -> None:
    validate(ROWS)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("version",), "2.13"),
        (("wheels", "cp311", "sha256"), "60FC" * 16),
        (("wheels", "cp311", "sha256"), "60fc" * 15),
        (("wheels", "cp311", "file"), "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl"),
        (("wheels", "cp311", "url"), "somewhere"),
        (("wheels", "cp312"), {"file": "torch", "sha256": "0" * 64}),
        (("cxx11_abi",), "new"),
        (("manylinux",), "linux"),
        (("libtorch_source",), "2.14.1"),
    ],
)
def test_the_schema_refuses_a_spoiled_row(
    validate: Callable[[Any], Any], place: tuple[str, ...], value: Any
) -> None:
    rows = copy.deepcopy(ROWS)
    target = rows["2_13"]
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate(rows)


@pytest.mark.parametrize("field", SCHEMA["definitions"]["row"]["required"])
def test_the_schema_refuses_a_row_that_lacks_a_field(
    validate: Callable[[Any], Any], field: str
) -> None:
    rows = copy.deepcopy(ROWS)
    del rows["2_13"][field]
    with pytest.raises(fastjsonschema.JsonSchemaException):
        validate(rows)


def test_there_is_one_row_for_each_minor_version_in_order() -> None:
    assert list(ROWS) == [f"2_{minor}" for minor in range(len(ROWS))]
    assert len(ROWS) >= 16
    for name, row in ROWS.items():
        assert row["version"].rpartition(".")[0] == name.replace("_", ".")


def test_a_wheel_is_named_for_its_row_interpreter_and_platform() -> None:
    for name, python, wheel in every_wheel():
        version, platform = ROWS[name]["version"], ROWS[name]["manylinux"]
        assert wheel["file"].startswith(f"torch-{version}-")
        assert wheel["file"].endswith(f"-{python}-{python}-{platform}_x86_64.whl")


def test_no_two_wheels_have_one_hash() -> None:
    hashes = [wheel["sha256"] for _, _, wheel in every_wheel()]
    assert len(set(hashes)) == len(hashes)


def test_rows_from_2_5_on_have_a_wheel_for_cpython_3_13() -> None:
    with_it = [name for name in ROWS if "cp313" in ROWS[name]["wheels"]]
    assert with_it == list(ROWS)[5:]


def test_the_new_abi_came_with_2_7() -> None:
    assert [name for name in ROWS if ROWS[name]["cxx11_abi"]] == list(ROWS)[7:]


def nix(expression: str) -> subprocess.CompletedProcess[str]:
    """Evaluates ``expression``, in which ``m`` is pkgs/matrix, to JSON."""
    return subprocess.run(
        ["nix-instantiate", "--eval", "--strict", "--json"]
        + ["--expr", f"let m = import {MATRIX} {{ }}; in {expression}"],
        capture_output=True,
        text=True,
    )


@needs_nix
def test_nix_names_the_rows_oldest_first() -> None:
    assert json.loads(nix("m.names").stdout) == list(ROWS)


@needs_nix
def test_nix_gives_a_row_as_the_file_has_it() -> None:
    assert json.loads(nix('m.row "2_13"').stdout) == {**ROWS["2_13"], "name": "2_13"}


@needs_nix
def test_an_unknown_row_is_refused_with_the_list_of_rows() -> None:
    result = nix('m.row "9_9"')
    assert result.returncode == 1
    assert 'there is no row "9_9"' in result.stderr
    assert " ".join(ROWS) in result.stderr


@needs_nix
def test_an_interpreter_that_pytorch_never_supported_is_refused() -> None:
    result = nix('m.wheel (m.row "2_1") "cp313"')
    assert result.returncode == 1
    assert "PyTorch 2.1.2 has no wheel for cp313, only for cp311" in result.stderr
