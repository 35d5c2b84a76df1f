#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes every architecture through export, import and both backends, and writes table.tsv.

Prints what does not agree, grouped by what is said. With names of architectures it measures those
and keeps the table's other lines. Needs transformers, diffusers and IREE.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Sequence

from architectures import ARCHITECTURES
from trial import AGREES, TABLE, Outcome, Trial, read_table, trials, write_table


def groups(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """What is said of cases that do not agree, and of which; the most frequent first."""
    found: dict[str, list[str]] = {}
    for each in outcomes:
        said = f"IREE {each.iree}" if each.export == "yes" else f"torch.export: {each.export}"
        if each.export != "yes" or each.iree != AGREES:
            found.setdefault(said, []).append(f"{each.architecture} ({each.sizes})")
    return dict(sorted(found.items(), key=lambda group: -len(group[1])))


def main(argv: Sequence[str] | None = None) -> int:
    """Write the table; exit code 2 for an architecture that there is not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="ARCHITECTURE", help="default: all")
    options = parser.parse_args(argv)
    if unknown := set(options.names) - {each.name for each in ARCHITECTURES}:
        parser.error(f"no such architecture: {', '.join(sorted(unknown))}")
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    outcomes = read_table() if TABLE.exists() else {}
    cases = trials()
    for number, case in enumerate(cases, 1):
        if options.names and case.architecture.name not in options.names:
            continue
        start = time.perf_counter()
        # A trial of its own, which goes with the model and its graphs.
        outcome = Trial(case.architecture, case.sizes).outcome()
        outcomes[outcome.architecture, outcome.sizes] = outcome
        print(
            f"{number}/{len(cases)} {case}: export {outcome.export}, reference "
            f"{outcome.reference or '-'}, IREE {outcome.iree or '-'} {outcome.iree_error} "
            f"({time.perf_counter() - start:.0f} s)",
            file=sys.stderr,
        )
        # After each, so that what is interrupted was not for nothing.
        keys = [(each.architecture.name, each.sizes) for each in cases]
        write_table(outcomes[key] for key in keys if key in outcomes)
    outcomes = read_table()
    for said, names in groups(list(outcomes.values())).items():
        print(f"{len(names):3} {said}\n      {', '.join(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
