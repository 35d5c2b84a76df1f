# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The default decompositions keep what the exported program relies on."""

from __future__ import annotations

import pytest
import torch

X = torch.randn(2, 4, 4)


class Attention(torch.nn.Module):
    """Attention of two heads over x, f32 (N, L, 8), whose result is viewed as one dimension.

    `order` is how the dimensions N, heads, L and width of query, key and value lie in memory; the
    view needs the result to lie there likewise.
    """

    def __init__(self, order: tuple[int, ...], **options: object) -> None:
        super().__init__()
        self.order = order
        self.back = sorted(range(4), key=order.__getitem__)
        self.options = options

    def forward(self, x):
        n, length, width = x.shape
        heads = x.view(n, length, 2, width // 2).transpose(1, 2)
        heads = heads.permute(self.order).contiguous().permute(self.back)
        result = torch.nn.functional.scaled_dot_product_attention(
            heads, heads, heads, **self.options
        )
        return result.permute(self.order).view(-1)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.5}], ids=str)
@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 1, 2, 3), (2, 0, 1, 3)], ids=str)
def test_attention_keeps_the_layout_of_its_query(agree, order, options):
    torch.manual_seed(0)
    agree(Attention(order, **options), torch.randn(2, 5, 8))


class Calls(torch.nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_pooling_to_one_number_restrides_nothing(agree, operations):
    module = agree(
        Calls(lambda x: torch.nn.functional.adaptive_avg_pool1d(x, 1)), X.transpose(1, 2)
    )
    assert not operations(module, "torch.aten.as_strided")


def test_group_norm_restrides_nothing(agree, operations):
    module = agree(Calls(lambda x: torch.nn.functional.group_norm(x, 2, X[0, 0], X[0, 1])), X)
    assert not operations(module, "torch.aten.as_strided")


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((2, 3), (1, 2), 0), ((2, 4), (8, 1), 0), ((3, 4), (4, 1), 4)],
    ids=["order", "part", "offset"],
)
def test_other_strides_stay(agree, operations, size, stride, offset):
    module = agree(Calls(lambda x: (x + 1).as_strided(size, stride, offset)), X)
    assert operations(module, "torch.aten.as_strided")


@pytest.mark.parametrize(
    ("pad", "pads"),
    [
        ((1, -1), True),
        ((-1, 2), True),
        ((-1, -1), False),
        ((0, 0, 1, -1), True),
        ((-1, 1, 2, -2), True),
        ((0, -2, 0, -1), False),
    ],
    ids=str,
)
def test_padding_that_cuts_off_slices(agree, operations, pad, pads):
    module = agree(Calls(lambda x: torch.nn.functional.pad(x, pad, value=2.0)), X)
    assert operations(module, "torch.aten.slice.Tensor")
    assert bool(operations(module, "torch.aten.constant_pad_nd")) == pads
