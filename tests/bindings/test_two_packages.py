"""Our MLIR beside another in one process."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("iree.compiler")

USE_BOTH = """
import importlib, sys
names = ["torch_mlir.ir", "iree.compiler.ir"]
modules = [importlib.import_module(name) for name in sys.argv[1:]]
for module, other in (modules, modules[::-1]):
    with module.Context() as context, module.Location.unknown():
        # Types of one are not types of the other.
        assert type(module.F32Type.get()) is module.F32Type
        assert not isinstance(module.F32Type.get(), other.Type)
        try:
            other.ArrayAttr.get([module.UnitAttr.get()])
        except (TypeError, RuntimeError):
            pass
        else:
            raise AssertionError("an attribute of the other package was taken")

        # Enums.
        diagnostics = []
        handler = context.attach_diagnostic_handler(lambda d: diagnostics.append(d) or True)
        module.Location.unknown().emit_error("told")
        handler.detach()
        try:
            module.Module.parse("func.func @f(")
        except module.MLIRError as error:
            assert "expected non-function type" in str(error), str(error)
            assert error.error_diagnostics[0].severity is module.DiagnosticSeverity.ERROR
        else:
            raise AssertionError("parsed")

        try:
            module.Module.parse("func.func @f() -> i32 { return }")
        except module.MLIRError as error:
            assert "has 0 operands, but enclosing function (@f) returns 1" in str(error), str(error)
        else:
            raise AssertionError("verified")
        text = "func.func @f(%a: i32) -> i32 { return %a : i32 }"
        parsed = module.Module.parse(text)  # the bindings don't keep it for the operation
        walked = []
        parsed.body.operations[0].walk(
            lambda op: walked.append(op.name) or module.WalkResult.ADVANCE,
            module.WalkOrder.PRE_ORDER,
        )
        assert walked == ["func.func", "func.return"], walked
print("both")
"""


@pytest.mark.parametrize(
    "order",
    [("torch_mlir.ir", "iree.compiler.ir"), ("iree.compiler.ir", "torch_mlir.ir")],
    ids=["ours first", "iree's first"],
)
def test_two_mlir_packages_work_in_one_process(order: tuple[str, str]) -> None:
    result = subprocess.run(
        [sys.executable, "-P", "-c", USE_BOTH, *order],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout == "both\n"
