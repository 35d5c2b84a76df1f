# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line: `torch-mlir import MODEL.pt2 -o model.mlir`.

Exit codes: 0 done, 1 the input or the environment does not allow it, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import stat
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from . import ir

_EMIT = ("text", "bytecode")
_OUTPUT_TYPES = ("raw", "torch", "linalg-on-tensors", "tosa", "stablehlo")
_TARGETS = ("iree",)


class CommandError(Exception):
    """What went wrong, in one line for the user."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's); the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except CommandError as error:
        print(f"torch-mlir: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("torch-mlir: interrupted", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="torch-mlir", description="PyTorch models as MLIR's Torch dialect."
    )
    version = {"action": "version", "version": f"torch-mlir {__version__}"}
    parser.add_argument("--version", **version)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "import",
        help="import a saved model",
        description="Import a program that torch.export.save wrote. Needs PyTorch 2.1 or newer.",
    )
    command.add_argument("--version", **version)
    command.add_argument("model", metavar="MODEL.pt2", help="the program, - for standard input")
    command.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="FILE",
        help="where to write the module, - for standard output (default)",
    )
    command.add_argument(
        "--emit",
        choices=_EMIT,
        help="how to write it (default: bytecode for a FILE that ends in .mlirbc, else text)",
    )
    command.add_argument(
        "--output-type", choices=_OUTPUT_TYPES, default="raw", help="how far to lower it"
    )
    command.add_argument("--func-name", default="main", metavar="NAME", help="the function's name")
    command.add_argument(
        "--target",
        choices=_TARGETS,
        help="write operators that this compiler does not register as torch.operator",
    )
    command.add_argument(
        "--mutation",
        action="store_true",
        help="import writes to inputs as such, not as additional results",
    )
    command.add_argument(
        "--symbolic-shapes",
        action="store_true",
        help="tell the symbols of open sizes and their ranges",
    )
    command.add_argument(
        "--no-decompose", action="store_true", help="keep the program's operators as they are"
    )
    command.add_argument(
        "--locations", action="store_true", help="write source locations into the text"
    )
    command.set_defaults(run=_import)
    return parser


def _import(arguments: argparse.Namespace) -> None:
    emit = arguments.emit or ("bytecode" if arguments.output.endswith(".mlirbc") else "text")
    shown = "standard input" if arguments.model == "-" else arguments.model
    source = _read(arguments.model, shown)
    with _progress() as step, warnings.catch_warnings():
        # What PyTorch says about its own code is not for the user of this command.
        warnings.simplefilter("ignore")
        step("loading PyTorch")
        try:
            from . import fx
        except ImportError as error:
            raise CommandError(f"{shown}: {error}") from error
        step(f"loading {shown}")
        program = _load(fx.torch, source, shown)
        step("importing")
        try:
            module = fx.export_and_import(
                program,
                output_type=arguments.output_type,
                func_name=arguments.func_name,
                experimental_support_mutation=arguments.mutation,
                import_symbolic_shape_expressions=arguments.symbolic_shapes,
                decomposition_table={} if arguments.no_decompose else None,
                target=arguments.target,
            )
        except (fx.TorchMlirCompilerError, ImportError) as error:
            raise CommandError(f"{shown}: {_line(error)}") from error
        step(f"writing {arguments.output}")
        with _output(arguments.output) as file:
            _write(module, file, emit, arguments.locations)


def _read(path: str, shown: str) -> str | io.BytesIO:
    """The model as PyTorch's loader takes it, looked at first: is it a saved program at all?"""
    if path == "-":
        if sys.stdin.isatty():
            raise CommandError("standard input is a terminal; give it a .pt2 archive")
        source: str | io.BytesIO = io.BytesIO(sys.stdin.buffer.read())
    else:
        if Path(path).is_dir():
            raise CommandError(f"{shown}: is a directory, not a .pt2 archive")
        source = path
    try:
        with zipfile.ZipFile(source) as archive:
            members = [name.partition("/")[2] or name for name in archive.namelist()]
    except OSError as error:
        raise CommandError(f"{shown}: {error.strerror or error}") from error
    except zipfile.BadZipFile as error:
        raise CommandError(
            f"{shown}: not a .pt2 archive, or one that is cut short: it is no zip file"
        ) from error
    if "constants.pkl" in members and "data.pkl" in members:
        raise CommandError(
            f"{shown}: a TorchScript archive; `import` reads what torch.export.save wrote"
        )
    if isinstance(source, io.BytesIO):
        source.seek(0)
    return source


def _load(torch: Any, source: str | io.BytesIO, shown: str) -> Any:
    said: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    # PyTorch logs the reason of a failed load, and raises an error that refers to the log.
    logger, keep = logging.getLogger("torch"), Keep()
    own, propagate = logger.handlers[:], logger.propagate
    logger.handlers, logger.propagate = [keep], False
    try:
        return torch.export.load(source)
    except Exception as error:  # whatever the loader meets in a file that it can't read
        reason = _line(error)
        if said:
            reason += f" ({' '.join(said[-1].split())})"
        raise CommandError(
            f"{shown}: PyTorch {torch.__version__} cannot load the program: {reason}"
        ) from error
    finally:
        logger.handlers, logger.propagate = own, propagate


def _line(error: BaseException) -> str:
    """An error's message as one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _write(module: ir.Module, file: IO[bytes], emit: str, locations: bool) -> None:
    if emit == "bytecode":
        module.operation.write_bytecode(file)
    else:
        module.operation.print(file=file, binary=True, enable_debug_info=locations)


@contextlib.contextmanager
def _output(path: str) -> Iterator[IO[bytes]]:
    """A file to write to that takes the place of `path` once everything is written."""
    if path == "-":
        with _errors_of("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    target = Path(path)
    with _errors_of(path):
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            if target.is_dir():
                raise IsADirectoryError(21, "Is a directory")
            # A pipe or a device: there is nothing to replace.
            with target.open("wb") as file:
                yield file
            return
        # What a link points to is replaced, not the link.
        target = target.resolve()
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("xb") as file:
                yield file
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _errors_of(path: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        # The interpreter flushes standard output once more at exit.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CommandError(f"{path}: the reader went away") from error
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Tells on a terminal what is being done; says nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda step: None
        return

    def show(step: str) -> None:
        sys.stderr.write(f"\r\x1b[K{step} ...")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
