# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs on the device `lazy` give what they give on the CPU."""

from __future__ import annotations

import copy
import io

import pytest
import torch
import torch._lazy
from torch import nn
from torch.nn import functional as F

from torch_mlir import lazy

pytestmark = pytest.mark.usefixtures("backend")

# What runs on the CPU because its result's shape, or the program itself, hangs on values.
VALUES = {"aten::_local_scalar_dense", "aten::item"}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def both(program, *args, **kwargs):
    """The results of `program(device, …)` on the CPU and on lazy tensors, from the same seed."""
    results = []
    for device in ("cpu", "lazy"):
        torch.manual_seed(0)
        results.append(program(device, *args, **kwargs))
    return results


def check(program, *args, rtol=None, atol=None, **kwargs):
    """The results of a program are equal on both devices; gives them."""
    eager, ours = both(program, *args, **kwargs)
    torch.testing.assert_close(_to_cpu(ours), _to_cpu(eager), rtol=rtol, atol=atol)
    return eager


def _to_cpu(value):
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: _to_cpu(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_cpu(each) for each in value]
    return value


def check_all_lowered():
    """Nothing but the reading of values ran on the CPU."""
    assert set(lazy.metrics.fallbacks()) <= VALUES


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)
        )

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


OPTIMISERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.05, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, 1e-3),
}


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_lenet_trains_as_in_eager(optimiser):
    images, labels = torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))

    def train(device):
        model = LeNet().to(device)
        step = OPTIMISERS[optimiser](model.parameters())
        x, y = images.to(device), labels.to(device)
        losses = []
        for _ in range(50):
            step.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            step.step()
            if device == "lazy":
                torch._lazy.mark_step()
            losses.append(loss.item())
        return losses

    eager, ours = both(train)
    torch.testing.assert_close(ours, eager, rtol=1e-3, atol=1e-4)
    assert ours[-1] < ours[0] / 4
    check_all_lowered()
    # The first steps make the optimiser's state; all others are the same.
    assert lazy.metrics.compilations() <= 4
    assert lazy.metrics.cache_hits() >= 46


class Residual(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.shortcut = nn.Sequential(
            nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
        )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def test_resnet_block_computes_and_has_gradients():
    images = torch.randn(4, 3, 8, 8)

    def run(device):
        block = Residual(3, 8, 2).to(device)
        x = images.clone().to(device).requires_grad_()
        y = block(x)
        y.square().mean().backward()
        return [y, x.grad, [p.grad for p in block.parameters()]]

    check(run, rtol=1e-4, atol=1e-5)
    check_all_lowered()


def test_resnet_block_trains_its_batch_norms():
    images = torch.randn(4, 3, 8, 8)

    def train(device):
        block = Residual(3, 8, 2).to(device)
        x = images.clone().to(device).requires_grad_()
        for _ in range(3):
            y = block(x)
            y.square().mean().backward()
        assert y.shape == (4, 8, 4, 4)
        return [y, x.grad, [p.grad for p in block.parameters()], dict(block.named_buffers())]

    results = check(train, rtol=1e-4, atol=1e-5)
    assert results[3]["bn1.num_batches_tracked"] == 3
    check_all_lowered()


@pytest.fixture
def transformers():
    """The package, where its models load with the PyTorch that is installed."""
    package = pytest.importorskip("transformers")
    if not package.utils.is_torch_available():
        pytest.skip(f"transformers {package.__version__} takes newer PyTorch alone")
    try:
        _ = package.BertModel, package.GPT2LMHeadModel
    except ImportError as problem:
        pytest.skip(f"transformers {package.__version__} doesn't load: {problem}")
    return package


def test_bert_forward_and_backward(transformers):
    config = transformers.BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        vocab_size=50,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    ids = torch.randint(0, 50, (2, 12))
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[1, 7:] = 0

    def run(device):
        model = transformers.BertModel(config).to(device)
        out = model(input_ids=ids.to(device), attention_mask=mask.to(device))
        out.last_hidden_state.square().mean().backward()
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        return [out.last_hidden_state, gradients]

    _, gradients = check(run, rtol=1e-4, atol=1e-6)
    assert len(gradients) == 37
    check_all_lowered()


def test_gpt2_generates_ten_tokens(transformers):
    config = transformers.GPT2Config(
        n_embd=32,
        n_layer=2,
        n_head=4,
        vocab_size=50,
        n_positions=32,
        bos_token_id=0,
        eos_token_id=0,
    )
    ids = torch.randint(1, 50, (1, 4))

    def run(device):
        model = transformers.GPT2LMHeadModel(config).eval().to(device)
        return model.generate(
            ids.to(device), max_new_tokens=10, min_new_tokens=10, do_sample=False, pad_token_id=0
        )

    (tokens,) = check(run)
    assert tokens.shape == (14,)


def test_pytorch_s_own_transformer_trains():
    tokens = torch.randint(0, 20, (2, 7))
    mask = torch.triu(torch.full((7, 7), float("-inf")), diagonal=1)

    def train(device):
        embedding = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        model = nn.ModuleList([embedding, layer, nn.Linear(16, 20)]).to(device)
        optimiser = torch.optim.Adam(model.parameters(), 1e-2)
        x, attends = tokens.to(device), mask.to(device)
        losses = []
        for _ in range(5):
            optimiser.zero_grad()
            logits = model[2](layer(embedding(x), src_mask=attends))
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), x[:, 1:].flatten())
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    losses = check(train, rtol=1e-4, atol=1e-5)
    assert losses[-1] < losses[0]
    check_all_lowered()


