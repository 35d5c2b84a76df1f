"""Imports models from PyTorch, compiles them with IREE and compares the numbers with eager's.

Writes each model's Torch-dialect MLIR to a folder, and a table to the standard
output. The exit code is 1 if a model's numbers differ by more than the tolerance.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.metadata
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import iree.compiler
import iree.runtime
import numpy as np
import torch
from models import MODELS, Model
from torch.utils import _pytree as pytree

import torch_mlir
from torch_mlir import fx, ir

# Of the largest number in eager's answer: float32 sums in another order.
TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the table; sizes in bytes, times in seconds."""

    model: str
    operators: int
    size: int
    export: float
    imported: float
    compiled: float
    error: float
    path: Path

    @property
    def passed(self) -> bool:
        # False for a NaN too.
        return self.error <= TOLERANCE


class Progress:
    """Says on a terminal what is being done, and times it; silent in a pipe."""

    def __init__(self) -> None:
        self._visible = sys.stderr.isatty()

    @contextlib.contextmanager
    def step(self, text: str) -> Iterator[Callable[[], float]]:
        """Yields a clock of the step: seconds so far, and in all once it has ended."""
        start = time.perf_counter()
        end: float | None = None
        if self._visible:
            print(f"    {text} …", end="", file=sys.stderr, flush=True)
        try:
            yield lambda: (end or time.perf_counter()) - start
        finally:
            end = time.perf_counter()
            if self._visible:
                print(f" {end - start:.1f} s", file=sys.stderr)


def count_operators(operation: ir.Operation) -> int:
    """How many operators of PyTorch are in an operation, nested regions included.

    Constants, lists and other structure of the dialect don't count.
    """
    own = operation.name.startswith(("torch.aten.", "torch.prims.", "torch.operator"))
    return own + sum(
        count_operators(inner.operation)
        for region in operation.regions
        for block in region
        for inner in block
    )


def write(path: Path, module: ir.Module) -> None:
    """Writes the module's text, whole or not at all."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with temporary.open("w") as file:
        module.operation.print(file=file)
    temporary.replace(path)


def compile_and_run(
    path: Path, arguments: Sequence[torch.Tensor]
) -> Callable[[], list[np.ndarray]]:
    """Compiles a file of Torch-dialect MLIR for this CPU; the result runs its `main`."""
    program = iree.compiler.compile_file(
        str(path),
        input_type="torch",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )
    module = iree.runtime.load_vm_flatbuffer(program, driver="local-task")

    def run() -> list[np.ndarray]:
        results = module.main(*(argument.numpy() for argument in arguments))
        return [np.asarray(result) for result in pytree.tree_leaves(results)]

    return run


def largest_error(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> float:
    """The largest difference, as a part of the largest number wanted.

    Raises ValueError if the number of results or a shape differs.
    """
    shapes = [array.shape for array in got], [array.shape for array in want]
    if shapes[0] != shapes[1]:
        raise ValueError(f"results of shapes {shapes[0]}, wanted {shapes[1]}")
    return max(float(np.abs(g - w).max() / np.abs(w).max()) for g, w in zip(got, want, strict=True))


def demonstrate(model: Model, folder: Path, progress: Progress) -> Row:
    """Takes one model all the way from PyTorch to numbers computed by IREE."""
    path = folder / f"{model.name.lower().replace(' ', '_')}.mlir"
    with torch.no_grad():
        want = [tensor.numpy() for tensor in pytree.tree_leaves(model.module(*model.arguments))]
        with progress.step("export") as exported:
            program = torch.export.export(model.module, model.arguments)
    with progress.step("import") as imported:
        module = fx.export_and_import(program, target="iree")
    with progress.step("write"):
        write(path, module)
    with progress.step("compile") as compiled:
        run = compile_and_run(path, model.arguments)
    with progress.step("compare"):
        error = largest_error(run(), want)
    return Row(
        model.name,
        count_operators(module.operation),
        path.stat().st_size,
        exported(),
        imported(),
        compiled(),
        error,
        path,
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text, under a heading."""
    heading = ("model", "operators", "MLIR", "export", "import", "compile", "largest error", "file")
    cells = [
        (
            row.model,
            str(row.operators),
            f"{row.size / 1e6:.1f} MB",
            f"{row.export:.1f} s",
            f"{row.imported:.1f} s",
            f"{row.compiled:.1f} s",
            f"{row.error:.1e}{'' if row.passed else ' FAILED'}",
            str(row.path),
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(heading, *cells, strict=True)]
    # The first and last columns are text, those between them numbers.
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, len(widths) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (heading, *cells)
    )


def package_version() -> str:
    """The version of torch_mlir, with the row of PyTorch that its wheel was made for."""
    try:
        return importlib.metadata.version("torch-mlir-static")
    except importlib.metadata.PackageNotFoundError:
        # A source tree has no wheel's metadata.
        return torch_mlir.__version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demonstration; exit code 1 if a model's numbers are not eager's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("out"), help="folder for the .mlir files"
    )
    parser.add_argument("--version", action="version", version=torch_mlir.__version__)
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    # A table is wanted, not the libraries' advice to their own developers.
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)

    print(
        f"torch_mlir {package_version()} beside PyTorch {torch.__version__}, "
        f"IREE {importlib.metadata.version('iree-base-compiler')}"
    )
    progress = Progress()
    rows = []
    for number, build in enumerate(MODELS, 1):
        torch.manual_seed(number)
        model = build()
        if sys.stderr.isatty():
            print(f"  {model.name} ({number} of {len(MODELS)})", file=sys.stderr)
        rows.append(demonstrate(model, options.output, progress))
    print(table(rows))
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
