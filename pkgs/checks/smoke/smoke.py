#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks an installed torch_mlir beside an installed PyTorch.

Four steps, each in a process of its own:

``alone``        torch_mlir.ir by itself: it works and maps no library of PyTorch's
``torch-first``  import torch, then torch_mlir: both work
``torch-last``   import torch_mlir, then torch: both work
``model``        a small model through torch_mlir.fx: the module verifies, IREE compiles
                 it, and what that computes is what PyTorch computes

PyTorch 2.0 has no ``torch.export``; there the last step checks that torch_mlir.fx
says so.

Exit status: 0 if all steps hold, 1 if one does not, 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Compiled code and PyTorch add up in different orders.
TOLERANCE = 1e-5

ADDITION = """
func.func @main(%a: !torch.vtensor<[2,3],f32>, %b: !torch.vtensor<[2,3],f32>)
    -> !torch.vtensor<[2,3],f32> {
  %one = torch.constant.int 1
  %sum = torch.aten.add.Tensor %a, %b, %one
      : !torch.vtensor<[2,3],f32>, !torch.vtensor<[2,3],f32>, !torch.int
      -> !torch.vtensor<[2,3],f32>
  return %sum : !torch.vtensor<[2,3],f32>
}
"""


class Wrong(Exception):
    """Something that should hold and does not."""


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Wrong(what)


def check_ir(ir: Any) -> None:
    """Parses, verifies and prints torch-dialect IR, and sees a wrong module refused."""
    with ir.Context():
        module = ir.Module.parse(ADDITION)
        expect(module.operation.verify(), "a module of one addition does not verify")
        again = ir.Module.parse(str(module))
        expect(str(again) == str(module), "printed IR does not read back as it was")
        try:
            ir.Module.parse(ADDITION.replace("%one\n", "%b\n"))
        except ir.MLIRError as error:
            # The text is the diagnostic's: it came through intact.
            expect("error" in str(error), f"a wrong module's error says only {error}")
        else:
            raise Wrong("a tensor was taken for the addition's scalar")


def check_torch(torch: Any) -> None:
    """Computes a little, eagerly and with a scripted function, and expects no device."""
    product = torch.arange(6.0).reshape(2, 3) @ torch.ones(3, 2)
    expect(product.tolist() == [[3, 3], [12, 12]], f"matrix product is {product.tolist()}")
    scripted = torch.jit.script(torch.nn.Linear(3, 2))
    expect(tuple(scripted(torch.ones(4, 3)).shape) == (4, 2), "a scripted module is wrong")
    expect(not torch.cuda.is_available(), "PyTorch found a device where there is none")


def mapped_libraries() -> set[str]:
    """File names of the shared objects in this process (proc(5), maps)."""
    paths = (line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines())
    return {Path(parts[5]).name for parts in paths if len(parts) == 6 and ".so" in parts[5]}


def alone() -> str:
    from torch_mlir import ir

    check_ir(ir)
    expect("torch" not in sys.modules, "torch_mlir.ir imports torch")
    theirs = sorted(n for n in mapped_libraries() if n.startswith(("libtorch", "libc10")))
    expect(not theirs, f"torch_mlir.ir maps {', '.join(theirs)}")
    return "no library of PyTorch's mapped"


def torch_first() -> str:
    import torch
    from torch_mlir import ir

    check_torch(torch)
    check_ir(ir)
    return f"torch {torch.__version__}"


def torch_last() -> str:
    from torch_mlir import ir

    check_ir(ir)
    import torch

    check_torch(torch)
    check_ir(ir)
    return f"torch {torch.__version__}"


def small_model(torch: Any) -> Any:
    """A convolution and a perceptron; takes f32[2, 3, 8, 8], gives f32[2, 5]."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 16),
        nn.GELU(),
        nn.Linear(16, 5),
        nn.Softmax(dim=-1),
    ).eval()


def model() -> str:
    import torch

    if not hasattr(torch, "export"):
        try:
            import torch_mlir.fx
        except ImportError as error:
            expect("torch.export" in str(error), f"torch_mlir.fx says only {error}")
            return f"torch {torch.__version__} has no torch.export, and torch_mlir.fx says so"
        raise Wrong(f"{torch_mlir.fx.__name__} was imported without torch.export")

    import iree.compiler
    import iree.runtime
    import numpy
    import torch_mlir.fx

    torch.manual_seed(0)
    network = small_model(torch)
    example = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        eager = network(example).numpy()

    started = time.perf_counter()
    module = torch_mlir.fx.export_and_import(network, example, target="iree")
    imported = time.perf_counter()
    expect(module.operation.verify(), "the imported module does not verify")
    operators = operators_of(module)
    expect(operators["torch.aten.convolution"] + operators["torch.aten.conv2d"] == 1, "no conv")

    # Not llvm-cpu: that runs its linker through a shell, and a sandbox has none.
    program = iree.compiler.compile_str(
        str(module),
        input_type="torch",
        target_backends=["vmvx"],
    )
    compiled = time.perf_counter()
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, program))
    result = numpy.asarray(context.modules.module["main"](example.numpy()))
    expect(result.shape == eager.shape, f"the result has shape {result.shape}")
    worst = float(numpy.abs(result - eager).max())
    expect(worst < TOLERANCE, f"the result is off by {worst:.1e}")
    return (
        f"{sum(operators.values())} operations; export and import {imported - started:.1f} s, "
        f"compile {compiled - imported:.1f} s; largest error {worst:.0e}"
    )


def operators_of(module: Any) -> Counter[str]:
    """How often each operation stands in the functions of ``module``."""
    found: Counter[str] = Counter()
    for function in module.body.operations:
        for block in function.regions[0].blocks:
            found.update(operation.operation.name for operation in block.operations)
    return found


STEPS: dict[str, Callable[[], str]] = {
    "alone": alone,
    "torch-first": torch_first,
    "torch-last": torch_last,
    "model": model,
}


def run_step(name: str) -> tuple[bool, str]:
    """Runs a step in a fresh process; gives whether it held, and what it said."""
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__), "--step", name], capture_output=True, text=True
    )
    if done.returncode == 0:
        return True, done.stdout.strip().splitlines()[-1]
    how = f"killed by signal {-done.returncode}" if done.returncode < 0 else "failed"
    return False, f"{how}\n{done.stdout}{done.stderr}".rstrip()


def installed_torch() -> str:
    """The version of the installed PyTorch by its metadata, without a local part."""
    from importlib.metadata import version

    return version("torch").partition("+")[0]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--torch", help="the version of PyTorch that has to be there")
    parser.add_argument("-o", "--output", type=Path, help="write the report here as well")
    parser.add_argument("--step", choices=STEPS, help="this step alone, in this process")
    options = parser.parse_args(arguments)

    if options.step:
        print(STEPS[options.step]())
        return 0

    found = installed_torch()
    if options.torch and found != options.torch:
        print(f"smoke.py: PyTorch {found} is installed, not {options.torch}", file=sys.stderr)
        return 1
    lines = []
    failed = []
    for name in STEPS:
        started = time.perf_counter()
        held, said = run_step(name)
        line = f"{name:<12} {time.perf_counter() - started:5.1f} s  {said}"
        print(line, flush=True)
        lines.append(line)
        if not held:
            failed.append(name)
    if failed:
        print(f"smoke.py: PyTorch {found}: {', '.join(failed)} failed", file=sys.stderr)
        return 1
    if options.output:
        with tempfile.NamedTemporaryFile("w", dir=options.output.parent, delete=False) as part:
            part.write("\n".join(lines) + "\n")
        os.replace(part.name, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
