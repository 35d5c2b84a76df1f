# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantised tensors, packed parameters, and other classes that are compiled into PyTorch."""

import torch
from torch import Tensor, nn
from torch.nn import Module

from .cases import case, scripted
from .tensors import Held

X = torch.linspace(-1, 1, 8).reshape(2, 4)
WEIGHT = torch.linspace(-0.5, 0.5, 12).reshape(3, 4)
IMAGE = torch.linspace(0, 1, 32).reshape(1, 2, 4, 4)
KERNEL = torch.linspace(-0.5, 0.5, 54).reshape(3, 2, 3, 3)


def _per_channel(x: Tensor, count: int) -> Tensor:
    scales = torch.linspace(0.01, 0.02, count, dtype=torch.float64)
    return torch.quantize_per_channel(x, scales, torch.zeros(count).long(), 0, torch.qint8)


def _per_tensor(dtype: str):
    def make():
        quantized = torch.quantize_per_tensor(WEIGHT, 0.125, 2, getattr(torch, dtype))
        return torch.jit.script(Held(quantized))

    return make


for _dtype in ("qint8", "quint8", "qint32"):
    case(name=f"PerTensor_{_dtype}")(_per_tensor(_dtype))


@case(name="PerChannel")
def _per_channel_weight():
    return torch.jit.script(Held(_per_channel(WEIGHT, 3)))


@case(name="PerChannelStrided")
def _per_channel_strided():
    """Quantised along the second dimension, and a view of a larger storage."""
    scales = torch.linspace(0.01, 0.02, 4, dtype=torch.float64)
    points = torch.arange(4)
    return torch.jit.script(
        Held(torch.quantize_per_channel(WEIGHT, scales, points, 1, torch.qint8)[1:])
    )


@scripted((X,))
class Quantizes(Module):
    def forward(self, x: Tensor):
        q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
        return q.dequantize(), q.int_repr(), q.q_scale(), q.q_zero_point()


@scripted((X,))
class LinearDynamic(Module):
    def __init__(self, bias: bool = True):
        super().__init__()
        weight = torch.quantize_per_tensor(WEIGHT, 0.01, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(
            weight, torch.arange(3.0) if bias else None
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic(x, self.packed, False)


@case((X,), name="LinearDynamicWithoutBias")
def _linear_without_bias():
    return torch.jit.script(LinearDynamic(bias=False))


@scripted((X,))
class LinearStatic(Module):
    def __init__(self):
        super().__init__()
        self.packed = torch.ops.quantized.linear_prepack(_per_channel(WEIGHT, 3), torch.arange(3.0))

    def forward(self, x: Tensor) -> Tensor:
        q = torch.quantize_per_tensor(x, 0.02, 64, torch.quint8)
        return torch.ops.quantized.linear_relu(q, self.packed, 0.05, 10).dequantize()


class _Convolution(Module):
    def __init__(self, weight: Tensor):
        super().__init__()
        self.packed = torch.ops.quantized.conv2d_prepack(
            weight, torch.arange(3.0), [1, 2], [1, 1], [1, 1], 1
        )

    def forward(self, x: Tensor) -> Tensor:
        q = torch.quantize_per_tensor(x, 0.02, 64, torch.quint8)
        return torch.ops.quantized.conv2d(q, self.packed, 0.05, 10).dequantize()


@case((IMAGE,), name="ConvolutionStatic")
def _convolution_static():
    return torch.jit.script(_Convolution(torch.quantize_per_tensor(KERNEL, 0.01, 0, torch.qint8)))


@case((IMAGE,), name="ConvolutionPerChannel")
def _convolution_per_channel():
    return torch.jit.script(_Convolution(_per_channel(KERNEL, 3)))


class _Convolutions(Module):
    """Convolutions of one and three dimensions, and transposed ones."""

    def __init__(self):
        super().__init__()
        quantized = torch.ops.quantized

        def weight(*shape: int) -> Tensor:
            count = torch.Size(shape).numel()
            elements = torch.linspace(-0.5, 0.5, count).reshape(shape)
            return torch.quantize_per_tensor(elements, 0.01, 0, torch.qint8)

        self.one = quantized.conv1d_prepack(weight(3, 2, 3), torch.arange(3.0), [2], [1], [1], 1)
        self.three = quantized.conv3d_prepack(
            weight(4, 2, 2, 2, 2), None, [1, 1, 2], [0, 1, 0], [1, 1, 1], 2
        )
        self.transposed = quantized.conv_transpose2d_prepack(
            weight(2, 3, 2, 2), torch.arange(3.0), [2, 1], [0, 1], [1, 0], [1, 1], 1
        )
        self.transposed_one = quantized.conv_transpose1d_prepack(
            weight(2, 3, 2), None, [2], [0], [1], [1], 1
        )

    def forward(self, x: Tensor):
        q = torch.quantize_per_tensor(x, 0.02, 64, torch.quint8)
        line = q.flatten(2)
        space = q.reshape(1, 4, 2, 2, 2)
        quantized = torch.ops.quantized
        return (
            quantized.conv1d(line, self.one, 0.05, 10).dequantize(),
            quantized.conv3d(space, self.three, 0.05, 10).dequantize(),
            quantized.conv_transpose2d(q, self.transposed, 0.05, 10).dequantize(),
            quantized.conv_transpose1d(line, self.transposed_one, 0.05, 10).dequantize(),
        )


@case((IMAGE,), name="Convolutions")
def _convolutions():
    return torch.jit.script(_Convolutions())


@case((X,), name="QuantizeDynamic", needs="ao.quantization.quantize_dynamic")
def _quantize_dynamic():
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).eval()
    return torch.jit.script(
        torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, dtype=torch.qint8)
    )