def write_element(x):
    x.view(-1)[3] = 5


def write_row(x):
    x[1] = torch.arange(4.0, device=x.device)


def add_to_slice(x):
    x[1:3].add_(1)


def add_to_column_of_transposed(x):
    x.t()[0] += 2


def multiply_diagonal(x):
    x.diagonal().mul_(3)


def write_through_two_views(x):
    flat = x.view(-1)
    row = x[2]
    flat.add_(1)
    row.mul_(2)
    flat[8] = -1


def write_by_mask(x):
    x[x > 6] = 0


def write_by_index(x):
    x[torch.tensor([0, 2], device=x.device)] = -1.0


def add_by_index(x):
    x.index_add_(0, torch.tensor([1, 1], device=x.device), torch.ones(2, 4, device=x.device))


def fill_and_zero(x):
    x[0].fill_(7)
    x[1].zero_()


def copy_into_slice(x):
    x[:, :2].copy_(torch.ones(4, 2, device=x.device))


def swap_columns(x):
    first = x[:, 0].clone()
    x[:, 0] = x[:, 1]
    x[:, 1] = first


WRITES = [
    write_element,
    write_row,
    add_to_slice,
    add_to_column_of_transposed,
    multiply_diagonal,
    write_through_two_views,
    write_by_mask,
    write_by_index,
    add_by_index,
    fill_and_zero,
    copy_into_slice,
    swap_columns,
]


@pytest.mark.parametrize("is_computed", [False, True], ids=["recorded", "computed"])
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_writes_to_views_reach_their_bases(write, is_computed):
    def run(device):
        x = torch.arange(16.0).view(4, 4).to(device)
        other = x.view(2, 8)
        if device == "lazy" and is_computed:
            torch._lazy.mark_step()
        write(x)
        return [x, other, x.sum()]

    before = torch.arange(16.0).view(4, 4)
    assert not torch.equal(check(run)[0].cpu(), before)


