"""pkgs/python: how unpacked wheels become an environment."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAMS = Path(__file__).resolve().parents[3] / "pkgs/python"


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


join_environment = program("join_environment")
native_programs = program("native_programs")


def part(root: Path, files: dict[str, str]) -> Path:
    """An unpacked wheel: relative path -> content; what is in bin is executable."""
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        if name.startswith("bin/"):
            file.chmod(0o755)
    return root


def join(tmp_path: Path, *parts: Path) -> Path:
    environment = tmp_path / "environment"
    join_environment.join(list(parts), environment, tmp_path / "python", environment)
    return environment


def test_a_folder_of_one_wheel_is_one_link(tmp_path: Path) -> None:
    one = part(tmp_path / "one", {"site/alpha/__init__.py": "A"})
    two = part(tmp_path / "two", {"site/beta/__init__.py": "B"})
    environment = join(tmp_path, one, two)
    assert (environment / "site/alpha").readlink() == one / "site/alpha"
    assert (environment / "site/beta/__init__.py").read_text() == "B"


def test_a_namespace_of_two_wheels_holds_both(tmp_path: Path) -> None:
    one = part(tmp_path / "one", {"site/shared/alpha/x.py": "A"})
    two = part(tmp_path / "two", {"site/shared/beta/y.py": "B", "site/shared/z.py": "Z"})
    environment = join(tmp_path, one, two)
    shared = environment / "site/shared"
    assert not shared.is_symlink()
    assert sorted(entry.name for entry in shared.iterdir()) == ["alpha", "beta", "z.py"]


def test_the_same_file_twice_is_no_clash_another_is(tmp_path: Path) -> None:
    one = part(tmp_path / "one", {"site/shared/__init__.py": "same"})
    two = part(tmp_path / "two", {"site/shared/__init__.py": "same"})
    assert (join(tmp_path, one, two) / "site/shared/__init__.py").read_text() == "same"
    shutil.rmtree(tmp_path / "environment")
    three = part(tmp_path / "three", {"site/shared/__init__.py": "other"})
    with pytest.raises(join_environment.Clash, match=r"__init__\.py: not the same in .*one.*three"):
        join(tmp_path, one, three)


def test_scripts_of_the_base_python_become_the_environments(tmp_path: Path) -> None:
    python = tmp_path / "python"
    one = part(
        tmp_path / "one",
        {"bin/tool": f"#!{python}/bin/python3.11\nprint(1)\n", "bin/other": "#!/bin/sh\nexit 0\n"},
    )
    environment = join(tmp_path, one)
    tool = environment / "bin/tool"
    assert tool.read_text() == f"#!{environment}/bin/python3\nprint(1)\n"
    assert tool.stat().st_mode & 0o111
    assert (environment / "bin/other").read_text() == "#!/bin/sh\nexit 0\n"


def test_native_programs_are_copied_since_they_look_beside_themselves(tmp_path: Path) -> None:
    one = part(tmp_path / "one", {"site/tool/lib/data": "D"})
    (one / "site/tool/bin").mkdir()
    shutil.copy(Path(sys.executable).resolve(), one / "site/tool/bin/native")
    environment = join(tmp_path, one)
    assert not (environment / "site/tool/bin/native").is_symlink()
    assert (environment / "site/tool/lib").is_symlink()


def test_programs_are_told_from_libraries_and_scripts(tmp_path: Path) -> None:
    interpreter = Path(sys.executable).resolve()
    shutil.copy(interpreter, tmp_path / "native")
    (tmp_path / "native").chmod(0o755)
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "script").chmod(0o755)
    extension = Path(importlib.util.find_spec("_ctypes").origin)
    shutil.copy(extension, tmp_path / "library")
    (tmp_path / "library").chmod(0o755)
    assert list(native_programs.native_programs(tmp_path)) == [tmp_path / "native"]


def test_the_environment_is_a_virtual_one(tmp_path: Path) -> None:
    python = Path(sys.base_prefix)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    one = part(tmp_path / "one", {f"lib/python{version}/site-packages/alpha.py": "VALUE = 7"})
    environment = tmp_path / "environment"
    subprocess.run(
        [sys.executable, PROGRAMS / "join_environment.py", python, environment, one], check=True
    )
    assert f"home = {python}/bin\n" in (environment / "pyvenv.cfg").read_text()
    found = subprocess.run(
        [
            environment / "bin/python3",
            "-sE",
            "-c",
            "import sys, alpha; print(sys.prefix, alpha.VALUE)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == [str(environment), "7"]
