"""The native part of the package, and what happens when it is imported.

MLIR's Python bindings (``torch_mlir.ir``) look for a few names here. Importing this module

0. makes the extension modules importable: one shared object holds all of them;
1. runs the site initialisers: the modules ``_site_initialize_<n>`` of this folder, in the order
   of ``n``. ``_site_initialize_0`` is the package's own; others are a user's;
2. puts the context that those initialisers configure in the place of MLIR's ``ir.Context``, the
   exception that the bindings raise for a diagnostic into ``ir.MLIRError``, and our ``print`` and
   ``write_bytecode``, which write in pieces, in the place of those of ``ir.Operation``;
3. warns of shared objects in this folder that belong to another version of the package.

A site initialiser may define

``register_dialects(registry)``
    called once with the :class:`ir.DialectRegistry` that every context gets;
``context_init_hook(context)``
    called with each new context;
``disable_multithreading``
    when true, contexts stay single-threaded;
``disable_load_all_available_dialects``
    when true, a context loads only the dialects that its ``load_on_create_dialects`` argument or
    :func:`append_load_on_create_dialect` names. By default it loads all that are registered.

What an initialiser raises reaches whoever imports the package.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

_FOLDER = Path(__file__).parent
_SITE_INITIALIZER = re.compile(r"_site_initialize_(\d+)")

# Shared objects of this version of the package: the extension modules in each.
_SHIPPED: dict[str, list[str]] = {
    line.split()[0]: line.split()[1:]
    for line in (_FOLDER / "shared_objects.txt").read_text(encoding="utf-8").splitlines()
}


class _ShippedModules:
    """Finds what this version of the package ships, before the import system looks at files.

    One shared object holds all extension modules. And what another version left, an extension
    module ``_site_initialize_0`` say, would be taken in the place of a Python file of that name.
    """

    _extensions: ClassVar[dict[str, str]] = {
        f"{__name__}.{module}": str(_FOLDER / file)
        for file, modules in _SHIPPED.items()
        for module in modules
    }
    _initializer = _FOLDER / "_site_initialize_0.py"

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in cls._extensions:
            file = cls._extensions[name]
            loader = importlib.machinery.ExtensionFileLoader(name, file)
            return importlib.util.spec_from_file_location(name, file, loader=loader)
        if name == f"{__name__}.{cls._initializer.stem}" and cls._initializer.exists():
            return importlib.util.spec_from_file_location(name, cls._initializer)
        return None


sys.meta_path.insert(0, _ShippedModules)

from . import _torchMlir
from ._mlir import ir


class StaleExtensionWarning(RuntimeWarning):
    """A shared object in this folder is not of this version of the package."""


_dialect_registry: ir.DialectRegistry | None = None
_load_on_create_dialects: list[str] = []


def get_lib_dirs() -> Sequence[str]:
    """Folders that hold the package's shared libraries."""
    return [str(_FOLDER)]


def get_include_dirs() -> Sequence[str]:
    """Folders for headers of the C interface; the package installs none."""
    return [str(_FOLDER / "include")]


def get_dialect_registry() -> ir.DialectRegistry:
    """The registry that is appended to every new context."""
    global _dialect_registry
    if _dialect_registry is None:
        _dialect_registry = ir.DialectRegistry()
    return _dialect_registry


def append_load_on_create_dialect(dialect: str) -> None:
    """Has new contexts load ``dialect`` where an initialiser turned off loading all of them."""
    _load_on_create_dialects.append(dialect)


def get_load_on_create_dialects() -> list[str]:
    """Names given to :func:`append_load_on_create_dialect` so far; the list itself."""
    return _load_on_create_dialects


def _site_initializer_names() -> Iterator[str]:
    """Names of the site initialisers in this folder, in the order of their numbers."""
    suffixes = tuple(importlib.machinery.all_suffixes())
    numbers = set()
    for path in _FOLDER.iterdir():
        name, _, rest = path.name.partition(".")
        match = _SITE_INITIALIZER.fullmatch(name)
        if match and (path.is_dir() or f".{rest}" in suffixes):
            numbers.add((int(match[1]), name))
    for _, name in sorted(numbers):
        yield name


def _import_site_initializer(name: str) -> ModuleType | None:
    """Imports a site initialiser; ``None`` if it has gone. What it raises is not caught."""
    full_name = f"{__name__}.{name}"
    spec = importlib.util.find_spec(full_name)
    if spec is None or (spec.origin is not None and not Path(spec.origin).exists()):
        return None
    return importlib.import_module(full_name)


