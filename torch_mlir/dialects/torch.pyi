# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Any

from .. import ir
from .._mlir_libs._torchMlir import *
from ._torch_operators import Namespaces
from ._torch_ops_gen import *

ops: Namespaces

def register_dialect(context: ir.Context, load: bool = ...) -> None: ...

# Classes of the operator table (AtenAddTensorOp: type[ir.OpView]) and the functions that
# make an operation and return its results (aten_add_Tensor).
def __getattr__(name: str) -> Any: ...
