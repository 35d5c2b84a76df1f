# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Archives that the installed PyTorch writes, once for all tests."""

from __future__ import annotations

import functools
import json
import sys
import warnings
from collections.abc import Callable
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


_CHOICES: dict[str, Callable[[Case], bool]] = {
    "case": lambda case: case.refused is None,
    "refused_case": lambda case: case.refused is not None,
    "value_case": lambda case: case.refused is None and case.functional is True,
    "memory_case": lambda case: case.refused is None and case.functional is not True,
}


def pytest_generate_tests(metafunc: Any) -> None:
    """`case` is each case that imports, `refused_case` each one that has to be refused.

    Of those that import, a `value_case` has a form on values, and a `memory_case` has none.
    """
    for name, chosen in _CHOICES.items():
        if name in metafunc.fixturenames:
            cases = [pytest.param(case, id=case.name) for case in CASES.values() if chosen(case)]
            metafunc.parametrize(name, cases)


# What the importer does not do yet, or not right: by case, why, and the tests that show it.
_OPEN = json.loads((Path(__file__).parent / "open_cases.json").read_text(encoding="utf-8"))


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Tests of what is open fail; one that doesn't any more has to be taken from the list."""
    for item in items:
        given = getattr(item, "callspec", None)
        params = getattr(given, "params", {}).values()
        cases = [value for value in params if isinstance(value, Case)]
        known = _OPEN.get(cases[0].name) if cases else None
        if known is None or not {item.module.__name__, item.function.__name__} & {*known["tests"]}:
            continue
        item.add_marker(pytest.mark.xfail(reason=known["reason"], strict=True))
