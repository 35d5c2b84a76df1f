#!/usr/bin/env python3
"""Counts the source files that PyTorch's own build compiles, in four configurations.

For the report: the full build's figures beside the selection's. PyTorch keeps its lists in two
places: build_variables.bzl, which is Starlark and runs as Python, and patterns in its
CMake files. Kernels that it compiles for several kinds of processor count once; what its
generators write is not counted, and neither are the libraries of others.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

# What PyTorch's CMake appends to a library: lists of build_variables.bzl by their names, and
# variables of ATen's CMakeLists.txt, from caffe2/CMakeLists.txt and aten/src/ATen/CMakeLists.txt.
CUDA = (
    ["libtorch_cuda_sources", "aten_cuda_cu_source_list"],
    ["cuda_cpp", "cuda_cu", "native_cuda_cpp", "native_cuda_cu", "native_cuda_linalg_cpp",
     "native_cudnn_cpp", "native_sparse_cuda_cpp", "native_sparse_cuda_cu",
     "native_quantized_cuda_cpp", "native_quantized_cuda_cu", "native_quantized_cudnn_cpp",
     "native_nested_cuda_cpp", "native_nested_cuda_cu", "native_transformers_cuda_cpp",
     "native_transformers_cuda_cu"],
)  # fmt: skip
CORE = ["libtorch_cmake_sources", "lazy_tensor_ts_sources"]
DISTRIBUTED = ["libtorch_distributed_sources"]
LITE = [
    "jit_core_sources", "aten_cpu_source_non_codegen_list", "aten_native_source_non_codegen_list",
    "libtorch_lite_cmake_sources",
]  # fmt: skip


def starlark_lists(source: Path) -> dict[str, list[str]]:
    """The lists of build_variables.bzl by name. Raises OSError."""
    names: dict[str, object] = {"load": lambda *_: None, "glob": lambda *_, **__: []}
    exec((source / "build_variables.bzl").read_text(), names)  # noqa: S102
    return {name: value for name, value in names.items() if isinstance(value, list)}


def cmake_variables(source: Path) -> dict[str, set[str]]:
    """Variables of ATen's CMakeLists.txt and cmake/Codegen.cmake that name files by patterns, or are made of such."""
    folder = source / "aten/src/ATen"
    text = (folder / "CMakeLists.txt").read_text() + (source / "cmake/Codegen.cmake").read_text()
    text = re.sub(r"#.*", "", text).replace("${CMAKE_CURRENT_LIST_DIR}/../aten/src/ATen/", "")
    text = re.sub(r"\$\{PROJECT_SOURCE_DIR\}/aten/src/ATen/", "", text)
    variables: dict[str, set[str]] = {}
    for recursive, name, patterns in re.findall(
        r"file\s*\(\s*GLOB(_RECURSE)?\s+(\w+)((?:\s+\"[^\"]*\")+)\s*\)", text
    ):
        found = variables.setdefault(name, set())
        for pattern in re.findall(r'"([^"]*)"', patterns):
            paths = folder.rglob(Path(pattern).name) if recursive else folder.glob(pattern)
            inside = folder / Path(pattern).parent
            found |= {
                path.relative_to(source).as_posix()
                for path in paths
                if not recursive or path.is_relative_to(inside)
            }
    # The last `set` is the full library's, where the lite one's comes first.
    for body in re.findall(r"set\s*\(\s*all_cpu_cpp([^)]*)\)", text):
        made = {
            name for part in re.findall(r"\$\{(\w+)\}", body) for name in variables.get(part, ())
        }
        variables["all_cpu_cpp"] = variables.get("all_cpu_cpp", set()) | made
    return variables


def own_builds(source: Path) -> dict[str, int]:
    """Configuration -> source files, for the tree at `source`. Raises SystemExit."""
    try:
        lists, variables = starlark_lists(source), cmake_variables(source)
    except OSError as error:
        raise SystemExit(
            f"{source}: PyTorch's lists of its files are not there: {error}"
        ) from error

    def files(names: list[str], parts: list[str]) -> set[str]:
        named = {file for name in names for file in lists.get(name, ())}
        globbed = {file for part in parts for file in variables.get(part, ())}
        both = named | globbed
        return {file for file in both if re.search(r"\.(cpp|cc|cu|c)$", file)}

    cpu = files(CORE, ["all_cpu_cpp", "ATen_CORE_SRCS", "cpu_kernel_cpp_in"])
    cpu = {file for file in cpu if not re.search(r"_test\.cpp$", file)}
    distributed = cpu | files(DISTRIBUTED, [])
    return {
        "libtorch with CUDA and distributed": len(distributed | files(*CUDA)),
        "libtorch for CPUs": len(distributed),
        "libtorch for CPUs without distributed": len(cpu),
        "lite interpreter": len(files(LITE, ["cpu_kernel_cpp_in"])),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="source tree of PyTorch")
    for name, count in own_builds(parser.parse_args().source).items():
        print(f"{name}\t{count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