def test_buffers_are_updated_in_place():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros((), dtype=torch.long))
            self.register_buffer("mean", torch.zeros(3))

        def forward(self, x):
            self.calls += 1
            self.mean.mul_(0.5).add_(x.mean(0), alpha=0.5)
            return x - self.mean

    def run(device):
        model = Counter().to(device)
        for _ in range(3):
            y = model(torch.arange(6.0).view(2, 3).to(device))
        return [y, dict(model.named_buffers())]

    assert check(run)[1]["calls"] == 3


def test_tensors_that_stay_on_the_cpu_work_beside_lazy_ones():
    def run(device):
        running = torch.zeros(3)
        x = torch.arange(3.0).to(device)
        y = x + 1
        running += 1
        running[1:].add_(y.cpu()[1:])
        running.view(-1)[0] = 9
        return [running, y * torch.tensor(2.0)]

    assert check(run)[0].tolist() == [9, 3, 4]


def test_tensors_of_the_cpu_and_lazy_ones_share_no_memory():
    eager = torch.zeros(3)
    x = eager.to("lazy")
    eager += 1
    first = x.cpu()
    first += 5
    y = x + 0
    torch._lazy.mark_step()
    second = y.cpu()
    second += 7
    assert x.cpu().tolist() == y.cpu().tolist() == [0, 0, 0]


def test_aliases_in_results_are_written_apart():
    x = torch.arange(6.0).to("lazy")
    y = x.view(2, 3).clone().view(6)
    z = x.clone()
    torch._lazy.mark_step()
    y.cpu()
    y.copy_(torch.zeros(6, device="lazy"))
    z.cpu()
    z.copy_(torch.ones(6, device="lazy"))
    torch._lazy.mark_step()
    assert x.cpu().tolist() == [0, 1, 2, 3, 4, 5]
    assert y.cpu().tolist() == [0] * 6
    assert z.cpu().tolist() == [1] * 6


def test_mark_step_and_sync_compute_what_is_recorded():
    x = torch.ones(3, device="lazy")
    y = x * 2
    assert lazy.metrics.compilations() == 0
    torch._lazy.mark_step()
    assert lazy.metrics.compilations() == 1
    z = y + 1
    torch._lazy.sync_multi([z], [])
    assert lazy.metrics.compilations() == 2
    torch._lazy.wait_device_ops()
    torch._lazy.mark_step(wait=True)
    assert z.cpu().tolist() == [3, 3, 3]
    assert lazy.metrics.compilations() == 2


def reads_numpy():
    """Whether this PyTorch knows the NumPy that is installed."""
    try:
        torch.ones(1).numpy()
    except RuntimeError:
        return False
    return True


def test_values_are_read():
    def run(device):
        x = torch.arange(6, dtype=torch.float32).view(2, 3).to(device)
        return [
            x.sum().item(),
            x[1, 2].item(),
            float(x.mean()),
            int(x.argmax()),
            bool((x > 4).any()),
            x.tolist(),
            x.numpy(force=True).tolist() if reads_numpy() else None,
            x.to("cpu"),
            [row.sum().item() for row in x],
            len(x),
            x[0, 1].item() in x[0].tolist(),
        ]

    assert check(run)[:2] == [15.0, 5.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_tensors_are_printed_as_eager_ones(dtype):
    def run(device):
        return repr(torch.arange(4).view(2, 2).to(dtype).to(device) * 1)

    eager, ours = both(run)
    assert ours.replace(", device='lazy:0'", "").replace(" ", "") == eager.replace(" ", "")


def test_f_strings_of_scalars():
    def run(device):
        return f"{torch.tensor(2.5).to(device) * 2:.3f}"

    assert both(run) == ["5.000", "5.000"]


INDICES = {
    "integer": lambda x: x[1],
    "negative": lambda x: x[-1, ..., -2],
    "slice": lambda x: x[:, 1:3],
    "step": lambda x: x[::2, ::3],
    "none": lambda x: x[:, None, 0],
    "ellipsis": lambda x: x[..., 0],
    "list": lambda x: x[[0, 2]],
    "tensor": lambda x: x[torch.tensor([[2, 0], [1, 1]], device=x.device)],
    "two tensors": lambda x: x[
        torch.tensor([0, 1], device=x.device), torch.tensor([3, 2], device=x.device)
    ],
    "tensor after slice": lambda x: x[:, torch.tensor([3, 0], device=x.device)],
    "mask": lambda x: x[x > 5],
    "row mask": lambda x: x[torch.tensor([True, False, True], device=x.device)],
    "where": lambda x: torch.where(x > 5, x, -x),
    "nonzero": lambda x: (x > 5).nonzero(),
    "gather": lambda x: x.gather(1, torch.tensor([[0, 1], [1, 2], [2, 3]], device=x.device)),
    "take": lambda x: x.take(torch.tensor([0, 11], device=x.device)),
    "index_select": lambda x: x.index_select(0, torch.tensor([2, 0], device=x.device)),
    "masked_select": lambda x: x.masked_select(x.lt(2)),
    "unbind": lambda x: list(x.unbind(1)),
    "split": lambda x: list(x.split(3, dim=1)),
    "chunk": lambda x: list(x.chunk(2, dim=1)),
    "unfold": lambda x: x.unfold(1, 2, 2),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 1),
}


