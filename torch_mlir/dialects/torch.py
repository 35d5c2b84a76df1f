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
from . import _torch_operators as _operators
from ._torch_ops_gen import *

# The classes of the dialect's types; they derive from ir.Type, which has to be there first.
_native.bind_types()
globals().update(
    (name, value)
    for name, value in vars(_native).items()
    if isinstance(value, type) and issubclass(value, ir.Type)
)

_operators.register_all()


def register_dialect(context: ir.Context, load: bool = True) -> None:
    """Load the dialect into a context. Every context knows it; upstream's has to be told."""
    if load:
        _ = context.dialects["torch"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: Any
    if name == "ops":
        found = _operators.Namespaces()
    elif name in _operators.class_names():
        found = _operators.op_class(_operators.class_names()[name])
    elif name in _operators.builder_names():
        found = _operators.builder(_operators.builder_names()[name])
    else:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}: neither a structural operator "
            "nor one of the operator table"
        )
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    names = {*globals(), "ops", *_operators.class_names(), *_operators.builder_names()}
    return sorted(names)
