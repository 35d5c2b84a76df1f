# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Custom operators that write to their operands, in programs without writes.

Each operator is defined here with what it does; the reference backend calls it as the
`torch.operator` that was imported.
"""

from __future__ import annotations

import inspect

import pytest
import torch
from eager import exported, held, leaves_of
from torch.fx.experimental.proxy_tensor import make_fx

from torch_mlir import backends, fx

functionalize = pytest.importorskip(
    "torch._higher_order_ops.auto_functionalize",
    reason="this PyTorch has no auto_functionalized",
)
v1 = functionalize.auto_functionalized
v2 = getattr(functionalize, "auto_functionalized_v2", None)
needs_views = pytest.mark.skipif(v2 is None, reason="this PyTorch has no auto_functionalized_v2")

library = torch.library.Library("writing", "FRAGMENT")


def define(schema, function, fake=None):
    library.define(schema)
    name = schema.partition("(")[0]
    library.impl(name, function, "CompositeExplicitAutograd")
    if fake is not None:
        torch.library.impl(library, name, "Meta")(fake)


def add_to(x, y):
    x.add_(y)


def add_and_sum(x, y):
    x.add_(y)
    return x.sum()


def two(x, y, scale):
    x.add_(y)
    y.mul_(scale)
    return y.sum(0), x.max()


def each(xs, also):
    for x in xs:
        x.mul_(2)
    if also is not None:
        also.add_(1)


define("add_to(Tensor(a!) x, Tensor y) -> ()", add_to, lambda x, y: None)
define("add_and_sum(Tensor(a!) x, Tensor y) -> Tensor", add_and_sum, lambda x, y: x.new_empty(()))
define(
    "two(Tensor(a!) x, Tensor(b!) y, *, float scale) -> (Tensor, Tensor)",
    two,
    lambda x, y, scale: (y.new_empty(y.shape[1:]), x.new_empty(())),
)
define("each(Tensor(a!)[] xs, Tensor(b!)? also) -> ()", each, lambda xs, also: None)
ops = torch.ops.writing


def matrix(rows=4, columns=3):
    return torch.arange(rows * columns, dtype=torch.float32).reshape(rows, columns)


def holds(function, *inputs, **options):
    """As `held`; a function's operator stays one that writes."""
    module = held(function, *inputs, **options)
    assert "torch.operator" in str(module) and "torch.writing." in str(module)
    return module


def test_an_operator_without_results(operations):
    def function(x, y):
        x = x.clone()
        ops.add_to(x, y)
        return x * 2

    module = holds(function, matrix(), torch.ones(4, 3))
    (operation,) = operations(module, "torch.operator")
    assert str(operation.attributes["name"]) == '"torch.writing.add_to"'
    assert [str(result.type) for result in operation.results] == ["!torch.vtensor<[4,3],f32>"]


def test_an_operator_with_a_result(operations):
    def function(x, y):
        x = x.clone()
        total = ops.add_and_sum(x, y)
        return x, total

    module = holds(function, matrix(), torch.ones(4, 3))
    (operation,) = operations(module, "torch.operator")
    assert [str(result.type) for result in operation.results] == [
        "!torch.vtensor<[],f32>",
        "!torch.vtensor<[4,3],f32>",
    ]


def test_two_written_operands_and_two_results():
    def function(x, y):
        x, y = x.clone(), y.clone()
        first, second = ops.two(x, y, scale=3.0)
        return x, y, first, second

    holds(function, matrix(), torch.ones(4, 3))


@pytest.mark.parametrize("also", [False, True])
def test_a_list_and_an_optional_operand(also):
    def function(x, y, z):
        x, y, z = x.clone(), y.clone(), z.clone()
        ops.each([x, y], z if also else None)
        return x, y, z

    holds(function, matrix(), torch.ones(3), torch.ones(2))


def test_calls_one_after_the_other():
    def function(x, y):
        x = x.clone()
        ops.add_to(x, y)
        total = ops.add_and_sum(x, x.sin())
        ops.add_to(x, y * total)
        return x

    holds(function, matrix(), torch.ones(4, 3))


VIEWS = {
    "an alias": lambda x: x.view(4, 3),
    "rows": lambda x: x[1:3],
    "rows from the end": lambda x: x[-2:],
    "columns": lambda x: x[:, 1:],
    "every other row": lambda x: x[::2],
    "a transpose": lambda x: x.t(),
    "another shape": lambda x: x.view(2, 6),
    "a row": lambda x: x[2],
    "a diagonal": lambda x: x.diagonal(),
    "a view of a view": lambda x: x[1:].t()[1:],
}


@needs_views
@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
def test_writing_to_a_view_writes_to_its_base(view):
    def function(x, y):
        x = x.clone()
        total = ops.add_and_sum(view(x), y)
        return x, total

    holds(function, matrix(), torch.tensor(10.0))


