# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pkgs/torch/assemble.py on a small wheel whose library needs one that no wheel brings."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ASSEMBLE = Path(__file__).parents[3] / "pkgs/torch/assemble.py"
SITE_PACKAGES = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def build(library: Path, source: str, *arguments: str) -> Path:
    compiler = (
        ["cc"]
        if shutil.which("cc")
        else [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu.2.28"]
    )
    code = library.with_suffix(".c")
    code.write_text(source)
    subprocess.run(
        [*compiler, "-shared", "-fPIC", f"-Wl,-soname,{library.name}", "-Wl,-rpath,$ORIGIN"]
        + ["-o", str(library), str(code), *arguments],
        check=True,
    )
    return library


@pytest.fixture(scope="module")
def assembled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    vendor = build(folder / "libcudart.so.12", "int cudaMalloc(void) { return 0; }")
    library = build(
        folder / "libtorch.so",
        "int cudaMalloc(void); int run(void) { return cudaMalloc(); }\n"
        '__attribute__((section(".nv_fatbin,\\"a\\",@progbits#"), used))\n'
        "static const char device_code[100000] = {1};",
        str(vendor),
    )
    wheel = folder / "torch-2.99.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(library, "torch/lib/libtorch.so")
        archive.writestr(
            "torch/__init__.py",
            "import ctypes, pathlib\n"
            "lib = pathlib.Path(__file__).parent / 'lib/libtorch.so'\n"
            "run = ctypes.CDLL(str(lib)).run\n",
        )
        program = zipfile.ZipInfo("torch/bin/torch_shm_manager")
        program.external_attr = 0o755 << 16
        archive.writestr(program, "#!/bin/sh\n")
        archive.writestr("torch-2.99.0.dist-info/METADATA", "Name: torch\nVersion: 2.99.0\n")
    out = folder / "out"
    subprocess.run(
        [sys.executable, str(ASSEMBLE), "--compile", str(wheel), str(out)],
        check=True,
        capture_output=True,
    )
    return out / SITE_PACKAGES


def test_the_package_imports_with_no_environment_variable(assembled: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(assembled)!r}); import torch; print(torch.run())"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, env={}
    )
    assert (done.stdout, done.stderr) == ("100\n", "")


def test_the_stand_in_lies_beside_the_library_that_needs_it(assembled: Path) -> None:
    assert sorted(path.name for path in (assembled / "torch/lib").iterdir()) == [
        "libcudart.so.12",
        "libtorch.so",
    ]


def test_device_code_is_left_out(assembled: Path) -> None:
    assert (assembled / "torch/lib/libtorch.so").stat().st_size < 50_000


def test_programs_stay_executable_and_other_files_do_not_become_so(assembled: Path) -> None:
    assert (assembled / "torch/bin/torch_shm_manager").stat().st_mode & 0o111
    assert not (assembled / "torch/__init__.py").stat().st_mode & 0o111


def test_byte_code_and_metadata_are_there(assembled: Path) -> None:
    assert [path.name for path in (assembled / "torch/__pycache__").iterdir()] == [
        f"__init__.{sys.implementation.cache_tag}.pyc"
    ]
    assert (assembled / "torch-2.99.0.dist-info/METADATA").is_file()
