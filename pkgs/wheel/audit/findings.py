"""What a check has found, and the list of checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from posixpath import basename
from typing import Any

from .wheel import Wheel


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: where (a file of the wheel, or "") and what."""

    where: str
    message: str


Parameters = dict[str, Any]
Check = Callable[[Wheel, Parameters], Iterator[Finding]]

# Code -> check. The policy names checks by these codes.
CHECKS: dict[str, Check] = {}


def check(code: str) -> Callable[[Check], Check]:
    """Registers a check. Its docstring is what ``--list`` shows."""

    def register(function: Check) -> Check:
        if code in CHECKS:
            raise ValueError(f"two checks are called {code!r}")
        CHECKS[code] = function
        return function

    return register


def some(items: list[str], limit: int = 3) -> str:
    """The first items of a list and how many more there are."""
    more = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Beside:
    """What a file takes from packages beside the wheel's, which its user has."""

    libraries: frozenset[str] = frozenset()
    # Names of symbols that they define; nothing matches by default.
    symbols: re.Pattern[str] = re.compile(r"(?!)")


def beside(name: str, parameters: Parameters) -> Beside:
    """What the policy lets a file of the wheel take so; nothing, if it doesn't name the file."""
    given = parameters.get("beside", {}).get(basename(name))
    if given is None:
        return Beside()
    return Beside(frozenset(given["libraries"]), re.compile(given["symbols"]))
