# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operators a program is decomposed into before its import, by default.

PyTorch's core ATen decompositions, more operators that compilers of the Torch dialect want in
pieces, and fewer where those pieces are ones that such compilers lack.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch._prims_common as utils
from torch._decomp import core_aten_decompositions, get_decompositions

from ..pytorch import aten_operator

# Operators, or single overloads, that are decomposed beyond PyTorch's own core list.
_ALSO = (
    "_adaptive_avg_pool2d",
    "_euclidean_dist",
    "_log_softmax",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit.no_stats",
    "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_to_copy",
    "addmm",
    "diag",
    "full",
    "grid_sampler_2d",
    "logsumexp",
    "native_group_norm",
    "native_layer_norm",
    "scaled_dot_product_attention",
    "squeeze.dims",
    "upsample_bilinear2d.vec",
)

# Operators of the core list that are kept whole.
_EXCEPT = (
    # Their parts are _fft_r2c and _fft_c2c, which compilers lack.
    "fft_fft", "fft_fft2", "fft_fftn", "fft_fftshift", "fft_hfft", "fft_hfft2", "fft_hfftn",
    "fft_ifft", "fft_ifft2", "fft_ifftn", "fft_ifftshift", "fft_ihfft", "fft_ihfft2",
    "fft_ihfftn", "fft_irfft", "fft_irfft2", "fft_irfftn", "fft_rfft", "fft_rfft2", "fft_rfftn",
    "istft", "stft",
    # Their parts do worse on complex numbers.
    "linalg_norm", "linalg_slogdet", "linalg_vector_norm", "norm",
    # Compilers do better with the whole.
    "all", "empty_like", "eye", "isclose", "isfinite", "logaddexp", "logaddexp2", "one_hot",
    "rms_norm", "roll",
)  # fmt: skip


def _present(names: Iterable[str]) -> list[Any]:
    """The operators of `names` that the installed PyTorch has."""
    return [operator for operator in map(aten_operator, names) if operator is not None]


# The operators themselves, for callers that make a table of their own out of them and others.
DEFAULT_DECOMPOSITIONS: list[Any] = _present(_ALSO)


def _flash_attention_keeps_layout() -> bool:
    """Whether the CPU's flash attention lays its result out as its query.

    Where it does, exported programs rely on it, and PyTorch's own decomposition, which gives one
    fixed layout, breaks the views that they hold.
    """
    packet = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
    if packet is None:
        return False
    found = []
    for order in ((0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3)):
        query = _laid_out(torch.empty(2, 3, 5, 7, device="meta"), order)
        found.append(packet(query, query, query)[0].stride() == query.stride())
    return all(found)


def _laid_out(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """`tensor` with its dimensions from the slowest to the fastest in memory in this order."""
    back = sorted(range(len(order)), key=order.__getitem__)
    return tensor.permute(order).contiguous().permute(back)


def _flash_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`_scaled_dot_product_flash_attention_for_cpu` in parts, with the layout of the query."""
    grouped = {"enable_gqa": True} if query.size(1) != key.size(1) else {}
    output, weights = torch.ops.aten._scaled_dot_product_attention_math.default(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, **grouped
    )
    order = utils.compute_elementwise_output_logical_to_physical_perm(query)
    if isinstance(order, tuple):
        # Newer ones tell as well whether the order is ambiguous.
        order = order[0]
    return _laid_out(output, order), weights


def _as_strided(
    self: torch.Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> torch.Tensor:
    """`as_strided` as a view, where it asks for all of a tensor's elements in their order.

    PyTorch's adaptive pooling and group norm do, to drop or restride dimensions of size 1.
    """
    if storage_offset is not None and storage_offset != self.storage_offset():
        return NotImplemented
    if not (_row_major(self.shape, self.stride()) and _row_major(size, stride)):
        return NotImplemented
    if math.prod(size) != self.numel():
        return NotImplemented
    return self.view(size)


def _row_major(size: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether elements lie row by row without gaps; dimensions of size 1 may have any stride."""
    step = 1
    for length, distance in zip(reversed(size), reversed(stride), strict=True):
        if length != 1:
            if distance != step:
                return False
            step = step * length
    return True


def _constant_pad_nd(self: torch.Tensor, pad: Sequence[int], value: float = 0) -> torch.Tensor:
    """Padding that also cuts off (negative numbers), as slices and what is left to pad.

    Compilers take the sizes that negative padding leads to for out of bounds.
    """
    if not any(isinstance(width, int) and width < 0 for width in pad):
        return NotImplemented
    cut = self
    for place, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), 1):
        axis = self.dim() - place
        start = -before if isinstance(before, int) and before < 0 else 0
        end = cut.shape[axis] + (after if isinstance(after, int) and after < 0 else 0)
        if start != 0 or end != cut.shape[axis]:
            # Both ends count from the whole: slice once.
            cut = torch.ops.aten.slice.Tensor(cut, axis, start, end)
    left = [0 if isinstance(width, int) and width < 0 else width for width in pad]
    if not any(isinstance(width, torch.SymInt) or width for width in left):
        return cut.clone()
    return torch.ops.aten.constant_pad_nd.default(cut, left, value)


# Decompositions of our own, where PyTorch has none.
_OWN: dict[str, Callable] = {
    "as_strided.default": _as_strided,
    "constant_pad_nd.default": _constant_pad_nd,
}


@functools.cache
def get_decomposition_table() -> dict[Any, Callable]:
    """Operator overload to its decomposition, for `ExportedProgram.run_decompositions`."""
    kept_whole = set(_present(_EXCEPT))
    table = {
        overload: decomposition
        for overload, decomposition in core_aten_decompositions().items()
        if overload._overloadpacket not in kept_whole
    }
    table.update(get_decompositions(DEFAULT_DECOMPOSITIONS))
    for name, decomposition in _OWN.items():
        table[aten_operator(name)] = decomposition
    if _flash_attention_keeps_layout():
        packet = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        table[packet.default] = _flash_attention
    return table
