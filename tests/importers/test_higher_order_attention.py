# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flex attention: scores and masks by the user's functions."""

from __future__ import annotations

import pytest
import torch
from eager import held

from torch_mlir.dynamo import backend

flex = pytest.importorskip("torch.nn.attention.flex_attention")
Dim = torch.export.Dim


def heads(batch=2, count=3, length=8, width=4):
    return torch.randn(batch, count, length, width)


def three(**sizes):
    return tuple(heads(**sizes) for _ in range(3))


def relative(score, batch, head, query, key):
    return score + (query - key)


def causal(batch, head, query, key):
    return query >= key


class Biased(torch.nn.Module):
    """Scores with a buffer's bias for each head, and a parameter's for each key."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("slopes", torch.randn(3))
        self.bias = torch.nn.Parameter(torch.randn(8))

    def forward(self, q, k, v):
        def score(score, batch, head, query, key):
            return score + self.slopes[head] * (query - key) + self.bias[key]

        return flex.flex_attention(q, k, v, score_mod=score)


def test_without_functions():
    held(lambda q, k, v: flex.flex_attention(q, k, v), *three())


def test_scores(operations):
    module = held(lambda q, k, v: flex.flex_attention(q, k, v, score_mod=relative), *three())
    assert operations(module, "torch.aten._softmax")
    # The greatest scores and their logarithms are not asked for.
    assert not operations(module, "torch.aten.log")


def test_scores_read_buffers_and_parameters():
    held(Biased(), *three())


def test_a_scale():
    held(lambda q, k, v: flex.flex_attention(q, k, v, scale=0.25), *three())


def test_masks():
    def attend(q, k, v):
        mask = flex.create_block_mask(causal, None, None, 8, 8, device="cpu")
        return flex.flex_attention(q, k, v, score_mod=relative, block_mask=mask)

    held(attend, *three())


def test_a_mask_made_beforehand():
    mask = flex.create_block_mask(causal, None, None, 8, 8, device="cpu")
    held(lambda q, k, v: flex.flex_attention(q, k, v, block_mask=mask), *three())


def test_queries_in_groups():
    q, (k, v) = heads(count=4), three(count=2)[:2]
    held(lambda *args: flex.flex_attention(*args, score_mod=relative, enable_gqa=True), q, k, v)


def test_other_lengths_of_keys_and_widths_of_values():
    q, k, v = heads(), heads(length=5), heads(length=5, width=6)
    held(lambda *args: flex.flex_attention(*args, score_mod=relative), q, k, v)


def test_logarithms_of_the_sums(operations):
    def attend(q, k, v):
        return flex.flex_attention(q, k, v, score_mod=relative, return_lse=True)

    module = held(attend, *three())
    (returned,) = operations(module, "func.return")
    assert [str(value.type) for value in returned.operands] == [
        "!torch.vtensor<[2,3,8,4],f32>",
        "!torch.vtensor<[2,3,8],f32>",
    ]


@pytest.mark.parametrize("axis", [0, 2], ids=["batch", "length"])
def test_open_sizes(axis):
    size = {axis: Dim("size", max=64)}
    other = {0: {"batch": 5}, 2: {"length": 11}}[axis]
    runs = [three(length=10), three(**{"length": 10, **other})]
    held(
        lambda q, k, v: flex.flex_attention(q, k, v, score_mod=relative),
        *runs[0],
        runs=runs,
        shapes=[size, size, size],
    )


def test_gradients(monkeypatch):
    """A training graph, in which AOTAutograd has `flex_attention_backward`."""
    # PyTorch's own kernels for the CPU have no backward one, and it refuses to train there.
    if hasattr(flex, "_validate_device"):
        monkeypatch.setattr(flex, "_validate_device", lambda *tensors: None)
    torch.manual_seed(0)
    model, inputs = Biased(), three()

    def attention(q, k, v):
        places = torch.arange(8)
        scores = q @ k.mT / 2 + model.bias
        scores = scores + model.slopes[:, None, None] * (places[:, None] - places)
        return scores.softmax(-1) @ v

    def gradients(attend):
        leaves = [x.clone().requires_grad_() for x in inputs]
        model.bias.grad = None
        (attend(*leaves) ** 2).sum().backward()
        return [*(leaf.grad for leaf in leaves), model.bias.grad]

    wanted = gradients(attention)
    torch._dynamo.reset()
    try:
        got = gradients(torch.compile(model, backend=backend))
    except Exception as problem:
        if torch.__version__ >= "2.13" or "TorchMlirCompilerError" in str(problem):
            raise
        pytest.skip(f"this PyTorch does not trace it: {type(problem).__name__}: {problem}"[:200])
    for gradient, expected in zip(got, wanted, strict=True):
        torch.testing.assert_close(gradient, expected)
