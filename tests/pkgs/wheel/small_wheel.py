"""A base wheel of our distribution in miniature, with real shared objects.

The objects are compiled from a few lines of C by the compiler that ``CC`` names, the
host's or ziglang's; they import and export what the real ones do.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PARTS = ROOT / "pkgs/wheel/parts.json"
LIBS = "torch_mlir/_mlir_libs"
AGGREGATE = f"{LIBS}/libTorchMLIRAggregateCAPI.so"
EXTENSION = f"{LIBS}/_mlir.cpython-311-x86_64-linux-gnu.so"
DIST_INFO = "torch_mlir_static-0.1.0.dist-info"

AGGREGATE_SOURCE = """
#include <string.h>
#define ENTRY __attribute__((visibility("default")))
static char name[64];
ENTRY void *mlirContextCreate(void) { return name; }
ENTRY unsigned long torchMlirNameSize(const char *text) { return strlen(strcat(name, text)); }
"""
EXTENSION_SOURCE = """
extern void *mlirContextCreate(void);
extern void *PyModule_Create2(void *, int);
__attribute__((visibility("default"))) void *PyInit__mlir(void) {
  return PyModule_Create2(mlirContextCreate(), 1013);
}
"""


def compiler() -> list[str]:
    """A C compiler's command.

    Raises:
        FileNotFoundError: there is none.
    """
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return [found]
    probe = subprocess.run(
        [sys.executable, "-m", "ziglang", "version"], capture_output=True, check=False
    )
    if probe.returncode == 0:
        return [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu.2.28"]
    raise FileNotFoundError("no C compiler: set CC, or install gcc or ziglang")


def compile_object(folder: Path, source: str, *flags: str, name: str = "object.so") -> bytes:
    """Compiles C to a shared object; returns its bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "source.c").write_text(source)
    command = [*compiler(), "-shared", "-fPIC", "-O1", "-s", "-fvisibility=hidden", "-nostartfiles"]
    command += ["source.c", "-o", name, "-Wl,-z,noexecstack", *flags]
    subprocess.run(command, cwd=folder, check=True)
    data = (folder / name).read_bytes()
    return data


def library_stub(folder: Path, soname: str, source: str, version: str = "") -> None:
    """A library to link against: ``folder/stub.so``, with one symbol version for all."""
    flags = [f"-Wl,-soname,{soname}"]
    if version:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "versions").write_text(f"{version} {{ global: *; }};\n")
        flags.append("-Wl,--version-script=versions")
    compile_object(folder, source, "-nostdlib", "-fvisibility=default", *flags, name="stub.so")


def good_files(folder: Path) -> dict[str, bytes]:
    """The files of the base wheel, but for RECORD."""
    aggregate = compile_object(
        folder / "aggregate",
        AGGREGATE_SOURCE,
        "-Wl,-soname,libTorchMLIRAggregateCAPI.so",
        name="libTorchMLIRAggregateCAPI.so",
    )
    extension = compile_object(
        folder / "extension",
        EXTENSION_SOURCE,
        "../aggregate/libTorchMLIRAggregateCAPI.so",
        "-Wl,-rpath,$ORIGIN",
    )
    text = {
        "torch_mlir/__init__.py": '"""A PyTorch importer."""\n',
        "torch_mlir/cli.py": "def main() -> int:\n    return 0\n",
        "torch_mlir/dynamo.py": "def backend(gm, example_inputs): ...\n",
        "torch_mlir/py.typed": "",
        f"{LIBS}/__init__.py": "from ._mlir import *\n",
        f"{LIBS}/_mlir.pyi": "def create() -> object: ...\n",
        f"{DIST_INFO}/METADATA": (
            "Metadata-Version: 2.4\n"
            "Name: torch-mlir-static\n"
            "Version: 0.1.0\n"
            "Summary: An importer\n"
            "License-Expression: Apache-2.0 WITH LLVM-exception\n"
            "License-File: LICENSE\n"
            "Requires-Python: >=3.11\n"
            "Description-Content-Type: text/markdown\n"
            "\n"
            "# torch_mlir\n"
            "\n"
            "License-File: this line is text.\n"
        ),
        f"{DIST_INFO}/WHEEL": (
            "Wheel-Version: 1.0\n"
            "Generator: by hand\n"
            "Root-Is-Purelib: false\n"
            "Tag: cp311-cp311-linux_x86_64\n"
        ),
        f"{DIST_INFO}/entry_points.txt": (
            "[console_scripts]\ntorch-mlir = torch_mlir.cli:main\n"
            "\n[torch_dynamo_backends]\ntorch_mlir = torch_mlir.dynamo:backend\n"
        ),
        f"{DIST_INFO}/licenses/LICENSE": (ROOT / "LICENSE").read_text(),
    }
    files = {name: content.encode() for name, content in text.items()}
    return {**files, AGGREGATE: aggregate, EXTENSION: extension}


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _deb(path: Path, files: dict[str, bytes]) -> None:
    """Writes a Debian package: an ar archive with a ``data.tar.xz``."""
    members = {"debian-binary": b"2.0\n", "data.tar.xz": _tar(files)}
    data = b"!<arch>\n"
    for name, content in members.items():
        data += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        data += content + b"\n" * (len(content) % 2)
    path.write_bytes(data)


