# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the programs that write the operators' data as C++ have in common.

Builds run those by their paths, so this needs the standard library alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def run(
    parser: argparse.ArgumentParser,
    emit: Callable[[argparse.Namespace], str],
    argv: Sequence[str] | None = None,
) -> int:
    """Write what `emit` gives to a file or to stdout, and give the exit status.

    A file is replaced when its text is complete, and stays as it was where there is none. What is
    wrong with the input, an OSError or a ValueError, is told on stderr after the program's name.

    Args:
        parser: takes the program's own arguments; `--output` is added.
        emit: the text for parsed arguments.
        argv: the command line's arguments, `sys.argv`'s by default.
    """
    parser.add_argument("-o", "--output", default="-", help="file to write (default: stdout)")
    arguments = parser.parse_args(argv)
    try:
        text = emit(arguments)
        if arguments.output == "-":
            sys.stdout.write(text)
        else:
            output = Path(arguments.output)
            part = output.with_name(output.name + ".part")
            part.write_text(text, encoding="utf-8")
            os.replace(part, output)
    except (OSError, ValueError) as error:
        print(f"{Path(parser.prog).stem}: {error}", file=sys.stderr)
        return 1
    return 0
