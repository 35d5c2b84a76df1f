# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operator that PyTorch has samples of gives on lazy tensors what it gives on eager ones.

So do its gradients, what it writes in place, to a tensor or to a part of one, and what it writes to
`out`.

An operator either becomes a node of a module, which the reference backend holds to its signature
(it verifies, has no `torch.operator`, and each value is of its type), or runs on the CPU and is
counted in PyTorch's metrics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
lazy = pytest.importorskip("torch_mlir.lazy")

from torch.testing._internal import common_methods_invocations
from torch.utils._pytree import tree_flatten, tree_map

from torch_mlir.lazy.reference import ReferenceBackend

SAMPLES = 2

# Some samples draw random numbers from a seed of their own, and put the generator back. PyTorch
# computes a lazy tensor before that, but not where there are several, and not before 2.2.
_with_seed = common_methods_invocations.wrapper_set_seed


def with_seed(operator: Any, *arguments: Any, **keywords: Any) -> Any:
    def computed(*arguments: Any, **keywords: Any) -> Any:
        results = operator(*arguments, **keywords)
        leaves, _ = tree_flatten(results)
        if any(isinstance(each, torch.Tensor) and each.device.type == "lazy" for each in leaves):
            torch._lazy.mark_step()
        return results

    return _with_seed(computed, *arguments, **keywords)


common_methods_invocations.wrapper_set_seed = with_seed


def name_of(operator: Any) -> str:
    variant = operator.variant_test_name
    return operator.name + (f".{variant}" if variant else "")


