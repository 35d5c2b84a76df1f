# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every kind of argument that schemas have reaches the operator as it was given."""

from __future__ import annotations

import pytest
import torch

from torch_mlir import fx


class Calls(torch.nn.Module):
    """A module around one function."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


X = torch.randn(2, 3, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 2,
        lambda x: x * 2.5,
        lambda x: x + True,
        lambda x: x > 0.5,
        lambda x: torch.clamp(x, min=-1),
        lambda x: torch.clamp(x, None, 0.5),
        lambda x: x.sum(dim=(0, 2), keepdim=True),
        lambda x: x.mean(),
        lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        lambda x: x.to(torch.float64),
        lambda x: x.to(torch.bfloat16),
        lambda x: torch.zeros_like(x, dtype=torch.int32),
        lambda x: torch.full((2, 2), True) & (x.sum() < 1e9),
        lambda x: torch.arange(0, 10, 3) + x.size(0),
        lambda x: torch.ones(2, 3, device="cpu", dtype=torch.float16),
        lambda x: x[:, 1:, ::2],
        lambda x: x[[1, 0], :, torch.tensor([0, 3])],
        lambda x: x[..., None],
        lambda x: torch.cat([x, x * 2, x], dim=1),
        lambda x: torch.stack((x, x)),
        lambda x: x.split([1, 2], dim=1),
        lambda x: x.chunk(2, dim=-1),
        lambda x: torch.topk(x, 2),
        lambda x: torch.var_mean(x, dim=1),
        lambda x: torch.where(x > 0, x, 0.0),
        lambda x: x.masked_fill(x > 0, float("-inf")),
        lambda x: torch.nn.functional.pad(x, (1, 2), value=3.0),
        lambda x: x.contiguous(memory_format=torch.contiguous_format).clone(),
        lambda x: torch.nn.functional.interpolate(x, scale_factor=2.0, mode="linear"),
        lambda x: x.reshape(6, -1) @ torch.ones(4, 2),
        lambda x: torch.einsum("abc,adc->abd", x, x),
        lambda x: x.flip(0, 2).roll(1, 2),
        lambda x: torch.nn.functional.max_pool1d(x, 2, return_indices=True),
        lambda x: x.pow(2) + 2.0**x,
        lambda x: x.cumsum(0).argmax(1),
        lambda x: torch.bitwise_left_shift((x * 10).int(), 1),
        lambda x: x.new_full((2,), -0.0) * x.new_full((2,), 0.0),
    ],
)
def test_calls_agree_with_eager(agree, function):
    agree(Calls(function), X)


def test_channels_last_inputs(agree):
    layer = torch.nn.Conv2d(3, 4, 3, stride=2, padding=1)
    agree(layer, torch.randn(1, 3, 8, 8).to(memory_format=torch.channels_last))


def test_constants_stand_once_in_a_block(agree, operations):
    module = agree(Calls(lambda x: (x + 1).sum(1) + 1 + x.sum(1)), X)
    values = [str(op.attributes["value"]) for op in operations(module, "torch.constant.int")]
    assert len(values) == len(set(values))


def test_true_and_one_are_different_constants(agree, operations):
    agree(Calls(lambda x: x.sum(1, keepdim=True) + x.select(1, 1).unsqueeze(1)), X)


def test_zero_keeps_its_sign(operations):
    module = fx.export_and_import(Calls(lambda x: (x * 0.0, x * -0.0)), X)
    values = {str(op.attributes["value"]) for op in operations(module, "torch.constant.float")}
    assert values == {"0.000000e+00 : f64", "-0.000000e+00 : f64"}


def test_scalar_operands_take_the_scalar_overload(operations):
    module = fx.export_and_import(Calls(lambda x: x * 2 + 1.5), X)
    names = {op.name for op in operations(module)}
    assert {"torch.aten.mul.Scalar", "torch.aten.add.Scalar"} <= names


def test_dtypes_are_their_c10_numbers(operations):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(2)
    y = graph.call_function(torch.ops.prims.convert_element_type.default, (x, torch.complex128))
    y.meta["val"] = torch.empty(2, dtype=torch.complex128)
    graph.output((y,))
    module = fx.stateless_fx_import(torch.fx.GraphModule({}, graph))
    (number,) = operations(module, "torch.constant.int")
    assert str(number.attributes["value"]) == "10 : i64"


@pytest.fixture
def custom_operator():
    library = torch.library.Library("importer_test", "DEF")
    library.define("scale(Tensor x, float by, int[]? at=None, str how='up') -> (Tensor, Tensor)")
    library.impl(
        "scale", lambda x, by, at=None, how="up": (x * by, x / by), "CompositeExplicitAutograd"
    )
    yield torch.ops.importer_test.scale
    library._destroy() if hasattr(library, "_destroy") else None


def test_custom_operators_become_torch_operator(agree, operations, custom_operator):
    module = agree(Calls(lambda x: custom_operator(x, 2, [1, 2])), X)
    (call,) = operations(module, "torch.operator")
    assert str(call.attributes["name"]) == '"torch.importer_test.scale"'
    kinds = [str(operand.type) for operand in call.operands]
    assert kinds == [
        "!torch.vtensor<[2,3,4],f32>",
        "!torch.float",
        "!torch.list<int>",
        "!torch.str",
    ]
    assert len(call.results) == 2
