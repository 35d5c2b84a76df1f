"""Copies of the package that a test may spoil, and interpreters of their own to import them in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch_mlir.ir


def _link_or_copy(source: str, target: str) -> None:
    """Files of a copy are written anew, never in place, so they may share their bytes."""
    source = os.path.realpath(source)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    """``_mlir_libs`` of a fresh copy of the package."""
    package = tmp_path / "site" / "torch_mlir"
    shutil.copytree(
        Path(torch_mlir.ir.__file__).parent,
        package,
        copy_function=_link_or_copy,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    # An installation may be read-only, and copytree copies the folders' modes.
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    return package / "_mlir_libs"


@pytest.fixture
def run(libraries: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs Python code beside the copy of the package."""
    environment = dict(os.environ, PYTHONPATH=str(libraries.parent.parent))

    def run_code(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            cwd=libraries.parent.parent,
            timeout=120,
            check=False,
        )

    return run_code


def _c_compiler() -> list[str]:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return [name]
    try:
        import ziglang
    except ImportError:
        pytest.skip("no C compiler: set CC, or install cc or ziglang")
    return [str(Path(ziglang.__file__).parent / "zig"), "cc"]


@pytest.fixture(scope="session")
def stale_object(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shared object with an entry point of every name used here, and an undefined symbol."""
    folder = tmp_path_factory.mktemp("stale")
    entry_points = ("_mlirRegisterEverything", "_mlirDialectsGPU", "_torchMlir")
    source = folder / "stale.c"
    source.write_text(
        "extern void *symbol_of_another_version(void);\n"
        + "".join(
            f"void *PyInit_{name}(void) {{ return symbol_of_another_version(); }}\n"
            for name in entry_points
        )
    )
    target = folder / "stale.so"
    environment = dict(os.environ)
    environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(folder / "cache"))
    environment.setdefault("ZIG_LOCAL_CACHE_DIR", str(folder / "cache"))
    subprocess.run(
        [*_c_compiler(), "-shared", "-fPIC", "-Wl,-z,now", str(source), "-o", str(target)],
        check=True,
        env=environment,
    )
    return target
