#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time and memory of importing TorchScript archives, beside `torch.jit.load` of the same files.

    python3 benchmarks/torchscript_archives.py [--size 256M] [--folder DIR]

The PyTorch of the Python that runs this writes the archives: graphs of growing size, as one long
method and as many small modules, and linear layers of `--size` bytes. Each file is then loaded by
PyTorch alone, and imported by ours in both forms, without and with its bytecode written to a file.
Each of that happens in processes of its own, in turns; in none of ours is there a PyTorch. Times
are of one call in a process that has imported what it needs; the best and the median of several
processes are told. All files are in the page cache, and on the disk before the clock starts.

Memory is what a process has above what it had before the call, in two ways: the highest resident
memory, in which pages of the archive count once they were looked at, though the kernel may drop
them at any time; and of anonymous memory alone, which is what the process itself took. The first
is the kernel's own figure, the second is looked at every two milliseconds from outside.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

NODES = (1_000, 3_000, 10_000, 30_000)
WIDTH = 4096
# What is done with each file: PyTorch's load, ours, and the archive's bytes written once more,
# which bytecode can't take less than.
STAGES = ("torch.jit.load", "raw", "torch", "raw, written", "torch, written", "copy of the file")
WRITES = STAGES[3:]


def statements(count: int) -> Any:
    """One method of about `count` nodes, a statement each."""
    import torch

    module = torch.jit.script(torch.nn.Module())
    # A number is a node as well, and is there once.
    lines = [f"    x = torch.add(x, y, alpha=2)  # {number}" for number in range(count - 1)]
    module.define("\n".join(["def forward(self, x, y):", *lines, "    return x\n"]))
    return module


def layers(count: int) -> Any:
    """Traced modules of two kinds, each with a class of its own, of about `count` nodes."""
    import torch

    pairs = count // 12
    module = torch.nn.Sequential(
        *(part for _ in range(pairs) for part in (torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)))
    )
    return torch.jit.trace(module, torch.ones(8, 8), check_trace=False)


