#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seconds of importing each architecture of tests/models: ours beside upstream's torch-mlir.

    python3 benchmarks/fx_models.py --upstream .../venv/bin/python3

Both interpreters need transformers and diffusers of one version. Each exports and decomposes by
the decompositions of its own package before the clock starts, and imports every program several
times into new contexts; the best time counts, and what a context itself takes is told apart. The
two take turns, architecture by architecture, so that both meet the same machine. What is timed is
`import_program`; what a package refuses is shown with what it says, and what
`import_frozen_program` refuses besides, which `export_and_import` calls by default.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

MODELS = Path(__file__).resolve().parents[1] / "tests" / "models"


def architectures() -> tuple[Any, ...]:
    """The registry of the tests."""
    sys.path.insert(0, str(MODELS))
    from architectures import ARCHITECTURES

    return ARCHITECTURES


def measure(architecture: Any, is_open: bool, repeat: int) -> dict[str, Any]:
    """CPU seconds of the best import with the torch_mlir that this interpreter finds.

    Returns:
        `nodes`, `seconds`, those of making a `context` and, if `import_frozen_program` refuses what `import_program` takes,
        its error as `frozen`; or `stage` and `error` of what failed: `export`, `decompose` or
        `import`.
    """
    import torch

    from torch_mlir import ir
    from torch_mlir.dialects import torch as dialect
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table
    from torch_mlir.extras.fx_importer import FxImporter

    stage = "export"
    try:
        shapes = architecture.dynamic_shapes() if is_open else None
        with torch.no_grad():
            program = torch.export.export(
                architecture.build(),
                (architecture.arguments(),),
                dynamic_shapes=shapes,
                strict=False,
            )
            stage = "decompose"
            program = program.run_decompositions(get_decomposition_table())
        stage = "import"
        seconds, contexts = [], []
        for _ in range(repeat):
            start = time.process_time()
            context = ir.Context()
            if hasattr(dialect, "register_dialect"):
                dialect.register_dialect(context)
            contexts.append(time.process_time() - start)
            start = time.process_time()
            FxImporter(context=context).import_program(
                program, import_symbolic_shape_expressions=is_open
            )
            seconds.append(time.process_time() - start)
    except Exception as error:  # noqa: BLE001 what a package refuses is a result here
        return {"stage": stage, "error": told(error)}
    answer = {
        "nodes": len(program.graph.nodes),
        "seconds": min(seconds),
        "context": min(contexts),
    }
    try:
        context = ir.Context()
        if hasattr(dialect, "register_dialect"):
            dialect.register_dialect(context)
        FxImporter(context=context).import_frozen_program(program)
    except Exception as error:  # noqa: BLE001
        answer["frozen"] = told(error)
    return answer


def told(error: Exception) -> str:
    """An error's type and first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def work(is_open: bool, repeat: int) -> None:
    """Measure each architecture whose number comes in a line; answer with a line of JSON."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    registry = architectures()
    # Libraries print; the answers have a stream of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(measure(registry[int(line)], is_open, repeat)) + "\n")
        answers.flush()


class Worker:
    """This script in another interpreter, told what to measure."""

    def __init__(self, python: str, path: str | None, is_open: bool, repeat: int) -> None:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        environment.pop("PYTHONPATH", None)
        if path:
            environment["PYTHONPATH"] = path
        command = [python, "-P", __file__, "--worker", "--repeat", str(repeat)]
        if is_open:
            command.append("--open")
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def measure(self, number: int) -> dict[str, Any]:
        """The answer for the architecture of this number.

        Raises:
            RuntimeError: the interpreter ended.
        """
        requests, answers = self._pipes()
        try:
            requests.write(f"{number}\n")
            requests.flush()
        except BrokenPipeError:
            pass  # The missing answer tells.
        line = answers.readline()
        if not line:
            raise RuntimeError(f"{self._process.args[0]} ended with {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """Let it end."""
        self._pipes()[0].close()
        self._process.wait()

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        return self._process.stdin, self._process.stdout


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table of seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", help="a Python with upstream's torch-mlir and a PyTorch")
    parser.add_argument("--ours", default=sys.executable, help="a Python that has ours")
    parser.add_argument("--ours-path", default=os.environ.get("PYTHONPATH"), help="its PYTHONPATH")
    parser.add_argument("--open", action="store_true", help="sizes open rather than fixed")
    parser.add_argument("--repeat", type=int, default=5, help="imports of each program")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        work(options.open, options.repeat)
        return 0
    if not options.upstream:
        parser.error("--upstream is needed")
    theirs = Worker(options.upstream, None, options.open, options.repeat)
    ours = Worker(options.ours, options.ours_path, options.open, options.repeat)
    print(f"{'CPU seconds of an import':26}{'nodes':>7}{'upstream':>10}{'ours':>10}{'ratio':>8}")
    ratios, imported = [], [0, 0]
    contexts: tuple[list[float], list[float]] = ([], [])
    frozen: dict[tuple[str, str], list[str]] = {}
    for number, architecture in enumerate(architectures()):
        answers = theirs.measure(number), ours.measure(number)
        for side, answer in enumerate(answers):
            if "seconds" in answer:
                imported[side] += 1
                contexts[side].append(answer["context"])
        cells = [
            f"{answer['seconds']:10.4f}" if "seconds" in answer else f"{answer['stage']:>10}"
            for answer in answers
        ]
        ratio = ""
        if all("seconds" in answer for answer in answers):
            ratios.append(answers[1]["seconds"] / answers[0]["seconds"])
            ratio = f"{ratios[-1]:8.2f}"
        nodes = next((answer["nodes"] for answer in answers[::-1] if "nodes" in answer), "")
        print(f"{architecture.name:26}{nodes:>7}{''.join(cells)}{ratio}", flush=True)
        for name, answer in zip(("upstream", "ours"), answers, strict=True):
            if "error" in answer:
                print(f"    {name}, {answer['stage']}: {answer['error'][:160]}")
            elif "frozen" in answer:
                frozen.setdefault((name, answer["frozen"]), []).append(architecture.name)
    theirs.close()
    ours.close()
    print(f"imported: upstream {imported[0]}, ours {imported[1]} of {number + 1}")
    if all(contexts):
        print(
            "a new context takes besides: "
            f"upstream {statistics.median(contexts[0]):.4f}, ours {statistics.median(contexts[1]):.4f}"
        )
    for (name, said), refused in frozen.items():
        print(f"{name}, import_frozen_program: {said}: {len(refused)}: {', '.join(refused)}")
    if ratios:
        print(
            f"ratio: median {statistics.median(ratios):.2f}, "
            f"lowest {min(ratios):.2f}, highest {max(ratios):.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
