# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operator that PyTorch has samples of gives on lazy tensors what it gives on eager ones.

An operator either becomes a node of a module, which the reference backend holds to its signature
(it verifies, has no `torch.operator`, and each value is of its type), or runs on the CPU and is
counted. `python tests/lazy/operators_report.py` tells which do what.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
lazy = pytest.importorskip("torch_mlir.lazy")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils._pytree import tree_map  # noqa: E402

from torch_mlir.lazy.reference import ReferenceBackend  # noqa: E402

SAMPLES = 2


def name_of(operator: Any) -> str:
    variant = operator.variant_test_name
    return operator.name + (f".{variant}" if variant else "")


def move(value: Any, device: str) -> Any:
    def one(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().clone().to(device)
        return torch.device(device) if isinstance(leaf, torch.device) else leaf

    return tree_map(one, value)


def fetch(value: Any) -> Any:
    def one(leaf: Any) -> Any:
        return leaf.cpu().resolve_conj().resolve_neg() if isinstance(leaf, torch.Tensor) else leaf

    return tree_map(one, value)


def call(operator: Any, sample: Any, device: str) -> Any:
    torch.manual_seed(0)
    given, arguments, keywords = move((sample.input, sample.args, sample.kwargs), device)
    return fetch(operator(given, *arguments, **keywords))


def samples_of(operator: Any) -> list[Any]:
    """A few samples, of dense tensors: lazy ones are nothing else."""
    supported = operator.supported_dtypes("cpu")
    dtype = torch.float32 if torch.float32 in supported else sorted(supported, key=str)[0]
    found: list[Any] = []
    for sample in operator.sample_inputs("cpu", dtype):
        leaves = torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
        if all(each.layout == torch.strided for each in leaves if isinstance(each, torch.Tensor)):
            found.append(sample)
        if len(found) == SAMPLES:
            break
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "operator", [each for each in op_db if each.supported_dtypes("cpu")], ids=name_of
)
def test_lazy_results_are_those_of_eager(operator: Any) -> None:
    with lazy.register(ReferenceBackend()):
        for sample in samples_of(operator):
            expected = call(operator, sample, "cpu")
            actual = call(operator, sample, "lazy")
            torch.testing.assert_close(actual, expected, equal_nan=True)