def weights(size: int) -> Any:
    """Linear layers of float32 that take `size` bytes."""
    import torch

    # Without the kernels that fill in random numbers, which take longer than all the rest.
    parts = []
    for number in range(max(size // (WIDTH * WIDTH * 4), 1)):
        linear = torch.nn.Linear(WIDTH, WIDTH, bias=False, device="meta").to_empty(device="cpu")
        torch.nn.init.constant_(linear.weight, 1 / WIDTH)
        linear.weight.data[0] = torch.arange(WIDTH) + number
        parts += [linear, torch.nn.ReLU()]
    return torch.jit.script(torch.nn.Sequential(*parts))


GRAPHS: dict[str, Callable[[int], Any]] = {"statements": statements, "layers": layers}
INPUTS = {
    "statements": ["8x8xf32", "8x8xf32"],
    "layers": ["8x8xf32"],
    "weights": [f"1x{WIDTH}xf32"],
}


def make(kind: str, amount: int, path: Path) -> int:
    """Write an archive; the number of nodes in the graphs of all its methods, as PyTorch counts."""
    module = weights(amount) if kind == "weights" else GRAPHS[kind](amount)
    module.save(str(path))

    def nodes(block: Any) -> int:
        return sum(1 + sum(map(nodes, node.blocks())) for node in block.nodes())

    graphs = (
        part._c._get_method(name).graph
        for part in module.modules()
        for name in part._c._method_names()
    )
    return sum(map(nodes, graphs))


def resident(what: str, process: int | str = "self") -> int:
    """Bytes of memory as the kernel counts them, e.g. `VmRSS` or `RssAnon`; see proc(5)."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == what:
            return int(value.split()[0]) * 1024
    raise LookupError(what)


def runner(stage: str, path: Path, target: IO[bytes]) -> Callable[[], Any]:
    """What a stage does, with all that it needs imported."""
    if stage == "torch.jit.load":
        import torch

        return lambda: torch.jit.load(str(path))
    if stage == "copy of the file":

        def copy() -> None:
            with path.open("rb") as source:
                shutil.copyfileobj(source, target, 1 << 20)

        return copy
    from torch_mlir import torchscript

    mode = stage.partition(",")[0]
    options: dict[str, Any] = {"output_type": mode}
    if mode == "torch":
        options |= {"inputs": INPUTS[path.stem.partition("-")[0]], "refine": False}

    def run() -> Any:
        module = torchscript.import_archive(path, **options)
        if stage in WRITES:
            module.operation.write_bytecode(target)
        return module

    return run


def work(stage: str, path: Path) -> dict[str, float]:
    """Seconds and bytes of one stage, with the packages that this interpreter finds."""
    with tempfile.TemporaryFile(dir=path.parent) as target:
        run = runner(stage, path, target)
        before = {name: resident(name) for name in ("VmRSS", "RssAnon")}
        # Let the highest resident memory be counted from now on.
        Path("/proc/self/clear_refs").write_text("5")
        print(json.dumps(before), flush=True)
        wall, processor = time.perf_counter(), time.process_time()
        kept = run()
        processor, wall = time.process_time() - processor, time.perf_counter() - wall
        peak = resident("VmHWM") - before["VmRSS"]
        size = target.tell()
    if "torch" in sys.modules and stage != "torch.jit.load":
        raise RuntimeError("PyTorch got imported")
    del kept
    return {"seconds": wall, "cpu": processor, "peak": peak, "written": size}


def run_worker(stage: str, path: Path) -> dict[str, float]:
    """`work` in a process of its own. Raises CalledProcessError."""
    command = [sys.executable, "-P", __file__, "--worker", stage, str(path)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    # Who writes has to wait for what others wrote before, the archive itself for one.
    os.sync()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        before = json.loads(process.stdout.readline() or "{}")
        anonymous = 0
        while process.poll() is None:
            try:
                anonymous = max(anonymous, resident("RssAnon", process.pid))
            except (LookupError, OSError):  # it has ended
                break
            time.sleep(0.002)
        said = process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    figures: dict[str, float] = json.loads(said)
    return {**figures, "anonymous": anonymous - before["RssAnon"]}


def measure(path: Path, rounds: int, stages: Sequence[str]) -> dict[str, list[dict[str, float]]]:
    """The figures of each round by stage; the stages take turns, so that all meet one machine."""
    found: dict[str, list[dict[str, float]]] = {stage: [] for stage in stages}
    run_worker("copy of the file", path)  # the page cache's turn
    for _ in range(rounds):
        for stage in stages:
            found[stage].append(run_worker(stage, path))
    return found


def best(figures: Sequence[dict[str, float]], name: str) -> float:
    """The lowest of all rounds."""
    return min(figure[name] for figure in figures)


def median(figures: Sequence[dict[str, float]], name: str) -> float:
    """The median of all rounds."""
    return statistics.median(figure[name] for figure in figures)


def print_times(found: dict[str, list[dict[str, float]]], per: float, unit: str) -> None:
    """A line for each stage: its time, as `per` has it, and beside `torch.jit.load`'s."""
    load = found["torch.jit.load"]
    for stage, figures in found.items():
        seconds = best(figures, "seconds")
        rate = seconds / per if unit.startswith("ms") else per / seconds
        print(
            f"  {stage:18} {seconds:8.4f} s {median(figures, 'seconds'):8.4f} s {rate:9.3f} {unit} "
            f"{seconds / best(load, 'seconds'):7.2f} "
            f"{median(figures, 'seconds') / median(load, 'seconds'):7.2f} "
            f"{best(figures, 'cpu') / best(load, 'cpu'):7.2f}"
        )


def bytes_of(text: str) -> int:
    """What e.g. `2G`, `512M` or a number of bytes says. Raises ArgumentTypeError."""
    match = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 2G or 256M")
    return int(match[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[match[2]]


def main(argv: Sequence[str] | None = None) -> int:
    """Print tables of times, rates, memory and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--size", type=bytes_of, default="2G", help="bytes of weights (default: 2G)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="processes of each kind")
    parser.add_argument("--folder", type=Path, help="where archives are written (default: /tmp)")
    parser.add_argument("--worker", nargs=2, metavar=("STAGE", "FILE"), help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=3, metavar=("KIND", "N", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        print(json.dumps(work(options.worker[0], Path(options.worker[1]))))
        return 0
    if options.make:
        print(make(options.make[0], int(options.make[1]), Path(options.make[2])))
        return 0

    def made(kind: str, amount: int) -> tuple[Path, int]:
        # In a process of its own, so that this one stays small.
        path = Path(folder, f"{kind}-{amount}.pt")
        command = [sys.executable, "-P", __file__, "--make", kind, str(amount), str(path)]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return path, int(result.stdout.splitlines()[-1])

    heads = f"{'best':>10} {'median':>10} {'':>22} {'best':>7} {'median':>7} {'cpu':>7}"
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print(f"{'against torch.jit.load:':>52}\n{'':20} {heads}")
        for kind in GRAPHS:
            rates = {}
            for amount in NODES:
                path, nodes = made(kind, amount)
                print(f"{kind}: {nodes:,} nodes, {path.stat().st_size / 1e6:.1f} MB")
                found = measure(path, options.rounds, STAGES[:5])
                print_times(found, nodes / 1e6, "ms/1,000 nodes")
                rates[amount] = {s: best(f, "seconds") / nodes for s, f in found.items()}
            first, last = rates[NODES[0]], rates[NODES[-1]]
            print(f"{kind}, a node of {NODES[-1]:,} against one of {NODES[0]:,}:")
            print("  " + ", ".join(f"{stage} {last[stage] / first[stage]:.2f}" for stage in first))
        path, _ = made("weights", options.size)
        size = path.stat().st_size
        print(f"weights: {size / 1e9:.3f} GB")
        found = measure(path, options.rounds, STAGES)
        print_times(found, size / 1e9, "GB/s")
        print(f"{'peak memory, of the size of the file':40} {'resident':>9} {'anonymous':>10}")
        for stage, figures in found.items():
            peaks = [max(figure[name] for figure in figures) for name in ("peak", "anonymous")]
            print(f"  {stage:38} {peaks[0] / size:9.3f} {peaks[1] / size:10.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
