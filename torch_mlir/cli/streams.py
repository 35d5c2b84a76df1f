# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files and standard streams: read whole, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .errors import CommandError


def shown(path: str) -> str:
    """How messages call the input `path`."""
    return "standard input" if path == "-" else path


def read_standard_input(wanted: str) -> bytes:
    """All of standard input.

    Raises:
        CommandError: it is a terminal.
    """
    if sys.stdin.isatty():
        raise CommandError(f"standard input is a terminal; give it {wanted}")
    return sys.stdin.buffer.read()


def read_file(path: str) -> bytes:
    """All of a file.

    Raises:
        CommandError: it can't be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error


def check_output(path: str) -> None:
    """Find out before long work that `path` can't be written.

    Raises:
        CommandError: its folder is missing or read-only, or it is a folder itself.
    """
    if path == "-":
        return
    with errors_of(path):
        target = Path(path)
        if target.is_dir():
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            return
        folder = target.resolve().parent
        folder.stat()
        if not folder.is_dir():
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(folder, os.W_OK):
            read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
            number = errno.EROFS if read_only else errno.EACCES
            raise OSError(number, os.strerror(number))


@contextlib.contextmanager
def output(path: str) -> Iterator[IO[bytes]]:
    """A file to write to that takes the place of `path` once everything is written.

    Raises:
        CommandError: it can't be written; what was there before is unchanged.
    """
    if path == "-":
        with errors_of("standard output"):
            sys.stdout.flush()
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    target = Path(path)
    with errors_of(path):
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            if target.is_dir():
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
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
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_text(path: str, text: str) -> None:
    """Write `text`, whole or not at all; see `output`."""
    with output(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def errors_of(path: str) -> Iterator[None]:
    """Errors of writing `path` as a `CommandError`."""
    try:
        yield
    except BrokenPipeError as error:
        # The interpreter flushes standard output once more at exit.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CommandError(f"{path}: the reader went away") from error
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error
