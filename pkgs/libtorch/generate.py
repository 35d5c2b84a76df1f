#!/usr/bin/env python3
"""Writes the headers and sources that PyTorch's own build generates, as far as they are needed.

PyTorch's CMake and code generator make them from templates in its source tree:
the operators' headers and the tensor's methods (torchgen), factories
(tools/autograd) and three configuration headers, here for a build that uses
none of the libraries which PyTorch can be built with.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Templates of CMake's configure_file, and where PyTorch puts what it makes of them.
CONFIGURED = {
    "c10/macros/cmake_macros.h.in": "c10/macros/cmake_macros.h",
    "aten/src/ATen/Config.h.in": "aten/src/ATen/Config.h",
    "caffe2/core/macros.h.in": "caffe2/core/macros.h",
    "torch/csrc/api/include/torch/version.h.in": "torch/csrc/api/include/torch/version.h",
}


def source_version(source: Path) -> str:
    """The version that a PyTorch source tree says it is, "2.6.0". Raises SystemExit."""
    try:
        text = (source / "version.txt").read_text()
    except OSError as error:
        raise SystemExit(f"{source}: no source tree of PyTorch: {error}") from error
    found = re.match(r"\d+\.\d+\.\d+", text)
    if found is None:
        raise SystemExit(f"{source}/version.txt: no version: {text.strip()!r}")
    return found[0]


def configured(template: str, values: dict[str, str]) -> str:
    """What configure_file makes of `template`: options off, variables from `values` or 0."""
    text = re.sub(r"#cmakedefine\s+(\w+).*", r"/* #undef \1 */", template)
    return re.sub(
        r"@(\w+)@|\$\{(\w+)\}", lambda name: values.get(name[1] or name[2] or "", "0"), text
    )


def configure(source: Path, out: Path, version: str) -> None:
    major, minor, patch = version.split(".")
    values = {
        "AT_PARALLEL_NATIVE": "1",  # threads of its own, where others would be a library's
        "TORCH_VERSION_MAJOR": major,
        "TORCH_VERSION_MINOR": minor,
        "TORCH_VERSION_PATCH": patch,
    }
    for template, target in CONFIGURED.items():
        path = out / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(configured((source / template).read_text(), values))


# What torchgen reads, and, from 2.4 on, a folder of the source tree that it compares and writes.
TORCHGEN_READS = [
    "aten/src/ATen/native/native_functions.yaml",
    "aten/src/ATen/native/tags.yaml",
    "aten/src/ATen/templates",
    "torch/csrc/inductor/aoti_torch/generated",
    "torchgen",
]


def run_torchgen(source: Path, out: Path) -> None:
    """Operators' headers, and the sources in core/: kernels' registrations are left out."""
    with tempfile.TemporaryDirectory() as scratch:
        tree, written = Path(scratch, "source"), Path(scratch, "written")
        for name in TORCHGEN_READS:
            if (source / name).is_dir():
                shutil.copytree(source / name, tree / name, copy_function=shutil.copyfile)
            elif (source / name).exists():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, tree / name)
        for folder in [tree, *(path for path in tree.rglob("*") if path.is_dir())]:
            folder.chmod(0o755)
        command = [sys.executable, "-m", "torchgen.gen", "-s", "aten/src/ATen", "-d", str(written)]
        command += ["--per-operator-headers", "--generate", "headers", "sources"]
        subprocess.run(command, cwd=tree, check=True)
        for path in sorted(written.rglob("*")):
            relative = path.relative_to(written)
            if path.suffix == ".h" or (path.suffix == ".cpp" and relative.parts[0] == "core"):
                target = out / "aten/src/ATen" / relative
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


# PyTorch's generator of variable_factories.h has no command line of its own.
FACTORIES = """
import sys
from tools.autograd.gen_variable_factories import gen_variable_factories
native = "aten/src/ATen/native/"
gen_variable_factories(
    sys.argv[1], native + "native_functions.yaml", native + "tags.yaml",
    "tools/autograd/templates",
)
"""


def run_factories(source: Path, out: Path) -> None:
    target = out / "torch/csrc/autograd/generated"
    target.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", FACTORIES, str(target.resolve())]
    subprocess.run(command, cwd=source, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="source tree of PyTorch")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder to fill")
    arguments = parser.parse_args()
    configure(arguments.source, arguments.output, source_version(arguments.source))
    run_torchgen(arguments.source, arguments.output)
    run_factories(arguments.source, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
