# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters, buffers and constants arrive with the contents, shape and dtype that they had."""

from __future__ import annotations

import re

import pytest
import torch
from execution import run

from torch_mlir import fx, ir

DTYPES = [
    getattr(torch, name)
    for name in (
        "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
        "float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu "
        "complex32 complex64 complex128"
    ).split()
    if hasattr(torch, name)
]


class Holder(torch.nn.Module):
    """Returns a buffer as it is."""

    def __init__(self, contents: torch.Tensor, persistent: bool = True) -> None:
        super().__init__()
        self.register_buffer("contents", contents, persistent=persistent)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, self.contents


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().flatten().view(torch.uint8)


def imported_contents(contents: torch.Tensor) -> torch.Tensor:
    graph = torch.fx.Graph()
    node = graph.get_attr("contents")
    node.meta["val"] = contents
    graph.output((node,))
    module = torch.fx.GraphModule(Holder(contents), graph)
    return run(fx.stateless_fx_import(module))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_contents_survive_bit_by_bit(dtype, shape):
    count = torch.Size(shape).numel()
    width = torch.empty((), dtype=dtype).element_size()
    high = 2 if dtype is torch.bool else 256
    raw = torch.randint(0, high, (count * width,), dtype=torch.uint8)
    contents = raw.view(dtype).reshape(shape)
    got = imported_contents(contents)
    assert got.dtype is dtype and got.shape == contents.shape
    assert torch.equal(bits(got), bits(contents))


@pytest.mark.parametrize("value", [True, False])
def test_bools_that_are_all_the_same(value):
    assert torch.equal(imported_contents(torch.full((5,), value)), torch.full((5,), value))


@pytest.mark.parametrize(
    "contents",
    [
        torch.arange(12.0).reshape(3, 4).t(),
        torch.arange(12.0)[::2],
        torch.arange(3.0).expand(4, 3),
        torch.arange(12.0).reshape(3, 4)[1:, 1:],
        torch.randn(3, dtype=torch.complex64).conj(),
    ],
    ids=["transposed", "strided", "expanded", "sliced", "conjugated"],
)
def test_views_are_stored_as_they_look(contents):
    assert torch.equal(imported_contents(contents), contents)


@pytest.mark.parametrize("persistent", [True, False])
def test_buffers_persistent_or_not(agree, persistent):
    class Adds(Holder):
        def forward(self, x):
            return x + self.contents

    agree(Adds(torch.arange(6.0).reshape(2, 3), persistent), torch.ones(3))


def test_lifted_constants(agree):
    class Adds(torch.nn.Module):
        def forward(self, x):
            return x + torch.tensor([1.0, 2.0, 3.0]) * torch.tensor(2.0)

    agree(Adds(), torch.ones(3))


def test_tied_weights_are_one_literal(agree, operations):
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Linear(4, 4, bias=False)
            self.b = torch.nn.Linear(4, 4, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x).relu())

    module = agree(Tied(), torch.randn(2, 4))
    assert len(operations(module, "torch.vtensor.literal")) == 1


def test_a_parameter_used_twice_is_one_literal(agree, operations):
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(4))

        def forward(self, x):
            return (x + self.w) * self.w

    module = agree(Twice(), torch.randn(2, 4))
    assert len(operations(module, "torch.vtensor.literal")) == 1


def test_parameters_that_are_not_used_are_left_out(operations):
    class Unused(torch.nn.Linear):
        def forward(self, x):
            return x + 1

    module = fx.export_and_import(Unused(4, 4), torch.randn(2, 4))
    assert operations(module, "torch.vtensor.literal") == []


def test_blobs_are_named_after_parameters_and_aligned(operations):
    module = fx.export_and_import(torch.nn.Linear(4, 4).double(), torch.randn(2, 4).double())
    text = str(module)
    # PyTorch 2.1 exports a module as the attribute `fn` of another one.
    assert re.search(r"dense_resource<(fn\.)?weight> : tensor<4x4xf64>", text)
    assert 'weight: "0x08000000' in text


def test_blobs_are_the_tensors_own_memory():
    layer = torch.nn.Linear(2, 1, bias=False)
    module = fx.export_and_import(layer, torch.ones(1, 2))
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[3.0, 4.0]]))
    assert run(module, torch.ones(1, 2)).item() == 7.0


def test_the_module_keeps_its_weights_alive():
    import gc

    layer = torch.nn.Linear(64, 64)
    x = torch.randn(1, 64)
    expected = layer(x)
    module = fx.export_and_import(layer, x)
    del layer
    gc.collect()
    [torch.full((64, 64), 9.0) for _ in range(64)]
    torch.testing.assert_close(run(module, x), expected)


def test_tensors_without_data_are_refused_by_name():
    with torch.device("meta"):
        layer = torch.nn.Linear(4, 4)
        x = torch.randn(2, 4)
    with pytest.raises(fx.TorchMlirCompilerError, match=r"weight' .*holds no data"):
        fx.export_and_import(layer, x)


