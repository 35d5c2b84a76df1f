# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What cannot be imported is refused: with the operator, the argument and the user's line."""

from __future__ import annotations

import re

import pytest
import torch

from torch_mlir import fx


def graph_of(build):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(2)
    node = build(graph, x)
    graph.output((node,))
    return torch.fx.GraphModule({}, graph)


def test_an_argument_is_named_with_its_operator_and_line():
    def build(graph, x):
        node = graph.call_function(torch.ops.aten.add.Tensor, (x, x), {"alpha": "half"})
        node.meta["val"] = torch.empty(2)
        node.meta["stack_trace"] = (
            '  File "model.py", line 12, in forward\n    return block(x)\n'
            '  File "block.py", line 7, in block\n    return x.add(x, alpha=half)\n'
        )
        return node

    message = (
        "aten.add.Tensor, argument 'alpha': an int, a float or a complex is wanted, "
        "not str 'half' (at block.py:7, in block: return x.add(x, alpha=half))"
    )
    with pytest.raises(fx.TorchMlirCompilerError, match=re.escape(message)):
        fx.stateless_fx_import(graph_of(build))


def test_a_missing_argument_is_named():
    def build(graph, x):
        node = graph.call_function(torch.ops.aten.add.Tensor, (x,))
        node.meta["val"] = torch.empty(2)
        return node

    with pytest.raises(fx.TorchMlirCompilerError, match="aten.add.Tensor, argument 'other'"):
        fx.stateless_fx_import(graph_of(build))


def test_integers_beyond_64_bits_are_refused():
    def build(graph, x):
        node = graph.call_function(torch.ops.aten.add.Scalar, (x, 2**63))
        node.meta["val"] = torch.empty(2)
        return node

    with pytest.raises(fx.TorchMlirCompilerError, match="9223372036854775808 does not fit"):
        fx.stateless_fx_import(graph_of(build))


def test_functions_that_are_no_operators_are_refused_by_name():
    def build(graph, x):
        node = graph.call_function(torch.sin, (x,))
        node.meta["val"] = torch.empty(2)
        return node

    with pytest.raises(fx.TorchMlirCompilerError, match="sin"):
        fx.stateless_fx_import(graph_of(build))


def test_methods_and_modules_are_refused():
    def build(graph, x):
        node = graph.call_method("relu", (x,))
        node.meta["val"] = torch.empty(2)
        return node

    with pytest.raises(fx.TorchMlirCompilerError, match="call_method relu"):
        fx.stateless_fx_import(graph_of(build))


def test_nodes_without_a_value_are_refused():
    with pytest.raises(fx.TorchMlirCompilerError, match="records no value"):
        fx.stateless_fx_import(
            graph_of(lambda graph, x: graph.call_function(torch.ops.aten.relu.default, (x,)))
        )


def test_unknown_higher_order_operators_are_refused_by_name():
    from torch._higher_order_ops.wrap import tag_activation_checkpoint

    def build(graph, x):
        node = graph.call_function(tag_activation_checkpoint, (None, x))
        node.meta["val"] = torch.empty(2)
        return node

    with pytest.raises(fx.TorchMlirCompilerError, match="'tag_activation_checkpoint'"):
        fx.stateless_fx_import(graph_of(build))


def test_a_failed_import_leaves_no_function_behind():
    importer = fx.FxImporter()
    with pytest.raises(fx.TorchMlirCompilerError):
        fx.stateless_fx_import(
            graph_of(lambda graph, x: graph.call_function(torch.ops.aten.relu.default, (x,))),
            fx_importer=importer,
        )
    assert len(importer.module.body.operations) == 0
    module = fx.export_and_import(torch.nn.ReLU(), torch.randn(2), fx_importer=importer)
    assert len(module.body.operations) == 1
