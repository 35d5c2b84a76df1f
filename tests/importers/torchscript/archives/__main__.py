# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m archives FOLDER`: write all archives that the installed PyTorch can write."""

import sys
from pathlib import Path

from . import CASES

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for case in CASES.values():
    reason = case.unavailable()
    if reason is not None:
        print(f"{case.name}: {reason}")
        continue
    (folder / f"{case.name}.pt").write_bytes(case.archive())
