# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse tensors have the encoding of their layout in their type."""

from __future__ import annotations

import pytest
import torch
from execution import run

from torch_mlir import fx

pytestmark = pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta state")

DENSE = torch.tensor(
    [[1.0, 0, 0, 2, 0, 3], [0, 0, 0, 0, 0, 0], [0, 4, 0, 0, 0, 0], [5, 0, 0, 0, 6, 7]]
)
# Layout: how the dense matrix becomes one, and its levels in MLIR's notation.
LAYOUTS = {
    "coo": (
        lambda x: x.to_sparse(),
        "(d0, d1) -> (d0 : compressed(nonunique), d1 : singleton(soa))",
    ),
    "csr": (lambda x: x.to_sparse_csr(), "(d0, d1) -> (d0 : dense, d1 : compressed)"),
    "csc": (lambda x: x.to_sparse_csc(), "(d0, d1) -> (d1 : dense, d0 : compressed)"),
    "bsr": (
        lambda x: x.to_sparse_bsr((2, 3)),
        (
            "(d0, d1) -> (d0 floordiv 2 : dense, d1 floordiv 3 : compressed, "
            "d0 mod 2 : dense, d1 mod 3 : dense)"
        ),
    ),
    "bsc": (
        lambda x: x.to_sparse_bsc((2, 3)),
        (
            "(d0, d1) -> (d1 floordiv 3 : dense, d0 floordiv 2 : compressed, "
            "d0 mod 2 : dense, d1 mod 3 : dense)"
        ),
    ),
}


def encoding(levels: str, width: int = 64) -> str:
    return f"#sparse_tensor.encoding<{{ map = {levels}, posWidth = {width}, crdWidth = {width} }}>"


def type_of(tensor: torch.Tensor) -> str:
    """The type of an input that is like `tensor`."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = tensor
    graph.output((x,))
    module = fx.stateless_fx_import(torch.fx.GraphModule({}, graph))
    assert module.operation.verify()
    return str(module.body.operations[0].regions[0].blocks[0].arguments[0].type)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_matrices(layout):
    make, levels = LAYOUTS[layout]
    assert type_of(make(DENSE)) == f"!torch.vtensor<[4,6],f32,{encoding(levels)}>"


def test_the_width_of_the_indices_is_told():
    narrow = torch.sparse_csr_tensor(
        torch.tensor([0, 1, 2], dtype=torch.int32),
        torch.tensor([0, 1], dtype=torch.int32),
        torch.ones(2, dtype=torch.float64),
        (2, 2),
    )
    levels = LAYOUTS["csr"][1]
    assert type_of(narrow) == f"!torch.vtensor<[2,2],f64,{encoding(levels, 32)}>"


def test_more_sparse_sizes_and_dense_ones():
    coo = torch.ones(2, 3, 4).to_sparse()
    levels = (
        "(d0, d1, d2) -> (d0 : compressed(nonunique), d1 : singleton(nonunique, soa), "
        "d2 : singleton(soa))"
    )
    assert type_of(coo) == f"!torch.vtensor<[2,3,4],f32,{encoding(levels)}>"
    hybrid = torch.ones(2, 3, 4).to_sparse(2)
    levels = "(d0, d1, d2) -> (d0 : compressed(nonunique), d1 : singleton(soa), d2 : dense)"
    assert type_of(hybrid) == f"!torch.vtensor<[2,3,4],f32,{encoding(levels)}>"
    vector = torch.ones(3).to_sparse()
    assert type_of(vector) == f"!torch.vtensor<[3],f32,{encoding('(d0) -> (d0 : compressed)')}>"


def test_batches():
    batch = torch.stack([DENSE, DENSE]).to_sparse_csr()
    levels = "(d0, d1, d2) -> (d0 : batch, d1 : dense, d2 : compressed)"
    assert type_of(batch) == f"!torch.vtensor<[2,4,6],f32,{encoding(levels)}>"


class Product(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


class Holds(torch.nn.Module):
    def __init__(self, matrix: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("matrix", matrix)

    def forward(self, x):
        return self.matrix.to_dense() @ x


def exports_sparse() -> bool:
    try:
        torch.export.export(Product(), (DENSE.to_sparse_csr(), torch.ones(6, 2)))
    except Exception:  # noqa: BLE001  however it fails, this PyTorch does not export it
        return False
    return True


# Without decompositions: PyTorch fails at them where its debug log is on, as pytest has it, since
# the log wants the strides of every tensor.
needs_export = pytest.mark.skipif(
    not exports_sparse(), reason="this PyTorch exports no sparse inputs"
)


@needs_export
@pytest.mark.parametrize("layout", LAYOUTS)
def test_exported_programs_with_sparse_inputs(layout):
    make, levels = LAYOUTS[layout]
    a, b = make(DENSE), torch.randn(6, 2)
    module = fx.export_and_import(Product(), a, b, decomposition_table={})
    assert module.operation.verify()
    argument = module.body.operations[0].regions[0].blocks[0].arguments[0]
    assert str(argument.type) == f"!torch.vtensor<[4,6],f32,{encoding(levels)}>"
    if layout in ("coo", "csr", "csc"):  # Eager multiplies no others on every CPU.
        torch.testing.assert_close(run(module, a, b), a @ b)


@needs_export
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_literals(layout):
    matrix = LAYOUTS[layout][0](DENSE)
    x = torch.randn(6, 2)
    module = fx.export_and_import(Holds(matrix), x, decomposition_table={})
    assert module.operation.verify()
    torch.testing.assert_close(run(module, x), DENSE @ x)


@needs_export
def test_sparse_results():
    class Makes(torch.nn.Module):
        def forward(self, x):
            return x.to_sparse()

    module = fx.export_and_import(Makes(), DENSE)
    assert "-> !torch.vtensor<[4,6],f32,#sparse>" in str(module)
    got = run(module, DENSE)
    assert got.layout is torch.sparse_coo and torch.equal(got.to_dense(), DENSE)


def test_layouts_that_mlir_lacks_are_refused_by_name():
    nested = pytest.importorskip("torch.nested")
    if not hasattr(torch, "jagged"):
        pytest.skip("this PyTorch has no jagged layout")
    ragged = nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    with pytest.raises(fx.TorchMlirCompilerError, match="input 'x' .*layout torch.jagged"):
        type_of(ragged)


@pytest.mark.iree
def test_readers_without_sparse_tensors_are_told_so():
    pytest.importorskip("iree.compiler")
    from torch_mlir.importers.consumers import consumer

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = DENSE.to_sparse()
    graph.output((x,))
    importer = fx.FxImporter(accepts=consumer("iree"))
    with pytest.raises(fx.TorchMlirCompilerError, match="input 'x' .*reader has no sparse tensors"):
        importer.import_stateless_graph(graph)