@pytest.mark.parametrize("name", INDICES)
def test_indexing(name):
    check(lambda device: INDICES[name](torch.arange(12.0).view(3, 4).to(device)))


FACTORIES = {
    "arange": lambda device: torch.arange(1, 8, 2, device=device),
    "arange of another dtype": lambda device: torch.arange(4, dtype=torch.bfloat16, device=device),
    "eye": lambda device: torch.eye(3, device=device),
    "eye that is not square": lambda device: torch.eye(2, 3, dtype=torch.int64, device=device),
    "linspace": lambda device: torch.linspace(-1, 1, 5, device=device),
    "logspace": lambda device: torch.logspace(0, 2, 3, dtype=torch.float64, device=device),
    "randperm": lambda device: torch.randperm(6, device=device),
    "out": lambda device: torch.eye(3, out=torch.empty(3, 3, device=device)),
    "out of another size": lambda device: torch.linspace(0, 1, 4, out=torch.ones(0, device=device)),
    "out that is a view": lambda device: torch.eye(3, out=torch.ones(2, 3, 3, device=device)[1]),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_tensors_of_numbers_are_recorded(name):
    check(lambda device: FACTORIES[name](device) + 1)
    check_all_lowered()


REDUCTIONS = [
    "sum",
    "mean",
    "std",
    "var",
    "max",
    "min",
    "argmax",
    "argmin",
    "prod",
    "norm",
    "median",
    "logsumexp",
    "all",
    "any",
    "count_nonzero",
    "aminmax",
]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_to_scalars(name):
    values = torch.randn(3, 5)

    def run(device):
        x = values.to(device)
        if name == "logsumexp":
            return x.logsumexp((0, 1)).item()
        result = getattr(x, name)()
        return [each.item() for each in (result if isinstance(result, tuple) else [result])]

    check(run)


def test_dtypes_are_mixed_with_bf16():
    a, b = torch.randn(4, 4), torch.randn(4, 4)

    def run(device):
        x, y = a.to(device).bfloat16(), b.to(device)
        product = x @ x
        mixed = product.float() + x
        results = [
            product,
            mixed,
            x + y,
            x * 2,
            x + torch.ones(4, dtype=torch.int64, device=device),
            (x > 0) * y,
            x.double() - y,
            torch.softmax(x, -1),
            F.layer_norm(x, (4,)),
            x.sum(),
            x.sum(dtype=torch.float32),
            x.to(torch.int32),
        ]
        return results

    results = check(run)
    assert [str(each.dtype).removeprefix("torch.") for each in results] == [
        "bfloat16",
        "float32",
        "float32",
        "bfloat16",
        "bfloat16",
        "float32",
        "float64",
        "bfloat16",
        "bfloat16",
        "bfloat16",
        "float32",
        "int32",
    ]


def test_bf16_model_trains():
    images = torch.randn(8, 6)

    def run(device):
        model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 1)).bfloat16().to(device)
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        losses = []
        for _ in range(5):
            optimiser.zero_grad()
            loss = model(images.to(device).bfloat16()).float().square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    check(run, rtol=2e-2, atol=1e-2)


