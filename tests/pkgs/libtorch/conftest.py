# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of pkgs/libtorch as modules."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

LIBTORCH = Path(__file__).parents[3] / "pkgs/libtorch"


@pytest.fixture(scope="session")
def generate() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(LIBTORCH))
        yield importlib.import_module("generate")


@pytest.fixture(scope="session")
def selection() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(LIBTORCH))
        yield importlib.import_module("selection")


@pytest.fixture(scope="session")
def own_builds() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(LIBTORCH))
        yield importlib.import_module("own_builds")
