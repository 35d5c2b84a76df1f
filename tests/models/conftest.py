# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which tests of the models are slow, and which belong on one worker of pytest-xdist."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark IREE's compilations for open sizes `slow`; group a case's tests for `loadgroup`."""
    for item in items:
        if Path(__file__).parent not in item.path.parents or not hasattr(item, "callspec"):
            continue
        case = item.callspec.params["trial"]
        item.add_marker(pytest.mark.xdist_group(str(case)))
        if case.sizes == "open" and item.get_closest_marker("iree"):
            item.add_marker(pytest.mark.slow)
