# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program in docs/lazy.md runs, and is as short as it is said to be."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/lazy.md"


def test_the_program_of_the_page_runs(tmp_path):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(program.splitlines()) <= 40
    file = tmp_path / "device.py"
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", file.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = re.findall(r"^(\d) (\S+) compiled: (\d+)$", done.stdout, re.MULTILINE)
    assert [int(number) for number, _, _ in steps] == [0, 1, 2, 3]
    losses = [float(loss) for _, loss, _ in steps]
    assert losses[3] < losses[0]
    assert [compiled for _, _, compiled in steps] == ["1"] * 4
    assert "torch.aten.addmm" in done.stdout and " float32[4, 3] " in done.stdout
