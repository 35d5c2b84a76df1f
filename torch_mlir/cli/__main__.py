# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m torch_mlir.cli`."""

from __future__ import annotations

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
