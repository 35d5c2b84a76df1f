#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long it takes from `mark_step` to MLIR, beside PyTorch's TorchScript backend on the same graph.

    python3 benchmarks/lazy_lowering.py [--rounds 15] [--build DIR]

Needs torch_mlir with its lazy backend, PyTorch, transformers, CMake and a C++ compiler, with which
it builds lazy_lowering/Clock.cpp: a backend of lazy tensors that lowers each graph it is given several times, in
turns by PyTorch's own TorchScript backend and by ours, from the same nodes to a finished
computation. Ours does all that PyTorch's does (our lowering context derives from its), and makes
a verified module of it. So the ratio is the price of MLIR. The best and the median round are told;
then the time from a call of `mark_step` to the finished computation, once for each backend being
the first to lower a new graph. Models are BERTs with random weights; a graph is a training step.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch._lazy
from torch import nn

import torch_mlir
import torch_mlir.lazy

# What distinguishes the models from transformers' base configuration.
MODELS: dict[str, dict[str, int]] = {
    "small": {
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 512,
        "vocab_size": 1000,
    },
    "base": {"vocab_size": 1000},
}


def build(folder: Path) -> Path:
    """Builds the clock in `folder`; gives the library."""
    prefixes = f"{torch_mlir.cmake_prefix_path};{torch.utils.cmake_prefix_path}"
    source = Path(__file__).with_suffix("")
    for command in (
        [
            "cmake",
            "-Wno-dev",
            *("-S", source, "-B", folder),
            f"-DCMAKE_PREFIX_PATH={prefixes}",
            f"-DTORCH_MLIR_TORCH_DIR={Path(torch.__file__).parent}",
        ],
        ["cmake", "--build", folder],
    ):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "lazy_lowering.so"


def make_step(options: dict[str, int], training: bool) -> Any:
    """A function that records a step of a BERT for sequences of a length."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    # Dropout draws from a generator; without it the graph is that of the layers alone.
    config = BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **options)
    model = BertModel(config).to("lazy")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(length: int) -> nn.Parameter | torch.Tensor:
        tokens = torch.randint(0, 1000, (1, length)).to("lazy")
        with torch.set_grad_enabled(training):
            loss = model(input_ids=tokens).last_hidden_state.square().mean()
        if training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss

    torch._lazy.mark_step(wait=True)
    return step


def measure(name: str, options: dict[str, int], training: bool, rounds: int) -> None:
    clock = torch.ops.lazy_lowering
    clock.set(1, True)
    step = make_step(options, training)
    # Warm: the kernels' caches, and the allocator.
    kept = step(8)
    torch._lazy.mark_step(wait=True)

    clock.set(rounds, True)
    kept = step(16)
    torch._lazy.mark_step(wait=True)
    kept.item()
    ours, theirs, contexts = clock.ours(), clock.torchscript(), clock.contexts()
    nodes, operations = clock.nodes(), clock.operations()

    whole: dict[bool, list[int]] = {True: [], False: []}
    for length in range(17, 17 + 6):
        first = length % 2 == 0
        clock.set(1, first)
        kept = step(length)
        start = time.monotonic_ns()
        torch._lazy.mark_step(wait=True)
        whole[first].append(clock.built() - start)

    def micro(values: list[int]) -> str:
        return f"{min(values) / 1e3:9,.0f} {statistics.median(values) / 1e3:9,.0f}"

    print(f"BERT {name}, {'training step' if training else 'forward'}:", end=" ")
    print(f"{nodes} lazy nodes, {operations} operations          best    median, µs")
    print(f"  lowering, PyTorch's TorchScript backend               {micro(theirs)}")
    print(f"  lowering, ours                                        {micro(ours)}")
    print(f"  a context, which many computations share              {micro(contexts)}")
    print(f"  from mark_step, PyTorch's TorchScript backend         {micro(whole[False])}")
    print(f"  from mark_step to MLIR, ours                          {micro(whole[True])}")
    best = min(ours) / min(theirs)
    median = statistics.median(ours) / statistics.median(theirs)
    print(f"  ours to PyTorch's: lowering {best:.2f} (best), {median:.2f} (median),", end=" ")
    print(f"from mark_step {min(whole[True]) / min(whole[False]):.2f} (best)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="times each graph is lowered")
    parser.add_argument("--build", type=Path, help="where the clock is built, to keep it")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        torch.ops.load_library(str(build(options.build or Path(folder))))
        torch.ops.lazy_lowering.register()
        print(f"PyTorch {torch.__version__}, {options.rounds} rounds")
        for name in options.models:
            for training in (False, True):
                measure(name, MODELS[name], training, options.rounds)


if __name__ == "__main__":
    main()
