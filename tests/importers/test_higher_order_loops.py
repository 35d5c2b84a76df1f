# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`map`, `scan` and `associative_scan`: one iteration for each slice of tensors."""

from __future__ import annotations

import inspect

import pytest
import torch
from eager import compare, exported, held
from torch.fx.experimental.proxy_tensor import make_fx

from torch_mlir import fx


def dim(*args, **kwargs):
    if not hasattr(torch.export, "Dim"):
        pytest.skip("torch.export has no Dim before PyTorch 2.2")
    return torch.export.Dim(*args, **kwargs)


try:
    from torch._higher_order_ops.map import map as map_slices
except ImportError:
    map_slices = None
if map_slices is None:  # before PyTorch 2.3
    map_slices = pytest.importorskip("functorch.experimental.control_flow").map
try:
    from torch._higher_order_ops.scan import scan
except ImportError:
    scan = None
try:
    from torch._higher_order_ops.associative_scan import associative_scan
except ImportError:
    associative_scan = None

needs_scan = pytest.mark.skipif(scan is None, reason="this PyTorch has no scan")
needs_associative_scan = pytest.mark.skipif(
    associative_scan is None, reason="this PyTorch has no associative_scan"
)


def matrix(rows=4, columns=3):
    return torch.randn(rows, columns)


def test_map_over_one_tensor(operations):
    module = held(lambda x: map_slices(lambda a: a.sin() + 1, x), matrix())
    (loop,) = operations(module, "torch.prim.Loop")
    assert [str(result.type) for result in loop.results] == ["!torch.vtensor<[4,3],f32>"]


def test_map_over_several_tensors_with_other_operands():
    def function(x, y, z):
        return map_slices(lambda xs, z: (xs[0] * z).sum() + xs[1], (x, y), z)

    held(function, matrix(), torch.randn(4, 2), torch.randn(3))


def test_map_gives_nested_results():
    def function(x, y):
        return map_slices(lambda a, y: {"sum": a + y, "rest": [a.sum(), a.argmax()]}, x, y)

    held(function, matrix(), torch.randn(3))


def test_map_reads_parameters():
    class Maps(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)

        def forward(self, x):
            return map_slices(lambda a: self.linear(a), x)

    held(Maps(), torch.randn(4, 5, 3))


def test_map_over_an_open_length():
    runs = [(matrix(),), (matrix(7),), (matrix(2),)]
    held(lambda x: map_slices(lambda a: a * 2, x), *runs[0], runs=runs, shapes=[{0: dim("rows")}])


def test_map_over_slices_of_open_sizes():
    def function(x):
        return map_slices(lambda a: torch.cat([a, a]).flip(0) * a.shape[0], x)

    runs = [(matrix(),), (matrix(6, 5),)]
    held(function, *runs[0], runs=runs, shapes=[{0: dim("rows"), 1: dim("columns")}])


@pytest.mark.parametrize(
    "body",
    [
        lambda a: a.new_ones(a.shape[0] // 2 + 3) * a.sum(),
        lambda a: a.new_ones(a.shape[0] % 3 + 2) + a.sum(),
        lambda a: a.new_zeros((a.shape[0] + 1) * 2 - 1) + a.max(),
    ],
)
def test_map_to_slices_of_computed_sizes(body):
    runs = [(matrix(3, 6),), (matrix(3, 5),), (matrix(2, 10),)]
    shapes = [{0: dim("rows"), 1: dim("columns", min=4)}]
    held(lambda x: map_slices(body, x), *runs[0], runs=runs, shapes=shapes)


def test_map_within_map(operations):
    def function(x):
        return map_slices(lambda row: map_slices(lambda element: element + 1, row), x)

    module = held(function, matrix())
    assert len(operations(module, "torch.prim.Loop")) == 2


def test_map_within_a_branch():
    def function(x):
        return torch.cond(
            x.sum() > 0, lambda x: map_slices(lambda a: a * 2, x), lambda x: x - 1, (x,)
        )

    x = torch.ones(4, 3)
    held(function, x, runs=[(x,), (-x,)])


@needs_scan
def test_scan_carries_and_stacks(operations):
    def function(initial, x):
        return scan(lambda carry, a: (carry + a, carry * a), initial, x)

    module = held(function, torch.zeros(3), matrix())
    (loop,) = operations(module, "torch.prim.Loop")
    assert [str(result.type) for result in loop.results] == [
        "!torch.vtensor<[3],f32>",
        "!torch.vtensor<[4,3],f32>",
    ]


@needs_scan
def test_scan_of_several_carries_and_tensors():
    def step(carry, slices):
        total, product = carry
        a, b = slices
        return (total + a.sum(), product * b), {"sum": total + b.sum(), "product": product * a[:2]}

    def function(total, product, x, y):
        return scan(step, (total, product), (x, y))

    held(function, torch.zeros(()), torch.ones(2), matrix(), torch.randn(4, 2))


@needs_scan
def test_scan_backwards():
    def function(initial, x):
        return scan(lambda carry, a: (carry + a, carry * a), initial, x, reverse=True)

    held(function, torch.zeros(3), matrix())


@needs_scan
def test_scan_along_another_axis():
    def function(initial, x):
        return scan(lambda carry, a: (carry + a, carry * a), initial, x, dim=1)

    held(function, torch.zeros(4), matrix())


@needs_scan
def test_scan_reads_what_is_outside_of_it():
    class Scans(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 3))

        def forward(self, initial, x, y):
            def step(carry, a):
                following = torch.tanh(carry @ self.weight + a * y)
                return following, following.clone()

            return scan(step, initial, x)

    held(Scans(), torch.zeros(3), matrix(), torch.randn(3))


