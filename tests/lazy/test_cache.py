# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph is compiled once for its operators and shapes, and PyTorch's counters say so."""

from __future__ import annotations

import re

import pytest
import torch
import torch._lazy
from torch import nn

from torch_mlir import lazy


def counts():
    return lazy.metrics.compilations(), lazy.metrics.cache_hits()


def train_step(model, optimiser, x):
    optimiser.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimiser.step()
    torch._lazy.mark_step()


@pytest.fixture
def training(backend):
    model = nn.Linear(4, 2).to("lazy")
    return model, torch.optim.SGD(model.parameters(), 0.1)


def test_the_same_step_twice_compiles_once(backend, training):
    """The first one too."""
    for _ in range(3):
        train_step(*training, torch.randn(3, 4).to("lazy"))
    assert counts() == (1, 2)
    assert len(backend.modules) == 1


def test_state_that_the_first_step_makes_is_made_by_a_graph_of_its_own(backend):
    model = nn.Linear(4, 2).to("lazy")
    optimiser = torch.optim.Adam(model.parameters(), 0.1)
    for _ in range(4):
        train_step(model, optimiser, torch.randn(3, 4).to("lazy"))
    assert counts() == (2, 2)


def test_a_step_gives_each_parameter_once(backend, training):
    model, _ = training
    train_step(*training, torch.randn(3, 4).to("lazy"))
    model.zero_grad()
    torch._lazy.mark_step()
    model(torch.ones(1, 4).to("lazy")).cpu()
    arguments = re.search(r"@main\((.*)\) ->", backend.modules[-1])[1]
    for parameter in ("[2,4]", "[2]"):
        assert arguments.count(f"!torch.vtensor<{parameter},f32>") == 1, arguments


def test_a_changed_shape_compiles_once_more(backend, training):
    for size in (3, 3, 5, 5, 3):
        train_step(*training, torch.randn(size, 4).to("lazy"))
    assert counts() == (2, 3)
    three, five = backend.modules
    assert "[3,4]" in three and "[5,4]" in five


def test_the_same_inference_twice_compiles_once(backend):
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).to("lazy")
    with torch.no_grad():
        results = [model(torch.ones(1, 4).to("lazy")).cpu() for _ in range(3)]
    assert counts() == (1, 2)
    assert torch.equal(results[0], results[2])


def test_what_came_from_the_host_is_no_result(backend):
    model = nn.Linear(4, 2).to("lazy")
    x, scale = torch.ones(1, 4).to("lazy"), torch.tensor(2.0).to("lazy")
    results = []
    for _ in range(3):
        results.append(model(x) * scale)
        torch._lazy.mark_step()
    assert counts() == (1, 2)
    (text,) = backend.modules
    assert text.count("-> !torch.vtensor<[1,2],f32> {") == 1, text
    assert torch.equal(results[0].cpu(), results[2].cpu())


def test_what_came_from_the_host_is_held_apart_from_its_copies(backend):
    x = torch.ones(3).to("lazy")
    copy = x.clone()
    total = copy + x
    torch._lazy.mark_step()
    x.add_(1)
    x[0] = 5
    torch._lazy.mark_step()
    copy.mul_(3)
    host = copy.cpu()
    host.zero_()
    values = [each.cpu().tolist() for each in (x, copy, total, x + copy)]
    assert values == [[5, 2, 2], [3, 3, 3], [2, 2, 2], [8, 5, 5]]


def test_a_changed_dtype_compiles_once_more(backend):
    for dtype in (torch.float32, torch.float64, torch.float32):
        (torch.ones(3, dtype=dtype).to("lazy") + 1).cpu()
    assert counts() == (2, 1)


def test_a_changed_operator_compiles_once_more(backend):
    for operator in (torch.sin, torch.cos, torch.sin):
        operator(torch.ones(3).to("lazy")).cpu()
    assert counts() == (2, 1)


def test_a_changed_attribute_compiles_once_more(backend):
    x = torch.arange(6.0).view(2, 3).to("lazy")
    results = [x.sum(axis).cpu().tolist() for axis in (0, 1, 0)]
    assert results == [[3, 5, 7], [3, 12], [3, 5, 7]]
    assert counts() == (2, 1)


def test_another_value_of_a_number_is_the_same_graph(backend):
    x = torch.ones(3).to("lazy")
    assert [(x * number).cpu()[0].item() for number in (2.5, 3.5, -1.5)] == [2.5, 3.5, -1.5]
    assert len([text for text in backend.modules if "mul" in text]) == 1


def test_another_order_of_the_same_tensors_is_another_graph(backend):
    x, y = torch.tensor([5.0]).to("lazy"), torch.tensor([3.0]).to("lazy")
    assert [(x - y).cpu().item(), (x - x).cpu().item(), (y - x).cpu().item()] == [2, 0, -2]


def test_another_backend_compiles_for_itself(backend):
    x = torch.ones(3).to("lazy")
    (x + 1).cpu()
    other = type(backend)()
    with lazy.register(other):
        (x + 1).cpu()
        (x + 1).cpu()
    assert len(backend.modules) == len(other.modules) == 1
    (x + 1).cpu()
    assert len(backend.modules) == 2


def test_counters_tell_what_ran_where(backend):
    x = torch.ones(3).to("lazy")
    lazy.metrics.reset()
    y = x * 2 + x
    assert lazy.metrics.operators() == {"add": 1, "mul": 1}
    assert lazy.metrics.fallbacks() == {}
    assert y.sum().item() == 9
    assert lazy.metrics.fallbacks() == {"aten::_local_scalar_dense": 1}
    lazy.metrics.reset()
    assert counts() == (0, 0)
    assert lazy.metrics.fallbacks() == lazy.metrics.operators() == {}
