# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: PLR0124, UP007, UP031, UP032, UP045  programs as they come
"""Programs on numbers, strings, devices, enums and optionals."""

import math
from enum import Enum
from typing import Any, Optional, Union

import torch
from torch import Tensor
from torch.nn import Module

from .cases import scripted


@scripted()
class NumericConstants(Module):
    def forward(self):
        return (
            0,
            -1,
            9223372036854775807,
            -9223372036854775807,
            0.1,
            -0.0,
            1e300,
            5e-324,
            float("inf"),
            -math.inf,
            math.pi,
            True,
            False,
            None,
        )


@scripted()
class NotANumber(Module):
    def forward(self) -> tuple[float, bool]:
        x = float("nan")
        return x, x != x


@scripted((7, 2, 1.5), (-7, 2, -1.5))
class Arithmetic(Module):
    def forward(self, a: int, b: int, x: float):
        whole = (a + b, a - b, a * b, a // b, a % b, a**2, -a, abs(a), a & b, a | b, a ^ b, a << b)
        broken = (a / b, x * a, x // b, x % 2.0, x**2.0, -x, abs(x))
        rounded = (int(x), float(a), bool(a), round(x), math.floor(x), math.ceil(x))
        return whole, broken, rounded, (min(a, b), max(x, 0.5), a < b, x >= 1.0, a == b)


@scripted((2.0,), (0.5,))
class Mathematics(Module):
    def forward(self, x: float):
        return (
            math.sqrt(x),
            math.exp(x),
            math.log(x),
            math.sin(x),
            math.atan2(x, 1.0),
            math.copysign(x, -1.0),
            math.gcd(int(x * 8), 12),
            math.factorial(4),
        )


@scripted(("ab", 3))
class Strings(Module):
    def __init__(self):
        super().__init__()
        self.prefix = 'tabs\tand\nlines "quoted" \\ back'

    def forward(self, s: str, n: int):
        joined = self.prefix + s + "ünïcödé 数 🙂" + "nul\0byte"
        parts = (s + ",b,c").split(",")
        return joined, len(s), s[n - 2], parts, "-".join(parts), s.upper(), "b" in s, s == "ab"


@scripted(("x", 2, 0.5))
class Formats(Module):
    def forward(self, s: str, n: int, x: float):
        return "{} has {} of {}".format(s, n, x), "%s=%d" % (s, n), f"<{s}:{n}>", str(n), str(x)


@scripted((1.5,))
class ComplexNumbers(Module):
    def __init__(self):
        super().__init__()
        self.z = 1.0 + 2.0j

    def forward(self, x: float):
        w = complex(x, 2.0)
        return w * self.z, abs(w), w == self.z, w + 1


@scripted((torch.ones(2),))
class Devices(Module):
    def __init__(self):
        super().__init__()
        self.device = torch.device("cpu")

    def forward(self, x: Tensor):
        cuda = torch.device("cuda:1")
        same = x.device == self.device
        y = torch.zeros([2], device=self.device) + x.to(torch.device("cpu"))
        return y, same, cuda.type, cuda.index, x.is_cuda


@scripted((torch.ones(2, 2),))
class DtypesAndLayouts(Module):
    def __init__(self):
        super().__init__()
        self.dtype = torch.float64

    def forward(self, x: Tensor):
        y = x.to(self.dtype)
        z = torch.zeros([2, 2], dtype=torch.int16, layout=torch.strided, pin_memory=False)
        w = x.contiguous(memory_format=torch.contiguous_format).to(torch.bfloat16)
        return y, z, w, x.dtype, x.layout == torch.strided, y.is_floating_point()


class Colour(Enum):
    RED = 1
    BLUE = 2


class Unit(Enum):
    METRE = "m"
    SECOND = "s"


class Weight(Enum):
    LIGHT = 0.25
    HEAVY = 4.0


@scripted((torch.ones(2), True), (torch.ones(2), False), functional="prim::If")
class Enums(Module):
    def __init__(self):
        super().__init__()
        self.colour = Colour.BLUE
        self.unit = Unit.SECOND

    def forward(self, x: Tensor, is_red: bool):
        chosen = Colour.RED if is_red else self.colour
        if chosen == Colour.RED:
            x = x * Weight.HEAVY.value
        return x * chosen.value, chosen.name, self.unit.value, chosen == self.colour


@scripted((1,), (2,), functional="aten::__getitem__.t")
class EnumsInContainers(Module):
    units: list[Unit]
    fallback: Optional[Colour]

    def __init__(self):
        super().__init__()
        self.units = [Unit.SECOND, Unit.METRE, Unit.SECOND]
        self.pair = (Colour.BLUE, 1)
        self.fallback = None

    def forward(self, n: int):
        unit = self.units[n]
        found: dict[str, Weight] = {"light": Weight.LIGHT, "heavy": Weight.HEAVY}
        chosen = self.fallback
        if chosen is None:
            chosen = self.pair[0]
        metres = 0
        for each in self.units:
            if each == Unit.METRE:
                metres += 1
        return unit.name, found["heavy"].value, chosen.value, metres, unit != Unit.METRE


@scripted((torch.ones(2), None), (torch.ones(2), torch.full((2,), 3.0)))
class OptionalTensor(Module):
    def forward(self, x: Tensor, bias: Optional[Tensor] = None):
        if bias is not None:
            x = x + bias
        return x * 2


@scripted((3,), (None,))
class OptionalNumber(Module):
    fallback: Optional[int]
    missing: Optional[float]

    def __init__(self):
        super().__init__()
        self.fallback = 5
        self.missing = None

    def forward(self, n: Optional[int]) -> tuple[Optional[int], int, bool]:
        fallback = self.fallback
        assert fallback is not None
        found = n if n is not None else fallback
        return n, found, self.missing is None


@scripted(([torch.ones(2), None],))
class OptionalElements(Module):
    def forward(self, xs: list[Optional[Tensor]]) -> Tensor:
        total = torch.zeros([2])
        for x in xs:
            if x is not None:
                total = total + x
        return total


@scripted((2,), ("two",))
class Unions(Module):
    def forward(self, x: Union[int, str]) -> int:
        if isinstance(x, int):
            return x + 1
        else:
            return len(x)


@scripted((1,), (1.5,), ("s",), (torch.ones(1),), ([1, 2],))
class AnyObject(Module):
    def forward(self, x: Any) -> int:
        if isinstance(x, int):
            return x
        if isinstance(x, float):
            return int(x)
        if isinstance(x, str):
            return len(x)
        if torch.jit.isinstance(x, list[int]):
            return x[0]
        return -1


@scripted((torch.tensor(2.5), torch.tensor([3])))
class NumbersOfTensors(Module):
    def forward(self, x: Tensor, n: Tensor):
        return float(x), int(n), bool(x), x.item(), n.numel(), x.dim(), len(n), torch.tensor(7)


@scripted((torch.ones(3, 4),))
class Sizes(Module):
    def forward(self, x: Tensor):
        rows, columns = x.shape
        return x.size(), x.size(0), rows * columns, x.stride(1), x.view(columns, rows), x.shape[-1]


def scaled(x: Tensor, by: float = 2.0, offset: int = 1, label: Optional[str] = None) -> Tensor:
    if label is None:
        return x * by + offset
    return x


@scripted((torch.ones(2),), (torch.ones(2), 4), methods={"other": [(torch.ones(2),)]})
class DefaultArguments(Module):
    def forward(self, x: Tensor, n: int = 3, words: tuple[str, str] = ("a", "b")):
        return scaled(x, offset=n), words

    @torch.jit.export
    def other(self, x: Tensor, by: float = 0.5, flag: bool = False, xs: Optional[list[int]] = None):
        return scaled(x, by, label="other") if flag else scaled(x, by)


@scripted((torch.zeros(3),), seeded=True)
class RandomNumbers(Module):
    def forward(self, x: Tensor):
        return x + torch.rand([3]), torch.randn_like(x), torch.bernoulli(x + 0.5)


@scripted((torch.zeros(3),), since="2.3", functional="aten::manual_seed")
class Generators(Module):
    def forward(self, x: Tensor):
        generator = torch.Generator(device="cpu")
        generator.manual_seed(3)
        return x + torch.rand([3], generator=generator)


@scripted((torch.ones(2), 2))
class TypesOfOperators(Module):
    """Overloads that differ in their arguments' types only."""

    def forward(self, x: Tensor, n: int):
        return x + x, x + n, x + 0.5, n + n, x * n, x**n, 2**x, x > n, torch.add(x, x, alpha=n)


@scripted((torch.ones(2),))
class NoResult(Module):
    def forward(self, x: Tensor) -> None:
        pass


@scripted((torch.ones(2), 3))
class Unused(Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        y = x + n
        z = y * 2  # noqa: F841  what nothing reads is kept
        return x


@scripted((torch.ones(2),))
def function_alone(x: Tensor) -> Tensor:
    return torch.relu(x) + 1


@scripted((torch.ones(3),))
def function_that_calls(x: Tensor) -> Tensor:
    return scaled(scaled(x), 3.0)
