# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch-mlir completion`: what shells offer is what the parsers take."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from torch_mlir import cli


def script_of(shell, capsys):
    assert cli.main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ru"], ["run"]),
        (["import", "--emit", ""], ["text", "bytecode"]),
        (["import", "--output-type", "l"], ["linalg-on-tensors"]),
        (["run", "--backend", ""], ["reference", "iree"]),
        (["completion", "z"], ["zsh"]),
        (["import", "--inp"], ["--input"]),
    ],
)
def test_bash_offers(capsys, words, offered):
    text = script_of("bash", capsys)
    text += 'COMP_WORDS=(torch-mlir "$@"); COMP_CWORD=$#; _torch_mlir\n'
    text += 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    result = subprocess.run(
        ["bash", "-s", "--", *words], input=text, capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_name_every_command_and_are_syntax(capsys, shell):
    text = script_of(shell, capsys)
    for command in ("import", "run", "ops", "view", "completion"):
        assert command in text
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_neither_pytorch_nor_mlir_is_loaded():
    code = (
        "import sys; from torch_mlir import cli; cli.main(['completion', 'bash']); "
        "sys.exit('torch' in sys.modules or 'torch_mlir.ir' in sys.modules)"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True)
