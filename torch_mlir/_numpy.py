"""numpy, imported when it is first used.

``torch_mlir.ir`` has it in reach for a few attribute builders that most programs never call.
"""

from __future__ import annotations

import importlib
from typing import Any


class _Numpy:
    """Stands for the module until something of it is asked for.

    Raises:
      ImportError: numpy is not installed; at first use.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("numpy"), name)


numpy = _Numpy()
