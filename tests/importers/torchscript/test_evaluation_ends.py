# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the form on values is made from is evaluated, and ends, however much a program asks for.

A hang, a crash or an end of memory is how these tests fail, besides the usual way.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from test_archives_safety import CLASS, FORWARD, archive

from torch_mlir import torchscript
from torch_mlir.torchscript import TorchMlirCompilerError


def program(*lines: str) -> bytes:
    """An archive whose module runs these lines, which may use x."""
    body = "".join(f"    {line}\n" for line in lines)
    return archive({"code/__torch__.py": CLASS + FORWARD + body})


# Name -> lines, and what the text of the function then has.
PROGRAMS = {
    "a list that doubles": (
        ("a = [0]", "for i in range(40):", "  a = torch.add(a, a)", "return torch.add(x, len(a))"),
        "torch.aten.add.t",
    ),
    "lists of one list": (
        ("a0 = [0]", *(f"a{i + 1} = [a{i}, a{i}]" for i in range(40)),
         "return torch.add(x, len(a40))"),
        "torch.constant.int 2",
    ),
    "tuples of one tuple": (
        ("a0 = (0, 0)", *(f"a{i + 1} = (a{i}, a{i})" for i in range(40)),
         "b, c, = a40", "return torch.add(x, 1)"),
        "torch.constant.int 1",
    ),
    "a long list of one long list": (
        ("a = torch.mul([0], 60000)", "b = torch.mul([a], 60000)",
         "return torch.add(x, len(b))"),
        "torch.constant.int 60000",
    ),
    "a list that is made long": (
        ("a = torch.mul([0], 3000000000)", "return torch.add(x, len(a))"),
        "torch.aten.mul.left_t",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_made_stays_small(name, tmp_path):
    lines, wanted = PROGRAMS[name]
    (tmp_path / "m.pt").write_bytes(
        program(*(line.replace("len(", "torch.len(") for line in lines))
    )
    script = (
        "import re, sys\n"
        "from torch_mlir import torchscript\n"
        "module = torchscript.import_archive(sys.argv[1], output_type='torch', refine=False)\n"
        # Not ru_maxrss, which begins at what the process that started this one had.
        "status = open('/proc/self/status').read()\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) >> 10)\n"
        "print(module)\n"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", script, str(tmp_path / "m.pt")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    megabytes, text = run.stdout.split("\n", 1)
    assert int(megabytes) < 1000
    assert len(text) < 4 << 20
    assert wanted in text


def test_a_list_that_writes_make_long_is_refused_with_its_line():
    loop = ("a = [0]", "for i in range(40):", "  torch.extend(a, a)")
    lines = (*loop, "return torch.add(x, torch.len(a))")
    with pytest.raises(
        TorchMlirCompilerError,
        match=r"extend.*more than 65536 elements \(at code/__torch__\.py:8, in forward",
    ):
        torchscript.import_archive(program(*lines), output_type="torch", refine=False)
