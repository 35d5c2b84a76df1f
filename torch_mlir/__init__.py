"""PyTorch models to MLIR's torch dialect.

``torch_mlir.fx`` imports exported programs, ``torch_mlir.ir`` holds MLIR's Python bindings.
Importing the package alone loads neither MLIR nor PyTorch.
"""

from __future__ import annotations

from .version import __version__ as __version__
