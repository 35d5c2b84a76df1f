# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: PLC0206, PLR0133, PYI036, UP045  programs as they come
"""Programs that branch, loop, fail, print and wait."""

from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import Module

from .cases import scripted


@scripted((torch.ones(2), 1), (torch.ones(2), -1), (torch.ones(2), 0))
class Branches(Module):
    def forward(self, x: Tensor, n: int):
        if n > 0:
            x = x + 1
            label = "up"
        elif n < 0:
            x = x - 1
            label = "down"
        else:
            label = "same"
        if n == 0:
            x = x * 3
        return x, label, 1 if n > 0 else 2


@scripted((torch.ones(2),), (-torch.ones(2),))
class BranchesOnData(Module):
    def forward(self, x: Tensor):
        if x.sum() > 0:
            return x * 2
        return x - 1


@scripted((3,), (-3,), (30,))
class EarlyReturns(Module):
    def forward(self, n: int) -> int:
        if n < 0:
            return -1
        for i in range(n):
            if i * i > n:
                return i
        return n


@scripted((True, False), (False, True))
class Conditions(Module):
    def forward(self, a: bool, b: bool):
        return a and b, a or b, not a, a != b, a if b else not b, 1 < 2 < int(a) + 3


@scripted((torch.ones(2), 4))
class Loops(Module):
    def forward(self, x: Tensor, n: int):
        for i in range(n):
            x = x + i
        for i in range(10, 0, -3):
            x = x * i
        total = 0
        while total < 7:
            total += 2
        return x, total


@scripted((6,), (0,), (1,))
class LoopsThatBreak(Module):
    def forward(self, n: int):
        total = 0
        for i in range(n):
            if i == 1:
                continue
            if i == 4:
                break
            total += i
        steps = 0
        while True:
            steps += 1
            if steps > n:
                break
        return total, steps


@scripted((torch.ones(2, 3),))
class NestedLoops(Module):
    def forward(self, x: Tensor):
        total = 0.0
        for i in range(x.size(0)):
            for j in range(x.size(1)):
                if i != j:
                    total += float(x[i, j])
        return total


@scripted((["a", "bb"], {"k": 1, "l": 2}))
class LoopsOverContainers(Module):
    def forward(self, words: list[str], d: dict[str, int]):
        n = 0
        for word in words:
            n += len(word)
        for key in d:
            n += d[key]
        for i, word in enumerate(words):
            n += i
        for a, (b, c) in zip(words, [(1, 2), (3, 4)]):
            n += len(a) + b * c
        for letter in "xyz":
            n += 1 if letter == "y" else 0
        return n


@scripted((3,), (0,))
class LoopThatCarriesAnOptional(Module):
    def forward(self, n: int) -> Optional[int]:
        last: Optional[int] = None
        for i in range(n):
            if last is None:
                last = i
            else:
                last = last + i
        return last


@scripted((torch.ones(2), 2))
class Asserts(Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        assert n > 0
        assert x.dim() == 1, "one dimension is wanted"
        assert x.size(0) == n, f"{n} elements are wanted"
        return x


@scripted((1,))
class Exceptions(Module):
    def forward(self, n: int) -> int:
        if n == 0:
            raise ValueError("zero")
        elif n < 0:
            raise RuntimeError("below zero: " + str(n))
        return n


class Trouble(Exception):
    pass


@scripted((1,))
class OwnExceptions(Module):
    def forward(self, n: int) -> str:
        if n < 0:
            raise Trouble("n is " + str(n))
        return "fine"


@scripted((1,), (2,))
class Uninitialized(Module):
    """The branch that raises has no value of its own."""

    def forward(self, n: int) -> tuple[int, Tensor]:
        if n > 1:
            x = torch.ones(n)
            m = n
        elif n == 1:
            return 0, torch.zeros(1)
        else:
            raise ValueError("n")
        return m, x


@scripted((torch.ones(2),))
class Prints(Module):
    def forward(self, x: Tensor) -> Tensor:
        print("value:", x, 1, [0.5], None)
        print()
        return x


def doubled(x: Tensor) -> Tensor:
    return x * 2


def twice(x: Tensor, n: int) -> tuple[Tensor, int]:
    return doubled(doubled(x)), n * 2


@scripted((torch.ones(2),))
class Functions(Module):
    def forward(self, x: Tensor):
        y, n = twice(x, 3)
        return doubled(y) + n


@scripted((torch.ones(2),))
class Tasks(Module):
    def forward(self, x: Tensor) -> Tensor:
        task = torch.jit.fork(doubled, x)
        other = torch.jit.fork(twice, x, 2)
        y, n = torch.jit.wait(other)
        return torch.jit.wait(task) + y * n


class Inner(Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        return x + n


@scripted((torch.ones(2),))
class TasksOfModules(Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x: Tensor) -> Tensor:
        tasks: list[torch.jit.Future[Tensor]] = []
        for i in range(3):
            tasks.append(torch.jit.fork(self.inner, x, i))
        total = torch.zeros_like(x)
        for task in tasks:
            total = total + torch.jit.wait(task)
        return total


def nested(x: Tensor, depth: int) -> Tensor:
    task = torch.jit.fork(doubled, x)
    return torch.jit.wait(task) + depth


@scripted((torch.ones(2),))
class TasksInContainers(Module):
    """Futures in tuples and dicts, as arguments, and tasks that tasks begin."""

    def later(self, task: torch.jit.Future[Tensor], x: Tensor) -> Tensor:
        return torch.jit.wait(task) * x

    def forward(self, x: Tensor) -> Tensor:
        pair = (torch.jit.fork(nested, x, 2), torch.jit.fork(nested, x + 1, 3))
        named: dict[str, torch.jit.Future[Tensor]] = {"a": torch.jit.fork(doubled, x)}
        first, second = pair
        return self.later(first, x) + torch.jit.wait(second) + torch.jit.wait(named["a"])


@scripted((torch.ones(2),))
class WithoutGradients(Module):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = x * 2
        return y + 1


@torch.jit.script
class Counting:
    def __init__(self):
        self.depth = 0

    def __enter__(self) -> int:
        self.depth += 1
        return self.depth

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.depth -= 1


@scripted((torch.ones(2),))
class WithStatements(Module):
    def forward(self, x: Tensor):
        counting = Counting()
        with counting as depth:
            x = x + depth
            with counting as deeper:
                x = x * deeper
        return x, counting.depth


@scripted((torch.ones(2),))
class ScriptingFlags(Module):
    def forward(self, x: Tensor) -> Tensor:
        if torch.jit.is_scripting():
            return x + 1
        return self.eager_only(x)

    @torch.jit.unused
    def eager_only(self, x: Tensor) -> Tensor:
        return x.apply_(lambda value: value + 1)


@scripted((torch.ones(2),))
class Measured(Module):
    def forward(self, x: Tensor) -> Tensor:
        with torch.profiler.record_function("block"):
            return x * 2


@scripted((2,), (5,))
class RecursiveData(Module):
    """A stack instead of recursion, which TorchScript does not have."""

    def forward(self, n: int) -> list[int]:
        stack = [n]
        seen: list[int] = []
        while len(stack) > 0:
            top = stack.pop()
            seen.append(top)
            if top > 1:
                stack.append(top - 1)
                stack.append(top // 2)
        return seen
