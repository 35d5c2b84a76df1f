# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IREE's command-line tools, which read modules from us and tell what they refuse.

The tools run as processes of their own: a compiler that crashes takes nobody with it, and what
it writes to its standard error becomes the message of an exception. Modules travel through a
pipe.
"""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..compiler_utils import TorchMlirCompilerError

if TYPE_CHECKING:
    from .. import ir

COMPILER_PACKAGE = "iree-base-compiler"
RUNTIME_PACKAGE = "iree-base-runtime"


@dataclass(frozen=True)
class Diagnostic:
    """One error that a tool reports.

    Attributes:
        message: what is wrong, without the operation that follows it in IREE's text.
        location: where, as `file:line:column` of the user's program; "" where IREE knows none.
        operation: the operation that is concerned, e.g. `torch.aten.stft`; "" where the error
            names none.
    """

    message: str
    location: str = ""
    operation: str = ""

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        what = f" [{self.operation}]" if self.operation not in self.message else ""
        return f"{where}{self.message}{what}"


class NotInstalled(TorchMlirCompilerError):
    """A package of IREE's is not installed; the message names it."""


class IreeError(TorchMlirCompilerError):
    """IREE refuses a module, or fails on it.

    Attributes:
        diagnostics: the errors that IREE reports, in its order; never empty.
        output: all that the tool wrote to its standard error.
    """

    def __init__(self, summary: str, diagnostics: Sequence[Diagnostic], output: str) -> None:
        self.diagnostics = tuple(diagnostics)
        self.output = output
        shown = [f"  {diagnostic}" for diagnostic in self.diagnostics[:_SHOWN]]
        if len(self.diagnostics) > _SHOWN:
            shown.append(f"  … and {len(self.diagnostics) - _SHOWN} more")
        super().__init__("\n".join([summary, *shown]))


_SHOWN = 4  # diagnostics in the text of an exception
# `file:line:column: error: message`, where the place may be missing or in quotes.
_ERROR = re.compile(r"^(?:(?P<location>.*?):? ?)?\berror: (?P<message>.*)$")
_ANONYMOUS = re.compile(r'^(?:<stdin>|-|<unknown>(:0)?|loc\(unknown\)|"?-"?:\d+:\d+|unknown)$')
# An operation after a colon: `%0 = "torch.operator"(%arg0) <{name = "torch.my.op"}> : …`.
_PRINTED = re.compile(r': (?:%[\w:#, %]+ = )?"?[\w$]+\.[\w.$]+"?[ (<].*$')
_OPERATOR_NAME = re.compile(
    r'<?\{[^}]*\bname = "(torch\.[\w.]+)"|torch\.operator "(torch\.[\w.]+)"'
)
_OPERATION = re.compile(r"'((?:torch|torch_c|tm_tensor|onnx)\.[\w.]+)'")


def find(tool: str) -> str:
    """The path of one of IREE's compiler tools.

    Raises:
        NotInstalled: the package that holds it is not installed.
    """
    if not _installed("iree.compiler"):
        raise NotInstalled(
            f"{tool} is not installed: it comes with the package {COMPILER_PACKAGE} "
            f"(pip install {COMPILER_PACKAGE})"
        )
    from iree.compiler.tools.binaries import find_tool

    try:
        return str(find_tool(tool))
    except ValueError as error:
        raise NotInstalled(f"the installed {COMPILER_PACKAGE} has no {tool}: {error}") from None


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the parent package
        return False


def run(
    tool: str, flags: Iterable[str], module: ir.Module | bytes, summary: str
) -> tuple[bytes, str]:
    """Run a tool on a module.

    Args:
        tool: `iree-compile` or `iree-opt`.
        flags: what the tool is told besides `-` and `-o -`.
        module: goes to the tool's standard input, as bytecode; bytes go there as they are.
        summary: the first line of the error if the tool fails.

    Returns:
        What the tool wrote to its standard output, and to its standard error.

    Raises:
        NotInstalled: the package that holds the tool is not installed.
        IreeError: the tool reports an error, or dies.
    """
    command = [find(tool), "-", "-o", "-", *flags]
    with tempfile.TemporaryFile() as result, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=result, stderr=errors)
        assert process.stdin is not None
        try:
            try:
                if isinstance(module, bytes):
                    process.stdin.write(module)
                else:
                    module.operation.write_bytecode(process.stdin)
                process.stdin.close()
            except BrokenPipeError:
                pass  # It gave up before it read everything, and says why.
            code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        errors.seek(0)
        text = errors.read().decode(errors="replace")
        if code:
            raise IreeError(summary, _diagnostics(tool, code, text), text)
        result.seek(0)
        return result.read(), text


def _diagnostics(tool: str, code: int, text: str) -> list[Diagnostic]:
    found = list(dict.fromkeys(_parse(text)))
    if code < 0:
        name = signal.Signals(-code).name
        cause = next((line for line in text.splitlines() if _names_a_crash(line)), "")
        message = f"{tool} crashed ({name})" + (f": {cause.strip()}" if cause else "")
        found.insert(0, Diagnostic(message))
    if not found:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        said = f": {' '.join(lines)[:300]}" if lines else ""
        found = [Diagnostic(f"{tool} failed with exit code {code}{said}")]
    return found


def _names_a_crash(line: str) -> bool:
    return "Assertion" in line or "LLVM ERROR" in line or "terminate called" in line


def _parse(text: str) -> Iterable[Diagnostic]:
    for line in text.splitlines():
        match = _ERROR.match(line)
        if not match:
            continue
        message = match["message"].strip()
        location = (match["location"] or "").strip()
        if _ANONYMOUS.match(location):
            location = ""
        by_name = _OPERATOR_NAME.search(message)
        quoted = _OPERATION.search(message)
        operation = ""
        if by_name:
            operation = by_name[1] or by_name[2]
        elif quoted:
            operation = quoted[1]
        yield Diagnostic(_PRINTED.sub("", message), location, operation)


def group_refusals(
    errors: Mapping[str, BaseException],
) -> dict[tuple[str, str], list[str]]:
    """Which models fail for the same reason.

    Args:
        errors: for each model, what its compilation raised.

    Returns:
        For each pair of a message and the operation it concerns ("" where it names none) the
        models that fail so, the most frequent first. Locations and shapes don't count; nor do
        errors after a model's first, which tend to follow from it.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for model, error in errors.items():
        if isinstance(error, IreeError):
            first = error.diagnostics[0]
            key = (_without_shapes(first.message), first.operation)
        else:
            lines = str(error).splitlines() or [""]
            key = (f"{type(error).__name__}: {lines[0]}", "")
        groups.setdefault(key, []).append(model)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


_TYPES = re.compile(r"!?[\w.]+<[^<>]*(?:<[^<>]*>[^<>]*)*>")
_VALUES = re.compile(r"%[\w#:]+")


def _without_shapes(message: str) -> str:
    return _VALUES.sub("%…", _TYPES.sub("<…>", message))
