# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: UP045  PyTorch 2.1 knows no `X | None`
"""Programs on lists, tuples and dicts."""

from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn import Module

from .cases import scripted


@scripted(([3, 1, 2],), functional="aten::remove.int")
class Lists(Module):
    def forward(self, xs: list[int]):
        ys = [4] + xs[1:] if len(xs) > 5 else [4, 5]
        ys.append(6)
        ys.extend(xs)
        ys.insert(1, 7)
        ys[0] = 8
        last = ys.pop()
        ys.remove(7)
        zs = ys.copy()
        zs.reverse()
        zs.sort()
        del zs[0]
        return ys, zs, last, ys.index(6), ys.count(6), 5 in ys, ys == zs, ys[1:3], sum(ys), max(ys)


@scripted()
class ListsOfEverything(Module):
    optionals: list[Optional[int]]
    empty: list[Tensor]

    def __init__(self):
        super().__init__()
        self.ints = [1, -2, 9223372036854775807]
        self.floats = [0.5, float("inf")]
        self.bools = [True, False]
        self.words = ["a", "é"]
        self.nested = [[1], [2, 3]]
        self.pairs = [(1, "a"), (2, "b")]
        self.tensors = [torch.ones(2), torch.zeros(0)]
        self.optionals = [1, None]
        self.empty = []

    def forward(self):
        first = (self.ints, self.floats, self.bools, self.words, self.nested)
        return first, self.pairs, self.tensors, self.optionals, self.empty


@scripted((torch.ones(2, 3),))
class ListsOfTensors(Module):
    def forward(self, x: Tensor):
        parts = torch.split(x, 1)
        first, second = torch.unbind(x)
        a, b = torch.split(x, [1, 1], dim=0)
        ys = [part * 2 for part in parts]
        ys.append(first.unsqueeze(0))
        return torch.cat(ys), torch.stack([first, second], dim=1), torch.cat([a, b])


@scripted((3,), functional="aten::_set_item.str")
class Comprehensions(Module):
    def forward(self, n: int):
        squares = [i * i for i in range(n)]
        words = {str(i): i for i in squares}
        pairs = [(i, word) for i, word in enumerate(["a", "b"])]
        sums = [a + b for a, b in zip(squares, squares)]
        return squares, words, pairs, sums


@scripted(((1, (torch.ones(2), "a")),))
class Tuples(Module):
    def __init__(self):
        super().__init__()
        self.pair = (1, 2.5)
        self.empty = ()
        self.deep = ((1, [2]), {"k": (3, None)})

    def forward(self, x: tuple[int, tuple[Tensor, str]]):
        n, (t, s) = x
        whole = (n, t, s, self.pair[1])
        return whole[1:3], whole, self.pair, self.deep, whole[-1]


class Point(NamedTuple):
    x: int
    y: float
    label: Optional[str] = None


class Boxed(NamedTuple):
    point: Point
    weights: Tensor


@scripted((Point(1, 2.0, "a"),))
class NamedTuples(Module):
    origin: Point

    def __init__(self):
        super().__init__()
        self.origin = Point(0, 0.0)

    def forward(self, p: Point):
        moved = Point(p.x + self.origin.x + 1, p.y)
        x, y, label = p
        return moved, Boxed(moved, torch.ones(1)), moved.x, p.label, y, p[0], (x, label)


@scripted((torch.ones(2),))
class NamedTuplesInContainers(Module):
    points: list[Point]
    boxes: dict[str, Boxed]
    last: Optional[Boxed]

    def __init__(self):
        super().__init__()
        self.points = [Point(1, 0.5), Point(2, 1.5, "b")]
        self.boxes = {"one": Boxed(Point(3, 2.5), torch.ones(2))}
        self.last = None

    def forward(self, x: Tensor):
        box = self.boxes["one"]
        last = self.last
        total = 0
        for point in self.points:
            total += point.x
            label = point.label
            if label is not None:
                total += len(label)
        if last is not None:
            box = last
        return box.weights * x + box.point.x, total, self.points[-1].y, self.points


@scripted(("b",), ("z",), functional="aten::_set_item.str")
class DictOfStrings(Module):
    def __init__(self):
        super().__init__()
        self.table = {"a": 1, "b": 2}

    def forward(self, key: str):
        d = {"x": 1, "y": 2}
        d[key] = 3
        d.update(self.table)
        found = d["b"]
        popped = d.pop("x")
        d.setdefault("w", 9)
        copied = d.copy()
        del copied["y"]
        names = list(d.keys())
        total = sum(list(d.values()))
        for name, value in self.table.items():
            total += value + len(name)
        return (
            d,
            copied,
            names,
            total,
            found,
            popped,
            key in self.table,
            self.table.get(key),
            len(d),
        )


@scripted((7,), functional="prim::DictConstruct")
class DictOfInts(Module):
    table: dict[int, Tensor]

    def __init__(self):
        super().__init__()
        self.table = {1: torch.ones(2), -5: torch.zeros(1)}

    def forward(self, key: int):
        d = {key: "seven", 2: "two"}
        return d, self.table, d[2], self.table[1]


@scripted((0.5,), functional="prim::DictConstruct")
class DictOfFloats(Module):
    def __init__(self):
        super().__init__()
        self.table = {0.25: [1], float("inf"): [2, 3]}

    def forward(self, key: float):
        return {key: 1, 2.5: 2}, self.table


@scripted((True,), functional="prim::DictConstruct")
class DictOfBools(Module):
    def __init__(self):
        super().__init__()
        self.table = {True: "yes", False: "no"}

    def forward(self, key: bool):
        return {key: 1.5}, self.table, self.table[key]


@scripted((1.0 + 2.0j,), functional="prim::DictConstruct")
class DictOfComplex(Module):
    def __init__(self):
        super().__init__()
        self.table = {1.0j: 1, 2.0 + 0.0j: 2}

    def forward(self, key: complex):
        return len({key: 1}), len(self.table)


@scripted((torch.ones(1),), functional="prim::DictConstruct")
class DictOfTensors(Module):
    def __init__(self):
        super().__init__()
        self.key = torch.zeros(1)

    def forward(self, key: Tensor):
        d = {key: 1, self.key: 2}
        return d[key] + d[self.key], len(d)


@scripted()
class DictOfDevices(Module):
    def forward(self):
        return {torch.device("cpu"): 1, torch.device("meta"): 2}


@scripted()
class DictsOfEverything(Module):
    nested: dict[str, dict[int, list[float]]]
    empty: dict[str, Tensor]
    optionals: dict[str, Optional[int]]

    def __init__(self):
        super().__init__()
        self.nested = {"a": {1: [0.5]}, "b": {}}
        self.empty = {}
        self.tuples = {"t": (1, "x")}
        self.optionals = {"n": None, "i": 1}

    def forward(self):
        made: dict[str, list[int]] = {}
        made["k"] = [1]
        return self.nested, self.empty, self.tuples, self.optionals, made


@scripted(([torch.ones(2), torch.zeros(2)], {"k": torch.ones(1)}))
class ContainersAsArguments(Module):
    def forward(self, xs: list[Tensor], d: dict[str, Tensor]) -> dict[str, list[Tensor]]:
        a, b = xs
        return {"xs": [a + b], "d": [d["k"]]}


@scripted()
class SharedContainers(Module):
    """Two attributes that are one list: what one sees, the other sees."""

    def __init__(self):
        super().__init__()
        self.list = [1]
        self.other = self.list
        self.dict = {"k": [2]}

    def forward(self):
        self.list.append(len(self.list) + 1)
        return self.list, self.other, self.dict