def replaces_data():
    """Whether what is given to `.data` reaches a tensor that functionalization wraps, as it wraps
    lazy ones: before PyTorch 2.3, it doesn't."""
    wrapped = torch._to_functional_tensor(torch.ones(1))
    wrapped.data = torch._to_functional_tensor(torch.zeros(1))
    torch._sync(wrapped)
    return not torch._from_functional_tensor(wrapped).any()


@pytest.mark.skipif(not replaces_data(), reason="PyTorch's functionalization keeps the former data")
def test_models_change_their_dtype_on_the_device():
    inputs = torch.randn(2, 3)

    def run(device):
        model = nn.Linear(3, 4).to(device)
        model.bfloat16()
        narrow = model(inputs.to(device).bfloat16())
        model.weight.data = torch.ones(4, 3, device=device)
        return [narrow, model.float()(inputs.to(device))]

    narrow, wide = check(run)
    assert (narrow.dtype, wide.dtype) == (torch.bfloat16, torch.float32)


RANDOM = {
    "rand": lambda device: torch.rand(5, device=device),
    "randn": lambda device: torch.randn(5, device=device),
    "randint": lambda device: torch.randint(0, 100, (5,), device=device),
    "randperm": lambda device: torch.randperm(8, device=device),
    "rand_like": lambda device: torch.rand_like(torch.ones(5, device=device)),
    "randn_like": lambda device: torch.randn_like(torch.ones(5, device=device)),
    "bernoulli": lambda device: torch.bernoulli(torch.full((9,), 0.5, device=device)),
    "dropout": lambda device: F.dropout(torch.ones(9, device=device)),
    "normal_": lambda device: torch.empty(5, device=device).normal_(2, 3),
    "uniform_": lambda device: torch.empty(5, device=device).uniform_(-1, 1),
    "bernoulli_": lambda device: torch.empty(9, device=device).bernoulli_(0.3),
    "exponential_": lambda device: torch.empty(5, device=device).exponential_(),
    "multinomial": lambda device: torch.multinomial(torch.ones(9, device=device), 4),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_follow_from_the_seed(name):
    drawn = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        drawn.append([RANDOM[name]("lazy").cpu() for _ in range(2)])
    same, again, other = drawn
    assert torch.equal(same[0], again[0]) and torch.equal(same[1], again[1])
    assert not (torch.equal(same[0], other[0]) and torch.equal(same[1], other[1]))
    assert not torch.equal(*same) or name == "bernoulli_"
    torch.manual_seed(3)
    torch.testing.assert_close(same[0], RANDOM[name]("cpu"))


def test_gradients_know_the_noise_that_was_drawn():
    values = torch.linspace(-2, 2, 12)

    def run(device):
        x = values.clone().to(device).requires_grad_()
        y = F.rrelu(x, training=True)
        y.sum().backward()
        if device == "lazy":
            torch._lazy.mark_step()
        return [y, x.grad]

    y, gradient = check(run)
    torch.testing.assert_close(gradient * values, y)


def test_two_random_tensors_of_one_graph_differ():
    x, y = torch.rand(8, device="lazy"), torch.rand(8, device="lazy")
    torch._lazy.mark_step()
    assert not torch.equal(x.cpu(), y.cpu())


def test_random_steps_of_one_graph_differ():
    def step():
        return F.dropout(torch.ones(64, device="lazy")).cpu()

    first, second = step(), step()
    assert lazy.metrics.cache_hits() >= 1
    assert not torch.equal(first, second)


def test_random_operators_of_one_graph_draw_in_the_order_of_the_program():
    def run(device):
        torch.manual_seed(5)
        first = torch.rand(4, device=device)
        second = F.dropout(first + torch.rand(4, device=device))
        third = torch.bernoulli(torch.full((4,), 0.5, device=device))
        return [first - second, third * torch.randn(4, device=device) - second]

    check(run)


def test_two_draws_are_not_taken_for_one_that_is_used_twice():
    def run(device):
        torch.manual_seed(5)
        chances = torch.full((16,), 0.5).to(device)
        once = torch.bernoulli(chances)
        nothing = (once - once).cpu()
        return [nothing, torch.bernoulli(chances) - torch.bernoulli(chances)]

    nothing, something = check(run)
    assert not nothing.any() and something.any()


def test_gradients_are_recorded_where_they_are_asked_for():
    def run(device):
        x = torch.arange(3.0).to(device).requires_grad_()
        with torch.no_grad():
            y = x * 2
        z = (x * x).sum()
        (gradient,) = torch.autograd.grad(z, x, create_graph=True)
        (second,) = torch.autograd.grad(gradient.sum(), x)
        with torch.inference_mode():
            w = x + 1
        assert not y.requires_grad and z.requires_grad and not w.requires_grad
        return [y, z, gradient, second, w]

    check(run)


def test_gradients_accumulate_and_are_zeroed():
    def run(device):
        layer = nn.Linear(3, 2).to(device)
        x = torch.ones(4, 3).to(device)
        results = []
        for _ in range(2):
            layer(x).sum().backward()
            results.append(layer.weight.grad.clone())
        layer.zero_grad(set_to_none=False)
        return [*results, layer.weight.grad]

    first, second, zero = check(run)
    assert torch.equal(second, 2 * first) and not zero.any()


def test_hooks_and_clipping_see_gradients():
    def run(device):
        layer = nn.Linear(3, 2).to(device)
        layer.weight.register_hook(lambda gradient: gradient * 10)
        layer(torch.ones(4, 3).to(device)).sum().backward()
        norm = nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        return [norm, layer.weight.grad, layer.bias.grad]

    check(run)


def test_deep_copies_are_apart():
    def run(device):
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).to(device)
        x = torch.randn(4, 3).to(device)
        other = copy.deepcopy(model)
        with torch.no_grad():
            other[0].weight.add_(1)
            other[1].running_mean.fill_(2)
        return [model.eval()(x), other.eval()(x), dict(model.named_buffers())]

    first, second, _ = check(run)
    assert not torch.equal(first, second)


