# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What MODEL names: a saved program, TorchScript, MLIR, or an object of a Python module."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import io
import os
import re
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import CommandError, user_error
from .streams import read_file, read_standard_input, shown

_BYTECODE = b"ML\xefR"
_MLIR_SUFFIXES = (".mlir", ".mlirbc", ".bc")
_TORCHSCRIPT_SUFFIXES = (".pt", ".pth", ".ptl", ".ts")
_CALL = re.compile(r"(?P<name>[A-Za-z_][\w.]*)\s*(?P<arguments>\(.*\))?\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class SavedProgram:
    """A .pt2 archive: a path, or all of its bytes."""

    text: str
    source: str | io.BytesIO


@dataclass(frozen=True)
class TorchScriptArchive:
    """What torch.jit.save wrote, or what was written before it: a path, or all of its bytes."""

    text: str
    source: str | bytes


@dataclass(frozen=True)
class MlirText:
    """MLIR, as text or bytecode."""

    text: str
    data: bytes


@dataclass(frozen=True)
class PythonObject:
    """An object called `name` in a script or module, and what to call it with (None: don't)."""

    text: str
    origin: str
    is_script: bool
    name: str
    args: tuple[Any, ...] | None
    kwargs: dict[str, Any]

    def load(self) -> Any:
        """Import the module and find the object; the caller calls it.

        Raises:
            CommandError: there is no such module or object, or the user's code fails.
        """
        module = self._script() if self.is_script else self._module()
        found = module
        for part in self.name.split("."):
            try:
                found = getattr(found, part)
            except AttributeError as error:
                raise CommandError(f"{self.text}: {self.origin} has no {self.name!r}") from error
            except Exception as error:  # a module's __getattr__ may import anything
                raise CommandError(f"{self.text}: {user_error(error)}") from error
        return found

    def _script(self) -> Any:
        path = Path(self.origin)
        # As when Python runs it; and whatever it holds can be pickled and inspected by its name.
        sys.path.insert(0, str(path.parent.resolve()))
        name = path.stem
        if name in sys.modules:
            name = f"_torch_mlir_script_{name}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise CommandError(f"{self.text}: {path} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        self._run(lambda: spec.loader.exec_module(module))
        return module

    def _module(self) -> Any:
        # As `python -m` does.
        if "" not in sys.path:
            sys.path.insert(0, os.getcwd())
        return self._run(lambda: importlib.import_module(self.origin))

    def _run(self, load: Any) -> Any:
        try:
            return load()
        except SystemExit as error:
            raise CommandError(f"{self.text}: {self.origin} exits when it is imported") from error
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if not self.is_script and f"{self.origin}.".startswith(f"{missing}."):
                raise CommandError(f"{self.text}: there is no Python module {missing!r}") from error
            raise CommandError(f"{self.text}: {user_error(error)}") from error
        except Exception as error:  # the user's code may raise anything
            raise CommandError(f"{self.text}: {user_error(error)}") from error


Reference = SavedProgram | TorchScriptArchive | MlirText | PythonObject


def resolve(text: str) -> Reference:
    """What `text` names; files are looked at, Python code isn't run yet.

    Raises:
        CommandError: it names nothing that could be a model.
    """
    if text == "-":
        return _of_bytes(text, read_standard_input("a model"))
    if os.path.exists(text) or ":" not in text:
        return _file(text)
    origin, _, call = text.partition(":")
    if not origin.endswith(".py"):
        return _python(text, origin, False, call)
    if not os.path.isfile(origin):
        problem = "is a directory" if os.path.isdir(origin) else "No such file or directory"
        raise CommandError(f"{origin}: {problem}")
    return _python(text, origin, True, call)


def _python(text: str, origin: str, is_script: bool, call: str) -> PythonObject:
    match = _CALL.match(call)
    if match is None or not (is_script or re.fullmatch(r"\w+(\.\w+)*", origin)):
        raise CommandError(
            f"{text}: neither a file nor module:Class or script.py:function, "
            "with arguments in parentheses or without"
        )
    if match["arguments"] is None:
        return PythonObject(text, origin, is_script, match["name"], None, {})
    try:
        parsed = ast.parse(f"f{match['arguments']}", mode="eval").body
        # `(1)(2)` is a call as well, of what is no name.
        if not (isinstance(parsed, ast.Call) and isinstance(parsed.func, ast.Name)):
            raise SyntaxError("not one call")  # noqa: TRY004  caught below
        args = tuple(ast.literal_eval(argument) for argument in parsed.args)
        kwargs = {
            keyword.arg: ast.literal_eval(keyword.value)
            for keyword in parsed.keywords
            if keyword.arg is not None
        }
        if len(kwargs) != len(parsed.keywords):
            raise ValueError("a call with **")
    except (SyntaxError, ValueError) as error:
        raise CommandError(
            f"{text}: the arguments are Python literals, as in (1, key='value')"
        ) from error
    return PythonObject(text, origin, is_script, match["name"], args, kwargs)


def _file(path: str) -> Reference:
    if os.path.isdir(path):
        raise CommandError(f"{path}: is a directory, not a model")
    if path.endswith(_MLIR_SUFFIXES):
        return MlirText(path, read_file(path))
    if path.endswith(".py") and os.path.exists(path):
        raise CommandError(f"{path}: say which function or class of it, as in {path}:model")
    if _is_torchscript(path, path):
        return TorchScriptArchive(path, path)
    return SavedProgram(path, path)


def _of_bytes(text: str, data: bytes) -> Reference:
    if data.startswith(_BYTECODE):
        return MlirText(text, data)
    if not data.startswith(b"PK"):
        try:
            decoded = data.decode()
        except UnicodeDecodeError:
            decoded = ""
        # An empty module is MLIR too, but nobody means one.
        if re.search(r"\b(module|func\.func)\b", decoded):
            return MlirText(text, data)
    source = io.BytesIO(data)
    if _is_torchscript(text, source):
        return TorchScriptArchive(text, data)
    source.seek(0)
    return SavedProgram(text, source)


def _is_torchscript(text: str, source: str | io.BytesIO) -> bool:
    """Whether an archive is TorchScript, rather than a program; by what it holds.

    What is called .pt is left to the importer of TorchScript, which tells more of files that are
    damaged or of another kind.

    Raises:
        CommandError: it is neither, which PyTorch's own messages don't tell.
    """
    name = shown(text)
    is_called_pt = text.endswith(_TORCHSCRIPT_SUFFIXES)
    try:
        with zipfile.ZipFile(source) as archive:
            # zipfile also takes the last archive within one that is cut short: programs hold
            # their example inputs as archives of their own.
            if min((member.header_offset for member in archive.infolist()), default=0) > 0:
                raise zipfile.BadZipFile("something precedes the first member")
            members = [member.partition("/")[2] or member for member in archive.namelist()]
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror or error}") from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        if is_called_pt:
            return True
        raise CommandError(
            f"{name}: not a .pt2 archive, or one that is cut short: it is no whole zip file"
        ) from error
    if "constants.pkl" in members and "data.pkl" in members:
        return True
    # TorchScript's first format, which the importer tells about.
    if "model.json" in members and any(name.startswith("tensors/") for name in members):
        return True
    if "data.pkl" in members and is_called_pt:
        return True
    if "data.pkl" in members:
        raise CommandError(
            f"{name}: holds what torch.save wrote, weights or a pickled module; "
            "torch.export.save writes programs"
        )
    return False
