#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that importing a large model and writing its bytecode take: ours beside upstream's.

    python3 benchmarks/fx_memory.py --upstream .../venv/bin/python3

One exported program of perceptron layers, 1 GB of weights by default, is loaded and decomposed by
each package in an interpreter of its own. What PyTorch holds by then is left out: told is the
highest that the resident memory rises above it, while the program is imported and while its
bytecode is written to a file, as a part of the size of the weights.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

WIDTH = 4096
LAYER_BYTES = WIDTH * WIDTH * 4


def save_program(path: Path, layers: int) -> None:
    """Export a stack of linear layers of float32, without their biases."""
    import torch

    layer = [
        part
        for _ in range(layers)
        for part in (torch.nn.Linear(WIDTH, WIDTH, bias=False), torch.nn.ReLU())
    ]
    module = torch.nn.Sequential(*layer).eval()
    torch.export.save(torch.export.export(module, (torch.zeros(1, WIDTH),)), str(path))


def resident(what: str) -> int:
    """Bytes of resident memory: VmRSS, or VmHWM since `reset_peak`; see proc(5)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == what:
            return int(value.split()[0]) * 1024
    raise LookupError(what)


def reset_peak() -> None:
    """Let the highest resident memory be counted from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def work(program_path: Path) -> dict[str, int]:
    """Bytes above what PyTorch holds, with the torch_mlir that this interpreter finds."""
    import torch

    from torch_mlir import ir
    from torch_mlir.dialects import torch as dialect
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table
    from torch_mlir.extras.fx_importer import FxImporter

    program = torch.export.load(str(program_path)).run_decompositions(get_decomposition_table())
    before = resident("VmRSS")
    reset_peak()
    context = ir.Context()
    dialect.register_dialect(context)
    importer = FxImporter(context=context)
    importer.import_program(program)
    imported = resident("VmHWM") - before
    reset_peak()
    with tempfile.TemporaryFile(dir=program_path.parent) as file:
        importer.module_op.write_bytecode(file)
        size = file.tell()
    return {"import": imported, "write": resident("VmHWM") - before, "bytecode": size}


def run_worker(python: str, path: str | None, program: Path) -> dict[str, int]:
    """`work` in the interpreter `python`. Raises CalledProcessError."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    environment.pop("PYTHONPATH", None)
    if path:
        environment["PYTHONPATH"] = path
    command = [python, "-P", __file__, "--worker", str(program)]
    result = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, int] = json.loads(result.stdout.splitlines()[-1])
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table of bytes and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", help="a Python that has upstream's torch-mlir and a PyTorch")
    parser.add_argument("--ours", default=sys.executable, help="a Python that has ours")
    parser.add_argument("--ours-path", default=os.environ.get("PYTHONPATH"), help="its PYTHONPATH")
    parser.add_argument("--layers", type=int, default=16, help="layers of 64 MiB each")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        print(json.dumps(work(options.worker)))
        return 0
    if not options.upstream:
        parser.error("--upstream is needed")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.pt2")
        # In a process of its own, so that no worker shares memory with it.
        script = f"import fx_memory; fx_memory.save_program({str(program)!r}, {options.layers})"
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
        subprocess.run([sys.executable, "-c", script], check=True, env=environment)
        theirs = run_worker(options.upstream, None, program)
        ours = run_worker(options.ours, options.ours_path, program)
    weights = options.layers * LAYER_BYTES
    print(f"weights: {weights / 2**20:.0f} MiB")
    print(f"{'peak above PyTorch, of the weights':36} {'upstream':>9} {'ours':>9}")
    for stage, label in (("import", "import"), ("write", "import and writing bytecode")):
        # The module is still there while it is written.
        their, our = theirs[stage] / weights, ours[stage] / weights
        print(f"{label:36} {their:9.3f} {our:9.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
