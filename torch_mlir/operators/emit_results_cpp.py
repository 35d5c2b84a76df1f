#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write the rules for operators' results (results.tsv) as a C++ include file.

The build runs this by its path; it needs the standard library alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

# Run by path there is no package around this file; its own folder is on the path then,
# unless Python was told to leave that out (-P, -I).
sys.path.insert(0, str(Path(__file__).resolve().parent))

from _emit import run
from _results import RESULTS_PATH, parse

PREAMBLE = """\
// Written by emit_results_cpp.py from results.tsv, whose lines these are without comments. Don't
// edit.
"""


def emit(text: str, file: str) -> str:
    """The include file's text.

    Raises:
        RulesError: the rules can't be read.
    """
    rows = [f"{name}\t" + "\t".join(rules) + "\n" for name, rules in parse(text, file).items()]
    literals = "\n".join(f"    {json.dumps(row)}" for row in rows)
    return f"{PREAMBLE}\nstatic constexpr std::string_view resultRules =\n{literals};\n"


def main(argv: list[str] | None = None) -> int:
    def text(arguments: argparse.Namespace) -> str:
        return emit(arguments.rules.read_text(encoding="utf-8"), str(arguments.rules))

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rules", type=Path, default=RESULTS_PATH, help="another file of rules")
    return run(parser, text, argv)


if __name__ == "__main__":
    sys.exit(main())
