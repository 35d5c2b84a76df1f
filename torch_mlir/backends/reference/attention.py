# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flex attention, with all scores as one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

# Changes a score, or tells whether it counts: from the score, if it is one that changes it, and
# the indices of batch, head, query and key, each a tensor without dimensions.
Modifier = Callable[..., torch.Tensor]


def flex_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scale: float | None,
    score_mod: Modifier | None,
    mask_mod: Modifier | None,
    index_dtypes: Sequence[torch.dtype],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What `torch.ops.higher_order.flex_attention` gives, whose logarithms have the base 2.

    Args:
        query: [batch, heads, queries, size].
        key: [batch or 1, heads / n, keys, size].
        value: [batch or 1, heads / n, keys, size of the result].
        scale: what the products are multiplied with, by default 1/sqrt(size).
        score_mod: changes scores.
        mask_mod: tells which scores count, all of them by default.
        index_dtypes: the dtypes of `score_mod`'s indices, then of `mask_mod`'s.

    Returns:
        The result [batch, heads, queries, size of the result]; and as [batch, heads, queries] the
        logarithms of the sums of the scores' exponentials, and the greatest scores / log 2.
    """
    precision = torch.float64 if query.dtype is torch.float64 else torch.float32
    group = query.shape[1] // key.shape[1]
    keys, values = (tensor.repeat_interleave(group, dim=1) for tensor in (key, value))
    scores = query.to(precision) @ keys.to(precision).transpose(-2, -1)
    scores = scores * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    own = [torch.arange(n, dtype=dtype) for n, dtype in zip(scores.shape, index_dtypes[:4])]
    of_mask = [torch.arange(n, dtype=dtype) for n, dtype in zip(scores.shape, index_dtypes[4:])]
    changed = scores
    if score_mod is not None:
        changed = _on_all(score_mod, 1)(scores, *own)
    if mask_mod is not None:
        changed = changed.masked_fill(~_on_all(mask_mod, 0)(*of_mask), -math.inf)
    # A query that no key counts for gets zeros.
    is_masked = (changed == -math.inf).all(-1, keepdim=True)
    weights = changed.softmax(-1).masked_fill(is_masked, 0)
    result = weights.to(query.dtype) @ values.to(query.dtype)
    return result, changed.logsumexp(-1) / math.log(2), changed.amax(-1) / math.log(2)


def _on_all(modifier: Modifier, prefix: int) -> Callable[..., Any]:
    """A function of scores and indices, on all of them at once."""
    for dimension in (3, 2, 1, 0):
        indices: list[int | None] = [None] * 4
        indices[dimension] = 0
        modifier = torch.vmap(modifier, in_dims=(*[0] * prefix, *indices))
    return modifier
