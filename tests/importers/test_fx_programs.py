# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs, outputs and state of programs: what the function takes, returns and writes to."""

from __future__ import annotations

import pytest
import torch
from execution import run

from torch_mlir import fx, ir


class Calls(torch.nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


X = torch.randn(2, 3)
needs_free_results = pytest.mark.skipif(
    not hasattr(torch.export.ExportedProgram, "run_decompositions"),
    reason="this PyTorch exports only results that its graph computes, each once",
)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + 1, x - 1),
        lambda x: {"a": x + 1, "b": [x - 1, (x * 2,)]},
    ],
    ids=["tuple", "nested"],
)
def test_results_come_flat_and_in_order(agree, function):
    agree(Calls(function), X)


@needs_free_results
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + 1, None),
        lambda x: (x + 1, 3, 2.5, True),
        lambda x: x,
        lambda x: (x, x),
    ],
    ids=["none", "constants", "input", "twice"],
)
def test_results_that_the_graph_does_not_compute(agree, function):
    agree(Calls(function), X)


@needs_free_results
def test_a_constant_tensor_as_result(agree):
    class Holds(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.arange(3))

        def forward(self, x):
            return self.kept, x + 1

    agree(Holds(), X)


def test_keyword_inputs():
    class Takes(torch.nn.Module):
        def forward(self, x, *, scale, shift):
            return x * scale + shift

    scale, shift = torch.tensor(3.0), torch.ones(3)
    module = fx.export_and_import(Takes(), X, scale=scale, shift=shift)
    torch.testing.assert_close(run(module, X, scale, shift), X * 3 + 1)


def test_nested_inputs():
    class Takes(torch.nn.Module):
        def forward(self, pair, named):
            return pair[0] - pair[1] * named["k"]

    a, b, k = torch.randn(3, 2), torch.randn(3, 2), torch.randn(2)
    module = fx.export_and_import(Takes(), (a, b), {"k": k})
    torch.testing.assert_close(run(module, a, b, k), a - b * k)


def test_the_function_gets_the_name_that_is_asked_for():
    module = fx.export_and_import(torch.nn.ReLU(), X, func_name="forward")
    torch.testing.assert_close(run(module, X, function="forward"), X.relu())


def test_an_exported_program_is_left_as_it_was():
    program = torch.export.export(torch.nn.Linear(3, 2), (X,))
    before = str(program.graph)
    fx.export_and_import(program, decomposition_table={})
    assert str(program.graph) == before


@pytest.mark.skipif(
    not hasattr(torch.export.ExportedProgram, "run_decompositions"),
    reason="this PyTorch decomposes while it exports",
)
def test_no_decompositions_keep_the_operator(operations):
    whole = fx.export_and_import(torch.nn.SiLU(), X, decomposition_table={})
    assert operations(whole, "torch.aten.silu")
    parts = fx.export_and_import(torch.nn.SiLU(), X)
    assert operations(parts, "torch.aten.sigmoid")


