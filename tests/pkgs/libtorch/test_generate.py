# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pkgs/libtorch/generate.py: PyTorch's configuration headers."""

from __future__ import annotations

import pytest


def test_options_are_off_and_variables_filled_in(generate):
    template = (
        "#cmakedefine C10_USE_GLOG\n"
        "#cmakedefine NAME @VALUE@\n"
        "#define AT_MKL_ENABLED() @AT_MKL_ENABLED@\n"
        "#define AT_PARALLEL_NATIVE @AT_PARALLEL_NATIVE@\n"
        '{"TORCH_VERSION", "${TORCH_VERSION}"},\n'
    )
    assert generate.configured(template, {"AT_PARALLEL_NATIVE": "1"}) == (
        "/* #undef C10_USE_GLOG */\n"
        "/* #undef NAME */\n"
        "#define AT_MKL_ENABLED() 0\n"
        "#define AT_PARALLEL_NATIVE 1\n"
        '{"TORCH_VERSION", "0"},\n'
    )


def test_a_tree_says_its_version(generate, tmp_path):
    (tmp_path / "version.txt").write_text("2.6.0a0\n")
    assert generate.source_version(tmp_path) == "2.6.0"


def test_what_is_no_tree_is_refused_by_its_path(generate, tmp_path):
    with pytest.raises(SystemExit, match=f"{tmp_path}: no source tree of PyTorch"):
        generate.source_version(tmp_path)
    (tmp_path / "version.txt").write_text("main\n")
    with pytest.raises(SystemExit, match=r"version\.txt: no version: 'main'"):
        generate.source_version(tmp_path)
