# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The importer's own libtorch is nobody else's: what the shared object shows, and shares a process with."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch

from torch_mlir._mlir_libs import _jit_ir_importer

elffile = pytest.importorskip("elftools.elf.elffile")

# glibc's libraries, its loader, and those that it comes with.
_SYSTEM = {
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
}


@pytest.fixture(scope="module")
def elf():
    with open(_jit_ir_importer.__file__, "rb") as file:
        yield elffile.ELFFile(file)


@pytest.fixture(scope="module")
def symbols(elf):
    """The dynamic symbols: (name, whether it's defined, binding)"""
    return [
        (symbol.name, symbol["st_shndx"] != "SHN_UNDEF", symbol["st_info"]["bind"])
        for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
        if symbol.name
    ]


def test_one_symbol_is_exported(symbols):
    defined = [name for name, is_defined, _ in symbols if is_defined]
    assert defined == ["PyInit__jit_ir_importer"]


def test_nothing_of_pytorch_is_looked_for_elsewhere(symbols):
    undefined = [name for name, is_defined, _ in symbols if not is_defined]
    # C++'s own names may come from a shared standard library; those of PyTorch's namespaces not.
    wrong = [
        name
        for name in undefined
        if any(part in name for part in ("N3c10", "N2at", "N5torch", "K3c10", "6caffe2", "THP"))
    ]
    assert wrong == []
    assert any(name.startswith("mlir") for name in undefined), "MLIR comes by its C interface"
    assert [name for name in undefined if "N4mlir" in name or "N4llvm" in name] == []


def test_no_symbol_is_unique_in_the_process(symbols):
    # The loader gives all that name such a symbol the first one's, hidden or not.
    assert [name for name, _, binding in symbols if binding == "STB_LOOS"] == []


def test_only_system_libraries_and_our_own_are_needed(elf):
    needed = {tag.needed for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")}
    ours = {name for name in needed if name.startswith("libTorchMLIRAggregateCAPI.so")}
    assert len(ours) == 1
    assert needed - ours <= _SYSTEM | {"libz.so.1", "libgcc_s.so.1", "libstdc++.so.6"}
    assert "libtorch.so" not in needed and "libc10.so" not in needed


PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
from torch_mlir import ir
from torch_mlir._mlir_libs import _jit_ir_importer as native

def imported():
    module = native.import_archive(ir.Context(), PATH)
    assert 'torch.slot "weight"' in str(module)

def refused():
    try:
        native.import_archive(ir.Context(), PATH + ".broken")
    except native.ImportError as error:
        return str(error)
    raise AssertionError("it was not refused")

def eager():
    import torch
    loaded = torch.jit.load(PATH)
    assert loaded(torch.ones(2, 3)).shape == (2, 4)
    try:
        torch.ones(2) @ torch.ones(3)
    except RuntimeError as error:
        assert "size" in str(error)
    else:
        raise AssertionError("no exception")
    try:
        torch.jit.load(PATH + ".broken")
    except RuntimeError:
        pass
    else:
        raise AssertionError("no exception")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a program after `PROGRAM` in a process of its own, which has to end well."""
    path = tmp_path_factory.mktemp("archives") / "linear.pt"
    torch.jit.save(torch.jit.script(torch.nn.Linear(3, 4)), str(path))
    whole = path.read_bytes()
    (path.parent / "linear.pt.broken").write_bytes(whole[: len(whole) // 2])

    def run(text: str) -> str:
        program = f"PATH = {str(path)!r}\n{PROGRAM}\n{textwrap.dedent(text)}"
        result = subprocess.run(
            [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False
        )
        # An abort at exit has a code below zero.
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


def test_pytorch_is_imported_before_and_after(run):
    run(
        """
        eager()
        imported()
        eager()
        """
    )
    run(
        """
        imported()
        assert "torch" not in sys.modules
        eager()
        imported()
        """
    )


def test_exceptions_on_both_sides(run):
    run(
        """
        for _ in range(3):
            assert "linear.pt.broken" in refused()
            eager()
            imported()
        """
    )


def test_a_failed_load_ends_well(run):
    assert "linear.pt.broken" in run("print(refused())")
    run(
        """
        import torch
        refused()
        """
    )


def test_threads_import_while_others_run_pytorch(run):
    run(
        """
        import threading
        problems = []
        def repeat(call):
            try:
                for _ in range(5):
                    call()
            except BaseException as problem:
                problems.append(problem)
        threads = [threading.Thread(target=repeat, args=[call])
                   for call in (imported, eager, refused, imported, eager)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == [], problems
        """
    )


def test_forked_processes_import(run):
    run(
        """
        import os
        eager()
        imported()
        for call in (imported, refused, eager):
            child = os.fork()
            if not child:
                try:
                    call()
                except BaseException:
                    os._exit(1)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, call.__name__
        imported()
        """
    )


def test_threads_that_end_leave_the_archive_behind(run):
    """The last reference to an archive's bytes may go in another thread than made it."""
    run(
        """
        import threading
        kept = []
        def work():
            data = open(PATH, "rb").read()
            context = ir.Context()
            kept.append((context, native.import_archive(context, data)))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert 'torch.slot "weight"' in str(kept[0][1])
        kept.clear()
        """
    )


def test_kernels_are_those_that_loading_runs_and_no_others():
    empty = {"CPU", "BackendSelect"}
    assert {name: set(keys) for name, keys in _jit_ir_importer.kernels().items()} == {
        "aten::empty.memory_format": empty,
        "aten::empty_strided": empty,
        "aten::set_.source_Storage": {"CPU"},
        "aten::set_.source_Storage_storage_offset": {"CPU", "QuantizedCPU"},
        "aten::detach": {"CPU"},
        "aten::to.device": {"CPU"},
        "aten::clone": {"CPU"},
        "aten::equal": {"CPU"},
        "aten::_empty_affine_quantized": {"BackendSelect"},
        "aten::_empty_per_channel_affine_quantized": {"BackendSelect"},
    }