class Packages:
    """Stand-ins for every package that parts.json names, and the pins that fit them.

    ``files`` are the packages, ``versions`` and ``hashes`` what is pinned of each; ``lock``
    and ``debian`` are the pin files.
    """

    def __init__(self, folder: Path, debian_names: set[str]) -> None:
        folder.mkdir(parents=True)
        data: dict[str, Any] = json.loads(PARTS.read_text())
        entries = [*data["parts"], *data["texts"].values()]
        self.files: list[Path] = []
        self.versions: dict[str, str] = {}
        self.hashes: dict[str, str] = {}
        pins: dict[str, dict[str, dict[str, str]]] = {"bookworm": {}}
        lock = ""
        for number, name in enumerate(sorted({entry["package"] for entry in entries})):
            members: dict[str, bytes] = {}
            for title, text in data["texts"].items():
                if text["package"] == name:
                    content = f"The terms of {title}.\n"
                    if "comment" in text:
                        content = f"/* Another. */\n/*\n * {text['comment']}\n * {content} */\n"
                    members[text["member"].replace("*", "1")] = content.encode()
            version = self.versions[name] = (
                f"1:{number}.0" if name in debian_names else f"{number}.0"
            )
            suite, _, source = name.rpartition("/")
            if source.startswith("src:"):
                path = folder / f"{source.removeprefix('src:')}_{number}.0.orig.tar.xz"
                path.write_bytes(_tar(members))
            elif name in debian_names:
                path = folder / f"{name}_{number}.0_all.deb"
                _deb(path, members)
            else:
                path = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
                with zipfile.ZipFile(path, "w") as archive:
                    archive.writestr("empty.py", "")
                    for member, content in members.items():
                        archive.writestr(member, content)
            self.files.append(path)
            sha256 = self.hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            pin = {"path": f"pool/{path.name}", "sha256": sha256, "version": version}
            if source.startswith("src:"):
                pins.setdefault(suite, {})[source] = pin
            elif name in debian_names:
                pins["bookworm"][name] = pin
            else:
                lock += f'[[package]]\nname = "{name}"\nversion = "{version}"\nfiles = [\n'
                lock += f'  {{file = "other.whl", hash = "sha256:{"0" * 64}"}},\n'
                lock += f'  {{file = "{path.name}", hash = "sha256:{sha256}"}},\n]\n'
        self.lock = folder / "poetry.lock"
        self.lock.write_text(lock)
        self.debian = folder / "debian.json"
        self.debian.write_text(json.dumps(pins))


def texts_of(package: str) -> list[str]:
    """The names of the license texts that parts.json takes from a package."""
    texts = json.loads(PARTS.read_text())["texts"]
    return [name for name, text in texts.items() if fnmatchcase(text["package"], package)]
