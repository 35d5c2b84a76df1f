# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The torch dialect from Python.

Structural operators (``ConstantIntOp``, ``PrimIfOp``, …) have the classes that TableGen
writes. The thousands of operators with a schema have classes too, made the first time that
somebody asks for one:

    from torch_mlir.dialects import torch as torch_d
    total = torch_d.AtenAddTensorOp(type, a, b, alpha).result

Upstream's names, arguments and accessors hold. ``ops`` finds the same operators by
PyTorch's own names:

    total = torch_d.ops.aten.add.Tensor(a, b, alpha, results=[type]).result
"""

from __future__ import annotations

from typing import Any

from .. import ir
from .._mlir_libs import _torchMlir as _native
from ._torch_ops_gen import *

# The classes of the dialect's types; they derive from ir.Type, which has to be there first.
_native.bind_types()
globals().update(
    (name, value)
    for name, value in vars(_native).items()
    if isinstance(value, type) and issubclass(value, ir.Type)
)


def register_dialect(context: ir.Context, load: bool = True) -> None:
    """Load the dialect into a context. Every context knows it; upstream's has to be told."""
    if load:
        _ = context.dialects["torch"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _torch_operators as operators

    found: Any
    if name == "ops":
        found = operators.Namespaces()
    elif name in operators.class_names():
        found = operators.op_class(operators.class_names()[name])
    elif name in operators.builder_names():
        found = operators.builder(operators.builder_names()[name])
    else:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}: neither a structural operator "
            "nor one of the operator table"
        )
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    from . import _torch_operators as operators

    names = {*globals(), "ops", *operators.class_names(), *operators.builder_names()}
    return sorted(names)
