# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What C++ vendors of the lazy backend build with: exports, headers, the CMake package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import torch_mlir

elffile = pytest.importorskip("elftools.elf.elffile")

PACKAGE = Path(torch_mlir.__file__).parent

# Itanium's names of what has vague linkage: a class's vtable, its typeinfo, and that one's name.
_OF_A_CLASS = re.compile(r"_ZT[VIS]N10torch_mlir4lazy(?P<length>\d+)(?P<rest>\w+)E$")
# A function of torch_mlir::lazy, or of one of its classes; const ones have a K.
_FUNCTION = re.compile(r"_ZN?K?(?:N)?K?10torch_mlir4lazy(?P<length>\d+)(?P<rest>\w+)$")


def marked(headers: dict[str, str]) -> set[str]:
    """The classes and functions that the headers mark with TORCH_MLIR_LAZY_API."""
    found: set[str] = set()
    for name, text in headers.items():
        if name.startswith("torch_mlir/lazy/"):
            found |= set(re.findall(r"class TORCH_MLIR_LAZY_API (\w+)", text))
            found |= set(re.findall(r"^TORCH_MLIR_LAZY_API [^()]*?(\w+)\(", text, re.MULTILINE))
    return found


def exports(name: str) -> list[str]:
    with open(PACKAGE / "_mlir_libs" / name, "rb") as file:
        table = elffile.ELFFile(file).get_section_by_name(".dynsym")
        return [
            symbol.name
            for symbol in table.iter_symbols()
            if symbol.name
            and symbol["st_shndx"] != "SHN_UNDEF"
            and symbol["st_info"]["bind"] != "STB_LOCAL"
        ]


def owner(symbol: str) -> str | None:
    """The class or function of torch_mlir::lazy that a symbol is of; None for any other."""
    found = _OF_A_CLASS.match(symbol) or _FUNCTION.match(symbol)
    return found["rest"][: int(found["length"])] if found else None


@pytest.fixture(scope="module")
def backend():
    if not (PACKAGE / "_mlir_libs" / "_lazy_backend.so").exists():
        pytest.skip("this build has no lazy backend")
    return exports("_lazy_backend.so")


@pytest.fixture(scope="module")
def headers():
    folder = PACKAGE / "include"
    if not folder.exists():
        pytest.skip("this build has no headers for vendors")
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.h")}


def test_the_entry_point_and_the_vendors_classes_are_exported_and_nothing_else(backend, headers):
    wanted = marked(headers)
    assert {"Backend", "Computation", "Context", "Data", "registerBackend"} <= wanted
    assert "PyInit__lazy_backend" in backend
    owners = {symbol: owner(symbol) for symbol in backend if symbol != "PyInit__lazy_backend"}
    assert [symbol for symbol, name in owners.items() if name not in wanted] == []
    assert set(owners.values()) == wanted


def test_a_derived_class_finds_typeinfo_and_vtable(backend):
    assert "_ZTIN10torch_mlir4lazy7BackendE" in backend
    assert "_ZTVN10torch_mlir4lazy7BackendE" in backend
    assert "_ZTIN10torch_mlir4lazy11ComputationE" in backend


def test_every_function_of_the_headers_is_exported(headers):
    # But those that macros declare, whose names aren't in the text.
    declared: set[str] = set()
    for text in headers.values():
        text = re.sub(r"//.*", "", text)
        declared |= set(
            re.findall(
                r"^MLIR_CAPI_EXPORTED\b[^;{]*?\b((?:mlir|torchMlir)\w+)\s*\(", text, re.MULTILINE
            )
        )
    assert {"mlirOperationVerify", "torchMlirElementsAttrGetData"} <= declared
    missing = declared - set(exports("libTorchMLIRAggregateCAPI.so"))
    assert sorted(missing) == []


def test_headers_include_only_one_another_and_pytorchs(headers):
    for name, text in headers.items():
        for quoted in re.findall(r'#include "([^"]+)"', text):
            beside = str(Path(name).parent / quoted)
            assert quoted in headers or beside in headers, f"{name} includes {quoted}"


def test_the_cmake_package_is_of_this_version_and_pytorch(backend):
    text = (Path(torch_mlir.cmake_prefix_path) / "TorchMLIRLazyConfig.cmake").read_text()
    torch = pytest.importorskip("torch")
    assert f'set(TorchMLIRLazy_VERSION "{torch_mlir.__version__}")' in text
    pair = ".".join(torch.__version__.split(".")[:2])
    assert f'set(TorchMLIRLazy_TORCH_VERSION "{pair}")' in text
    assert "@" not in re.sub(r"#.*", "", text)
