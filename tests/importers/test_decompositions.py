# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The default decompositions keep what the exported program relies on."""

from __future__ import annotations

import pytest
import torch


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
