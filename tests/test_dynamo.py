# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile with this package's backend computes, and trains, what eager PyTorch does."""

from __future__ import annotations

import copy
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
dynamo = pytest.importorskip("torch_mlir.dynamo")

import torch.utils.checkpoint  # noqa: E402
from torch import nn  # noqa: E402
from torch_mlir import backends  # noqa: E402
from torch_mlir.compiler_utils import TorchMlirCompilerError  # noqa: E402
from torch_mlir.importers.program import FxImporter  # noqa: E402

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture(params=["reference", pytest.param("iree", marks=pytest.mark.iree)])
def name(request):
    if request.param == "iree":
        pytest.importorskip("iree.compiler")
        pytest.importorskip("iree.runtime")
    return request.param


class Counting:
    """A backend that remembers the modules it is given."""

    def __init__(self, name="reference"):
        self.inner = backends.get(name)
        self.modules = []

    def compile(self, module):
        self.modules.append(str(module))
        return self.inner.compile(module)

    def load(self, artifact):
        return self.inner.load(artifact)


def compiled(module, runner="reference", **options):
    return torch.compile(
        module, backend=dynamo.backend, options={"backend": runner}, fullgraph=True, **options
    )


def check_training(model, runner, *inputs, steps=3, rate=0.05, seed=None):
    """Losses, gradients, parameters and buffers of a few SGD steps are eager's."""
    eager = copy.deepcopy(model)
    ours = compiled(model, runner)
    optimisers = [torch.optim.SGD(m.parameters(), rate) for m in (eager, model)]
    losses = []
    for step in range(steps):
        both = []
        for module, optimiser in zip((eager, ours), optimisers, strict=True):
            if seed is not None:
                torch.manual_seed(seed + step)
            optimiser.zero_grad()
            loss = module(*inputs).square().mean()
            loss.backward()
            both.append(loss.detach())
        torch.testing.assert_close(both[1], both[0])
        losses.append(float(both[0]))
        for (key, theirs), (_, mine) in zip(
            eager.named_parameters(), model.named_parameters(), strict=True
        ):
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-5, msg=key)
        for optimiser in optimisers:
            optimiser.step()
    torch.testing.assert_close(model.state_dict(), eager.state_dict(), rtol=1e-4, atol=1e-5)
    assert losses[-1] < losses[0]


def perceptron():
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))


def test_a_perceptron_trains_as_in_eager(name):
    check_training(perceptron(), name, torch.randn(3, 4))


def test_a_convolution_with_batch_norm_trains_as_in_eager(name):
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
    )
    check_training(model, name, torch.randn(3, 2, 4, 4))


def test_a_transformer_trains_as_in_eager(name):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    check_training(layer, name, torch.randn(2, 5, 8))


def test_dropout_draws_from_pytorchs_generator():
    model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.5), nn.Linear(16, 2))
    eager = copy.deepcopy(model)
    ours = compiled(model)
    x = torch.randn(8, 4)
    results = []
    for module in (ours, ours, eager):
        torch.manual_seed(7)
        result = module(x)
        result.sum().backward()
        results.append(result)
    assert torch.equal(results[0], results[1])
    kept = compiled(nn.Dropout(0.5))(torch.ones(1000))
    assert set(kept.tolist()) == {0.0, 2.0}
    assert 400 < int((kept > 0).sum()) < 600


def test_a_checkpoint_drops_the_same_out_in_both_directions():
    class Model(nn.Module):
        def forward(self, x):
            block = lambda x: nn.functional.dropout(x.sin(), 0.5, True) * 3  # noqa: E731
            return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)

    x = torch.rand(1000, requires_grad=True)
    result = compiled(Model())(x)
    result.sum().backward()
    kept = result != 0
    assert 400 < int(kept.sum()) < 600
    torch.testing.assert_close(result[kept], 6 * x[kept].sin())
    torch.testing.assert_close(x.grad, torch.where(kept, 6 * x.cos(), 0.0).detach())


def test_inference_without_gradients(name):
    model, x = perceptron().eval(), torch.randn(3, 4)
    with torch.no_grad():
        result = compiled(model, name)(x)
        torch.testing.assert_close(result, model(x))
    assert not result.requires_grad


def test_inference_and_training_of_one_module():
    model, x = perceptron(), torch.randn(3, 4)
    ours = compiled(model)
    with torch.no_grad():
        assert not ours(x).requires_grad
    assert ours(x).requires_grad
    torch.testing.assert_close(ours(x), model(x))


