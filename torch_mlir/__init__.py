"""PyTorch models to MLIR's torch dialect.

``torch_mlir.fx`` imports exported programs, ``torch_mlir.ir`` holds MLIR's Python bindings.
Importing the package alone loads neither MLIR nor PyTorch.
"""

from __future__ import annotations

import os as _os

from .version import __version__ as __version__

#: Where CMake finds the package TorchMLIRLazy, with which C++ vendors of lazy tensors build:
#: ``-DCMAKE_PREFIX_PATH``, as ``torch.utils.cmake_prefix_path`` for PyTorch's.
cmake_prefix_path: str = _os.path.join(_os.path.dirname(__file__), "cmake")
