# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Higher-order operators that are not imported are refused by name, with the user's line."""

from __future__ import annotations

import re

import pytest
import torch

from torch_mlir import fx
from torch_mlir.importers import higher_order

LINE = "def forward(self, x): return layer(x)"
TRACE = (
    f'  File "model.py", line 12, in forward\n    {LINE}\n'
    '  File "<eval_with_key>.3", line 9, in forward\n    add = torch.ops.higher_order.some(x)\n'
)


def refused(target, message, *args, **kwargs):
    """Importing a call of `target` fails with this message, and the line of the user's file."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(2)
    node = graph.call_function(target, (x, *args), kwargs)
    node.meta["val"] = torch.empty(2)
    node.meta["stack_trace"] = TRACE
    graph.output((node,))
    wanted = f"{re.escape(message)}.* \\(at {re.escape('model.py:12, in forward: ' + LINE)}\\)"
    with pytest.raises(fx.TorchMlirCompilerError, match=wanted) as caught:
        fx.stateless_fx_import(torch.fx.GraphModule({}, graph))
    assert "eval_with_key" not in str(caught.value)


def operator_named(name):
    """A higher-order operator of that name."""
    bases = (torch._ops.HigherOrderOperator,)
    kind = type("Operator", bases, {"__call__": lambda self, *args: super().__call__(*args)})
    try:
        return kind(name)
    except TypeError:
        return torch._ops.HigherOrderOperator(name)  # before it was abstract


def test_an_unknown_operator():
    target = operator_named("twice_and_again")
    refused(target, "twice_and_again: the higher-order operator 'twice_and_again' is not imported")


@pytest.mark.parametrize(
    "form", ["triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation"]
)
def test_triton_kernels_are_named(form):
    wrap = pytest.importorskip("torch._higher_order_ops.triton_kernel_wrap")

    class Kernel:
        """As Triton's JITFunction, which holds the function that it compiles."""

        @staticmethod
        def fn():
            raise NotImplementedError

    Kernel.fn.__name__ = "add_kernel"
    index = wrap.kernel_side_table.add_kernel(Kernel)
    refused(
        getattr(wrap, form),
        f"{form}: the higher-order operator '{form}' is not imported: "
        "the Triton kernel 'add_kernel'",
        kernel_idx=index,
        constant_args_idx=0,
        grid=[(1, 1, 1)],
        kwargs={},
    )


@pytest.mark.parametrize(
    "module, name",
    [
        ("torchbind", "call_torchbind"),
        ("executorch_call_delegate", "executorch_call_delegate"),
    ],
)
def test_operators_that_call_objects(module, name):
    found = pytest.importorskip(f"torch._higher_order_ops.{module}")
    target = getattr(found, name)
    refused(target, f"'{target.__name__}' is not imported")


def test_a_graph_that_is_missing_is_told():
    wrap = pytest.importorskip("torch._higher_order_ops.wrap")
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(2)
    node = graph.call_function(wrap.tag_activation_checkpoint, (None, x))
    node.meta["val"] = torch.empty(2)
    graph.output((node,))
    message = "tag_activation_checkpoint, argument 'wrapped_func': a graph is wanted, not NoneType"
    with pytest.raises(fx.TorchMlirCompilerError, match=message):
        fx.stateless_fx_import(torch.fx.GraphModule({}, graph))


def test_handlers_have_names_of_one_family_each():
    families = (
        higher_order.attention,
        higher_order.control_flow,
        higher_order.effects,
        higher_order.functionalized,
        higher_order.loops,
        higher_order.wrappers,
    )
    assert sum(len(family.HANDLERS) for family in families) == len(higher_order.HANDLERS)