@needs_views
def test_the_views_of_a_list():
    def function(x, y):
        x, y = x.clone(), y.clone()
        ops.each([x[1:3], y[0]], None)
        return x, y

    holds(function, matrix(), matrix())


APART = {
    "rows": lambda x: (x[:2], x[2:4]),
    "columns": lambda x: (x[:, :1], x[:, 1:2]),
    "rows of other shapes": lambda x: (x.view(12)[:4].view(2, 2), x.view(12)[4:8].view(2, 2)),
}


@needs_views
@pytest.mark.parametrize("views", APART.values(), ids=list(APART))
def test_views_of_one_tensor_that_are_apart(views):
    def function(x):
        x = x.clone()
        first, second = ops.two(*views(x), scale=2.0)
        return x, first, second

    holds(function, matrix())


@needs_views
def test_views_of_one_tensor_that_overlap_are_refused():
    class Overlaps(torch.nn.Module):
        def forward(self, x):
            x = x.clone()
            ops.two(x[:3], x[1:], scale=2.0)
            return x

    program = exported(Overlaps(), (matrix(),))
    if v2 not in [node.target for node in program.graph.nodes]:
        pytest.skip("this PyTorch exports without auto_functionalized_v2")
    message = r"views of the same tensor, and may overlap \(at \S+functionalized.py:\d+, in forward"
    with pytest.raises(fx.TorchMlirCompilerError, match=message):
        fx.export_and_import(program, decomposition_table={})


@needs_views
def test_open_sizes():
    def function(x, y):
        x = x.clone()
        total = ops.add_and_sum(x[1:], y)
        return x, total

    runs = [(matrix(rows), torch.tensor(2.0)) for rows in (4, 7)]
    holds(function, *runs[0], runs=runs, shapes=[{0: torch.export.Dim("rows", min=3)}, None])


class WritesToInput(torch.nn.Module):
    def forward(self, x, y):
        ops.add_to(x, y)
        return x.sum(1)


def test_writing_to_an_input_writes_where_that_is_wanted():
    program = exported(WritesToInput(), (matrix(), torch.ones(4, 3)))
    module = fx.export_and_import(
        program, decomposition_table={}, experimental_support_mutation=True
    )
    reference = backends.get("reference")
    run = reference.load(reference.compile(module))
    x, eager = matrix(), matrix()
    result = run(x, torch.ones(4, 3))
    assert torch.equal(result, WritesToInput()(eager, torch.ones(4, 3)))
    assert torch.equal(x, eager) and not torch.equal(x, matrix())


def test_writing_to_an_input_gives_its_new_contents_otherwise():
    program = exported(WritesToInput(), (matrix(), torch.ones(4, 3)))
    module = fx.export_and_import(program, decomposition_table={})
    reference = backends.get("reference")
    x, eager = matrix(), matrix()
    contents, result = reference.load(reference.compile(module))(x, torch.ones(4, 3))
    assert torch.equal(result, WritesToInput()(eager, torch.ones(4, 3)))
    assert torch.equal(contents, eager) and torch.equal(x, matrix())


def first_form(operator, **kwargs):
    """What the first form of `auto_functionalized` gives, which later releases trace on demand."""
    if not functionalize.can_auto_functionalize(operator):
        pytest.skip(f"this PyTorch does not functionalise {operator._schema}")
    if "mutated_args_names" in inspect.signature(v1.__call__).parameters:
        # PyTorch 2.2 takes the names of what is written to, and the operands as a dictionary.
        written = [
            argument.name
            for argument in operator._schema.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        return leaves_of(v1(operator, written, kwargs))
    return leaves_of(v1(operator, **kwargs))


FIRST_FORM = {
    "no results": lambda x, y: first_form(ops.add_to.default, x=x, y=y),
    "a result": lambda x, y: first_form(ops.add_and_sum.default, x=x, y=y),
    "two of each": lambda x, y: first_form(ops.two.default, x=x, y=y, scale=2.0),
    "a list, and none": lambda x, y: first_form(ops.each.default, xs=[x, y], also=None),
    "a list, and one": lambda x, y: first_form(ops.each.default, xs=[x, y], also=x),
}


@pytest.mark.parametrize("function", FIRST_FORM.values(), ids=list(FIRST_FORM))
def test_the_form_without_views(function):
    inputs = matrix(), torch.ones(4, 3)
    traced = make_fx(function, tracing_mode="fake")(*inputs)
    targets = [getattr(node.target, "__name__", "") for node in traced.graph.nodes]
    assert "auto_functionalized" in targets
    module = fx.stateless_fx_import(traced)
    reference = backends.get("reference")
    got = reference.load(reference.compile(module))(*inputs)
    wanted = function(*inputs)
    for result, expected in zip(leaves_of(got), wanted, strict=True):
        if expected is None:
            assert result is None
        else:
            torch.testing.assert_close(result, expected)
