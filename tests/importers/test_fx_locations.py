# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations carry the user's call stack."""

from __future__ import annotations

import inspect

import pytest
import torch

from torch_mlir import fx


class Outer(torch.nn.Module):
    def forward(self, x):
        return helper(x) + 1


def helper(x):
    return torch.sin(x)


def line_of(function, text):
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, line in enumerate(lines) if text in line)


@pytest.mark.skipif(
    not hasattr(torch.export.ExportedProgram, "run_decompositions"),
    reason="this PyTorch loses the stack traces when it exports",
)
def test_an_operation_tells_its_line_and_its_callers(operations):
    # Without `strict`, torch.export records the frames of `forward` alone.
    module = fx.export_and_import(Outer(), torch.randn(2), strict=True)
    (sine,) = operations(module, "torch.aten.sin")
    text = str(sine.location)
    inner, outer = line_of(helper, "torch.sin"), line_of(Outer.forward, "helper(x)")
    assert text.startswith("loc(callsite(")
    assert f'{__file__}":{inner}:' in text
    assert f'{__file__}":{outer}:' in text
    assert text.index(f":{inner}:") < text.index(f":{outer}:")


def test_nodes_without_a_trace_have_the_unknown_location(operations):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.ops.aten.relu.default, (x,))
    x.meta["val"] = y.meta["val"] = torch.empty(2)
    graph.output((y,))
    module = fx.stateless_fx_import(torch.fx.GraphModule({}, graph))
    (relu,) = operations(module, "torch.aten.relu")
    assert str(relu.location) == "loc(unknown)"


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.ReLU()

    def forward(self, x):
        return self.inner(self.inner(x) - 1)


def test_a_second_call_of_a_module_has_a_path_of_its_own(operations):
    program = torch.export.export(Twice(), (torch.randn(2),))
    keys = [key for node in program.graph.nodes for key in node.meta.get("nn_module_stack") or ()]
    if not any("@1" in str(key) for key in keys):
        pytest.skip("this PyTorch doesn't tell calls of one module apart")
    importer = fx.FxImporter(module_paths=True)
    module = fx.export_and_import(program, fx_importer=importer)
    first, second = operations(module, "torch.aten.relu")
    assert first.location.name_str == second.location.name_str == "Twice"
    assert first.location.child_loc.name_str == "inner: ReLU"
    assert second.location.child_loc.name_str == "inner@1: ReLU"
