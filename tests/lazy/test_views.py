# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes through views, and memory that lazy tensors don't share with the host's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")


def write_flat(x: Any) -> None:
    x.view(-1)[3] = 5


def add_to_slice(x: Any) -> None:
    x[1:3].add_(1)


def add_to_transposed(x: Any) -> None:
    x.t()[0] += 2


def fill_diagonal(x: Any) -> None:
    x.diagonal().zero_()


def fill_diagonal_of_transposed(x: Any) -> None:
    x.t().fill_diagonal_(3)


def fill_diagonal_of_slice(x: Any) -> None:
    x[:, 1:3].fill_diagonal_(3, wrap=True)


def write_through_two_views(x: Any) -> None:
    x.unsqueeze(0)[:, ::2].mul_(3)


def write_where_true(x: Any) -> None:
    x[x > 4] = 0


def write_by_index_of_some_dimensions(x: Any) -> None:
    x[:, torch.tensor([1, 2], device=x.device)] = 7


def write_as_strided(x: Any) -> None:
    x.as_strided((2, 2), (8, 1), 1).add_(10)


@pytest.mark.parametrize(
    "write",
    [
        write_flat,
        add_to_slice,
        add_to_transposed,
        fill_diagonal,
        fill_diagonal_of_transposed,
        fill_diagonal_of_slice,
        write_through_two_views,
        write_where_true,
        write_by_index_of_some_dimensions,
        write_as_strided,
    ],
)
def test_writing_to_a_view_writes_to_its_tensor(backend: Any, write: Callable[..., None]) -> None:
    expected = torch.arange(16.0).view(4, 4)
    actual = expected.to("lazy")
    write(expected)
    write(actual)
    assert torch.equal(actual.cpu(), expected)


def test_a_view_of_a_transposed_tensor_has_its_elements_in_order(backend: Any) -> None:
    x = torch.arange(6.0).view(2, 3)
    actual = x.to("lazy").t().reshape(6)
    assert torch.equal(actual.cpu(), x.t().reshape(6))


def test_host_and_lazy_tensors_share_no_memory(backend: Any) -> None:
    host = torch.ones(3)
    device = host.to("lazy")
    copied = torch.zeros(3, device="lazy")
    copied.copy_(host)
    host.add_(1)
    assert device.cpu().tolist() == [1, 1, 1]
    assert copied.cpu().tolist() == [1, 1, 1]
    device.cpu().add_(5)
    assert device.cpu().tolist() == [1, 1, 1]
