# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TorchScript programs of all kinds, which the installed PyTorch writes as archives.

    python -m archives FOLDER

writes them all, for use where that PyTorch isn't installed.
"""

# TorchScript reads annotations as they are: no module here postpones their evaluation.
from . import containers, control_flow, networks, objects, quantized, tensors, values, writes
from .cases import CASES, Case

__all__ = [
    "CASES",
    "Case",
    "containers",
    "control_flow",
    "networks",
    "objects",
    "quantized",
    "tensors",
    "values",
    "writes",
]