def _stale_shared_objects() -> list[Path]:
    """Shared objects in this folder that the package doesn't ship and no initialiser has loaded."""
    loaded = {
        Path(origin)
        for module in list(sys.modules.values())
        if (origin := getattr(module, "__file__", None)) and Path(origin).parent == _FOLDER
    }
    return sorted(
        path
        for path in _FOLDER.iterdir()
        if re.search(r"\.(so|pyd|dylib)(\.|$)", path.name)
        and path.name not in _SHIPPED
        and path not in loaded
    )


def _warn_of_stale_shared_objects() -> None:
    stale = _stale_shared_objects()
    if stale:
        files = ", ".join(str(path) for path in stale)
        warnings.warn(
            f"{files}: not part of this version of {__package__.partition('.')[0]} and not "
            "loaded; left over from another version or another package. Delete "
            f"{'it' if len(stale) == 1 else 'them'}.",
            StaleExtensionWarning,
            stacklevel=2,
        )


class MLIRError(Exception):
    """MLIR refused something.

    Attributes:
      message: what failed.
      error_diagnostics: the :class:`ir.DiagnosticInfo` of each error, with its notes.
    """

    def __init__(self, message: str, error_diagnostics: Sequence[ir.DiagnosticInfo]) -> None:
        self.message = message
        self.error_diagnostics = error_diagnostics
        super().__init__(message, error_diagnostics)

    def __str__(self) -> str:
        lines = [self.message + (":" if self.error_diagnostics else "")]
        for diagnostic in self.error_diagnostics:
            lines.append("error: " + _diagnostic_text(diagnostic))
            lines += [" note: " + _diagnostic_text(note) for note in diagnostic.notes]
        return "\n".join(lines)


def _diagnostic_text(diagnostic: ir.DiagnosticInfo) -> str:
    location = str(diagnostic.location).removeprefix("loc(").removesuffix(")")
    return f"{location}: " + diagnostic.message.replace("\n", "\n  ")


def _context_class(initializers: Sequence[ModuleType]) -> type[ir.Context]:
    """The ``Context`` that the initialisers configure."""
    hooks: list[Callable[[ir.Context], Any]] = [
        module.context_init_hook for module in initializers if hasattr(module, "context_init_hook")
    ]
    multithreading = not any(getattr(m, "disable_multithreading", False) for m in initializers)
    load_all = not any(
        getattr(m, "disable_load_all_available_dialects", False) for m in initializers
    )

    class Context(ir.Context):
        """An MLIR context with this package's dialects.

        Args:
          load_on_create_dialects: names of the dialects to load, in place of all that are
            registered.
          thread_pool: an :class:`ir.ThreadPool` to use in place of one of the context's own.

        Raises:
          ValueError: a thread pool is given, but a site initialiser disables multithreading.
        """

        def __init__(
            self,
            load_on_create_dialects: Sequence[str] | None = None,
            thread_pool: ir.ThreadPool | None = None,
            *args: Any,
            **kwargs: Any,
        ) -> None:
            if thread_pool is not None and not multithreading:
                raise ValueError(
                    "a thread pool was given, but a site initialiser sets disable_multithreading"
                )
            super().__init__(*args, **kwargs)
            self.append_dialect_registry(get_dialect_registry())
            for hook in hooks:
                hook(self)
            if thread_pool is not None:
                self.set_thread_pool(thread_pool)
            elif multithreading:
                self.enable_multithreading(True)
            if load_on_create_dialects is None and load_all:
                self.load_all_available_dialects()
                return
            names = load_on_create_dialects
            for name in get_load_on_create_dialects() if names is None else names:
                self.dialects[name]  # looking a dialect up loads it

    return Context


def _site_initialize() -> None:
    initializers = []
    try:
        for name in _site_initializer_names():
            module = _import_site_initializer(name)
            if module is None:
                continue
            if hasattr(module, "register_dialects"):
                module.register_dialects(get_dialect_registry())
            initializers.append(module)
    finally:
        # Also when an initialiser fails: what is left over may be the reason.
        _warn_of_stale_shared_objects()

    ir._Context = ir.Context
    ir.Context = _context_class(initializers)
    ir.MLIRError = MLIRError
    _torchMlir.bind_writing()

    # For `match` statements and isinstance checks.
    for sequence in (
        ir.BlockArgumentList,
        ir.BlockList,
        ir.BlockPredecessors,
        ir.BlockSuccessors,
        ir.OpOperandList,
        ir.OpResultList,
        ir.OpSuccessors,
        ir.OperationList,
        ir.RegionSequence,
    ):
        Sequence.register(sequence)
    Mapping.register(ir.OpAttributeMap)


_site_initialize()
