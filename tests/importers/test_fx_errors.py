# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What cannot be imported is refused: with the operator, the argument and the user's line."""

from __future__ import annotations

import re

import pytest
import torch

from torch_mlir import fx


def graph_of(build, module=True):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(2)
    node = build(graph, x)
    graph.output((node,))
    return torch.fx.GraphModule({}, graph) if module else graph


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


STACK = (
    '  File "model.py", line 12, in forward\n    return block(x)\n'
    '  File "block.py", line 7, in block\n    return operator(x, value)\n'
)
WHERE = "(at block.py:7, in block: return operator(x, value))"

# Schema type: a value that does not fit, and what the error says of it.
MISFITS = {
    "Tensor": ("text", "a tensor is wanted, not str 'text'"),
    "Tensor[]": (["text"], "a tensor is wanted, not str 'text'"),
    "Tensor?[]": ([None, "text"], "a tensor is wanted, not str 'text'"),
    "int": (2.5, "an int is wanted, not float 2.5"),
    "SymInt[]": ([1, "text"], "an int is wanted, not str 'text'"),
    "int[]": (3, "a list of int is wanted, not int 3"),
    "float": ("text", "a float is wanted, not str 'text'"),
    "float[]": ([0.5, None], "a float is wanted, not NoneType None"),
    "bool": (2, "a bool is wanted, not int 2"),
    "Scalar": (torch.ones(2), "an int, a float or a complex is wanted, not Tensor"),
    "Scalar[]": (["text"], "an int, a float or a complex is wanted, not str 'text'"),
    "str": (3, "a str is wanted, not int 3"),
    "str[]": (["text", 3], "a str is wanted, not int 3"),
    "Device": (3, "a device is wanted, not int 3"),
    "ScalarType": ("text", "an int is wanted, not str 'text'"),
    "Layout": ("text", "an int is wanted, not str 'text'"),
    "MemoryFormat": ("text", "an int is wanted, not str 'text'"),
    "Generator": (torch.default_generator, "a generator is a stream of random numbers"),
    "Generator?": (torch.Generator(), "a generator is a stream of random numbers"),
    "Dict(str, int)": ([3], "a dict is wanted"),
    "Any": ({1, 2}, "cannot be written as a constant"),
    "Storage": (torch.ones(2).untyped_storage(), "arguments of type Storage are not imported"),
    "Stream": (object(), "arguments of type Stream are not imported"),
    "__torch__.torch.classes.quantized.LinearPackedParamsBase": (
        object(),
        "arguments of type __torch__.torch.classes.quantized.LinearPackedParamsBase",
    ),
}


@pytest.fixture(scope="module")
def library():
    made = torch.library.Library("importer_errors", "DEF")
    yield made
    if hasattr(made, "_destroy"):
        made._destroy()


@pytest.mark.parametrize("kind", MISFITS)
def test_each_kind_of_argument_is_refused_with_operator_argument_and_line(kind, library):
    value, reason = MISFITS[kind]
    name = f"operator_{list(MISFITS).index(kind)}"
    try:
        library.define(f"{name}(Tensor x, *, {kind} value) -> Tensor")
    except RuntimeError as error:
        pytest.skip(f"this PyTorch takes no such schema: {error}")

    def build(graph, x):
        target = getattr(torch.ops.importer_errors, name).default
        node = graph.call_function(target, (x,), {"value": value})
        node.meta.update(val=torch.empty(2), stack_trace=STACK)
        return node

    with pytest.raises(fx.TorchMlirCompilerError) as caught:
        # Without a module, which could not write such values as Python's source.
        fx.FxImporter().import_stateless_graph(graph_of(build, module=False))
    message = str(caught.value)
    assert message.startswith(f"importer_errors.{name}, argument 'value': ")
    assert reason in message and message.endswith(WHERE)


def test_operators_that_write_to_their_operand_are_refused():
    def build(graph, x):
        node = graph.call_function(torch.ops.aten.add_.Tensor, (x, x))
        node.meta.update(val=torch.empty(2), stack_trace=STACK)
        return node

    message = "aten.add_.Tensor, argument 'self': the operator writes to it"
    with pytest.raises(fx.TorchMlirCompilerError, match=re.escape(message)) as caught:
        fx.stateless_fx_import(graph_of(build))
    assert str(caught.value).endswith(WHERE)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "a value of type object has no type"),
        ([torch.ones(2), 1], "a list that holds Tensor, int has no type"),
        ([], "a list that holds nothing has no type"),
    ],
    ids=["object", "unlike elements", "no elements"],
)
def test_results_without_a_type_are_refused(value, reason):
    def build(graph, x):
        node = graph.call_function(torch.ops.aten.relu.default, (x,))
        node.meta.update(val=value, stack_trace=STACK)
        return node

    with pytest.raises(fx.TorchMlirCompilerError) as caught:
        fx.stateless_fx_import(graph_of(build))
    message = str(caught.value)
    assert message.startswith("aten.relu: ") and reason in message and message.endswith(WHERE)


@pytest.mark.skipif(not hasattr(torch, "bits8"), reason="this PyTorch has no bits8")
def test_dtypes_without_a_type_are_refused_at_the_operator():
    def build(graph, x):
        node = graph.call_function(torch.ops.aten.view.dtype, (x, torch.bits8))
        node.meta.update(val=torch.empty(2, dtype=torch.bits8), stack_trace=STACK)
        return node

    with pytest.raises(fx.TorchMlirCompilerError) as caught:
        fx.stateless_fx_import(graph_of(build))
    message = str(caught.value)
    assert message.startswith("aten.view.dtype: tensors of torch.bits8") and message.endswith(WHERE)
