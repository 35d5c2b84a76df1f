# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The format of results.tsv: rules for the dtypes and sizes of operators' results.

A line for each operator, by name: its name and overload, and for each result, tensor or not, the
rule for its dtype and the one for its sizes, `-` for none; all separated by tabs. Lines that
begin with `#` are comments. How rules are written, and what they mean, is told in
csrc/torchscript/Shapes.h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

RESULTS_PATH = Path(__file__).resolve().parent / "results.tsv"

# Where there is no rule.
NONE = "-"


class RulesError(ValueError):
    """A line that can't be read, or that stands twice."""


def parse(text: str, file: str = RESULTS_PATH.name) -> dict[str, list[str]]:
    """By operator: its rules, two for each result.

    Raises:
        RulesError: for the first line that can't be read; it is named.
    """
    found: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        name, *rules = line.split("\t")
        where = f"{file}:{number}"
        if not rules or len(rules) % 2 or not all(rules):
            raise RulesError(f"{where}: two rules are wanted for each result of {name}")
        if not line.isascii():
            raise RulesError(f"{where}: {name} isn't plain ASCII")
        if name in found:
            raise RulesError(f"{where}: {name} stands there twice")
        found[name] = rules
    return found


def text_of(rules: Mapping[str, Sequence[str]], header: str) -> str:
    """The file's text; `header` becomes its comment."""
    comment = "".join(f"# {line}".rstrip() + "\n" for line in header.splitlines())
    lines = ("\t".join((name, *own)) + "\n" for name, own in sorted(rules.items()))
    return comment + "".join(lines)