@pytest.mark.parametrize("training", [False, True])
def test_open_sizes_compile_once(name, training):
    counting = Counting(name)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    ours = compiled(model, counting, dynamic=True)
    for size in (3, 5, 9):
        x = torch.randn(size, 4)
        with torch.set_grad_enabled(training):
            result = ours(x)
        torch.testing.assert_close(result, model(x))
        if training:
            (ours_grad,) = torch.autograd.grad(result.sum(), model[0].bias)
            (eager_grad,) = torch.autograd.grad(model(x).sum(), model[0].bias)
            torch.testing.assert_close(ours_grad, eager_grad)
    assert len(counting.modules) == (2 if training else 1)
    assert "!torch.vtensor<[?,4],f32>" in counting.modules[0]


def test_sizes_as_numbers():
    def function(x, n):
        return x * n + x.shape[0], x.shape[0] * 2

    ours = compiled(function, dynamic=True)
    for size, n in ((3, 4), (5, 7)):
        x = torch.randn(size, 2)
        tensor, number = ours(x, n)
        torch.testing.assert_close(tensor, x * n + size)
        assert number == size * 2


def test_writes_to_inputs_and_buffers_are_seen():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            self.total.add_(x)
            x.mul_(2)
            y = x.clone()
            y[1:] = 0
            return y.add_(1)

    model, x = Model(), torch.tensor([1.0, 2.0, 3.0])
    result = compiled(model)(x)
    assert x.tolist() == [2.0, 4.0, 6.0]
    assert model.total.tolist() == [1.0, 2.0, 3.0]
    assert result.tolist() == [3.0, 1.0, 1.0]


