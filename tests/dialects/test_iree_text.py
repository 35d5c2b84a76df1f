# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The text is what IREE's torch dialect, which is upstream's, reads and writes."""

from __future__ import annotations

import json
from pathlib import Path

import iree.compiler.ir as iree_ir
import schema_programs

from torch_mlir import ir, operators

TABLE = operators.load()
DIFFERENCES = json.loads(Path(__file__).with_name("iree_differences.json").read_text())


def generic(module: ir.Module | iree_ir.Module) -> str:
    return module.operation.get_asm(print_generic_op_form=True)


def known_to_iree() -> list[operators.Schema]:
    with iree_ir.Context() as context:
        _ = context.dialects["torch"]
        return [s for s in TABLE.values() if context.is_registered_operation(f"torch.{s.key}")]


def compare(program: str) -> str | None:
    """What goes wrong when our text of a program goes to IREE and back."""
    with ir.Context():
        ours = ir.Module.parse(program)
        our_text, our_generic = str(ours), generic(ours)
    with iree_ir.Context():
        try:
            theirs = iree_ir.Module.parse(our_text)
        except iree_ir.MLIRError as error:
            return f"IREE doesn't read it: {error}"
        their_text, their_generic = str(theirs), generic(theirs)
    if their_generic != our_generic:
        return f"IREE reads something else: {their_generic}"
    if their_text != our_text:
        return f"IREE writes something else: {their_text}"
    return None


def difference(schema: operators.Schema) -> str | None:
    return compare(schema_programs.function(schema, "f"))


def test_iree_reads_every_operator_that_it_knows() -> None:
    known = [s for s in known_to_iree() if s.key not in DIFFERENCES]
    assert len(known) > 700
    program = "".join(schema_programs.function(s, f"f{i}") for i, s in enumerate(known))
    if compare(program) is not None:
        assert {s.key: reason for s in known if (reason := difference(s))} == {}


def test_the_recorded_differences_are_real() -> None:
    for key in DIFFERENCES:
        assert difference(TABLE[key]) is not None, key


def test_iree_reads_the_structural_operators() -> None:
    text = Path(__file__).with_name("structural_operators.mlir").read_text()
    assert compare(text) is None
