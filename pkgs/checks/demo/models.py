"""The demonstration's models: random weights, shapes of the real thing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import nn


@dataclasses.dataclass(frozen=True)
class Model:
    """A model in evaluation mode, and the positional arguments to call it with."""

    name: str
    module: nn.Module
    arguments: tuple[torch.Tensor, ...]


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut; the first of a stage may halve the image.

    Maps f32 (N, inputs, H, W) to f32 (N, outputs, H/stride, W/stride).
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(image) + self.shortcut(image))


class ResidualNet(nn.Module):
    """The 18-layer residual network of He et al. (2015), table 1.

    Maps f32 (N, 3, H, W) images to f32 (N, classes) logits.
    """

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks: list[nn.Module] = []
        inputs = 64
        for stage, outputs in enumerate((64, 128, 256, 512)):
            blocks.append(BasicBlock(inputs, outputs, stride=1 if stage == 0 else 2))
            blocks.append(BasicBlock(outputs, outputs, stride=1))
            inputs = outputs
        self.stages = nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.stages(self.stem(image)))


def residual_net() -> Model:
    """A residual network on one f32 (1, 3, 224, 224) image."""
    return Model("residual net", ResidualNet().eval(), (torch.rand(1, 3, 224, 224),))


def bert() -> Model:
    """transformers' BERT encoder: four layers, two sentences of 32 tokens, the second padded.

    Takes i64 (2, 32) token numbers and their i64 (2, 32) mask.
    """
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
    )
    tokens = torch.randint(config.vocab_size, (2, 32))
    mask = torch.ones_like(tokens)
    mask[1, 20:] = 0
    return Model("BERT", BertModel(config).eval(), (tokens, mask))


MODELS: tuple[Callable[[], Model], ...] = (residual_net, bert)
