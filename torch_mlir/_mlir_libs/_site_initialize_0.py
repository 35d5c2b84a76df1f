"""What this package gives to every context: its dialects; to the process: its passes.

The one list of both, and of the external models they need, is
``torch_mlir/csrc/capi/Registration.cpp``.
"""

from __future__ import annotations

from ._torchMlir import register_dialects, register_passes

__all__ = ["register_dialects"]

register_passes()