@case(
    (X.reshape(2, 1, 4),), name="QuantizeDynamicRecurrent", needs="ao.quantization.quantize_dynamic"
)
def _quantize_dynamic_recurrent():
    class Net(Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.lstm(x)[0]

    return torch.jit.script(
        torch.ao.quantization.quantize_dynamic(Net().eval(), {nn.LSTM}, dtype=torch.qint8)
    )


@case(
    (X, torch.linspace(-1, 1, 6).reshape(2, 3)),
    name="QuantizeDynamicCells",
    needs="ao.quantization.quantize_dynamic",
)
def _quantize_dynamic_cells():
    class Net(Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTMCell(4, 3)
            self.gru = nn.GRUCell(4, 3)
            self.layers = nn.GRU(4, 3, num_layers=2, bidirectional=True)

        def forward(self, x: Tensor, h: Tensor):
            return self.lstm(x, (h, h))[1], self.gru(x, h), self.layers(x[:, None])[0]

    return torch.jit.script(
        torch.ao.quantization.quantize_dynamic(
            Net().eval(), {nn.LSTMCell, nn.GRUCell, nn.GRU}, dtype=torch.qint8
        )
    )


@case((X,), name="QuantizeDynamicHalf", needs="ao.quantization.quantize_dynamic")
def _quantize_dynamic_half():
    class Net(Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 3)
            self.lstm = nn.LSTM(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.lstm(self.linear(x)[:, None])[0]

    return torch.jit.script(
        torch.ao.quantization.quantize_dynamic(
            Net().eval(), {nn.Linear, nn.LSTM}, dtype=torch.float16
        )
    )


@case((IMAGE,), name="QuantizeStatic", needs="ao.quantization.convert")
def _quantize_static():
    quantization = torch.ao.quantization

    class Net(Module):
        def __init__(self):
            super().__init__()
            self.quant = quantization.QuantStub()
            self.conv = nn.Conv2d(2, 3, 3)
            self.relu = nn.ReLU()
            self.linear = nn.Linear(12, 2)
            self.dequant = quantization.DeQuantStub()

        def forward(self, x: Tensor) -> Tensor:
            x = self.relu(self.conv(self.quant(x)))
            return self.dequant(self.linear(x.flatten(1)))

    net = Net().eval()
    net.qconfig = quantization.get_default_qconfig("fbgemm")
    fused = quantization.fuse_modules(net, [["conv", "relu"]])
    prepared = quantization.prepare(fused)
    prepared(IMAGE)
    return torch.jit.script(quantization.convert(prepared))


@scripted((torch.ones(2, 8),), refused="sparse.LinearPackedParamsBase")
class PackedSparse(Module):
    """An object of a class that only PyTorch's own code can look into."""

    def __init__(self):
        super().__init__()
        weight = torch.quantize_per_tensor(torch.eye(8), 0.1, 0, torch.qint8)
        engines = torch.backends.quantized
        before = engines.engine
        engines.engine = "fbgemm"
        try:
            self.packed = torch.ops.sparse.qlinear_prepack(weight, torch.ones(8), 1, 4)
        finally:
            engines.engine = before

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.sparse.qlinear_dynamic(x, self.packed)


@case((torch.tensor([0, 2, 1]), torch.tensor([0, 2])), name="EmbeddingBag")
def _embedding_bag():
    class Bag(Module):
        def __init__(self):
            super().__init__()
            scales = torch.tensor([0.5, 0.25, 1.0])
            weight = torch.quantize_per_channel(
                torch.linspace(-1, 1, 12).reshape(3, 4), scales, torch.zeros(3), 0, torch.quint8
            )
            self.packed = torch.ops.quantized.embedding_bag_prepack(weight)

        def forward(self, indices: Tensor, offsets: Tensor) -> Tensor:
            return torch.ops.quantized.embedding_bag_byte(self.packed, indices, offsets)

    return torch.jit.script(Bag())
