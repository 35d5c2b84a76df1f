#!/usr/bin/env python3
"""Writes the bodies of the operators' C++ functions (``at::_ops``) that a link asks for.

PyTorch generates some 2,500 of them, whose compilation takes minutes; the
library calls a few dozen. Their names are read off the objects' undefined
symbols, their text is torchgen's own.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

# at::_ops::<name>::<method>(…), by the Itanium ABI's name mangling.
MANGLED = re.compile(r"^_ZN2at4_ops(\d+)(\w+)$")


def operator_of(symbol: str) -> str | None:
    """ "add_Tensor" for a mangled ``at::_ops::add_Tensor::call``; None for other symbols."""
    found = MANGLED.match(symbol)
    return found[2][: int(found[1])] if found else None


def undefined_operators(nm: str, objects: Iterable[str]) -> set[str]:
    """The names below at::_ops that `objects` ask for and none of them defines."""
    command = [nm, "--format=posix", *objects]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wanted: set[str] = set()
    defined: set[str] = set()
    for line in listing.splitlines():
        symbol, _, rest = line.partition(" ")
        if (name := operator_of(symbol)) is not None:
            (wanted if rest[:1] == "U" else defined).add(name)
    return wanted - defined


def bodies(source: Path, names: Iterable[str]) -> str:
    """C++ source that defines at::_ops::<name> for `names`. Raises SystemExit for unknown ones."""
    sys.path.insert(0, str(source))
    from torchgen.gen import ComputeOperators, parse_native_yaml
    from torchgen.utils import Target

    native = source / "aten/src/ATen/native"
    parsed = parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml"))
    functions = {function.func.name.unambiguous_name(): function for function in parsed[0]}
    wanted = sorted(names)
    if unknown := [name for name in wanted if name not in functions]:
        raise SystemExit(f"{native}/native_functions.yaml has no operator {', '.join(unknown)}")
    compute = ComputeOperators(Target.DEFINITION, static_dispatch_backend_indices=[])
    headers = sorted({functions[name].root_name for name in wanted})
    lines = ["// Written by operators.py.", "#include <ATen/Tensor.h>"]
    lines += ["#include <ATen/core/dispatch/Dispatcher.h>"]
    lines += [f"#include <ATen/ops/{header}_ops.h>" for header in headers]
    lines += ["namespace at {", "namespace _ops {"]
    lines += [compute(functions[name]) for name in wanted]
    lines += ["} // namespace _ops", "} // namespace at", ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="source tree of PyTorch")
    parser.add_argument("objects", nargs="*", help="object files whose undefined symbols count")
    parser.add_argument("--nm", default="llvm-nm", help="LLVM's or GNU's nm")
    parser.add_argument("-o", "--output", type=Path, required=True, help="C++ file to write")
    arguments = parser.parse_args()
    names = undefined_operators(arguments.nm, arguments.objects)
    arguments.output.write_text(bodies(arguments.source, names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
