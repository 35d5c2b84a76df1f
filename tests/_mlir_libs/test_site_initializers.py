"""What site initialisers may do, what becomes of their errors, and of files left over."""

from __future__ import annotations

import ctypes
import importlib
import json
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

EXTENSION_SUFFIX: str = sysconfig.get_config_var("EXT_SUFFIX")

Run = Callable[[str], "subprocess.CompletedProcess[str]"]

# Imports the bindings, uses them, and prints the warnings of all that.
IMPORT_AND_REPORT = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch_mlir.ir as ir
    with ir.Context():
        module = ir.Module.parse("func.func @f(%a: f32) -> f32 { return %a : f32 }")
        assert "@f" in str(module)
print(json.dumps([(w.category.__name__, str(w.message)) for w in caught]))
"""


def imported_with_warnings(result: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    assert result.returncode == 0, result.stderr
    return [tuple(warning) for warning in json.loads(result.stdout.splitlines()[-1])]


def test_a_clean_package_imports_without_a_warning(run: Run) -> None:
    assert imported_with_warnings(run(IMPORT_AND_REPORT)) == []


def test_initializers_run_in_the_order_of_their_numbers(libraries: Path, run: Run) -> None:
    for number in (10, 2, 1):
        (libraries / f"_site_initialize_{number}.py").write_text(f"print({number})\n")
    result = run("import torch_mlir.ir")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["1", "2", "10"]


def test_a_gap_in_the_numbers_is_skipped(libraries: Path, run: Run) -> None:
    (libraries / "_site_initialize_7.py").write_text("print('seven')\n")
    assert run("import torch_mlir.ir").stdout.split() == ["seven"]


def test_a_missing_module_is_skipped(libraries: Path, run: Run) -> None:
    (libraries / "_site_initialize_0.py").unlink()
    (libraries / "_site_initialize_1.py").symlink_to(libraries / "gone.py")
    (libraries / "_site_initialize_2.py").write_text("print('two')\n")
    result = run(
        "import torch_mlir.ir as ir\n"
        "from torch_mlir._mlir_libs import _torchMlir, get_dialect_registry\n"
        "ir.Context()\n"
        "print(_torchMlir.dialect_names(get_dialect_registry()))\n"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["two", "['builtin']"]


def test_names_that_only_resemble_an_initializer_are_not_run(libraries: Path, run: Run) -> None:
    for name in ("_site_initialize_1_old.py", "_site_initialize_x.py", "_site_initialize_1.py~"):
        (libraries / name).write_text("raise RuntimeError('run')\n")
    assert imported_with_warnings(run(IMPORT_AND_REPORT)) == []


@pytest.mark.parametrize(
    "name",
    [
        f"_mlirRegisterEverything{EXTENSION_SUFFIX}",
        "_mlirRegisterEverything.so",
        f"_mlirDialectsGPU{EXTENSION_SUFFIX}",
        f"_torchMlir{EXTENSION_SUFFIX}",  # one that would be taken in the place of ours
        f"_site_initialize_0{EXTENSION_SUFFIX}",
        "libMLIRPythonSupport-other.so",
        "libMLIROld.so.22",
    ],
)
def test_a_stale_shared_object_gives_one_warning_and_the_import_goes_on(
    libraries: Path, run: Run, stale_object: Path, name: str
) -> None:
    stale = libraries / name
    shutil.copy(stale_object, stale)
    with pytest.raises(OSError, match="symbol_of_another_version"):
        ctypes.CDLL(str(stale))

    ((category, message),) = imported_with_warnings(run(IMPORT_AND_REPORT))
    assert category == "StaleExtensionWarning"
    assert str(stale) in message
    assert message.endswith("Delete it.")


def test_several_stale_shared_objects_give_one_warning(
    libraries: Path, run: Run, stale_object: Path
) -> None:
    names = [f"_mlirDialectsGPU{EXTENSION_SUFFIX}", f"_mlirRegisterEverything{EXTENSION_SUFFIX}"]
    for name in names:
        shutil.copy(stale_object, libraries / name)
    ((_, message),) = imported_with_warnings(run(IMPORT_AND_REPORT))
    assert all(str(libraries / name) in message for name in names)
    assert message.endswith("Delete them.")


def test_a_syntax_error_in_a_site_module_reaches_the_user(libraries: Path, run: Run) -> None:
    site = libraries / "_site_initialize_1.py"
    site.write_text("def broken(:\n")
    result = run("import torch_mlir.ir")
    assert result.returncode == 1
    assert "SyntaxError: invalid syntax" in result.stderr
    assert f'File "{site}", line 1' in result.stderr


def test_an_exception_in_a_site_module_reaches_the_user_with_its_traceback(
    libraries: Path, run: Run
) -> None:
    site = libraries / "_site_initialize_1.py"
    site.write_text("def configure():\n    raise KeyError('no such target')\n\nconfigure()\n")
    result = run("import torch_mlir.ir")
    assert result.returncode == 1
    assert result.stderr.rstrip().endswith("KeyError: 'no such target'")
    assert f'File "{site}", line 2, in configure' in result.stderr


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("import module_that_is_not_installed", "ModuleNotFoundError: No module named 'module_tha"),
        ("from ._mlir import name_that_is_not_there", "ImportError: cannot import name 'name_that"),
        ("from . import _site_initialize_9", "ImportError: cannot import name '_site_initialize_9"),
        ("raise ImportError('mine')", "ImportError: mine"),
    ],
)
def test_an_import_error_in_a_site_module_is_not_taken_for_a_stale_file(
    libraries: Path, run: Run, statement: str, error: str
) -> None:
    site = libraries / "_site_initialize_1.py"
    site.write_text(statement + "\n")
    result = run("import torch_mlir.ir")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith(error)
    assert f'File "{site}", line 1' in result.stderr
    assert "StaleExtensionWarning" not in result.stderr


def test_a_site_module_that_imports_a_stale_file_fails_and_the_file_is_named(
    libraries: Path, run: Run, stale_object: Path
) -> None:
    stale = libraries / f"_mlirRegisterEverything{EXTENSION_SUFFIX}"
    shutil.copy(stale_object, stale)
    site = libraries / "_site_initialize_1.py"
    site.write_text("from . import _mlirRegisterEverything\n")
    result = run("import torch_mlir.ir")
    assert result.returncode == 1
    assert "undefined symbol: symbol_of_another_version" in result.stderr.splitlines()[-1]
    assert f'File "{site}", line 1' in result.stderr
    assert result.stderr.count("StaleExtensionWarning: ") == 1


def test_a_users_own_extension_module_is_not_stale_when_a_site_module_loads_it(
    libraries: Path, run: Run
) -> None:
    modules = [importlib.import_module(name) for name in ("_csv", "_heapq", "_json", "_queue")]
    files = [Path(module.__file__) for module in modules if getattr(module, "__file__", None)]
    if not files:
        pytest.skip("this Python has no extension module in a file, so none to copy")
    extension = files[0]
    shutil.copy(extension, libraries / extension.name)
    module = extension.name.partition(".")[0]
    (libraries / "_site_initialize_1.py").write_text(f"from . import {module}\n")
    assert imported_with_warnings(run(IMPORT_AND_REPORT)) == []


def test_a_site_module_configures_registry_and_contexts(libraries: Path, run: Run) -> None:
    (libraries / "_site_initialize_1.py").write_text(
        "def register_dialects(registry):\n"
        "    print('registry', type(registry).__name__)\n"
        "def context_init_hook(context):\n"
        "    print('context', type(context).__name__)\n"
        "    context.allow_unregistered_dialects = True\n"
    )
    result = run(
        "import torch_mlir.ir as ir\n"
        "with ir.Context():\n"
        "    print(ir.Module.parse('\"a.b\"() : () -> ()'))\n"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[:2] == ["registry DialectRegistry", "context Context"]
    assert '"a.b"()' in result.stdout


def test_a_site_module_can_disable_multithreading(libraries: Path, run: Run) -> None:
    (libraries / "_site_initialize_1.py").write_text("disable_multithreading = True\n")
    result = run(
        "import torch_mlir.ir as ir\nir.Context()\nir.Context(thread_pool=ir.ThreadPool())\n"
    )
    assert "line 3" in result.stderr
    assert result.stderr.splitlines()[-1] == (
        "ValueError: a thread pool was given, but a site initialiser sets disable_multithreading"
    )


def test_a_site_module_can_leave_loading_dialects_to_the_context(libraries: Path, run: Run) -> None:
    (libraries / "_site_initialize_1.py").write_text("disable_load_all_available_dialects = True\n")
    result = run(
        "import torch_mlir.ir as ir\n"
        "loaded = lambda c: [n for n in ('scf.for', 'ml_program.func')\n"
        "                    if c.is_registered_operation(n)]\n"
        "print(loaded(ir.Context()))\n"
        "print(loaded(ir.Context(load_on_create_dialects=['scf'])))\n"
        "ir.append_load_on_create_dialect('ml_program')\n"
        "print(loaded(ir.Context()))\n"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["[]", "['scf.for']", "['ml_program.func']"]
