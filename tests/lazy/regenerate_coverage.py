# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes what lazy tensors do with PyTorch's operators to coverage.tsv, for the PyTorch it runs with.

    python tests/lazy/regenerate_coverage.py [OPERATOR…]

in an environment that has the wheel of torch_mlir for that PyTorch, pytest and expecttest replaces
that release's line. With names of operators, as op_db has them, it tells of these and writes
nothing. A line holds

row         the release of PyTorch
pytorch     operators of `aten`, each overload by itself, that PyTorch's own lazy kernels record
ours        those that the kernels of csrc/lazy/Kernels.cpp record
composed    those that others make up, which are recorded in their place
cpu         those that the CPU alone has a kernel for: there they run
samples     how many samples of PyTorch's op_db were tried: those of test_operators.py
recorded    how many gave what eager gives, and all was recorded
mixed       how many gave what eager gives, and some operator ran on the CPU (but to read a value)
failed      how many did not give what eager gives

The samples run in a process that may end: that counts as a failure of the one that ends it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest
import torch
import torch._lazy

from torch_mlir import lazy
from torch_mlir.lazy.reference import ReferenceBackend

DATA = Path(__file__).with_name("coverage.tsv")
COLUMNS = ("row", "pytorch", "ours", "composed", "cpu", "samples", "recorded", "mixed", "failed")
# What is called to read a value.
READS = {"aten::_local_scalar_dense", "aten::item"}
SECONDS = 600


def count_operators() -> dict[str, int]:
    """How many operators are whose; a backend has to be registered."""
    from torch_mlir.lazy.native import load

    ours = set(load().kernels())
    counts = dict.fromkeys(("pytorch", "ours", "composed", "cpu"), 0)
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::"):
            continue
        if has(name, "Lazy"):
            counts["ours" if name in ours else "pytorch"] += 1
        elif has(name, "CompositeImplicitAutograd") or has(name, "CompositeExplicitAutograd"):
            counts["composed"] += 1
        elif has(name, "CPU"):
            counts["cpu"] += 1
    return counts


def run_samples(names: list[str], report: TextIO) -> None:
    """Runs the samples of operators, and writes a line of JSON before each operator, and before and
    after each sample.

    A line is `[operator, number of the sample, outcome, message]`; the outcome before a sample is
    "failed", that before an operator "begun".
    """
    from test_operators import NOT_RUN, call, describe, has_values, name_of, samples_of
    from torch.testing._internal.common_methods_invocations import op_db

    def tell(*values: Any) -> None:
        report.write(json.dumps(values) + "\n")
        report.flush()

    operators = {name_of(each): each for each in op_db}
    with lazy.register(ReferenceBackend()):
        for name in names:
            operator = operators[name]
            tell(name, 0, "begun", "")
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                samples = samples_of(operator)
            except pytest.skip.Exception as reason:
                print(f"{name}: {reason}", file=sys.stderr)
                continue
            for number, sample in enumerate(samples):
                try:
                    expected = call(operator, sample, "cpu")
                except NOT_RUN:
                    continue
                tell(name, number, "failed", "the process ends")
                lazy.metrics.reset()
                try:
                    actual = call(operator, sample, "lazy")
                    if has_values(operator):
                        torch.testing.assert_close(actual, expected, equal_nan=True)
                    else:
                        assert describe(actual) == describe(expected)
                except Exception as problem:  # noqa: BLE001  whatever it is, it is told
                    lines = str(problem).strip().splitlines() or [""]
                    tell(name, number, "failed", f"{type(problem).__name__}: {lines[0]}")
                    continue
                ran = sorted(set(lazy.metrics.fallbacks()) - READS)
                tell(name, number, "mixed" if ran else "recorded", " ".join(ran))


def outcomes(names: list[str]) -> Iterator[tuple[str, int, str, str]]:
    """What `run_samples` tells, in processes that take over where one ends."""
    left = names
    while left:
        readable, writable = os.pipe()
        arguments = [sys.executable, "-W", "ignore", __file__, "--report", str(writable), *left]
        with (
            subprocess.Popen(arguments, pass_fds=[writable], stdout=sys.stderr) as process,
            os.fdopen(readable, encoding="utf-8") as lines,
        ):
            os.close(writable)
            last = None
            for line in lines:
                name, number, outcome, message = json.loads(line)
                last = name
                if outcome != "begun":
                    yield name, number, outcome, message
        if process.returncode == 0:
            return
        if last not in left:
            raise SystemExit(f"the samples don't run: exit code {process.returncode}")
        print(f"{last}: the process ends, exit code {process.returncode}", file=sys.stderr)
        left = left[left.index(last) + 1 :]


def count_samples(names: list[str]) -> dict[str, int]:
    """How many samples have which outcome; tells of what isn't recorded."""
    found = {(name, number): (how, why) for name, number, how, why in outcomes(names)}
    for (name, number), (how, why) in found.items():
        if how != "recorded":
            print(name, number, how, why, sep="\t")
    counts = Counter(how for how, _ in found.values())
    return {
        "samples": len(found),
        **{how: counts[how] for how in ("recorded", "mixed", "failed")},
    }


def installed_row() -> str:
    """The release of PyTorch, such as 2.13."""
    return ".".join(torch.__version__.split(".")[:2])


def read() -> dict[str, dict[str, str]]:
    """The lines of coverage.tsv, by row."""
    if not DATA.exists():
        return {}
    columns, *lines = (line.split("\t") for line in DATA.read_text(encoding="utf-8").splitlines())
    return {line[0]: dict(zip(columns, line, strict=True)) for line in lines}


def write(values: dict[str, Any]) -> None:
    """Replaces the line of a row."""
    rows = read() | {values["row"]: values}
    order = sorted(rows, key=lambda row: [int(part) for part in row.split(".")])
    lines = [COLUMNS, *([str(rows[row][column]) for column in COLUMNS] for row in order)]
    DATA.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("operator", nargs="*", help="tell of these alone")
    parser.add_argument("--report", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.report is not None:
        with os.fdopen(arguments.report, "w", encoding="utf-8") as report:
            run_samples(arguments.operator, report)
        return
    if arguments.operator:
        print(count_samples(arguments.operator))
        return
    with lazy.register(ReferenceBackend()):
        operators = count_operators()
    from test_operators import cases

    samples = count_samples([case.id for case in cases()])
    write({"row": installed_row(), **operators, **samples})


if __name__ == "__main__":
    main()
