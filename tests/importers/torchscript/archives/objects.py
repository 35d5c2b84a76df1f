# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: RUF012, UP045  programs as they come
"""Programs of several objects: modules in modules, classes, interfaces, shared parts."""

from typing import Final, Optional

import torch
from torch import Tensor
from torch.nn import Linear, Module, ModuleDict, ModuleList, Parameter, ReLU, Sequential

from .cases import case, scripted


class Scale(Module):
    def __init__(self, by: float):
        super().__init__()
        self.by = by
        self.weight = Parameter(torch.full((2,), by))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight * self.by


@scripted((torch.ones(2),))
class Submodules(Module):
    def __init__(self):
        super().__init__()
        self.first = Scale(2.0)
        self.second = Sequential(Scale(3.0), Sequential(Scale(4.0), ReLU()))

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


@scripted((torch.ones(2),))
class SharedSubmodule(Module):
    """One object in three places; what isn't scripted yet, PyTorch would copy for each."""

    def __init__(self):
        super().__init__()
        self.first = torch.jit.script(Scale(2.0))
        self.same = self.first
        self.others = ModuleList([self.first, Scale(5.0)])

    def forward(self, x: Tensor) -> Tensor:
        for other in self.others:
            x = other(x)
        return self.same(self.first(x))


@scripted((torch.ones(2, 3),))
class TiedWeights(Module):
    def __init__(self):
        super().__init__()
        self.encode = Linear(3, 3, bias=False)
        self.decode = Linear(3, 3, bias=False)
        self.decode.weight = self.encode.weight
        self.register_buffer("again", self.encode.weight.detach())

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(self.encode(x)) + self.again[0]


@scripted((torch.ones(2),))
class SharedTensors(Module):
    """One tensor in attributes, lists, tuples and dicts."""

    dict: dict[str, Tensor]

    def __init__(self):
        super().__init__()
        x = torch.arange(2.0)
        self.register_buffer("x", x)
        self.plain = x
        self.list = [x, x]
        self.pair = (x, 1)
        self.dict = {"x": x}

    def forward(self, y: Tensor):
        self.x.add_(1)
        return self.plain + y, self.list[0], self.pair[0], self.dict["x"]


@scripted((torch.ones(2),))
class ModuleContainers(Module):
    def __init__(self):
        super().__init__()
        self.layers = ModuleList([Scale(2.0), ReLU(), Scale(3.0)])
        self.named = ModuleDict({"a": Scale(4.0), "b": Scale(5.0)})

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        for name, layer in self.named.items():
            x = layer(x) + len(name)
        return self.layers[0](x) + self.named["b"](x)


