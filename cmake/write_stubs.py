"""Writes type stubs of the package's extension modules, read out of the modules themselves.

The modules are loaded as they are, without the package's Python code around them: what that puts
in the place of MLIR's own ``ir.Context`` would come out as an alias of itself.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import sys
import tempfile
import types
from pathlib import Path

from nanobind import stubgen

PACKAGE = "torch_mlir"
LIBRARIES = f"{PACKAGE}._mlir_libs"
LAZY_BACKEND = "_lazy_backend"

# What torch_mlir/_mlir_libs/__init__.py adds to the bindings, in stubgen's pattern format.
PATTERNS = rf"""
{LIBRARIES}._mlir.ir.Context.__init__:
    def __init__(
        self,
        load_on_create_dialects: Sequence[str] | None = None,
        thread_pool: ThreadPool | None = None,
    ) -> None: ...

{LIBRARIES}._mlir.ir.__suffix__:
    class MLIRError(Exception):
        message: str
        error_diagnostics: list[DiagnosticInfo]
        def __init__(self, message: str, error_diagnostics: Sequence[DiagnosticInfo]) -> None: ...
"""


class Modules:
    """Finds the extension modules in the shared object that holds them."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, str] = {}
        for line in (folder / "shared_objects.txt").read_text(encoding="utf-8").splitlines():
            file, *modules = line.split()
            for module in modules:
                self.files[f"{LIBRARIES}.{module}"] = str(folder / file)

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        file = self.files.get(name)
        if file is None:
            return None
        loader = importlib.machinery.ExtensionFileLoader(name, file)
        return importlib.util.spec_from_file_location(name, file, loader=loader)


def bare_package(name: str, folder: Path) -> types.ModuleType:
    """A package of that name and folder whose ``__init__.py`` hasn't run."""
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package
    return package


def load_torch(folder: Path | None) -> None:
    """Load PyTorch's libraries, with which the lazy backend is linked.

    Args:
        folder: the package's; the installed one if it is None.

    Raises:
        SystemExit: this Python can't import it.
    """
    if folder is not None:
        sys.path.insert(0, str(folder.absolute().parent))
    try:
        import torch  # noqa: F401
    except ImportError as error:
        where = "" if folder is None else f" of {folder}"
        raise SystemExit(
            f"The type stub of {LAZY_BACKEND} is read out of the module, which needs the PyTorch"
            f"{where}, and {sys.executable} can't import that: {error}"
        ) from error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package", type=Path, help="folder of the package in the build tree")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the stubs")
    parser.add_argument(
        "--module",
        action="append",
        metavar="NAME",
        help="write the stub of this one (default: all)",
    )
    parser.add_argument(
        "--torch",
        type=Path,
        metavar="FOLDER",
        help=f"package of the PyTorch that {LAZY_BACKEND} is built with (default: the installed one)",
    )
    arguments = parser.parse_args()

    libraries_folder = arguments.package / "_mlir_libs"
    modules = Modules(libraries_folder)
    sys.meta_path.insert(0, modules)
    bare_package(PACKAGE, arguments.package)
    libraries = bare_package(LIBRARIES, libraries_folder)
    # Names that torch_mlir/ir.py takes from there.
    for name in (
        "get_dialect_registry",
        "append_load_on_create_dialect",
        "get_load_on_create_dialects",
    ):
        setattr(libraries, name, None)

    if f"{LIBRARIES}.{LAZY_BACKEND}" in modules.files:
        load_torch(arguments.torch)

    with tempfile.TemporaryDirectory() as folder:
        patterns = Path(folder, "patterns.txt")
        patterns.write_text(PATTERNS, encoding="utf-8")
        options = ["--quiet", "--include-private", "--pattern-file", str(patterns)]
        core = f"{LIBRARIES}._mlir"
        # Its classes of types are made on request, see the bindings.
        importlib.import_module(f"{LIBRARIES}._torchMlir").bind_types()
        wanted = [f"{LIBRARIES}.{name}" for name in arguments.module or []]
        for name in wanted or modules.files:
            once = [*options, "--module", name, "--output-dir", folder]
            stubgen.main([*once, "--recursive"] if name == core else once)
        arguments.output.mkdir(parents=True, exist_ok=True)
        for stub in sorted(Path(folder).rglob("*.pyi")):
            # A docstring in the bindings names the module without its package.
            text = stub.read_text(encoding="utf-8")
            lines = text.replace("[_mlir.ir.", f"[{core}.ir.").splitlines()
            lines = [
                line.replace(" _mlir.ir.", f" {core}.ir.")
                for line in lines
                if line != "import _mlir.ir"
            ]
            if stub.name == "__init__.pyi":
                lines.insert(lines.index("") + 1, f"import {core}.ir")
            if stub.name == "_torchMlir.pyi":
                # What its classes make is of the same class; nanobind only knows an object.
                lines = [
                    line.replace("-> object:", "-> typing.Self:") if "(cls" in line else line
                    for line in lines
                ]
                lines.insert(lines.index("") + 1, "import typing")
            target = arguments.output / stub.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
