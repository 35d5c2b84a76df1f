# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: UP045  PyTorch 2.1 knows no `X | None`
"""Small networks of PyTorch's own layers: scripted, traced and frozen."""

from typing import Optional

import torch
from torch import Tensor, nn
from torch.nn import Module

from .cases import case, frozen, scripted, traced

IMAGE = torch.linspace(-1, 1, 3 * 8 * 8).reshape(1, 3, 8, 8)
WORDS = torch.tensor([[1, 2, 3], [4, 0, 2]])
SEQUENCE = torch.linspace(-1, 1, 2 * 3 * 4).reshape(2, 3, 4)


@scripted((IMAGE,))
@traced((IMAGE,), (IMAGE * 2,))
class ConvNet(Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3, groups=4, stride=2, bias=False),
            nn.SiLU(),
        )
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, (1, 1)).flatten(1)
        return nn.functional.softmax(self.head(x), dim=-1)


frozen("ConvNet")
frozen("ConvNetTraced")


@scripted((SEQUENCE,))
@traced((SEQUENCE,))
class Recurrent(Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, num_layers=2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(6, 2, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (h, c) = self.lstm(x)
        z, last = self.gru(y)
        return z, h + c + last.sum()


frozen("Recurrent")


@case((SEQUENCE,), name="TransformerLayer")
def _transformer_layer():
    return torch.jit.script(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval())


@case((SEQUENCE,), name="TransformerLayerTraced")
def _transformer_layer_traced():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True, norm_first=True)
    return torch.jit.trace(layer, (SEQUENCE,), check_trace=False)


@scripted((WORDS,), (WORDS, torch.tensor([[True, False, False], [False, False, True]])))
class Attention(Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4, padding_idx=0)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.norm = nn.LayerNorm(4)

    def forward(self, words: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        x = self.embedding(words)
        y, _ = self.attention(x, x, x, key_padding_mask=mask, need_weights=False)
        return self.norm(x + y)


@case((torch.linspace(0, 1, 6).reshape(3, 2),), name="TrainingMode", seeded=True)
def _training_mode():
    return torch.jit.script(
        nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5), nn.Linear(2, 2)).train()
    )


@case((torch.ones(2, 3),), name="TracedIntoScripted")
def _traced_into_scripted():
    class Outer(Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.jit.trace(nn.Linear(3, 3), torch.ones(2, 3))

        def forward(self, x: Tensor) -> Tensor:
            if x.dim() > 1:
                x = self.inner(x)
            return x

    return torch.jit.script(Outer())


@torch.jit.script
def clipped(x: Tensor, low: float = 0.0) -> Tensor:
    if x.size(0) > 1:
        return torch.clamp(x, min=low)
    return x


@traced((torch.linspace(-1, 1, 6).reshape(2, 3),))
def scripted_into_traced(x: Tensor) -> Tensor:
    return clipped(x, 0.5) + clipped(x[:1])


@case((torch.ones(2),), methods={"twice": [(torch.ones(2),)]}, name="TracedMethods")
def _traced_methods():
    class Several(Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))

        def forward(self, x):
            return x * self.weight

        def twice(self, x):
            return self.forward(x) * self.weight

    inputs = {"forward": (torch.ones(2),), "twice": (torch.ones(2),)}
    return torch.jit.trace_module(Several(), inputs, check_trace=False)


@traced((torch.ones(2), (torch.zeros(2), torch.ones(1))))
class TracedStructures(Module):
    def forward(
        self, x: Tensor, pair: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        return x + pair[0], (pair[1], x * pair[1])


@case(({"a": torch.ones(2), "b": torch.zeros(2)},), name="TracedDicts")
def _traced_dicts():
    class Sums(Module):
        def forward(self, x: dict[str, Tensor]) -> dict[str, Tensor]:
            return {"sum": x["a"] + x["b"], "a": x["a"]}

    example = ({"a": torch.ones(2), "b": torch.zeros(2)},)
    return torch.jit.trace(Sums(), example, strict=False, check_trace=False)


@scripted((IMAGE,))
class Resampling(Module):
    def forward(self, x: Tensor) -> Tensor:
        y = nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return nn.functional.pad(y, [1, 1, 0, 2]) + nn.functional.unfold(x, 2).mean()


@traced((torch.arange(12.0).reshape(2, 6),))
def chunks(x: Tensor) -> tuple[Tensor, Tensor]:
    first, second = x.chunk(2, dim=1)
    return first * second, torch.split(x, 4, dim=1)[1]


@scripted((torch.ones(2, 3), torch.ones(3, 2)))
class Products(Module):
    def forward(self, x: Tensor, y: Tensor):
        return torch.einsum("ij,jk->ik", x, y), x @ y, torch.matmul(y, x), torch.addmm(x @ y, x, y)


@case((torch.ones(2, 3),), name="ScriptedIntoFrozen")
def _scripted_into_frozen():
    """Freezing that keeps an attribute and a method."""

    class Net(Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.factor = 2

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x) * self.factor

        @torch.jit.export
        def set_factor(self, factor: int) -> None:
            self.factor = factor

    return torch.jit.freeze(
        torch.jit.script(Net().eval()), preserved_attrs=["factor", "set_factor"]
    )


@case((IMAGE,), name="InHalfPrecision")
def _in_half_precision():
    class Mixed(Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(3, 2, 3).to(torch.bfloat16)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x.to(torch.bfloat16)).float()

    return torch.jit.script(Mixed())


@case((SEQUENCE,), name="LongChain")
def _long_chain():
    """Many nodes in one graph."""

    def chain(x):
        for step in range(200):
            x = torch.tanh(x * 1.01 + step)
        return x

    return torch.jit.trace(chain, (SEQUENCE,), check_trace=False)
