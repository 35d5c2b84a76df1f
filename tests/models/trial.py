# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One architecture taken through export, import and the backends; and the table of outcomes.

`table.tsv` holds a line for each architecture with its sizes fixed and one with them open;
regenerate.py writes it, test_models.py holds the package to it.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from architectures import ARCHITECTURES, Architecture

from torch_mlir import backends, fx, ir

TABLE = Path(__file__).with_name("table.tsv")

# The largest difference from eager, as a part of eager's largest number. Sums in another order
# account for it; the backends that compile contract and vectorise more than ATen does.
REFERENCE_TOLERANCE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
COMPILED_TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 6e-2}

AGREES = "agrees"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A line of the table.

    Attributes:
        architecture: its name.
        sizes: `fixed`, or `open`: batch, length, … as symbols.
        export: `yes`, or what torch.export says.
        nodes: of the graph, after the default decompositions.
        operators: distinct ones of PyTorch in the imported module.
        reference: the largest error of the reference backend, over all runs.
        iree: `agrees`, `differs`, or `refused: ` and the first error.
        iree_error: its largest error.
    """

    architecture: str
    sizes: str
    export: str
    nodes: str = ""
    operators: str = ""
    reference: str = ""
    iree: str = ""
    iree_error: str = ""


class Trial:
    """An architecture, exported at most once, with fixed or open sizes."""

    def __init__(self, architecture: Architecture, sizes: str) -> None:
        self.architecture = architecture
        self.sizes = sizes

    def __str__(self) -> str:
        return f"{self.architecture.name}-{self.sizes}".replace(",", "").replace(" ", "-")

    @functools.cached_property
    def module(self) -> torch.nn.Module:
        return self.architecture.build()

    @functools.cached_property
    def program(self) -> torch.export.ExportedProgram:
        """The exported program, decomposed. Raises what torch.export raises."""
        shapes = self.architecture.dynamic_shapes() if self.sizes == "open" else None
        with torch.no_grad():
            program = torch.export.export(
                self.module, (self.architecture.arguments(),), dynamic_shapes=shapes, strict=False
            )
            return program.run_decompositions(fx.get_decomposition_table())

    def imported(self, target: str | None = None) -> ir.Module:
        """The program as MLIR, verified."""
        module = fx.export_and_import(
            self.program,
            decomposition_table={},
            import_symbolic_shape_expressions=self.sizes == "open",
            target=target,
        )
        module.operation.verify()
        return module

    @functools.cached_property
    def runs(self) -> list[tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]]:
        """Inputs and eager's results: one run, or two of other sizes where those are open."""
        found = []
        for run in range(2 if self.sizes == "open" else 1):
            arguments = self.architecture.arguments(run)
            with torch.no_grad():
                found.append((tuple(arguments.values()), self.module(arguments)))
        return found

    def error(self, call: Callable[..., Any]) -> float:
        """The largest error of a program of this architecture, over all runs."""
        errors = []
        for inputs, wanted in self.runs:
            got = call(*inputs)
            errors.append(largest_error(got if isinstance(got, tuple) else (got,), wanted))
        return max(errors)

    def on_reference(self) -> float:
        """The largest error of the reference backend."""
        return self.error(_loaded("reference", self.imported()))

    def on_iree(self) -> tuple[str, float | None]:
        """What the table says of IREE: its verdict, and the largest error where it runs."""
        try:
            program = _loaded("iree", self.imported(target="iree"))
        except backends.iree.IreeError as error:
            return refusal(error), None
        error = self.error(program)
        tolerance = COMPILED_TOLERANCE[self.architecture.dtype]
        return AGREES if error <= tolerance else "differs", error

    def outcome(self) -> Outcome:
        """The line of the table."""
        start = self.architecture.name, self.sizes
        try:
            nodes = len(self.program.graph.nodes)
        except RuntimeError as error:  # its refusals of a model
            return Outcome(*start, told(error))
        operators = operators_of(self.imported())
        verdict, iree_error = self.on_iree()
        return Outcome(
            *start,
            "yes",
            str(nodes),
            str(len(operators)),
            f"{self.on_reference():.0e}",
            verdict,
            "" if iree_error is None else f"{iree_error:.0e}",
        )


def trials() -> list[Trial]:
    """Every architecture, with its sizes fixed and open."""
    return [Trial(each, sizes) for each in ARCHITECTURES for sizes in ("fixed", "open")]


def _loaded(name: str, module: ir.Module) -> Callable[..., Any]:
    backend = backends.get(name)
    return backend.load(backend.compile(module))


def largest_error(got: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> float:
    """The largest difference as a part of the largest number that is wanted.

    Raises:
        ValueError: number, shape or dtype of the results differ; or what is wanted is all zero
            or not finite, so that nothing would be compared.
    """

    def kinds(tensors: Iterable[torch.Tensor]) -> list[tuple[torch.dtype, tuple[int, ...]]]:
        return [(tensor.dtype, tuple(tensor.shape)) for tensor in tensors]

    if kinds(got) != kinds(wanted):
        raise ValueError(f"results {kinds(got)}, wanted {kinds(wanted)}")
    errors = []
    for ours, theirs in zip(got, wanted, strict=True):
        scale = theirs.double().abs().max()
        if not torch.isfinite(scale) or scale == 0:
            raise ValueError(f"eager's largest number is {scale.item()}")
        errors.append(((ours.double() - theirs.double()).abs().max() / scale).item())
    return max(errors)


def told(error: Exception) -> str:
    """An error as the table has it: its type, and the first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def refusal(error: Exception) -> str:
    """What IREE says first, without places and shapes, and the operator that it names."""
    ((message, operation),) = backends.iree.group_refusals({"": error})
    return f"refused: {message}" + (f" [{operation}]" if operation not in message else "")


def operators_of(module: ir.Module) -> set[str]:
    """The operators of PyTorch in a module; constants, lists and the like don't count."""
    found = set()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        name = operation.name
        if name == "torch.operator":
            name = ir.StringAttr(operation.attributes["name"]).value
        if name.startswith(("torch.aten.", "torch.prims.")):
            found.add(name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def read_table() -> dict[tuple[str, str], Outcome]:
    """The committed outcomes, by architecture and sizes."""
    with TABLE.open(newline="") as file:
        rows = [Outcome(**row) for row in csv.DictReader(file, delimiter="\t")]
    return {(row.architecture, row.sizes): row for row in rows}


def write_table(outcomes: Iterable[Outcome]) -> None:
    """Replace the committed outcomes, whole or not at all."""
    temporary = TABLE.with_suffix(".tmp")
    with temporary.open("w", newline="") as file:
        names = [field.name for field in dataclasses.fields(Outcome)]
        writer = csv.DictWriter(file, names, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(dataclasses.asdict(outcome) for outcome in outcomes)
    temporary.replace(TABLE)
