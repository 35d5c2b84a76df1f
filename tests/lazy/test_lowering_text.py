# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the operators that programs use most become."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

SIZES = (2, 3)


def check(backend: Any, actual: Any, expected: Any) -> None:
    """Values where there are some, else their shape and dtype."""
    if not backend.computes:
        actual, expected = torch.zeros_like(actual), torch.zeros_like(expected)
    torch.testing.assert_close(actual, expected)


def operations(text: str) -> list[str]:
    """The operations of a module that compute tensors, in order."""
    found = re.findall(r"= torch\.(aten\.\S+) .*-> !torch\.vtensor", text)
    return [name for name in found if name not in ("aten.clone",)]


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda x, y: x + y, ["aten.add.Tensor"]),
        (lambda x, y: x * y, ["aten.mul.Tensor"]),
        (lambda x, y: x / y, ["aten.div.Tensor"]),
        (lambda x, y: x.t(), ["aten.t"]),
        (lambda x, y: x.view(3, 2), ["aten.reshape"]),
        (lambda x, y: x.permute(1, 0), ["aten.permute"]),
        (lambda x, y: x.transpose(0, 1), ["aten.transpose.int"]),
        (lambda x, y: x.unsqueeze(0), ["aten.unsqueeze"]),
        (lambda x, y: x.expand(4, 2, 3), ["aten.expand"]),
        (lambda x, y: x[0], ["aten.select.int"]),
        (lambda x, y: x[1:], ["aten.slice.Tensor"]),
        (lambda x, y: x.relu(), ["aten.relu"]),
        (lambda x, y: x.tanh(), ["aten.tanh"]),
        (lambda x, y: x.softmax(1), ["aten._softmax"]),
        (lambda x, y: x.sum(1), ["aten.sum.dim_IntList"]),
        (lambda x, y: x.mean(1), ["aten.mean.dim"]),
        (lambda x, y: torch.cat([x, y]), ["aten.cat"]),
        (lambda x, y: torch.where(x > 0, x, y), ["aten.gt.Tensor", "aten.where.self"]),
        (lambda x, y: x.mm(y.t()), ["aten.t", "aten.mm"]),
        (lambda x, y: x.exp(), ["aten.exp"]),
    ],
)
def test_an_operator_is_its_operation(
    backend: Any, compute: Callable[..., Any], expected: list[str]
) -> None:
    x, y = torch.randn(SIZES), torch.randn(SIZES)
    check(backend, compute(x.to("lazy"), y.to("lazy")).cpu(), compute(x, y))
    (text,) = backend.modules
    assert operations(text) == expected
    assert "torch.operator" not in text
    assert "constant.device" not in text


def test_an_exponent_is_a_constant(backend: Any) -> None:
    """Compilers make a product of it, and are wrong for negative bases where it's a value."""
    x = torch.tensor([-1.5, 2.0])
    check(backend, x.to("lazy").square().cpu(), x.square())
    assert operations(backend.modules[-1]) == ["aten.pow.Tensor_Scalar"]
    assert "torch.constant.int 2" in backend.modules[-1]
    check(backend, (x.to("lazy") ** 3).cpu(), x**3)
    assert "torch.constant.int 3" in backend.modules[-1]


def test_a_result_that_a_mask_leaves_out_is_none(backend: Any) -> None:
    convolution = torch.nn.Conv2d(1, 2, 3)
    images = torch.randn(1, 1, 5, 5)
    convolution(images).sum().backward()
    expected = convolution.weight.grad.clone()
    convolution.zero_grad()
    moved = convolution.to("lazy")
    moved(images.to("lazy")).sum().backward()
    check(backend, moved.weight.grad.cpu(), expected)
    results = re.search(r"convolution_backward .* -> (.*)", backend.modules[-1])
    assert results is not None
    assert results[1].startswith("!torch.none, !torch.vtensor")


def test_an_operator_that_writes_is_the_one_that_gives(backend: Any) -> None:
    check(backend, torch.arange(2, 9, 3, device="lazy").cpu(), torch.tensor([2, 5, 8]))
    assert "torch.aten.arange.start_step" in backend.modules[-1]
