# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Picks the command, and turns what it raises into an exit code and one line.

Exit codes: 0 done; 1 the input or the environment does not allow it, or results differ; 2 wrong
usage; 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence

from . import main_completion, main_import, main_ops, main_run, main_view
from .errors import CommandError, one_line
from .options import common_options

_COMMANDS = (main_import, main_run, main_ops, main_view, main_completion)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="torch-mlir", description="PyTorch models as MLIR's Torch dialect."
    )
    common_options(parser)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.configure_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's); the exit code."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    arguments.parser = parser
    debug = arguments.debug or bool(os.environ.get("TORCH_MLIR_DEBUG"))
    try:
        with _termination_unwinds():
            arguments.execute(arguments)
    except KeyboardInterrupt:
        print("torch-mlir: interrupted", file=sys.stderr)
        return 130
    except _Terminated:
        print("torch-mlir: terminated", file=sys.stderr)
        return 143
    except Exception as error:  # noqa: BLE001  whatever it is, the user gets one line
        if debug:
            traceback.print_exception(error)
        expected = isinstance(error, CommandError)
        message = str(error) if expected else f"internal error: {_kind(error)}"
        print(f"torch-mlir: error: {message}", file=sys.stderr)
        return 1
    return 0


def _kind(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line(error)} (--debug tells where)"


class _Terminated(BaseException):
    """The process was asked to end; what it has written so far is to be removed."""


@contextlib.contextmanager
def _termination_unwinds() -> Iterator[None]:
    """While active, SIGTERM unwinds the stack, so that temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: object) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
