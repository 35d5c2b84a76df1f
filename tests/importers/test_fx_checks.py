# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program asserts while it runs stops the imported program too."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from execution import run

from torch_mlir import fx

aten = torch.ops.aten


needs_checks = pytest.mark.skipif(
    not hasattr(aten, "_assert_scalar"), reason="this PyTorch exports no checks of scalars"
)


class Calls(torch.nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def graph_of(target: Any, inputs: list[Any], args: list[Any], **kwargs: Any) -> Any:
    """A graph that calls a check with its inputs (None in `args` takes the next) and no results."""
    graph = torch.fx.Graph()
    nodes = []
    for index, value in enumerate(inputs):
        nodes.append(graph.placeholder(f"arg{index}"))
        nodes[-1].meta["val"] = value
    waiting = iter(nodes)
    call = tuple(next(waiting) if arg is INPUT else arg for arg in args)
    graph.call_function(target, call, kwargs)
    graph.output(())
    return fx.stateless_fx_import(torch.fx.GraphModule({}, graph))


INPUT = object()


@needs_checks
def test_scalar_conditions():
    module = graph_of(aten._assert_scalar.default, [True], [INPUT, "it must hold"])
    assert run(module, True) is None
    with pytest.raises(RuntimeError, match="it must hold"):
        run(module, False)


@needs_checks
def test_conditions_that_are_constants(operations):
    holds = graph_of(aten._assert_scalar.default, [], [True, "never seen"])
    assert operations(holds, "torch.runtime.assert") == []
    with pytest.raises(RuntimeError, match="always wrong"):
        run(graph_of(aten._assert_scalar.default, [], [False, "always wrong"]))


def test_tensor_conditions():
    module = graph_of(aten._assert_async.msg, [torch.tensor(True)], [INPUT, "it must hold"])
    assert run(module, torch.tensor(True)) is None
    with pytest.raises(RuntimeError, match="it must hold"):
        run(module, torch.tensor(False))


FOR_SIZE = aten.sym_constrain_range_for_size.default


@pytest.mark.parametrize(
    ("target", "limits", "good", "bad"),
    [
        (aten.sym_constrain_range.default, {"min": -3, "max": 5}, (-3, 0, 5), (-4, 6)),
        (aten.sym_constrain_range.default, {"max": 5}, (-100, 5), (6,)),
        (FOR_SIZE, {"min": None, "max": None}, (0, 100), (-1,)),
        (FOR_SIZE, {"min": 2, "max": 9}, (2, 9), (1, 10)),
    ],
)
def test_ranges(target, limits, good, bad):
    module = graph_of(target, [4], [INPUT], **limits)
    for value in good:
        assert run(module, value) is None
    for value in bad:
        with pytest.raises(RuntimeError, match="has to be"):
            run(module, value)


def test_the_range_of_a_constant_is_known(operations):
    module = graph_of(aten.sym_constrain_range.default, [], [4], min=0, max=9)
    assert operations(module, "torch.runtime.assert") == []


needs_metadata = pytest.mark.skipif(
    not hasattr(aten, "_assert_tensor_metadata"), reason="this PyTorch has no such check"
)


@needs_metadata
def test_metadata_that_the_type_tells_is_not_checked_again(operations):
    module = graph_of(
        aten._assert_tensor_metadata.default,
        [torch.empty(2, 3)],
        [INPUT, [2, 3], [3, 1], torch.float32],
    )
    assert operations(module, "torch.aten._assert_tensor_metadata") == []


@needs_metadata
@pytest.mark.parametrize(
    "args", [([2, 4], None, None), (None, [1, 3], None), (None, None, torch.float64)]
)
def test_metadata_that_differs_is_checked(operations, args):
    module = graph_of(aten._assert_tensor_metadata.default, [torch.empty(2, 3)], [INPUT, *args])
    assert len(operations(module, "torch.aten._assert_tensor_metadata")) == 1


@needs_checks
def test_checks_of_an_exported_program():
    def function(x, n):
        size = n.item()
        torch._check(size >= 2, lambda: "too small")
        torch._check(size <= 6)
        return x.new_zeros(size) + x.sum()

    x = torch.randn(3)
    module = fx.export_and_import(Calls(function), x, torch.tensor(4))
    for size in (2, 6):
        torch.testing.assert_close(run(module, x, torch.tensor(size)), x.new_zeros(size) + x.sum())
    for size in (1, 7):
        with pytest.raises(RuntimeError):
            run(module, x, torch.tensor(size))


@needs_checks
def test_sizes_that_the_data_tells():
    runs = [(torch.tensor([1, 0, 2]),), (torch.tensor([0, 0]),), (torch.tensor([5, 6, 7]),)]

    def function(x):
        found = x.nonzero()
        return found, found.shape[0], x[x > 1]

    module = fx.export_and_import(
        Calls(function),
        torch.tensor([1, 0, 2]),
        dynamic_shapes={"args": ({0: torch.export.Dim("n", min=2, max=9)},)},
        import_symbolic_shape_expressions=True,
    )
    assert module.operation.verify()
    for (x,) in runs:
        found, count, greater = run(module, x)
        assert torch.equal(found, x.nonzero()) and count == len(x.nonzero())
        assert torch.equal(greater, x[x > 1])


@needs_checks
@pytest.mark.iree
def test_iree_compiles_checks():
    compiler = pytest.importorskip("iree.compiler")

    def function(x, n):
        size = n.item()
        torch._check(size >= 2)
        torch._check(size <= 6)
        return x.new_zeros(size) + x.sum()

    module = fx.export_and_import(Calls(function), torch.randn(3), torch.tensor(4), target="iree")
    assert compiler.compile_str(str(module), target_backends=["vmvx"], input_type="torch")