def meta_takes_generators() -> bool:
    """Whether functionalization, which draws nothing on the Meta device first, may have one."""
    try:
        torch.empty(1, device="meta").normal_(generator=torch.Generator())
    except AssertionError:
        return False  # PyTorch 2.1
    return True


@pytest.mark.skipif(not meta_takes_generators(), reason="PyTorch itself refuses generators here")
def test_a_generator_gives_its_numbers(backend):
    def draw(device):
        generator = torch.Generator().manual_seed(3)
        x = torch.full((50,), 0.5, device=device)
        return [
            torch.randn(2, 3, generator=generator, device=device),
            torch.rand(4, generator=generator, device=device),
            torch.bernoulli(x, generator=generator),
            torch.normal(0.0, 2.0, (3,), generator=generator, device=device),
            torch.randint(9, (5,), generator=generator, device=device),
            torch.randperm(6, generator=generator, device=device),
            torch.empty(4, device=device).uniform_(generator=generator),
        ]

    check(draw, rtol=0, atol=0)


def test_state_dicts_are_saved_and_loaded():
    def run(device):
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).to(device)
        x = torch.randn(4, 3).to(device)
        optimiser = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        model(x).square().sum().backward()
        optimiser.step()
        # Lazy tensors are saved as those of the CPU.
        state = {
            "model": {key: each.cpu() for key, each in model.state_dict().items()},
            "optimiser": optimiser.state_dict(),
        }
        file = io.BytesIO()
        torch.save(state["model"], file)
        file.seek(0)
        other = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).to(device)
        other.load_state_dict(torch.load(file))
        resumed = torch.optim.SGD(other.parameters(), 0.01, momentum=0.9)
        resumed.load_state_dict(copy.deepcopy(state["optimiser"]))
        for net, step in ((model, optimiser), (other, resumed)):
            step.zero_grad()
            net(x).square().sum().backward()
            step.step()
        return [model.state_dict(), other.state_dict()]

    first, second = check(run, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(first, second)


def test_lazy_tensors_are_saved_and_loaded():
    file = io.BytesIO()
    torch._lazy.save({"x": torch.arange(3.0, device="lazy") + 1}, file)
    file.seek(0)
    assert torch.load(file)["x"].tolist() == [1, 2, 3]


def test_tensors_of_the_cpu_take_lazy_ones():
    x = torch.arange(3.0).to("lazy").requires_grad_()
    target = torch.zeros(2, 3)
    target[1].copy_(x * 2)
    assert target.tolist() == [[0, 0, 0], [0, 2, 4]]
    target.sum().backward()
    assert x.grad.cpu().tolist() == [2, 2, 2]


def test_state_dicts_of_lazy_models_are_loaded_by_others():
    saved = nn.Linear(3, 2).to("lazy")
    model = nn.Linear(3, 2)
    model.load_state_dict(saved.state_dict())
    x = torch.ones(1, 3)
    torch.testing.assert_close(model(x), saved(x.to("lazy")).cpu())


def test_state_dicts_of_the_cpu_are_loaded():
    saved = nn.Linear(3, 2)
    model = nn.Linear(3, 2).to("lazy")
    model.load_state_dict(saved.state_dict())
    torch.testing.assert_close(
        model(torch.ones(1, 3, device="lazy")).cpu(), saved(torch.ones(1, 3))
    )


@pytest.mark.skipif(
    not hasattr(torch.__future__, "set_swap_module_params_on_conversion"),
    reason="this PyTorch moves a model by new parameters alone",
)
def test_parameters_that_modules_share_are_shared_when_swapped():
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:

        def run(device):
            embedding, decoder = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
            decoder.weight = embedding.weight
            model = nn.Sequential(embedding, nn.Tanh(), decoder)
            # As with any device that swaps, the optimiser may be there before.
            optimiser = torch.optim.SGD(model.parameters(), 0.1)
            model.to(device)
            assert model[0].weight is model[2].weight
            words = torch.tensor([1, 5, 2, 5]).to(device)
            losses = []
            for _ in range(3):
                optimiser.zero_grad()
                loss = F.cross_entropy(model(words), words)
                loss.backward()
                optimiser.step()
                losses.append(loss.item())
            return losses, model.state_dict()

        losses, _ = check(run)
        assert losses[2] < losses[0]
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


@pytest.mark.parametrize("name", ["T5", "ViT", "LSTM", "Transformer"])
def test_models_of_other_kinds_give_gradients(name):
    def run(device):
        model, arguments = _model(name)
        model.to(device)
        output = model(*(each.to(device) for each in arguments))
        outputs = output if isinstance(output, (tuple, list)) else [output]
        sum(each.square().sum() for each in outputs).backward()
        return list(outputs), [each.grad for each in model.parameters()]

    # Sums of thousands of numbers, whose order hangs on how tensors lie in memory.
    check(run, rtol=1e-4, atol=1e-4)
    check_all_lowered()


def _model(name):
    if name == "LSTM":

        class Recurrent(nn.LSTM):
            def forward(self, x):
                y, (hidden, cell) = super().forward(x)
                return y, hidden, cell

        return Recurrent(4, 5, 2, bidirectional=True), [torch.randn(6, 3, 4)]
    if name == "Transformer":
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        mask = nn.Transformer.generate_square_subsequent_mask(5)
        return nn.TransformerEncoder(layer, 2), [torch.randn(2, 5, 8), mask]
    transformers = pytest.importorskip("transformers")
    if name == "ViT":
        config = transformers.ViTConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            image_size=16,
            patch_size=4,
            return_dict=False,
        )
        return transformers.ViTModel(config).eval(), [torch.randn(2, 3, 16, 16)]
    config = transformers.T5Config(
        vocab_size=50, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=4, use_cache=False
    )

    class Translation(nn.Module):
        """With parameters of its own: the two halves share none."""

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(50, 16)
            self.encoder = transformers.T5EncoderModel(config).encoder

        def forward(self, words):
            return self.encoder(inputs_embeds=self.embedding(words)).last_hidden_state

    return Translation().eval(), [torch.randint(1, 50, (2, 7))]


