# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Programs that hold tensors of all dtypes and layouts."""

import torch
from torch import Tensor
from torch.nn import Module, Parameter

from .cases import case, frozen, scripted, traced

# Dtype, and the first PyTorch that saves it.
_DTYPES = {
    "bool": "2.0",
    "uint8": "2.0",
    "int8": "2.0",
    "int16": "2.0",
    "int32": "2.0",
    "int64": "2.0",
    "float16": "2.0",
    "bfloat16": "2.0",
    "float32": "2.0",
    "float64": "2.0",
    "complex32": "2.0",
    "complex64": "2.0",
    "complex128": "2.0",
    "float8_e5m2": "2.1",
    "float8_e4m3fn": "2.1",
    "float8_e5m2fnuz": "2.2",
    "float8_e4m3fnuz": "2.2",
    "float8_e8m0fnu": "2.7",
    "uint16": "2.3",
    "uint32": "2.3",
    "uint64": "2.3",
}


class Held(Module):
    """Gives the tensor that it holds."""

    def __init__(self, tensor: Tensor):
        super().__init__()
        self.register_buffer("tensor", tensor)

    def forward(self) -> Tensor:
        return self.tensor


def elements(dtype: torch.dtype, count: int) -> Tensor:
    """`count` different elements: all bits of the dtype are used."""
    size = torch.empty(0, dtype=dtype).element_size()
    if dtype is torch.bool:
        return torch.arange(count) % 2 == 0
    # Bytes below 0x3c: no NaNs, which compare as different.
    raw = (torch.arange(count * size) * 7 % 60).to(torch.uint8)
    return raw.view(dtype)


def _holding(name: str):
    return lambda: torch.jit.script(Held(elements(getattr(torch, name), 6).reshape(2, 3)))


for _name, _since in _DTYPES.items():
    case(name=f"Dtype_{_name}", since=_since, needs=_name)(_holding(_name))


@case(name="EmptyOfALaterDtype", since="2.7", refused="only shows in its elements")
def _empty_of_a_later_dtype():
    """The importer's libtorch lacks the dtype, and takes it from the bytes' record."""
    return torch.jit.script(Held(torch.empty(0, dtype=torch.float8_e8m0fnu)))


@scripted()
class Layouts(Module):
    """Views of one storage, each with its own sizes, strides and offset."""

    def __init__(self):
        super().__init__()
        base = torch.arange(24.0).reshape(4, 6)
        self.register_buffer("whole", base)
        self.register_buffer("transposed", base.t())
        self.register_buffer("rows", base[1:3])
        self.register_buffer("columns", base[:, 2:5])
        self.register_buffer("every_other", base[::2, ::3])
        self.register_buffer("expanded", base[0:1].expand(3, 6))
        self.register_buffer("element", base[2, 3])
        self.register_buffer("nothing", base[4:])
        self.register_buffer("permuted", base.reshape(2, 3, 4).permute(2, 0, 1))

    def forward(self):
        first = (self.whole, self.transposed, self.rows, self.columns, self.every_other)
        return first, self.expanded, self.element, self.nothing, self.permuted


@scripted()
class Scalars(Module):
    def __init__(self):
        super().__init__()
        self.x = torch.tensor(2.5)
        self.n = torch.tensor(7)
        self.empty = torch.zeros(0)
        self.flat = torch.zeros(2, 0, 3, dtype=torch.int32)
        self.weight = Parameter(torch.tensor(1.5))

    def forward(self):
        return self.x, self.n, self.empty, self.flat, self.weight * self.x


@scripted()
class ChannelsLast(Module):
    def __init__(self):
        super().__init__()
        x = torch.arange(24.0).reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)
        self.x = x
        self.y = torch.arange(16).reshape(1, 2, 2, 2, 2).to(memory_format=torch.channels_last_3d)

    def forward(self):
        return self.x, self.y


@scripted((torch.ones(2),), (torch.full((2,), 3.0),), methods={"total": [()]})
class WritesToViews(Module):
    """What is written to one of two attributes shows in the other, in other methods too."""

    def __init__(self):
        super().__init__()
        base = torch.zeros(4)
        self.whole = base
        self.half = base[:2]

    def forward(self, x: Tensor):
        self.half.add_(x)
        return self.whole.clone(), self.half.clone()

    @torch.jit.export
    def total(self):
        self.whole.mul_(2)
        return self.half.sum()


