# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pkgs/libtorch/own_builds.py, on a tree with lists of PyTorch's kinds."""

from __future__ import annotations

import pytest

BZL = """
load("//tools:defs.bzl", "something")
def both(names):
    return names + ["torch/both.cpp"]
jit_core_sources = ["aten/src/ATen/core/type.cpp"]
libtorch_cmake_sources = sorted(both(["torch/jit.cpp", "torch/jit.h"]))
libtorch_distributed_sources = ["torch/rpc.cpp", "torch/jit.cpp"]
libtorch_lite_cmake_sources = ["torch/mobile.cpp"]
"""
ATEN = """
file(GLOB base_cpp "*.cpp" "detail/*.cpp")
file(GLOB_RECURSE ATen_CORE_SRCS "core/*.cpp")
# file(GLOB native_cpp "cuda/*.cpp")
file(GLOB cuda_cpp "cuda/*.cpp")
if(BUILD_LITE_INTERPRETER)
  set(all_cpu_cpp ${core_generated_sources})
else()
  set(
    all_cpu_cpp ${base_cpp} ${native_cpp}
  )
endif()
"""
CODEGEN = """
  file(GLOB cpu_kernel_cpp_in "${PROJECT_SOURCE_DIR}/aten/src/ATen/native/cpu/*.cpp")
"""


def test_lists_and_patterns_are_counted_once_each(own_builds, tmp_path):
    aten = tmp_path / "aten/src/ATen"
    for name in (
        "a.cpp", "detail/b.cpp", "core/type.cpp", "core/in/deep.cpp", "core/type_test.cpp",
        "cuda/c.cpp", "native/cpu/k.cpp", "native/cpu/k.h",
    ):  # fmt: skip
        (aten / name).parent.mkdir(parents=True, exist_ok=True)
        (aten / name).touch()
    (aten / "CMakeLists.txt").write_text(ATEN)
    (tmp_path / "cmake").mkdir()
    (tmp_path / "cmake/Codegen.cmake").write_text(CODEGEN)
    (tmp_path / "build_variables.bzl").write_text(BZL)
    cpu = 2 + 2 + 1 + 2  # patterns of ATen's and its core's, a kernel, two of the list
    assert own_builds.own_builds(tmp_path) == {
        "libtorch with CUDA and distributed": cpu + 1 + 1,
        "libtorch for CPUs": cpu + 1,
        "libtorch for CPUs without distributed": cpu,
        "lite interpreter": 3,
    }


def test_a_tree_without_the_lists_is_refused_by_name(own_builds, tmp_path):
    with pytest.raises(SystemExit, match="PyTorch's lists of its files are not there.*bzl"):
        own_builds.own_builds(tmp_path)
