# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program that writes the operator table."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torch_mlir.operators import TABLE_PATH, Table, load

REGENERATE = Path(__file__).parents[2] / "torch_mlir/operators/regenerate.py"
VERSION = re.findall(r"PyTorch (\d[\d.]*\d)", load().header[0])[0]


def unusable() -> str | None:
    """Why the installed PyTorch can't write a table, None if it can."""
    if not all(importlib.util.find_spec(name) for name in ("torch", "yaml")):
        return "needs PyTorch and PyYAML"
    version = importlib.metadata.version("torch")
    if int(version.split(".")[1]) < int(VERSION.split(".")[1]) - 4:
        return f"PyTorch {version} is too old to compare"
    return None


needs_torch = pytest.mark.skipif(unusable() is not None, reason=str(unusable()))


def run(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run it with `path` before, or (None) without, what is installed."""
    options = ["-S"] if path is not None else []
    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    return subprocess.run(
        [sys.executable, *options, str(REGENERATE), *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )


def fake_torch(folder: Path, text: str) -> Path:
    (folder / "torch").mkdir()
    (folder / "torch/__init__.py").write_text(text)
    return folder


def test_without_pytorch_it_says_what_to_run_it_with(tmp_path: Path) -> None:
    result = run(path=tmp_path)
    assert result.returncode == 1
    assert "has no PyTorch: run this with an interpreter that has the newest" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_pytorch_older_than_the_table_is_refused(tmp_path: Path) -> None:
    result = run(path=fake_torch(tmp_path, "__version__ = '2.0.1+cpu'"))
    assert result.returncode == 1
    assert f"was written from PyTorch {VERSION}; this one is 2.0.1+cpu" in result.stderr
    assert f"Run this with PyTorch {VERSION} or newer" in result.stderr


def test_a_pytorch_that_does_not_load_is_told_apart(tmp_path: Path) -> None:
    broken = "raise OSError('libcudart.so.13: cannot open shared object file')"
    result = run(path=fake_torch(tmp_path, broken))
    assert result.returncode == 1
    assert "PyTorch doesn't load: libcudart.so.13" in result.stderr
    assert "pkgs/torch" in result.stderr


def test_a_module_that_pytorch_misses_is_not_mistaken_for_pytorch(tmp_path: Path) -> None:
    result = run(path=fake_torch(tmp_path, "import sympy_that_is_not_there"))
    assert result.returncode != 0
    assert "ModuleNotFoundError: No module named 'sympy_that_is_not_there'" in result.stderr


@needs_torch
def test_a_namespace_that_nobody_decided_on_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import torch\n"
        "library = torch.library.Library('a_new_namespace', 'DEF')\n"
        "library.define('f(Tensor x) -> Tensor')\n"
    )
    output = tmp_path / "table.txt"
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    result = subprocess.run(
        [sys.executable, str(REGENERATE), "-o", str(output)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert result.returncode == 1
    assert "namespaces that this program doesn't know: a_new_namespace" in result.stderr
    assert not output.exists()


@needs_torch
def test_the_table_of_this_pytorch_agrees_with_the_newest_on_every_equal_schema(
    tmp_path: Path,
) -> None:
    output = tmp_path / "table.txt"
    result = run("-o", str(output))
    assert (result.returncode, result.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == [output]
    here, newest = Table(output.read_text()), load()
    shared = [k for k in here if k in newest and here[k].text == newest[k].text]
    assert len(shared) > 0.9 * len(newest)
    # Tags come and go between releases; what is pure stays so.
    assert [k for k in shared if here[k].is_pure != newest[k].is_pure] == []


@needs_torch
def test_the_table_is_what_the_newest_pytorch_gives() -> None:
    import torch

    if torch.__version__.partition("+")[0] != VERSION:
        pytest.skip(f"PyTorch {torch.__version__}; the table is from {VERSION}")
    result = run("--check")
    assert (result.returncode, result.stderr) == (0, "")
    assert TABLE_PATH.exists()
