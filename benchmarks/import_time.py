#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seconds and memory of `import torch_mlir.ir` plus a context: ours beside upstream's torch-mlir.

    python3 benchmarks/import_time.py .../ours/bin/python3 .../upstream/bin/python3

Every run is a new interpreter. The two take turns, so that both meet the same machine, after a
first run of each that brings files into memory and byte code to disk and isn't counted. Seconds
are a run's own, from the import to the context, without the interpreter's start; the memory is
the peak resident set. A median below 1.00 in the last line means ours is smaller.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence

MEASURED = """
import json, resource, sys, time
start = time.perf_counter()
import torch_mlir.ir as ir
imported = time.perf_counter()
with ir.Context():
    context = time.perf_counter()
print(json.dumps({
    "import": imported - start,
    "import and context": context - start,
    "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    "file": ir.__file__,
}))
"""


def measure(python: str, path: str | None) -> dict[str, float | str]:
    """One run of the import in a new interpreter. Raises CalledProcessError."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if path:
        environment["PYTHONPATH"] = path
    output = subprocess.run(
        [python, "-P", "-c", MEASURED],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ).stdout
    return json.loads(output)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a line for each package and the ratios; exit code 1 if an import fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ours", help="the Python that has our package")
    parser.add_argument("upstream", help="the Python that has upstream's")
    parser.add_argument(
        "--ours-path", metavar="FOLDER", help="where our package is, if not installed there"
    )
    parser.add_argument("--runs", type=int, default=15, metavar="N", help="default: %(default)s")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    sides = {"ours": (options.ours, options.ours_path), "upstream": (options.upstream, None)}
    runs: dict[str, list[dict[str, float | str]]] = {name: [] for name in sides}
    try:
        for turn in range(options.runs + 1):
            for name, (python, path) in sides.items():
                result = measure(python, path)
                if turn:
                    runs[name].append(result)
    except subprocess.CalledProcessError as error:
        print(f"import_time.py: {error.cmd[0]} exited with {error.returncode}", file=sys.stderr)
        return 1
    figures = ("import", "import and context", "MB")
    print(f"median of {options.runs:<5}{'import':>10}{'+ context':>12}{'peak':>12}")
    medians = {
        name: [statistics.median(float(run[figure]) for run in results) for figure in figures]
        for name, results in runs.items()
    }
    for name, (imported, context, memory) in medians.items():
        print(
            f"{name:15}{imported:9.3f} s{context:10.3f} s{memory:9.1f} MB  {runs[name][0]['file']}"
        )
    ratios = [o / u for o, u in zip(medians["ours"], medians["upstream"], strict=True)]
    print(f"{'ratio':15}{ratios[0]:9.2f}{ratios[1]:12.2f}{ratios[2]:12.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
