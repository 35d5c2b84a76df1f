# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands as processes: terminals, pipes, signals, and what each of them loads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

from torch_mlir import cli

COMMAND = [sys.executable, "-P", "-m", "torch_mlir.cli"]

MODULE = """
func.func @main(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {
  %0 = torch.aten.relu %x : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>
  return %0 : !torch.vtensor<[2],f32>
}
"""

# Writes half of its output, says so, and waits.
WAITS = """
import os, sys, time
from torch_mlir import cli
from torch_mlir.cli import main_import

def write(module, file, emit, locations):
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    time.sleep(60)

main_import.write = write
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture
def mlir(tmp_path):
    path = tmp_path / "model.mlir"
    path.write_text(MODULE)
    return path


@pytest.mark.parametrize(
    ("number", "code", "says"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_signals_leave_no_temporary_file(script, tmp_path, number, code, says):
    out = tmp_path / "model.mlir"
    out.write_text("old")
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", WAITS, "import", "torch.nn:ReLU", "--input", "2xf32"]
        + ["-o", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore SIGINT, and so would what the tests start there.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    try:
        assert process.stdout.readline() == "half\n"
        assert len(os.listdir(tmp_path)) == 2
        process.send_signal(number)
        _, error = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, error) == (code, f"torch-mlir: {says}\n")
    assert os.listdir(tmp_path) == ["model.mlir"]
    assert out.read_text() == "old"


def on_a_terminal(arguments):
    """What a command writes to a terminal that its standard error is, and its exit code."""
    pty = pytest.importorskip("pty", reason="needs terminals as Unix has them")
    main, other = pty.openpty()
    try:
        process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=other)
        os.close(other)
        said = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:  # Linux tells the end of a terminal that way
                break
            if not part:
                break
            said += part
        return said.decode(), process.wait(timeout=60)
    finally:
        os.close(main)


def test_progress_on_a_terminal_is_cleared_at_the_end(script):
    said, code = on_a_terminal(["import", f"{script}:build"])
    assert code == 0
    steps = [text.removesuffix(" …") for text in said.split("\r\x1b[K")]
    for step in ("load PyTorch", f"export {script}:build", "decompose", "import", "write -"):
        assert step in steps
    # All of the graph's nodes are counted in the end.
    assert any(re.fullmatch(r"import (\d+)/\1", step) for step in steps), steps
    assert said.endswith("\r\x1b[K")


def test_an_error_on_a_terminal_stands_alone(script):
    said, code = on_a_terminal(["import", f"{script}:fails"])
    assert code == 1
    # What was there before is wiped; the terminal makes \r\n of \n.
    last = said.rpartition("\x1b[K")[2]
    assert last.startswith("torch-mlir: error: ") and last.count("\n") == 1


def test_standard_input_that_is_a_terminal_is_refused():
    pty = pytest.importorskip("pty", reason="needs terminals as Unix has them")
    main, other = pty.openpty()
    try:
        result = subprocess.run(
            [*COMMAND, "ops", "-"], stdin=other, capture_output=True, text=True, check=False
        )
    finally:
        os.close(main)
        os.close(other)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert "standard input is a terminal; give it a model" in line


@pytest.mark.parametrize("arguments", [["ops"], ["completion", "bash"]])
def test_a_reader_that_went_away_is_one_line(mlir, arguments):
    if arguments == ["ops"]:
        arguments = ["ops", str(mlir)]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = subprocess.run(
            [*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line == "torch-mlir: error: standard output: the reader went away"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["import", "--help"],
        ["completion", "zsh"],
        ["ops", "MODEL"],
        ["ops", "absent.pt2"],
        ["view", "MODEL"],
        ["import", "m.py:Net", "--input", "1xf31"],
    ],
)
def test_pytorch_is_not_loaded(mlir, arguments):
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr))\n"
        "from torch_mlir import cli\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    words = [str(mlir) if word == "MODEL" else word for word in arguments]
    result = subprocess.run(
        [sys.executable, "-P", "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert result.stderr.splitlines()[-1] == "False"


@pytest.mark.parametrize("command", [[], ["import"], ["run"], ["ops"], ["view"], ["completion"]])
def test_every_command_has_help_and_version(capsys, command):
    from torch_mlir.version import __version__

    for option, says in (("--help", "usage: torch-mlir"), ("--version", __version__)):
        with pytest.raises(SystemExit) as exit:
            cli.main([*command, option])
        assert exit.value.code == 0
        assert says in capsys.readouterr().out
