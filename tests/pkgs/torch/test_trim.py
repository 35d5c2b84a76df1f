# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pkgs/torch/trim.py on small shared objects laid out as nvcc lays them out."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

TRIM = Path(__file__).parents[3] / "pkgs/torch/trim.py"

#: A constant before the device code, exceptions' tables and writable data behind
#: it; `table` is what the CUDA runtime reads, `stray` what nothing should have.
SOURCE = """
#include <stdexcept>
__attribute__((section(".rodata"))) extern const int before = 1234;
__attribute__((section(".nv_fatbin,\\"a\\",@progbits#"), used))
static const char device_code[3000000] = {'G', 'P', 'U'};
__attribute__((section(".nvFatBinSegment"), used)) const void *table = device_code;
int counter = 5;
STRAY
extern "C" int run(int fail) {
  try {
    if (fail) throw std::runtime_error("thrown");
    return before + counter++;
  } catch (const std::exception &) {
    return -1;
  }
}
"""


def build(folder: Path, stray: str = "") -> Path:
    source, library = folder / "library.cpp", folder / "libdevice.so"
    source.write_text(SOURCE.replace("STRAY", stray))
    command = (
        ["c++"]
        if shutil.which("c++")
        else [sys.executable, "-m", "ziglang", "c++", "-target", "x86_64-linux-gnu.2.28"]
    )
    subprocess.run(
        [*command, "-shared", "-fPIC", "-O1", "-g0", "-o", str(library), str(source)], check=True
    )
    return library


def trim(library: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TRIM), str(library)], capture_output=True, text=True)


def section(path: Path, name: str) -> tuple[str, int]:
    """Type and address of a section."""
    with path.open("rb") as file:
        found = ELFFile(file).get_section_by_name(name)
        return found["sh_type"], found["sh_addr"]


def loaded(path: Path) -> list[tuple[int, int]]:
    """Start and end address of each loaded segment."""
    with path.open("rb") as file:
        return [
            (s["p_vaddr"], s["p_vaddr"] + s["p_memsz"])
            for s in ELFFile(file).iter_segments("PT_LOAD")
        ]


def test_the_library_loses_its_device_code_and_still_runs(tmp_path: Path) -> None:
    library = build(tmp_path)
    before = library.stat().st_size
    result = trim(library)
    assert result.returncode == 0, result.stderr
    assert library.stat().st_size < before - 2_990_000
    run = ctypes.CDLL(str(library)).run
    assert [run(0), run(0), run(1)] == [1239, 1240, -1]


def test_no_address_moves_but_the_device_code_is_not_mapped(tmp_path: Path) -> None:
    library = build(tmp_path)
    original = tmp_path / "original.so"
    shutil.copy(library, original)
    trim(library)
    for name in (".text", ".dynsym", ".eh_frame", ".data", ".dynamic", ".nv_fatbin"):
        assert section(library, name)[1] == section(original, name)[1]
    assert section(library, ".nv_fatbin")[0] == "SHT_NOBITS"
    middle = section(library, ".nv_fatbin")[1] + 1_500_000
    assert any(start <= middle < end for start, end in loaded(original))
    assert not any(start <= middle < end for start, end in loaded(library))


def test_host_data_that_points_into_device_code_is_refused(tmp_path: Path) -> None:
    library = build(tmp_path, "extern const void *stray; const void *stray = device_code + 9;")
    before = library.read_bytes()
    result = trim(library)
    assert result.returncode == 1
    assert "points into the device code" in result.stderr
    assert library.read_bytes() == before


def test_the_program_mode_survives(tmp_path: Path) -> None:
    library = build(tmp_path)
    library.chmod(0o750)
    trim(library)
    assert library.stat().st_mode & 0o777 == 0o750


def test_a_second_run_finds_nothing(tmp_path: Path) -> None:
    library = build(tmp_path)
    trim(library)
    once = library.read_bytes()
    result = trim(library)
    assert (result.returncode, result.stdout) == (0, "libdevice.so: 0.0 MB less\n")
    assert library.read_bytes() == once


@pytest.mark.parametrize("name", [".dynsym", ".dynstr", ".gnu.hash"])
def test_what_the_loader_reads_stays(tmp_path: Path, name: str) -> None:
    library = build(tmp_path)
    with library.open("rb") as file:
        before = ELFFile(file).get_section_by_name(name).data()
    trim(library)
    with library.open("rb") as file:
        assert ELFFile(file).get_section_by_name(name).data() == before