def test_tensors_of_classes_with_operators_of_their_own_are_refused():
    class Masked(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("the importer calls no operators of the class")

    contents = torch.ones(3).as_subclass(Masked)
    with pytest.raises(fx.TorchMlirCompilerError, match="class .*Masked, which has operators of"):
        literal_module({"contents": contents})


def test_tensors_of_plain_subclasses_are_their_contents():
    class Named(torch.Tensor):
        pass

    assert torch.equal(imported_contents(torch.arange(3).as_subclass(Named)), torch.arange(3))


def literal_module(contents: dict[str, torch.Tensor]) -> ir.Module:
    """A function that returns each of the tensors, which it finds as attributes."""
    root, graph = torch.nn.Module(), torch.fx.Graph()
    nodes = []
    for name, tensor in contents.items():
        root.register_buffer(name, tensor)
        nodes.append(graph.get_attr(name))
        nodes[-1].meta["val"] = tensor
    graph.output(tuple(nodes))
    return fx.stateless_fx_import(torch.fx.GraphModule(root, graph))


def blobs(module: ir.Module) -> list[str]:
    return re.findall(r'^\s*("?[^\s":]+"?): "0x', str(module), re.MULTILINE)


@pytest.mark.parametrize(
    "view",
    [lambda w: w, lambda w: w.view(-1), lambda w: w.view(2, 6), lambda w: w.detach()],
    ids=["same", "flat", "reshaped", "detached"],
)
def test_tensors_that_share_their_memory_share_their_blob(view):
    w = torch.arange(12.0).reshape(3, 4)
    module = literal_module({"w": w, "v": view(w)})
    assert blobs(module) == ["w"]
    got = run(module)
    assert torch.equal(got[0], w) and torch.equal(got[1], view(w))


def test_views_that_overlap_keep_their_contents():
    base = torch.arange(10.0)
    views = {"low": base[:6], "high": base[4:], "strided": base[::3], "whole": base}
    for got, expected in zip(run(literal_module(views)), views.values()):
        assert torch.equal(got, expected)


def test_tensors_of_other_dtypes_at_the_same_address_are_apart():
    w = torch.arange(8, dtype=torch.int32)
    views = {"a": w, "b": w.view(torch.float32), "c": w.view(torch.uint8)}
    for got, expected in zip(run(literal_module(views)), views.values()):
        assert got.dtype is expected.dtype and torch.equal(bits(got), bits(expected))


def test_weights_tied_across_modules_share_their_blob():
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(10, 4)
            self.head = torch.nn.Linear(4, 10, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids):
            return self.head(self.table(ids))

    ids = torch.tensor([[1, 2, 3]])
    model = Tied()
    module = fx.export_and_import(model, ids)
    assert len(blobs(module)) == 1
    torch.testing.assert_close(run(module, ids), model(ids))


@pytest.mark.parametrize("name", ["float4_e2m1fn_x2", "uint4"])
def test_elements_smaller_than_a_byte_are_made_of_bytes(operations, name):
    if not hasattr(torch, name):
        pytest.skip(f"this PyTorch has no {name}")
    raw = torch.arange(6, dtype=torch.uint8).reshape(2, 3)
    module = literal_module({"packed": raw.view(getattr(torch, name))})
    (view,) = operations(module, "torch.aten.view.dtype")
    assert str(view.operands[0].type) == "!torch.vtensor<[2,3],ui8>"
    got = run(module)
    assert got.dtype is getattr(torch, name) and torch.equal(got.view(torch.uint8), raw)


def test_dtypes_without_a_type_are_refused_by_name():
    if not hasattr(torch, "bits8"):
        pytest.skip("this PyTorch has no bits8")
    with pytest.raises(fx.TorchMlirCompilerError, match="bits8 have no type"):
        literal_module({"contents": torch.empty(2, dtype=torch.bits8)})


def test_literals_are_torch_literals_of_the_tensor_type(operations):
    module = fx.export_and_import(torch.nn.Linear(3, 2), torch.randn(1, 3))
    kinds = {str(op.results[0].type) for op in operations(module, "torch.vtensor.literal")}
    assert kinds == {"!torch.vtensor<[2,3],f32>", "!torch.vtensor<[2],f32>"}
    assert isinstance(module, ir.Module)


def test_constants_without_a_name_are_told_apart():
    graph = torch.fx.Graph()
    constants = [torch.tensor([float(i), 1.0]) for i in range(3)]
    total = graph.placeholder("x")
    total.meta["val"] = torch.empty(2)
    for constant in constants:
        total = graph.call_function(torch.ops.aten.add.Tensor, (total, constant))
        total.meta["val"] = torch.empty(2)
    # As MLIR would call the second one.
    taken = graph.get_attr("constant_1")
    holder = torch.nn.Module()
    holder.constant_1 = torch.tensor([5.0, 6.0])
    taken.meta["val"] = holder.constant_1
    graph.output((total, taken))
    module = fx.stateless_fx_import(torch.fx.GraphModule(holder, graph))
    names = re.findall(r"dense_resource<(\w+)>", str(module))
    assert names == ["constant", "constant_1", "constant_2", "constant_1_1"]
    got = run(ir.Module.parse(str(module), ir.Context()), torch.zeros(2))
    assert [value.tolist() for value in got] == [[3.0, 3.0], [5.0, 6.0]]
