# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantised programs: integers stay integers, and the results are eager's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
from execution import run

from torch_mlir import fx

quantized = torch.ops.quantized_decomposed


class Calls(torch.nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def per_tensor(x):
    integers = quantized.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8)
    return integers, quantized.dequantize_per_tensor(integers, 0.1, 3, -128, 127, torch.int8)


def per_channel(x):
    scales, zero_points = torch.tensor([0.1, 0.2, 0.05]), torch.tensor([0, 4, -2])
    integers = quantized.quantize_per_channel(x, scales, zero_points, 1, -128, 127, torch.int8)
    return integers, quantized.dequantize_per_channel(
        integers, scales, zero_points, 1, -128, 127, torch.int8
    )


def dynamic(x):
    scale, zero_point = quantized.choose_qparams.tensor(x, 0, 255, 1e-6, torch.uint8)
    integers = quantized.quantize_per_tensor.tensor(x, scale, zero_point, 0, 255, torch.uint8)
    return integers, scale, zero_point


@pytest.mark.parametrize("function", [per_tensor, per_channel, dynamic])
def test_operators_of_pt2e(agree, function, operations):
    torch.manual_seed(0)
    module = agree(Calls(function), torch.randn(2, 3, 4) * 4)
    assert operations(module, "torch.operator") == []


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.linear = torch.nn.Linear(4, 5)

    def forward(self, x):
        return self.linear(self.conv(x).relu().mean((2, 3)))


def quantise(dynamic: bool, x: torch.Tensor) -> torch.nn.Module:
    """A network with int8 weights, as PyTorch 2's export flow makes it."""
    try:
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
    except (ImportError, AttributeError) as error:
        pytest.skip(f"quantises with torchao, of a version that fits this PyTorch: {error}")

    torch.manual_seed(0)
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_dynamic=dynamic))
    prepared = prepare_pt2e(torch.export.export(Net().eval(), (x,)).module(), quantizer)
    prepared(x)
    return convert_pt2e(prepared)


@pytest.fixture(scope="module", params=[False, True], ids=["static", "dynamic"])
def network(request) -> tuple[torch.nn.Module, torch.Tensor]:
    torch.manual_seed(1)
    x = torch.randn(2, 3, 8, 8)
    return quantise(request.param, x), x


def test_programs_of_pt2e(network, operations):
    model, x = network
    module = fx.export_and_import(model, x)
    assert module.operation.verify()
    torch.testing.assert_close(run(module, x), model(x))
    weights = {str(op.results[0].type) for op in operations(module, "torch.vtensor.literal")}
    assert {"!torch.vtensor<[4,3,3,3],si8>", "!torch.vtensor<[5,4],si8>"} <= weights
    assert "!torch.vtensor<[5,4],f32>" not in weights


@pytest.mark.iree
def test_iree_reads_programs_of_pt2e(network):
    pytest.importorskip("iree.compiler")
    from iree.compiler import ir as iree

    model, x = network
    module = fx.export_and_import(model, x, target="iree")
    assert iree.Module.parse(str(module), iree.Context()).operation.verify()


def literal(tensor: torch.Tensor) -> Any:
    """A function that returns a quantised attribute, and what it stands for."""
    root, graph = torch.nn.Module(), torch.fx.Graph()
    root.register_buffer("weight", tensor)
    node = graph.get_attr("weight")
    node.meta["val"] = tensor
    real = graph.call_function(torch.ops.aten.dequantize.self, (node,))
    real.meta["val"] = tensor.dequantize()
    graph.output((node, real))
    module = fx.stateless_fx_import(torch.fx.GraphModule(root, graph))
    assert module.operation.verify()
    return module


@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8, torch.qint32], ids=str)
def test_tensors_quantised_as_a_whole(dtype, operations):
    tensor = torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 2, dtype)
    module = literal(tensor)
    (make,) = operations(module, "torch.aten._make_per_tensor_quantized_tensor")
    assert str(make.results[0].type) == f"!torch.vtensor<[3,4],!{dtype}>"
    weight, real = run(module)
    assert torch.equal(weight.int_repr(), tensor.int_repr())
    assert torch.equal(real, tensor.dequantize())


@pytest.mark.parametrize("dtype", [torch.qint8, torch.quint8], ids=str)
def test_tensors_quantised_by_channel(dtype, operations):
    scales, zero_points = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2])
    tensor = torch.quantize_per_channel(torch.randn(3, 4), scales, zero_points, 0, dtype)
    module = literal(tensor)
    assert len(operations(module, "torch.aten._make_per_channel_quantized_tensor")) == 1
    weight, real = run(module)
    assert torch.equal(weight.int_repr(), tensor.int_repr()) and weight.q_per_channel_axis() == 0
    assert torch.equal(real, tensor.dequantize())


def test_packed_quantised_tensors_are_refused_by_name():
    scales, zero_points = torch.ones(3), torch.zeros(3)
    tensor = torch.quantize_per_channel(torch.randn(3, 4), scales, zero_points, 0, torch.quint4x2)
    with pytest.raises(fx.TorchMlirCompilerError, match="'weight' holds torch.quint4x2"):
        literal(tensor)