def test_a_generator_and_a_discriminator_train_in_turn():
    def run(device):
        generator = nn.Sequential(
            nn.ConvTranspose2d(8, 8, 4),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, 2, 1),
            nn.Tanh(),
        ).to(device)
        critic = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(128, 1)
        ).to(device)
        of_generator = torch.optim.Adam(generator.parameters(), 1e-3)
        of_critic = torch.optim.Adam(critic.parameters(), 1e-3)
        true, false = torch.ones(4, 1).to(device), torch.zeros(4, 1).to(device)
        losses = []
        for _ in range(3):
            noise, real = torch.randn(4, 8, 1, 1).to(device), torch.randn(4, 1, 8, 8).to(device)
            fake = generator(noise)
            of_critic.zero_grad()
            first = F.binary_cross_entropy_with_logits(critic(real), true)
            first = first + F.binary_cross_entropy_with_logits(critic(fake.detach()), false)
            first.backward()
            nn.utils.clip_grad_norm_(critic.parameters(), 0.5)
            of_critic.step()
            of_generator.zero_grad()
            second = F.binary_cross_entropy_with_logits(critic(fake), true)
            second.backward()
            of_generator.step()
            losses += [first.item(), second.item()]
        return losses, generator.state_dict(), critic.state_dict()

    # What Adam divides by is near zero in the first steps.
    check(run, rtol=1e-3, atol=1e-4)
    check_all_lowered()