@torch.jit.interface
class Transform(Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Negate(Module):
    def forward(self, x: Tensor) -> Tensor:
        return -x


@scripted((torch.ones(2),))
class Interfaces(Module):
    transform: Transform

    def __init__(self):
        super().__init__()
        self.transform = Negate()
        self.scale = Scale(2.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.transform.forward(self.scale(x))


@scripted(
    (torch.ones(2), 1, "minus"),
    (torch.ones(2), 0, "twice"),
    functional="prim::ModuleContainerIndex",
)
class Choice(Module):
    def __init__(self):
        super().__init__()
        self.layers = ModuleList([Negate(), Scale(2.0)])
        self.named = ModuleDict({"minus": Negate(), "twice": Scale(2.0)})

    def forward(self, x: Tensor, n: int, key: str) -> Tensor:
        layer: Transform = self.layers[n]
        other: Transform = self.named[key]
        return layer.forward(x) + other.forward(x)


@torch.jit.script
class Pair:
    def __init__(self, a: int, b: Tensor):
        self.a = a
        self.b = b

    def swapped(self, by: int = 1) -> Tensor:
        self.a += by
        return self.b * self.a

    @staticmethod
    def unit() -> int:
        return 1


@scripted((torch.ones(2),))
class Classes(Module):
    def forward(self, x: Tensor):
        pair = Pair(2, x)
        y = pair.swapped()
        pair.b = y + Pair.unit()
        return pair.b, pair.a, pair.swapped(3)


@scripted((torch.ones(2),))
class ClassesAsAttributes(Module):
    pairs: list[Pair]

    def __init__(self):
        super().__init__()
        self.pair = Pair(2, torch.full((2,), 3.0))
        self.pairs = [Pair(1, torch.ones(2)), Pair(5, torch.zeros(2))]

    def forward(self, x: Tensor):
        return self.pair.swapped() + x, self.pairs[1].a, self.pair.a


@scripted((torch.ones(2),))
class SharedObject(Module):
    def __init__(self):
        super().__init__()
        pair = Pair(2, torch.ones(2))
        self.one = pair
        self.two = [pair, pair]

    def forward(self, x: Tensor):
        y = self.one.swapped()
        return y + x, self.two[0].a, self.two[1].a


@scripted((torch.ones(2),), methods={"scale": [(3.0,)], "describe": [()]})
class Methods(Module):
    def __init__(self):
        super().__init__()
        self.factor = 2.0

    def forward(self, x: Tensor) -> Tensor:
        return self.scale(self.factor) * self._inner(x)

    @torch.jit.export
    def scale(self, by: float) -> float:
        return by * self.factor

    @torch.jit.export
    def describe(self) -> str:
        return "factor " + str(self.factor)

    def _inner(self, x: Tensor) -> Tensor:
        return x + 1


@scripted((torch.ones(2),))
class Properties(Module):
    def __init__(self):
        super().__init__()
        self._gain = 2.0

    @property
    def gain(self) -> float:
        return self._gain * 2

    @gain.setter
    def gain(self, value: float) -> None:
        self._gain = value

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.gain
        self.gain = 5.0
        return y * self.gain


@scripted((torch.ones(2),))
class State(Module):
    """Attributes that calls change."""

    seen: list[int]
    last: Optional[Tensor]

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_buffer("total", torch.zeros(2))
        self.seen = []
        self.last = None

    def forward(self, x: Tensor):
        self.calls += 1
        self.total += x
        self.seen.append(self.calls)
        last = self.last
        self.last = x
        return self.total.clone(), self.calls, last


@scripted()
class Constants(Module):
    """Attributes that the compiler takes for constants."""

    __constants__ = ["width"]
    name: Final[str]
    sizes: Final[list[int]]

    def __init__(self):
        super().__init__()
        self.width = 3
        self.name = "n"
        self.sizes = [1, 2]

    def forward(self):
        return self.width + 1, self.name, self.sizes


@scripted((torch.ones(2),))
class NoParameters(Module):
    """What is registered, and isn't there."""

    def __init__(self):
        super().__init__()
        self.register_parameter("bias", None)
        self.register_buffer("mask", None)
        self.register_buffer("passing", torch.ones(2), persistent=False)
        self.fixed = Parameter(torch.ones(2), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        bias = self.bias
        if bias is not None:
            x = x + bias
        return x * self.passing + self.fixed


class Packed(Module):
    """Saves itself in a form of its own."""

    def __init__(self):
        super().__init__()
        self.a = 1
        self.b = torch.ones(2)
        self.training = False

    @torch.jit.export
    def __getstate__(self) -> tuple[Tensor, int, bool]:
        return self.b * 2, self.a + 10, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[Tensor, int, bool]) -> None:
        self.b = state[0]
        self.a = state[1]
        self.training = state[2]

    def forward(self, x: Tensor) -> Tensor:
        return x * self.b + self.a


@scripted((torch.ones(2),))
class PackedState(Module):
    def __init__(self):
        super().__init__()
        self.packed = Packed()

    def forward(self, x: Tensor) -> Tensor:
        return self.packed(x)


@case((torch.ones(2),), name="ManyTypesOfOneClass")
def _many_types_of_one_class():
    """One Python class, two TorchScript classes: attributes' types differ."""

    class Layer(Module):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def forward(self, x: Tensor) -> Tensor:
            return x * self.value

    return torch.jit.script(Sequential(Layer(2), Layer(0.5), Layer(3)))


@case((torch.ones(2),), name="Hooks")
def _hooks():
    def before(self, input: tuple[Tensor]) -> tuple[Tensor]:
        return (input[0] + 1,)

    def after(self, input: tuple[Tensor], output: Tensor) -> Tensor:
        return output * 2

    layer = Scale(2.0)
    layer.register_forward_pre_hook(before)
    layer.register_forward_hook(after)
    return torch.jit.script(Sequential(layer))


@case((torch.ones(2),), name="DefinedMethod")
def _defined_method():
    """A method that has been given as text."""
    module = torch.jit.script(Scale(2.0))
    module.define("def shifted(self, x: Tensor, by: int = 3) -> Tensor:\n    return x + by\n")
    return module


@case((torch.ones(2),), name="ExtraFiles", extra_files={"labels.txt": "a\nb", "n.json": "{}"})
def _extra_files():
    return torch.jit.script(Scale(2.0))


@case((torch.ones(2),), name="DeepModules")
def _deep_modules():
    module = Scale(2.0)
    for _ in range(20):
        module = Sequential(module)
    return torch.jit.script(module)


@case(name="EmptyModule", methods={}, functional="no method 'forward'")
def _empty_module():
    return torch.jit.script(Module())


@scripted((torch.ones(2),))
class ValuesOfClasses(Module):
    """Dicts and optionals of objects."""

    def forward(self, x: Tensor):
        table: dict[str, Pair] = {"p": Pair(1, x)}
        found: Optional[Pair] = None
        if "p" in table:
            found = table["p"]
        assert found is not None
        return found.swapped(), table["p"].a


@scripted((torch.ones(2),))
class InterfacesInTurn(Module):
    """Two modules of different classes behind one interface, one of them in two places."""

    one: Transform
    other: Transform

    def __init__(self):
        super().__init__()
        self.one = torch.jit.script(Negate())
        self.other = torch.jit.script(Scale(3.0))
        self.same = self.other

    def apply(self, transform: Transform, x: Tensor) -> Tensor:
        return transform.forward(x)

    def forward(self, x: Tensor):
        return self.apply(self.one, x), self.apply(self.other, x), self.same(x)


class Counts(Module):
    def __init__(self, pair: Pair):
        super().__init__()
        self.pair = pair

    def forward(self, x: Tensor) -> Tensor:
        return self.pair.swapped() + x


@scripted((torch.ones(2),))
class ObjectInTwoModules(Module):
    """What one submodule writes to an object, the other reads."""

    def __init__(self):
        super().__init__()
        pair = Pair(1, torch.ones(2))
        self.one = Counts(pair)
        self.two = Counts(pair)

    def forward(self, x: Tensor):
        return self.one(x), self.two(x), self.one(x)


@scripted((torch.ones(2),))
class SharedThroughContainers(Module):
    """A module that is shared by a list, a dict and a module, and its parameter by an attribute."""

    def __init__(self):
        super().__init__()
        shared = torch.jit.script(Scale(2.0))
        self.list = ModuleList([shared, Scale(3.0), shared])
        self.named = ModuleDict({"shared": shared})
        self.inner = Sequential(shared, Sequential(shared))
        self.weight = shared.weight

    def forward(self, x: Tensor):
        for layer in self.list:
            x = layer(x)
        return self.named["shared"](self.inner(x)) + self.weight
