# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors as one line for the user."""

from __future__ import annotations

import os
import sysconfig
import traceback

# Where a message of PyTorch's would fill the screen, and nothing says which part matters.
_LONGEST = 600


class CommandError(Exception):
    """What went wrong, in one line for the user."""


def one_line(error: BaseException, longest: int = _LONGEST) -> str:
    """An error's message as one line, cut where it is longer than `longest` characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= longest else f"{text[:longest].rstrip()} … (--debug shows all)"


def user_error(error: BaseException) -> str:
    """An error that a user's own code raised: its kind, its message, and the line."""
    message = f"{type(error).__name__}: {one_line(error)}"
    if isinstance(error, SyntaxError):
        # It says itself where it is.
        return message
    place = _user_frame(error)
    return f"{message} ({place})" if place else message


def _user_frame(error: BaseException) -> str | None:
    """`file:line, in function` of the innermost frame that is no library's."""
    libraries = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    libraries.append(os.path.dirname(os.path.dirname(__file__)))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith("<") or "site-packages" in frame.filename:
            continue
        if any(_is_below(frame.filename, path) for path in libraries):
            continue
        return f"{frame.filename}:{frame.lineno}, in {frame.name}"
    return None


def _is_below(file: str, folder: str) -> bool:
    """Whether a file is in a folder, as it is named or where links lead."""
    return file.startswith(os.path.join(folder, "")) or os.path.realpath(file).startswith(
        os.path.join(os.path.realpath(folder), "")
    )