def test_python_branches_on_values():
    # 27 takes 111 steps.
    def run(device):
        x = torch.tensor(27.0).to(device)
        steps = 0
        while x > 1:
            x = torch.where(x % 2 == 0, x / 2, 3 * x + 1)
            steps += 1
        return steps

    assert both(run) == [111, 111]
    # A step goes on from the last one's value.
    assert lazy.metrics.compilations() <= 3


def test_what_is_computed_together_is_read_apart():
    torch.manual_seed(5)
    x = torch.rand(8, device="lazy")
    double, triple = x * 2, x * 3
    lazy.metrics.reset()
    assert torch.equal(double.cpu() / 2, x.cpu())
    torch.testing.assert_close(triple.cpu(), x.cpu() * 3)
    assert (lazy.metrics.compilations(), lazy.metrics.cache_hits()) == (1, 0)


def test_numbers_of_the_program_are_no_part_of_the_graph():
    x = torch.ones(3).to("lazy")
    results = []
    for factor in (2.0, 3.0, 4.5):
        results.append((x * factor + factor).cpu().tolist())
    assert results == [[4.0] * 3, [6.0] * 3, [9.0] * 3]
    assert lazy.metrics.compilations() == 1


def test_empty_tensors():
    def run(device):
        x = torch.empty(0, 3).to(device)
        return [x + 1, x.sum(), torch.cat([x, torch.ones(1, 3).to(device)])]

    check(run)
