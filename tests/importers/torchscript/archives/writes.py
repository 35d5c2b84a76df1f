# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Programs that write to tensors and lists in place, and through views."""

import torch
from torch import Tensor
from torch.nn import Module

from .cases import scripted, traced


@scripted((torch.ones(3),))
class InPlaceOnFresh(Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x + 1
        y.add_(2)
        y.mul_(x).clamp_(max=3.5)
        y += 1
        y *= 2
        return torch.relu_(y)


@scripted((torch.ones(3),))
class InPlaceOnInput(Module):
    def forward(self, x: Tensor) -> Tensor:
        x.add_(1)
        return x * 2


@scripted((torch.ones(3),))
class WriteThroughView(Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        y.view(3, 1).add_(1)
        return y


@scripted((torch.ones(3, 2),))
class WriteThroughIndex(Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        y[0] = 5.0
        y[1:, 1] = x[:2, 0]
        return y


@scripted((torch.ones(4), torch.tensor([0, 2])))
class WriteAtIndices(Module):
    def forward(self, x: Tensor, where: Tensor) -> Tensor:
        y = x.clone()
        y[where] = torch.full([2], 7.0)
        y.index_fill_(0, where, 3.0)
        y.masked_fill_(x > 2, 0.0)
        return y.scatter_(0, where, torch.zeros([2]))


@scripted((torch.ones(3),), functional="aten::add.out")
class WriteToOut(Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.empty([3])
        torch.add(x, x, out=y)
        return y


@scripted((torch.ones(2),))
class ListMutation(Module):
    def forward(self, x: Tensor) -> Tensor:
        parts: list[Tensor] = []
        parts.append(x)
        parts.append(x * 2)
        parts[0] = x + 1
        return torch.cat(parts)


@scripted((torch.ones(2), 3))
class ListMutationInLoop(Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        parts = [x]
        for i in range(n):
            parts.append(x * i)
        return torch.cat(parts)


@scripted((torch.ones(2, 3),))
class Views(Module):
    def forward(self, x: Tensor):
        y = x.view(3, 2).transpose(0, 1).reshape(-1)[1:5]
        first, last = x.unbind(0)
        return y, x[0], x[:, 1], x[..., None], x.t(), x.flatten(), x.expand(2, 2, 3), first + last


@traced((torch.ones(2, 3),))
def traced_writes(x: Tensor) -> Tensor:
    y = x + 1
    y.mul_(2)
    z = torch.zeros(2, 3)
    z.copy_(y)
    return z.relu_()


@scripted((torch.ones(2),))
class DetachAndData(Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.detach().requires_grad_(False) + x.data


@scripted((torch.ones(2), True))
class WriteInBranch(Module):
    def forward(self, x: Tensor, flag: bool) -> Tensor:
        y = x * 1
        if flag:
            y.add_(3)
        return y
