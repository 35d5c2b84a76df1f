"""numpy stays out of the way until it is needed."""

from __future__ import annotations

import subprocess
import sys

from torch_mlir import ir


def test_importing_ir_does_not_import_numpy() -> None:
    program = "import sys, torch_mlir.ir; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", program], check=False).returncode == 0


def test_the_attribute_builders_that_use_numpy_work() -> None:
    with ir.Context() as context:
        built = [
            ir.AttrBuilder.get(f"{kind}ElementsAttr")([1, 2], context)
            for kind in ("F64", "I32", "I64")
        ]
    assert [str(attribute) for attribute in built] == [
        "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf64>",
        "dense<[1, 2]> : tensor<2xi32>",
        "dense<[1, 2]> : tensor<2xi64>",
    ]
