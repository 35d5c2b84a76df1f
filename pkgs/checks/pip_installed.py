"""Checks the torch_mlir that is installed beside this Python, with nothing else of ours at hand.

For what `pip install .` made: no PyTorch is needed. The exit code is 1 if
anything is amiss.
"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

MODULE = """
func.func @main(%arg0: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],f32> {
  %0 = torch.aten.relu %arg0 : !torch.vtensor<[2,3],f32> -> !torch.vtensor<[2,3],f32>
  return %0 : !torch.vtensor<[2,3],f32>
}
"""


def main() -> int:
    import torch_mlir
    from torch_mlir import ir

    origin = Path(torch_mlir.__file__)
    if Path(sys.prefix) not in origin.parents:
        print(f"torch_mlir comes from {origin}, not from {sys.prefix}", file=sys.stderr)
        return 1
    with ir.Context():
        module = ir.Module.parse(MODULE)
        if not module.operation.verify() or "torch.aten.relu" not in str(module):
            print(f"the module came back as\n{module}", file=sys.stderr)
            return 1
        # The verifier knows the operator's schema: one operand more must not pass.
        try:
            ir.Module.parse(
                MODULE.replace("relu %arg0 :", "relu %arg0, %arg0 : !torch.vtensor<[2,3],f32>,")
            )
        except ir.MLIRError:
            pass
        else:
            print("torch.aten.relu of two operands was accepted", file=sys.stderr)
            return 1
    entry_points = importlib.metadata.entry_points(group="console_scripts", name="torch-mlir")
    if not [point.load() for point in entry_points]:
        print("there is no torch-mlir command", file=sys.stderr)
        return 1
    print(f"torch_mlir {importlib.metadata.version('torch-mlir-static')} in {sys.prefix}: works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