@needs_scan
def test_scan_over_an_open_length():
    def function(initial, x):
        return scan(lambda carry, a: (carry + a, carry * a), initial, x)

    runs = [(torch.zeros(3), matrix(rows)) for rows in (4, 9, 2)]
    held(function, *runs[0], runs=runs, shapes=[None, {0: dim("rows")}])


@needs_scan
def test_scan_over_slices_of_open_sizes():
    def function(initial, x):
        return scan(lambda carry, a: (carry + a.sum(), a * carry[0]), initial, x)

    runs = [(torch.zeros(2), matrix(4, columns)) for columns in (3, 5)]
    held(function, *runs[0], runs=runs, shapes=[None, {1: dim("columns")}])


@needs_scan
def test_scan_within_a_branch():
    def scanned(x):
        return scan(lambda carry, a: (carry + a, carry * a), x[0] * 0, x)[1]

    def function(x):
        return torch.cond(x.sum() > 0, scanned, lambda x: x - 1, (x,))

    x = torch.ones(4, 3)
    held(function, x, runs=[(x,), (-x,)])


@needs_associative_scan
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_of_a_generic_function(reverse):
    def function(x):
        return associative_scan(
            lambda a, b: a * b + a, x, 0, reverse=reverse, combine_mode="generic"
        )

    held(function, matrix(5))


def pairwise(first, second):
    """A linear recurrence, whose steps are combined in any grouping."""
    return first[0] * second[0], first[1] * second[0] + second[1]


def sequential(a, b):
    """What `pairwise` gives, one slice after the other."""
    products, sums = [a[0]], [b[0]]
    for x, y in zip(a[1:], b[1:]):
        sums.append(sums[-1] * x + y)
        products.append(products[-1] * x)
    return torch.stack(products), torch.stack(sums)


@needs_associative_scan
@pytest.mark.parametrize("rows", [1, 2, 5, 8])
def test_associative_scan_that_stays_an_operator(rows):
    def function(a, b):
        return torch.ops.higher_order.associative_scan(
            lambda a, b, c, d: pairwise((a, b), (c, d)), [a, b], ()
        )

    inputs = matrix(rows), matrix(rows)
    traced = traced_with_fake_tensors(function, inputs)
    assert "associative_scan" in [
        getattr(node.target, "__name__", "") for node in traced.graph.nodes
    ]
    compare(fx.stateless_fx_import(traced), sequential, [inputs])


@needs_associative_scan
def test_associative_scan_that_reads_what_is_outside_of_it():
    def function(x, y):
        return torch.ops.higher_order.associative_scan(
            lambda a, b, y: [torch.maximum(a, b) + 0 * y], [x], (y,)
        )

    inputs = matrix(6), torch.ones(3)
    module = fx.stateless_fx_import(traced_with_fake_tensors(function, inputs))
    compare(module, lambda x, y: x.cummax(0).values, [inputs])


def traced_with_fake_tensors(function, inputs):
    parameters = inspect.signature(torch.ops.higher_order.associative_scan.__call__).parameters
    if "additional_inputs" not in parameters or "dim" in parameters:
        pytest.skip(f"associative_scan takes {', '.join(parameters)} in this PyTorch")
    return make_fx(function, tracing_mode="fake")(*inputs)


@pytest.mark.iree
@needs_scan
def test_iree_runs_scan():
    pytest.importorskip("iree.compiler")
    pytest.importorskip("iree.runtime")
    from torch_mlir.backends.iree import IreeBackend

    def function(initial, x):
        return scan(lambda carry, a: (carry + a, carry * a), initial, x)

    inputs = torch.zeros(3), matrix()
    module = fx.export_and_import(exported(function, inputs), decomposition_table={}, target="iree")
    backend = IreeBackend()
    results = backend.load(backend.compile(module))(*inputs)
    for result, wanted in zip(results, function(*inputs), strict=True):
        torch.testing.assert_close(result, wanted)
