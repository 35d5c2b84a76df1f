# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads work on lazy tensors at the same time, and each gets its own results."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import pytest
import torch
import torch._lazy
from torch import nn


def run_threads(work, count=2):
    """What `work(number)` gives in threads of their own; raises what one of them raises."""
    results, problems = [None] * count, []
    together = threading.Barrier(count)

    def run(number):
        try:
            together.wait()
            results[number] = work(number)
        except Exception as problem:  # noqa: BLE001  raised below
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "the threads wait for each other"
    if problems:
        raise problems[0]
    return results


def test_two_threads_compute_their_own_results(backend):
    def work(number):
        found = []
        for size in range(2, 12):
            x = torch.full((size,), float(number + 1)).to("lazy")
            y = (x * size).view(1, -1)
            y[0, 0] += 10
            found.append(y.sum().item())
        return found

    assert run_threads(work) == [
        [(number + 1) * size * size + 10 for size in range(2, 12)] for number in range(2)
    ]


def test_two_threads_train_models_of_their_own(backend):
    def train(device, number):
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(0.1 * (number + 1))
        model.to(device)
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        x = torch.arange(6.0).view(2, 3).to(device)
        losses = []
        for _ in range(8):
            optimiser.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    ours = run_threads(lambda number: train("lazy", number))
    torch.testing.assert_close(ours, [train("cpu", number) for number in range(2)])


def test_a_failure_reaches_the_thread_that_asked(backend):
    from torch_mlir import lazy

    class Picky(type(backend)):
        def compile(self, module, signature):
            if signature.results[0].shape == (7,):
                raise KeyError("sevens")
            return super().compile(module, signature)

    def work(number):
        x = torch.ones(7 if number else 5).to("lazy")
        try:
            return (x + 1).cpu().tolist()
        except RuntimeError as problem:
            return str(problem)

    with lazy.register(Picky()):
        fine, failed = run_threads(work)
    assert fine == [2] * 5
    assert failed == "Picky.compile fails: KeyError: 'sevens'"


@pytest.mark.parametrize("end", ["", "torch._lazy.mark_step()"])
def test_python_ends_while_there_are_lazy_tensors_and_threads(end, tmp_path):
    program = f"""
        import threading, torch, torch._lazy
        from torch_mlir import lazy
        from torch_mlir.lazy.reference import ReferenceBackend

        lazy.register(ReferenceBackend())
        kept = torch.ones(3).to("lazy") + 1
        print(kept.cpu().tolist())
        pending = kept * 2
        thread = threading.Thread(target=lambda: print((kept + 1).cpu().tolist()))
        thread.start()
        thread.join()
        {end}
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2.0, 2.0, 2.0]\n[3.0, 3.0, 3.0]\n"
    assert "nanobind" not in done.stderr and "Exception" not in done.stderr
