# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Archives that the installed PyTorch writes, once for all tests."""

from __future__ import annotations

import functools
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

# The modules beside this file, however pytest was told to import tests.
sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("torch")

with warnings.catch_warnings():
    # What PyTorch says of its own TorchScript.
    warnings.simplefilter("ignore")
    from archives import CASES, Case


@functools.cache
def _archive(name: str) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name].archive()


@pytest.fixture
def archive_of():
    """Gives the bytes of a case's archive; skips the test if this PyTorch can't write it."""

    def archive(case: Case | str) -> bytes:
        found = CASES[case] if isinstance(case, str) else case
        reason = found.unavailable()
        if reason is not None:
            pytest.skip(reason)
        return _archive(found.name)

    return archive


def pytest_generate_tests(metafunc: Any) -> None:
    """`case` is each case that imports, `refused_case` each one that has to be refused."""
    for name, wanted in (("case", False), ("refused_case", True)):
        if name in metafunc.fixturenames:
            cases = [case for case in CASES.values() if (case.refused is not None) == wanted]
            metafunc.parametrize(name, [pytest.param(case, id=case.name) for case in cases])
