# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pkgs/torch/cpu_stubs.py on small shared objects with a real compiler's symbol tables.

Each test builds a library against a vendor's one, takes the vendor's away, and
lets the program put its stand-in there.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

STUBS = Path(__file__).parents[3] / "pkgs/torch/cpu_stubs.py"


def compiler() -> list[str]:
    if shutil.which("cc"):
        return ["cc"]
    return [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu.2.28"]


def build(folder: Path, soname: str, source: str, *arguments: str) -> Path:
    """Compiles ``source`` to ``folder/soname``, which looks for others beside itself."""
    folder.mkdir(parents=True, exist_ok=True)
    code = folder / f"{soname}.c"
    code.write_text(source)
    subprocess.run(
        [*compiler(), "-shared", "-fPIC", "-O1", f"-Wl,-soname,{soname}"]
        + ["-Wl,-rpath,$ORIGIN", "-o", str(folder / soname), str(code), *arguments],
        check=True,
    )
    code.unlink()
    return folder / soname


def make_stubs(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(STUBS), *map(str, arguments)], capture_output=True, text=True
    )


def call(library: Path, function: str, result: str = "c_int") -> str:
    """The value of ``function()`` in a process of its own, every symbol bound at the start."""
    program = (
        f"import ctypes; f = ctypes.CDLL({str(library)!r}, ctypes.RTLD_LOCAL).{function};"
        f"f.restype = ctypes.{result}; print(f())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={"LD_BIND_NOW": "1"}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def dynamic_symbols(path: Path) -> dict[str, tuple[str, str | None]]:
    """Each defined symbol's type and version, as pyelftools reads them."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        versions = {}
        for definition, names in elf.get_section_by_name(".gnu.version_d").iter_versions():
            base = definition["vd_flags"] & 1
            versions[definition["vd_ndx"]] = None if base else next(iter(names)).name
        indices = elf.get_section_by_name(".gnu.version")
        return {
            symbol.name: (symbol["st_info"]["type"], versions.get(indices.get_symbol(i)["ndx"]))
            for i, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols())
            if symbol.name
        }


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    """libcudart.so.12 with functions under two versions."""
    script = tmp_path / "versions"
    script.write_text("V1 { global: cudaMalloc; cudaFree; };\nV2 { global: cudaGetErrorString; };")
    return build(
        tmp_path / "vendor",
        "libcudart.so.12",
        "int cudaMalloc(void) { return 0; } int cudaFree(void) { return 0; }\n"
        'const char *cudaGetErrorString(void) { return "the real one"; }',
        f"-Wl,--version-script={script}",
    )


@pytest.fixture
def torch(tmp_path: Path, vendor: Path) -> Path:
    """torch/lib/libtorch.so, which wants the vendor's functions and checks one weakly."""
    build(
        tmp_path / "torch/lib",
        "libtorch.so",
        "int cudaMalloc(void); const char *cudaGetErrorString(void);\n"
        "int cudaFree(void) __attribute__((weak));\n"
        "int allocate(void) { return cudaMalloc(); }\n"
        "const char *text(void) { return cudaGetErrorString(); }\n"
        "int has_free(void) { return cudaFree != 0; }\n",
        str(vendor),
    )
    return tmp_path / "torch"


def test_a_library_loads_with_the_stand_in_and_not_without(torch: Path) -> None:
    library = torch / "lib/libtorch.so"
    with pytest.raises(OSError, match=r"libcudart\.so\.12"):
        ctypes.CDLL(str(library))
    result = make_stubs(torch)
    assert (result.returncode, result.stdout) == (0, "libcudart.so.12: 2 symbols, 2 versions\n")
    assert call(library, "allocate") == "100"


def test_an_errors_text_is_readable(torch: Path) -> None:
    make_stubs(torch)
    text = call(torch / "lib/libtorch.so", "text", "c_char_p")
    assert text == repr(
        b"no CUDA: libcudart.so.12 is a stand-in that only lets PyTorch load on a CPU"
    )


def test_a_weak_symbol_stays_absent(torch: Path) -> None:
    make_stubs(torch)
    assert call(torch / "lib/libtorch.so", "has_free") == "0"


def test_the_symbols_stand_under_the_versions_that_are_asked_for(torch: Path) -> None:
    make_stubs(torch)
    assert dynamic_symbols(torch / "lib/libcudart.so.12") == {
        "cudaMalloc": ("STT_FUNC", "V1"),
        "cudaGetErrorString": ("STT_FUNC", "V2"),
    }


def test_symbols_without_versions_are_found(tmp_path: Path) -> None:
    vendor = build(tmp_path / "vendor", "libnccl.so.2", "int ncclSend(void) { return 0; }")
    library = build(
        tmp_path / "torch/lib",
        "libtorch_cuda.so",
        "int ncclSend(void); int send(void) { return ncclSend(); }",
        str(vendor),
    )
    make_stubs(tmp_path / "torch")
    assert call(library, "send") == "100"
    assert dynamic_symbols(library.with_name("libnccl.so.2")) == {"ncclSend": ("STT_FUNC", None)}


def test_a_dependencys_missing_library_serves_its_user(tmp_path: Path) -> None:
    """libb names no missing library itself and finds its symbol through liba."""
    vendor = build(
        tmp_path / "vendor",
        "libcurand.so.1",
        "int curandA(void) { return 0; } int curandB(void) { return 0; }",
    )
    lib = tmp_path / "torch/lib"
    a = build(lib, "liba.so", "int curandA(void); int a(void) { return curandA(); }", str(vendor))
    b = build(
        lib,
        "libb.so",
        "int a(void), curandB(void); int b(void) { return a() + curandB(); }",
        str(a),
        "-Wl,-z,undefs",
    )
    make_stubs(tmp_path / "torch")
    assert call(b, "b") == "200"


def test_the_interpreters_symbols_are_left_to_it(tmp_path: Path) -> None:
    vendor = build(tmp_path / "vendor", "libcuda.so.1", "int cuInit(void) { return 0; }")
    library = build(
        tmp_path / "torch/lib",
        "libtorch_python.so",
        "int cuInit(void); int Py_IsInitialized(void);\n"
        "int both(void) { return cuInit() + Py_IsInitialized(); }",
        str(vendor),
        "-Wl,-z,undefs",
    )
    make_stubs(tmp_path / "torch")
    assert call(library, "both") == "101"
    assert list(dynamic_symbols(library.with_name("libcuda.so.1"))) == ["cuInit"]


@pytest.mark.parametrize("symbol", ["PyExc_ValueError", "_Znwm", "__cxa_throw"])
def test_no_stand_in_defines_what_a_run_time_library_does(tmp_path: Path, symbol: str) -> None:
    vendor = build(tmp_path / "vendor", "libcuda.so.1", "int cuInit(void) { return 0; }")
    library = build(
        tmp_path / "torch/lib",
        "libtorch.so",
        f"int cuInit(void), {symbol}(void); int both(void) {{ return cuInit() + {symbol}(); }}",
        str(vendor),
        "-Wl,-z,undefs",
    )
    make_stubs(tmp_path / "torch")
    assert list(dynamic_symbols(library.with_name("libcuda.so.1"))) == ["cuInit"]


def test_a_library_is_found_by_its_files_name_too(tmp_path: Path) -> None:
    """auditwheel renames a file and leaves its users naming the file, not the soname."""
    lib, name = tmp_path / "torch/lib", "libgomp-a34b.so.1"
    renamed = build(tmp_path / "renamed", name, "int omp(void) { return 0; }")
    user = build(lib, "libuser.so", "int omp(void); int user(void) { return omp(); }", str(renamed))
    gomp = build(lib, "libgomp.so.1", "int omp(void) { return 7; }").rename(lib / name)
    before = gomp.read_bytes()
    result = make_stubs(tmp_path / "torch")
    assert (result.returncode, result.stdout) == (0, "")
    assert gomp.read_bytes() == before
    assert call(user, "user") == "7"


def test_system_libraries_are_left_to_the_system(tmp_path: Path) -> None:
    build(
        tmp_path / "torch/lib",
        "libm_user.so",
        "double cos(double); double f(double x) { return cos(x); }",
        "-lm",
    )
    result = make_stubs(tmp_path / "torch")
    assert (result.returncode, result.stdout) == (0, "")


def test_a_second_run_changes_nothing(torch: Path) -> None:
    make_stubs(torch)
    stub = torch / "lib/libcudart.so.12"
    first = stub.read_bytes()
    result = make_stubs(torch)
    assert (result.returncode, result.stdout) == (0, "")
    assert stub.read_bytes() == first


def test_the_same_wheel_gives_the_same_bytes(torch: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_stubs(torch, "-o", tmp_path / name)
    one, two = (tmp_path / name / "libcudart.so.12" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert not (torch / "lib/libcudart.so.12").exists()


def test_many_symbols_are_all_found(tmp_path: Path) -> None:
    names = [f"cublasFunction{number}" for number in range(300)]
    vendor = build(
        tmp_path / "vendor",
        "libcublas.so.12",
        "".join(f"int {n}(void) {{ return 0; }}" for n in names),
    )
    library = build(
        tmp_path / "torch/lib",
        "libtorch_cuda.so",
        "".join(f"int {n}(void);" for n in names)
        + f"int total(void) {{ return {' + '.join(n + '()' for n in names)}; }}",
        str(vendor),
    )
    make_stubs(tmp_path / "torch")
    assert call(library, "total") == "30000"


def test_a_folder_without_shared_objects_is_an_error(tmp_path: Path) -> None:
    result = make_stubs(tmp_path)
    assert result.returncode == 1
    assert f"no shared object below {tmp_path}" in result.stderr