def test_views_of_inputs_share_their_memory():
    x = torch.zeros(2, 3)
    view, same = compiled(lambda x: (x.t()[1:], x))(x)
    view.add_(1)
    assert x.tolist() == [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    assert same.data_ptr() == x.data_ptr()


def test_nested_results_and_none():
    def function(x):
        return {"pair": (x + 1, None), "twice": [y := x * 2, y], "number": 3}

    x = torch.randn(3)
    result = compiled(function)(x)
    torch.testing.assert_close(result["pair"][0], x + 1)
    assert result["pair"][1] is None
    assert result["number"] == 3
    torch.testing.assert_close(result["twice"], [x * 2, x * 2])


def test_an_input_without_gradient():
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    compiled(lambda x, y: (x * y).sum())(x, y).backward()
    torch.testing.assert_close(x.grad, y)
    assert y.grad is None


def test_a_graph_break_gives_two_modules():
    counting = Counting()

    def function(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y + 1

    x = torch.randn(3)
    ours = torch.compile(function, backend=dynamo.backend, options={"backend": counting})
    torch.testing.assert_close(ours(x), x * 2 + 1)
    assert len(counting.modules) == 2
    assert "torch.aten.mul" in counting.modules[0]
    assert "torch.aten.add" in counting.modules[1]


def test_data_decides_the_path():
    def function(x):
        return x + 1 if x.sum() > 0 else x - 1

    ours = torch.compile(function, backend=dynamo.backend)
    for x in (torch.ones(2), -torch.ones(2)):
        torch.testing.assert_close(ours(x), function(x))


def test_constants_of_the_program():
    table = torch.tensor([1.0, 2.0, 3.0])

    def function(x):
        return x * torch.tensor([4.0, 5.0, 6.0]) + table

    torch.testing.assert_close(compiled(function)(torch.ones(3)), torch.tensor([5.0, 7.0, 9.0]))


@pytest.fixture
def refusing(monkeypatch):
    """A backend whose importer has no translation for `aten.cos`."""
    from torch_mlir.importers import errors, graph

    overload = graph.GraphImporter._overload

    def refuse(self, node, target, args, kwargs):
        if target is torch.ops.aten.cos.default:
            raise errors.Unsupported("this test has no translation for it", "self")
        overload(self, node, target, args, kwargs)

    monkeypatch.setattr(graph.GraphImporter, "_overload", refuse)


def uses_cos(x):
    return torch.cos(x) + 1


def test_errors_of_the_importer_reach_the_user(refusing):
    with pytest.raises(Exception, match=r"aten.cos, argument 'self': this test") as raised:
        compiled(uses_cos)(torch.ones(2))
    assert "return torch.cos(x) + 1" in str(raised.value)
    assert Path(__file__).name in str(raised.value)
    error: BaseException | None = raised.value
    found = []
    while error is not None:
        found.append(type(error))
        error = error.__cause__ or getattr(error, "inner_exception", None)
    assert TorchMlirCompilerError in found


def test_suppressed_errors_run_eagerly(refusing):
    ours = torch.compile(uses_cos, backend=dynamo.backend)
    with torch._dynamo.config.patch(suppress_errors=True):
        torch.testing.assert_close(ours(torch.ones(2)), uses_cos(torch.ones(2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": {"backend": "gpu"}}, "gpu"),
        ({"options": {"backend": "reference", "speed": 11}}, "does not take speed"),
        ({"options": {"backend": object(), "speed": 11}}, "options speed belong to a backend"),
        ({"mode": "max-autotune"}, "mode 'max-autotune'"),
    ],
)
def test_wrong_options_are_named(arguments, message):
    ours = torch.compile(lambda x: x + 1, backend=dynamo.backend, **arguments)
    with pytest.raises(Exception, match=message):
        ours(torch.ones(2))


def test_operators_are_decomposed_as_the_caller_wants():
    counting = Counting()
    x = torch.randn(2, 3)
    for table, expected in ({}, "torch.aten._softmax"), (None, "torch.aten._softmax"):
        torch._dynamo.reset()
        options = {"backend": counting, "decomposition_table": table}
        ours = torch.compile(nn.Softmax(-1), backend=dynamo.backend, options=options)
        torch.testing.assert_close(ours(x), x.softmax(-1))
        assert expected in counting.modules[-1]
    own = torch._decomp.get_decompositions([torch.ops.aten._softmax])
    torch._dynamo.reset()
    options = {"backend": counting, "decomposition_table": own}
    ours = torch.compile(nn.Softmax(-1), backend=dynamo.backend, options=options)
    torch.testing.assert_close(ours(x), x.softmax(-1))
    assert "torch.aten._softmax" not in counting.modules[-1]
    assert "torch.aten.exp" in counting.modules[-1]


def test_pytorch_finds_the_backend_by_its_entry_point(tmp_path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["torch_dynamo_backends"]
    info = tmp_path / "installed-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed\nVersion: 1\n")
    lines = [f"{key} = {value}" for key, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[torch_dynamo_backends]", *lines, ""]))
    code = f"""
        import sys
        sys.path.append({str(tmp_path)!r})
        import torch
        function = torch.compile(lambda x: x * 2 + 1, backend="torch_mlir", fullgraph=True)
        print(function(torch.ones(2)).tolist(), "torch_mlir.dynamo" in sys.modules)
    """
    result = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)], capture_output=True, text=True
    )
    assert result.stdout.split("\n")[-2] == "[3.0, 3.0] True", result.stderr


# Joint graphs, which compute gradients beside the results


def run(importer):
    reference = backends.get("reference")
    return reference.load(reference.compile(importer.module))


def test_a_joint_graph_of_a_module_is_imported():
    aot = pytest.importorskip("torch._functorch.aot_autograd")

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = perceptron()

        def forward(self, x):
            return (self.inner(x).square().mean(),)

    model, x = Loss(), torch.randn(3, 4)
    graph, signature = aot.aot_export_module(model, (x,), trace_joint=True, output_loss_index=0)
    importer = FxImporter()
    importer.import_graph_module(graph)
    parameters = dict(model.named_parameters())
    assert signature.parameters == list(parameters)
    with torch.no_grad():
        loss, *gradients = run(importer)(*parameters.values(), x)
    expected = model(x)[0]
    expected.backward()
    torch.testing.assert_close(loss, expected.detach())
    for mine, parameter in zip(gradients, parameters.values(), strict=True):
        torch.testing.assert_close(mine, parameter.grad)


def test_a_joint_graph_of_a_function_is_imported():
    aot = pytest.importorskip("torch._functorch.aot_autograd")
    x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    graph = aot.aot_export_joint_simple(lambda x, y: ((x * y).sin(),), (x, y), trace_joint=True)
    importer = FxImporter()
    importer.import_graph_module(graph)
    tangent = torch.randn(3)
    with torch.no_grad():
        result, x_gradient, y_gradient = run(importer)(x, y, tangent)
    expected = (x * y).sin()
    expected.backward(tangent)
    torch.testing.assert_close(result, expected.detach())
    torch.testing.assert_close(x_gradient, x.grad)
    torch.testing.assert_close(y_gradient, y.grad)


def test_an_exported_joint_program_returns_its_gradients():
    experimental = pytest.importorskip("torch.export.experimental")
    joint = getattr(experimental, "_export_forward_backward", None)
    if joint is None:
        pytest.skip("this PyTorch exports no joint programs")

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4))

        def forward(self, x):
            return (x * self.weight).square().sum()

    model, x = Loss(), torch.randn(4)
    exported = getattr(torch.export, "export_for_training", torch.export.export)(model, (x,))
    importer = FxImporter()
    program = joint(exported)
    kinds = [spec.kind.name for spec in program.graph_signature.output_specs]
    if kinds == ["USER_OUTPUT"]:
        pytest.skip("this PyTorch's joint programs hold no gradients")
    assert kinds == ["LOSS_OUTPUT", "GRADIENT_TO_PARAMETER"]
    importer.import_program(program)
    with torch.no_grad():
        loss, gradient = run(importer)(x)
    expected = model(x)
    expected.backward()
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, model.weight.grad)