def move(value: Any, device: str) -> Any:
    def one(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().clone().to(device)
        # Samples are made for the CPU, and those of factories say so.
        return torch.device(device) if leaf in (torch.device("cpu"), "cpu") else leaf

    return tree_map(one, value)


def fetch(value: Any) -> Any:
    def one(leaf: Any) -> Any:
        return leaf.cpu().resolve_conj().resolve_neg() if isinstance(leaf, torch.Tensor) else leaf

    return tree_map(one, value)


def call(operator: Any, sample: Any, device: str) -> Any:
    torch.manual_seed(0)
    given, arguments, keywords = move((sample.input, sample.args, sample.kwargs), device)
    return fetch(operator(given, *arguments, **keywords))


# Why PyTorch can't make some samples here, by what it says.
NO_SAMPLES = {
    "Numpy is not available": "PyTorch makes the samples with NumPy, and knows another one",
    "No CUDA GPUs are available": "PyTorch asks CUDA for the samples",
}
# What eager PyTorch raises where it has no kernel for the CPU, or none for what it's given.
NOT_RUN = (AssertionError, NotImplementedError)


def make_samples(operator: Any, dtype: Any, **options: Any) -> Iterator[Any]:
    try:
        yield from operator.sample_inputs("cpu", dtype, **options)
    except RuntimeError as problem:
        if str(problem) not in NO_SAMPLES:
            raise
        pytest.skip(NO_SAMPLES[str(problem)])


def samples_of(operator: Any, **options: Any) -> list[Any]:
    """A few samples, of dense tensors: lazy ones are nothing else.

    Args:
        operator: one of PyTorch's list.
        options: what its `sample_inputs` takes.

    Raises:
        pytest.skip.Exception: PyTorch can't make them here.
    """
    supported = operator.supported_dtypes("cpu")
    dtype = torch.float32 if torch.float32 in supported else min(supported, key=str)
    found: list[Any] = []
    for sample in make_samples(operator, dtype, **options):
        leaves, _ = tree_flatten((sample.input, sample.args, sample.kwargs))
        if all(each.layout == torch.strided for each in leaves if isinstance(each, torch.Tensor)):
            found.append(sample)
        if len(found) == SAMPLES:
            break
    return found


def read_failing() -> dict[str, str]:
    """Operators that don't give what eager does with this PyTorch, each with the reason."""
    row = ".".join(torch.__version__.split(".")[:2])
    text = Path(__file__).with_name("failing_operators.tsv").read_text(encoding="utf-8")
    failing = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, reason, *rows = line.split("\t")
            if not rows or row in rows[0].split():
                failing[name] = reason
    return failing


FAILING = read_failing()


def cases(suffix: str = "") -> list[Any]:
    """All operators of PyTorch's list that have samples on the CPU.

    Args:
        suffix: what follows an operator's name in failing_operators.tsv.
    """
    return [
        pytest.param(
            each,
            id=name_of(each),
            marks=[pytest.mark.xfail(reason=FAILING[name_of(each) + suffix], strict=True)]
            if name_of(each) + suffix in FAILING
            else [],
        )
        for each in common_methods_invocations.op_db
        if each.supported_dtypes("cpu")
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("operator", cases())
def test_lazy_results_are_those_of_eager(operator: Any) -> None:
    with lazy.register(ReferenceBackend()):
        for sample in samples_of(operator):
            try:
                expected = call(operator, sample, "cpu")
            except NOT_RUN as problem:
                pytest.skip(f"eager doesn't run it: {problem}")
            actual = call(operator, sample, "lazy")
            if has_values(operator):
                torch.testing.assert_close(actual, expected, equal_nan=True)
            else:
                assert describe(actual) == describe(expected)


def gradients(operator: Any, sample: Any, device: str) -> list[Any]:
    """Those of a number that all results count for, in all that wants gradients."""
    torch.manual_seed(0)
    given, _ = tree_flatten((sample.input, sample.args, sample.kwargs))
    moved, _ = tree_flatten(values := move((sample.input, sample.args, sample.kwargs), device))
    wanted = [
        leaf.requires_grad_()
        for leaf, original in zip(moved, given, strict=True)
        if isinstance(leaf, torch.Tensor) and original.requires_grad
    ]
    results = operator(values[0], *values[1], **values[2])
    if sample.output_process_fn_grad is not None:
        results = sample.output_process_fn_grad(results)
    leaves, _ = tree_flatten(results)
    sums = [
        (leaf.abs() if leaf.is_complex() else leaf).sin().sum()
        for leaf in leaves
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    if not wanted or not sums:
        return []
    return fetch(list(torch.autograd.grad(sum(sums), wanted, allow_unused=True)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "operator",
    [
        case
        for case in cases()
        if case.values[0].supports_autograd
        and torch.float32 in case.values[0].supported_backward_dtypes("cpu")
    ],
)
def test_lazy_gradients_are_those_of_eager(operator: Any) -> None:
    with lazy.register(ReferenceBackend()):
        for sample in samples_of(operator, requires_grad=True):
            try:
                expected = gradients(operator, sample, "cpu")
            except (AssertionError, RuntimeError) as problem:
                pytest.skip(f"eager doesn't run it: {problem}")
            actual = gradients(operator, sample, "lazy")
            if has_values(operator):
                # The CPU's fused attention differs from its parts by up to 1.3e-5.
                torch.testing.assert_close(actual, expected, equal_nan=True, rtol=1e-4, atol=3e-5)


def write_in_place(operator: Any, sample: Any, device: str) -> Any:
    """What the operator gives that writes to its first argument, and that argument."""
    torch.manual_seed(0)
    given, arguments, keywords = move((sample.input, sample.args, sample.kwargs), device)
    return fetch([operator.inplace_variant(given, *arguments, **keywords), given])


def write_to_part(operator: Any, sample: Any, device: str) -> Any:
    """A tensor to whose second half the operator writes."""
    torch.manual_seed(0)
    given, arguments, keywords = move((sample.input, sample.args, sample.kwargs), device)
    whole = torch.stack([given, given])
    operator.inplace_variant(whole[1], *arguments, **keywords)
    return fetch(whole)


def write_out(operator: Any, sample: Any, device: str, like: Any, fitting: bool) -> Any:
    """What the operator gives, and what it wrote to, which had the sizes of `like` or none."""
    torch.manual_seed(0)
    given, arguments, keywords = move((sample.input, sample.args, sample.kwargs), device)

    def make(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return torch.full(leaf.shape if fitting else (0,), 1, dtype=leaf.dtype).to(device)

    out = tree_map(make, tuple(like) if isinstance(like, (tuple, list)) else like)
    results = operator(given, *arguments, **{**keywords, "out": out})
    return tree_flatten(fetch([results, out]))[0]


def check_writes(operator: Any, writes: Callable[[Any], list[Callable[[str], Any]]]) -> None:
    """Each of what `writes` gives for a sample gives the same on lazy tensors as on eager ones."""
    compared = 0
    with lazy.register(ReferenceBackend()):
        for sample in samples_of(operator):
            for write in writes(sample):
                try:
                    expected = write("cpu")
                except (RuntimeError, TypeError):
                    continue  # eager doesn't write this there
                actual = write("lazy")
                if has_values(operator):
                    torch.testing.assert_close(actual, expected, equal_nan=True)
                else:
                    assert describe(actual) == describe(expected)
                compared += 1
    if not compared:
        pytest.skip("eager writes none of the samples")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "operator", [case for case in cases("_") if case.values[0].inplace_variant]
)
def test_what_is_written_in_place_is_what_eager_writes(operator: Any) -> None:
    check_writes(
        operator,
        lambda sample: [
            partial(each, operator, sample) for each in (write_in_place, write_to_part)
        ],
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "operator", [case for case in cases("(out=)") if case.values[0].supports_out]
)
def test_what_is_written_to_out_is_what_eager_writes(operator: Any) -> None:
    def writes(sample: Any) -> list[Callable[[str], Any]]:
        try:
            like = call(operator, sample, "cpu")
        except NOT_RUN:
            return []
        return [
            partial(write_out, operator, sample, like=like, fitting=fitting)
            for fitting in (True, False)
        ]

    check_writes(operator, writes)


def has_values(operator: Any) -> bool:
    """False where the results are memory as it was found."""
    return not re.match(r"(new_)?empty", operator.name)


def describe(value: Any) -> Any:
    return tree_map(
        lambda leaf: (leaf.shape, leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf, value
    )


@pytest.mark.slow
def test_what_is_written_down_of_coverage_is_of_this_code() -> None:
    import regenerate_coverage

    with lazy.register(ReferenceBackend()):
        counts = regenerate_coverage.count_operators()
    written = regenerate_coverage.read().get(regenerate_coverage.installed_row())
    if written is None:
        pytest.skip("this PyTorch isn't in coverage.tsv")
    assert {name: int(written[name]) for name in counts} == counts
    assert int(written["failed"]) <= SAMPLES * len(FAILING)