class Counts(torch.nn.Module):
    """Writes to its buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        self.count.add_(x.sum(0))
        return x * self.count


def test_frozen_programs_return_the_new_contents_of_buffers_first():
    module = fx.export_and_import(Counts(), X)
    count, result = run(module, X)
    torch.testing.assert_close(count, X.sum(0))
    torch.testing.assert_close(result, X * X.sum(0))


class Writes(torch.nn.Module):
    """Writes to its input."""

    def forward(self, x, y):
        x.mul_(2)
        return x + y


try:
    from torch.export.graph_signature import OutputKind
except ImportError:
    writes_to_inputs = False
else:
    writes_to_inputs = hasattr(OutputKind, "USER_INPUT_MUTATION")
needs_mutation = pytest.mark.skipif(
    not writes_to_inputs, reason="this PyTorch does not export writes to inputs"
)


@needs_mutation
def test_inputs_that_are_written_to_are_mutable_tensors(operations):
    x, y = torch.randn(3), torch.randn(3)
    module = fx.export_and_import(Writes(), x.clone(), y, experimental_support_mutation=True)
    assert "(%arg0: !torch.tensor<[3],f32>, %arg1: !torch.vtensor<[3],f32>)" in str(module)
    (overwrite,) = operations(module, "torch.overwrite.tensor.contents")
    assert str(overwrite.operands[1].type) == "!torch.tensor<[3],f32>"
    given = x.clone()
    result = run(module, given, y)
    torch.testing.assert_close(given, x * 2)
    torch.testing.assert_close(result, x * 2 + y)


@needs_mutation
def test_programs_that_may_mutate_promise_strict_symbolic_shapes(operations):
    module = fx.export_and_import(torch.nn.ReLU(), X, experimental_support_mutation=True)
    (function,) = operations(module, "func.func")
    assert "torch.assume_strict_symbolic_shapes" in function.attributes


@needs_mutation
def test_buffers_that_are_written_to_need_hooks():
    with pytest.raises(fx.TorchMlirCompilerError, match="writes to its buffer 'count'"):
        fx.export_and_import(Counts(), X, experimental_support_mutation=True)


@needs_mutation
def test_hooks_store_buffers(operations):
    class Stores(fx.FxImporterHooks):
        def store_produced_value(self, gni, py_value, produced_ir_value, info):
            assert info.input_spec.target == "count" and py_value.shape == (3,)
            ir.Operation.create(
                "torch.operator",
                operands=[produced_ir_value],
                attributes={"name": ir.StringAttr.get("torch.test.store")},
            )

    module = fx.export_and_import(Counts(), X, experimental_support_mutation=True, hooks=Stores())
    (store,) = operations(module, "torch.operator")
    assert str(store.operands[0].type) == "!torch.vtensor<[3],f32>"


def test_hooks_resolve_literals(operations):
    seen = []

    class Resolves(fx.FxImporterHooks):
        def resolve_literal(self, gni, literal, info):
            seen.append(tuple(literal.shape))
            if literal.dim() != 2:
                return None
            return ir.Operation.create(
                "torch.operator",
                results=[ir.Type.parse("!torch.vtensor<[2,3],f32>")],
                attributes={"name": ir.StringAttr.get("torch.test.load")},
            ).result

    module = fx.export_and_import(torch.nn.Linear(3, 2), X, hooks=Resolves())
    assert sorted(seen) == [(2,), (2, 3)]
    assert len(operations(module, "torch.operator")) == 1
    assert len(operations(module, "torch.vtensor.literal")) == 1


@needs_mutation
def test_hooks_resolve_inputs():
    names = []

    class Resolves(fx.FxImporterHooks):
        def resolve_input(self, gni, value, info):
            names.append(info.input_spec.target)
            assert str(info.ir_type).startswith("!torch.vtensor<[")

    fx.export_and_import(
        torch.nn.Linear(3, 2), X, hooks=Resolves(), experimental_support_mutation=True
    )
    assert sorted(names) == ["bias", "weight"]


def test_hooks_prepare_the_module_first():
    class Prepares(fx.FxImporterHooks):
        def prepare_module(self, module_op):
            assert len(module_op.regions[0].blocks[0].operations) == 0
            module_op.attributes["test.prepared"] = ir.UnitAttr.get(module_op.context)

    module = fx.export_and_import(torch.nn.ReLU(), X, hooks=Prepares())
    assert "test.prepared" in module.operation.attributes


def test_several_programs_in_one_module():
    importer = fx.FxImporter()
    fx.export_and_import(torch.nn.ReLU(), X, fx_importer=importer, func_name="f")
    module = fx.export_and_import(torch.nn.Tanh(), X, fx_importer=importer, func_name="g")
    torch.testing.assert_close(run(module, X, function="f"), X.relu())
    torch.testing.assert_close(run(module, X, function="g"), X.tanh())


def test_batch_norm_in_training_returns_statistics_of_the_batch(agree):
    function = torch.nn.functional.batch_norm
    agree(Calls(lambda x: function(x, None, None, training=True)), torch.randn(8, 3))


def test_graphs_of_make_fx():
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda x: (x @ x.t()).softmax(0), tracing_mode="fake")(X)
    module = fx.stateless_fx_import(graph)
    torch.testing.assert_close(run(module, X), (X @ X.t()).softmax(0))


def test_nested_attributes_of_graph_modules():
    class Inner(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.arange(6.0).reshape(2, 3))

    root = torch.nn.Module()
    root.a = torch.nn.Module()
    root.a.b = Inner()
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = X
    table = graph.get_attr("a.b.table")
    total = graph.call_function(torch.ops.aten.add.Tensor, (x, table))
    total.meta["val"] = X
    graph.output(total)
    module = fx.stateless_fx_import(torch.fx.GraphModule(root, graph))
    torch.testing.assert_close(run(module, X), X + root.a.b.table)


def with_generator(generator):
    return Calls(lambda x: torch.rand(3, generator=generator) * 0 + x)


def exports_generators() -> bool:
    try:
        torch.export.export(with_generator(torch.default_generator), (X,))
    except Exception:  # noqa: BLE001  however it fails, this PyTorch does not export them
        return False
    return True


needs_generators = pytest.mark.skipif(
    not exports_generators(), reason="this PyTorch exports no generators"
)


@needs_generators
@pytest.mark.parametrize("mutation", [False, True])
def test_the_default_generator_is_none(agree, mutation):
    agree(with_generator(torch.default_generator), X, experimental_support_mutation=mutation)


@needs_generators
@pytest.mark.parametrize("mutation", [False, True])
def test_other_generators_are_refused_where_they_are_used(mutation):
    with pytest.raises(
        fx.TorchMlirCompilerError,
        match=r"aten.rand.generator, argument 'generator': .*no constant.* \(at .*test_fx_programs",
    ):
        fx.export_and_import(
            with_generator(torch.Generator()), X, experimental_support_mutation=mutation
        )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * (1 + 2j),
        lambda x: torch.add(x.to(torch.complex64), x, alpha=1j),
        lambda x: x.to(torch.complex128) - 0.5j,
    ],
)
def test_complex_scalars(agree, function):
    agree(Calls(function), X)


@needs_free_results
@pytest.mark.parametrize("value", [3, 2.5, True, "sum", None], ids=repr)
def test_inputs_that_are_python_values(value):
    def function(x, how):
        if how == "sum" or how is True:
            return x.sum()
        return x if how is None else x * how

    module = fx.export_and_import(Calls(function), X, value)
    torch.testing.assert_close(run(module, X, value), function(X, value))
