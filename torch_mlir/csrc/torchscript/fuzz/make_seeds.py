# Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# TorchScript knows types by the names of `typing`, in every release.
# ruff: noqa: UP006, UP032, UP035, UP045
"""Writes the archives that fuzzing starts from: `python make_seeds.py FOLDER`, with PyTorch.

They are small, so that changes meet what matters, and between them hold what a TorchScript
archive may hold.
"""

import enum
import os
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import nn


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Word(enum.Enum):
    A = "a'b"
    B = ""


class Pair(NamedTuple):
    first: torch.Tensor
    second: int = 3


class Nested(NamedTuple):
    left: Pair
    right: Optional[Pair]


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Double(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Interface(nn.Module):
    step: Step

    def __init__(self):
        super().__init__()
        self.step = Double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.step.forward(x)


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.count = start

    def add(self, by: int = 2) -> int:
        self.count += by
        return self.count


class Attributes(nn.Module):
    def __init__(self):
        super().__init__()
        self.strings = torch.jit.Attribute({"a": 1, "b": 2}, Dict[str, int])
        self.ints = torch.jit.Attribute({1: torch.ones(2)}, Dict[int, torch.Tensor])
        self.floats = torch.jit.Attribute({1.5: ["x"]}, Dict[float, List[str]])
        self.lists = torch.jit.Attribute([[1, 2], [3]], List[List[int]])
        self.tuple = torch.jit.Attribute((1, "s", 2.5, 1j), Tuple[int, str, float, complex])
        self.nothing = torch.jit.Attribute(None, Optional[torch.Tensor])
        self.large = torch.jit.Attribute([2**40, -(2**63)], List[int])
        self.flags = torch.jit.Attribute([True, False], List[bool])
        self.device = torch.jit.Attribute(torch.device("cpu"), torch.device)
        self.colour = Colour.RED
        self.word = Word.A

    def forward(self, x: torch.Tensor, any: Any = 1) -> Tuple[int, Colour]:
        if isinstance(any, int):
            return any + len(self.strings), self.colour
        return len(self.lists), Colour.GREEN


class Tensors(nn.Module):
    def __init__(self):
        super().__init__()
        base = torch.arange(24.0).reshape(2, 3, 4)
        self.w = nn.Parameter(base)
        self.register_buffer("view", base[:, 1:, ::2])
        self.register_buffer("turned", base.permute(2, 0, 1))
        self.register_buffer("wide", torch.ones(1).expand(5, 7))
        self.register_buffer("scalar", torch.tensor(True))
        self.register_buffer("none", None)
        self.register_buffer("empty", torch.empty(0, 3))
        self.register_buffer("narrow", torch.ones(3).half())
        self.register_buffer("conjugate", torch.ones(2, dtype=torch.complex64).conj())

    def forward(self, x):
        return x + self.w.sum() + torch.tensor([1.0, 2.0, 3.0]) + self.turned.sum()


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 3

    @torch.jit.export
    def __getstate__(self):
        return (self.k, self.training)

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, bool]):
        self.k = state[0]
        for i in range(3):
            self.k += i
        self.training = state[1]

    def forward(self, x):
        return x * self.k


class Control(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        self.layers.append(self.layers[0])

    @torch.jit.export
    def helper(self, xs: List[torch.Tensor], d: Dict[str, int]) -> Nested:
        total = torch.zeros(2)
        n = 0
        for i, x in enumerate(xs):
            if i % 2 == 0:
                total = total + x
            elif i > 3:
                total = total - x
            else:
                n += d["a"]
        while n > 10:
            n = n // 2
            if n == 5:
                break
        return Nested(Pair(total, n), None)

    def forward(self, x: torch.Tensor, flag: bool = True):
        for layer in self.layers:
            x = layer(x)
        counter = Counter(3)
        pair = self.helper([x, x], {"a": counter.add()}).left
        assert pair.second >= 0, "bad {}".format(pair.second)
        if not flag:
            raise RuntimeError("no\tway")
        future = torch.jit.fork(torch.relu, x)
        names = [str(i) + "," for i in range(3)]
        return torch.jit.wait(future)[..., None, 1:], pair, names, x.device, {"k": x}


class Hooked(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def scripted_with_hooks() -> torch.jit.ScriptModule:
    module = Hooked()

    def before(self, inputs: Tuple[torch.Tensor]) -> Tuple[torch.Tensor]:
        return (inputs[0] + 1,)

    def after(self, inputs: Tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
        return output * 2

    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)
    return torch.jit.script(module)


def seeds() -> Dict[str, torch.jit.ScriptModule]:
    torch.manual_seed(0)
    mlp = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).eval()
    return {
        "attributes": torch.jit.script(Attributes()),
        "control": torch.jit.script(Control()),
        "hooks": scripted_with_hooks(),
        "interface": torch.jit.script(Interface()),
        "state": torch.jit.script(State()),
        "tensors": torch.jit.trace(Tensors(), torch.ones(3)),
        "traced": torch.jit.trace(mlp, torch.ones(1, 2)),
        "frozen": torch.jit.freeze(torch.jit.script(mlp)),
    }


def main() -> None:
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, module in seeds().items():
        torch.jit.save(module, os.path.join(folder, name + ".pt"))
    # What isn't TorchScript and must be told.
    mlp = nn.Linear(2, 1)
    torch.save(mlp.state_dict(), os.path.join(folder, "state_dict.pt"))
    torch.save(
        mlp.state_dict(),
        os.path.join(folder, "legacy.pt"),
        _use_new_zipfile_serialization=False,
    )
    torch.jit.script(mlp)._save_for_lite_interpreter(os.path.join(folder, "lite.ptl"))


if __name__ == "__main__":
    main()
