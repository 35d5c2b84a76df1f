#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seconds of importing an exported program: ours beside upstream's torch-mlir, in one run.

    python3 benchmarks/fx_import.py --upstream .../venv/bin/python3

Export is left out: the programs are exported once, by the Python that runs this (which needs
transformers for two of them), and loaded and decomposed before the clock starts. The two packages
run in interpreters of their own, in turns, so that both meet the same machine. A worker imports
each program several times into new contexts; the first time and the best count.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def residual_net() -> tuple[Any, tuple[Any, ...]]:
    """A residual conv net of eight blocks, and an input for it."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.branch = nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
            )

        def forward(self, x):
            return torch.relu(x + self.branch(x))

    width = 64
    net = nn.Sequential(
        nn.Conv2d(3, width, 7, stride=2, padding=3),
        nn.MaxPool2d(3, 2, 1),
        *(Block(width) for _ in range(8)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, 1000),
    )
    return net.eval(), (torch.randn(1, 3, 64, 64),)


def encoder() -> tuple[Any, tuple[Any, ...]]:
    """A BERT of four layers, and token ids for it."""
    import torch
    from transformers import BertConfig, BertModel

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = BertModel(
                BertConfig(
                    hidden_size=128,
                    num_hidden_layers=4,
                    num_attention_heads=4,
                    intermediate_size=512,
                    vocab_size=2000,
                )
            )

        def forward(self, ids):
            return self.bert(ids).last_hidden_state

    return Encoder().eval(), (torch.randint(0, 2000, (1, 32)),)


def decoder() -> tuple[Any, tuple[Any, ...]]:
    """A Llama of two layers, and token ids for it."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    class Decoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.llama = LlamaForCausalLM(
                LlamaConfig(
                    hidden_size=128,
                    intermediate_size=256,
                    num_hidden_layers=2,
                    num_attention_heads=4,
                    num_key_value_heads=2,
                    vocab_size=2000,
                )
            )

        def forward(self, ids):
            return self.llama(ids, use_cache=False).logits

    return Decoder().eval(), (torch.randint(0, 2000, (1, 32)),)


MODELS = {"conv net": residual_net, "BERT": encoder, "Llama": decoder}


def work(folder: Path, repeat: int) -> dict[str, list[float]]:
    """Seconds of each import, with the torch_mlir that this interpreter finds."""
    import torch

    from torch_mlir import ir
    from torch_mlir.dialects import torch as dialect
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table
    from torch_mlir.extras.fx_importer import FxImporter

    seconds = {}
    for path in sorted(folder.glob("*.pt2")):
        program = torch.export.load(str(path)).run_decompositions(get_decomposition_table())
        seconds[path.stem] = []
        for _ in range(repeat):
            start = time.process_time()
            context = ir.Context()
            if hasattr(dialect, "register_dialect"):
                dialect.register_dialect(context)
            FxImporter(context=context).import_program(program)
            seconds[path.stem].append(time.process_time() - start)
    return seconds


def run_worker(python: str, path: str | None, folder: Path, repeat: int) -> dict[str, list[float]]:
    """`work` in the interpreter `python`. Raises CalledProcessError."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    environment.pop("PYTHONPATH", None)
    if path:
        environment["PYTHONPATH"] = path
    command = [python, "-P", __file__, "--worker", str(folder), "--repeat", str(repeat)]
    result = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(result.stdout.splitlines()[-1])


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table of seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", help="a Python that has upstream's torch-mlir and a PyTorch")
    parser.add_argument("--ours", default=sys.executable, help="a Python that has ours")
    parser.add_argument("--ours-path", default=os.environ.get("PYTHONPATH"), help="its PYTHONPATH")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each interpreter")
    parser.add_argument("--repeat", type=int, default=5, help="imports in one turn")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        print(json.dumps(work(options.worker, options.repeat)))
        return 0
    if not options.upstream:
        parser.error("--upstream is needed")

    import torch

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model, make in MODELS.items():
            module, inputs = make()
            torch.export.save(torch.export.export(module, inputs), str(folder / f"{model}.pt2"))
        ours: list[dict[str, list[float]]] = []
        theirs: list[dict[str, list[float]]] = []
        for _ in range(options.rounds):
            theirs.append(run_worker(options.upstream, None, folder, options.repeat))
            ours.append(run_worker(options.ours, options.ours_path, folder, options.repeat))
    print(f"{'CPU seconds of an import':26} {'upstream':>9} {'ours':>9} {'ratio':>7}")
    for model in MODELS:
        for label, pick in (("first", lambda values: values[0]), ("best", min)):
            their, our = (
                statistics.median(pick(turn[model]) for turn in side) for side in (theirs, ours)
            )
            print(f"{model + ', ' + label:26} {their:9.4f} {our:9.4f} {our / their:7.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
