# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's lazy tensors on hardware of yours: you get MLIR, and compile and run it.

    class MyDevice(lazy.Backend):
        def compile(self, module, signature): ...
        def execute(self, executable, arguments): ...

    lazy.register(MyDevice())
    x = torch.ones(2, 3, device="lazy")
    print(x + x)  # compiles and runs

Operators on tensors of the device `lazy` only record what to do. When somebody wants a value, or
calls `torch._lazy.mark_step`, what was recorded becomes a module of the Torch dialect, which
comes to `compile` once for each graph and shapes, and to `execute` each time.

    lazy.metrics                what was compiled, found in the cache, or run by PyTorch instead
    lazy.record_locations()     modules have the lines of the user's program
    lazy.reference, lazy.iree   two backends that there are: one runs PyTorch's own kernels,
                                the other compiles with IREE

Raises:
    ImportError: on import of this module, if PyTorch isn't installed, or is another version than
        the one that this package was built for; or if the package was built without lazy tensors.
"""

from .native import check_installation

check_installation()

from . import metrics
from .backend import Backend, BackendError, Registration, register
from .locations import record_locations
from .signature import Signature, ValueType

__all__ = [
    "Backend",
    "BackendError",
    "Registration",
    "Signature",
    "ValueType",
    "metrics",
    "record_locations",
    "register",
]