@scripted((torch.ones(2),))
class WritesToPartsOfALostWhole(Module):
    """Views that overlap, and nothing has all of their memory; one that is alone; a quantised one."""

    def __init__(self):
        super().__init__()
        base = torch.arange(20.0).reshape(4, 5)
        self.column = base[1:, 1]
        self.rows = base[1:3]
        self.transposed = base[2:].t()
        self.apart = base[0]
        quantized = torch.quantize_per_tensor(torch.arange(6.0), 0.5, 1, torch.quint8)
        self.quantized = quantized[:4]
        self.more = quantized[2:]

    def forward(self, x: Tensor):
        self.column[0] = 100.0
        self.rows[1, :2].mul_(x)
        self.transposed[2:, 0] -= 1.0
        self.apart.zero_()
        total = self.column + self.rows.sum() + self.transposed.sum()
        state = self.column.clone(), self.rows.clone(), self.transposed.clone()
        return total, state, self.apart, self.quantized.int_repr(), self.more.int_repr()


@scripted()
class LargeTensor(Module):
    def __init__(self):
        super().__init__()
        self.table = torch.arange(65536, dtype=torch.int32).reshape(256, 256)

    def forward(self):
        return self.table[255], self.table.sum()


@scripted()
class SpecialNumbers(Module):
    def __init__(self):
        super().__init__()
        self.x = torch.tensor([float("inf"), -float("inf"), -0.0, 5e-324], dtype=torch.float64)
        self.nan = torch.tensor([float("nan")])

    def forward(self):
        return self.x, torch.isnan(self.nan)


@scripted(refused="sparse")
class SparseCoordinates(Module):
    def __init__(self):
        super().__init__()
        self.x = torch.eye(3).to_sparse()

    def forward(self) -> Tensor:
        return self.x


@scripted(refused="sparse")
class SparseRows(Module):
    def __init__(self):
        super().__init__()
        self.x = torch.eye(3).to_sparse_csr()

    def forward(self) -> Tensor:
        return self.x


@traced((torch.ones(2, 3),))
def literals(x: Tensor) -> Tensor:
    table = torch.arange(6.0).reshape(2, 3)
    return x + table + torch.tensor([1.0, 2.0, 3.0]) * torch.tensor(2.0) + table.sum()


@traced((torch.ones(2, 3),), (torch.zeros(2, 3),))
def literal_views(x: Tensor) -> Tensor:
    table = torch.arange(12.0).reshape(3, 4)
    return x @ table.t()[:3] + table[:2, 1:4] + table[0, 0].expand(3)


@case((torch.ones(2),), name="ConstantTensors")
def _constant_tensors():
    """Tensors that freezing puts into the code, one of them twice."""

    class Two(Module):
        def __init__(self):
            super().__init__()
            self.a = torch.arange(2.0)
            self.b = self.a
            self.c = torch.tensor(3, dtype=torch.int8)

        def forward(self, x: Tensor):
            return x + self.a, self.b, self.c, [self.a, self.b]

    return torch.jit.freeze(torch.jit.script(Two().eval()))


@case((torch.ones(2),), name="ConstantContainers")
def _constant_containers():
    """Lists, tuples and dicts that freezing puts into the code."""

    class Table(Module):
        def __init__(self):
            super().__init__()
            self.ints = [1, 2]
            self.words = ["a", "b"]
            self.pair = (1, (0.5, "x"))
            self.tensors = [torch.ones(1), torch.zeros(2)]
            self.dict = {"k": 1}

        def forward(self, x: Tensor):
            return x, self.ints, self.words, self.pair, self.tensors, self.dict["k"]

    return torch.jit.freeze(torch.jit.script(Table().eval()))


@case(name="ConjugateView")
def _conjugate_view():
    """The bit that says conjugate is not saved: the elements are."""
    return torch.jit.script(Held(torch.tensor([1.0 + 2.0j, 3.0 - 1.0j]).conj().resolve_conj()))


class OnDevice(Module):
    """Parameters, buffers, attributes and, once it is frozen, constants."""

    def __init__(self):
        super().__init__()
        self.weight = Parameter(torch.arange(6.0).reshape(2, 3))
        self.register_buffer("shift", torch.ones(2, dtype=torch.float64))
        self.parts = [torch.zeros(2), torch.tensor([0.5, -0.5])]

    def forward(self, x: Tensor) -> Tensor:
        return self.weight @ x + self.shift + self.parts[1]


for device in ("cuda:0", "cuda:3", "mps"):
    name = f"SavedOn_{device.replace(':', '_')}"
    scripted((torch.ones(3),), name=name, device=device)(OnDevice)
    frozen(name)
