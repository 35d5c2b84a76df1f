# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What goes wrong in a backend arrives in Python, and the process lives on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
lazy = pytest.importorskip("torch_mlir.lazy")

from torch_mlir.lazy.reference import ReferenceBackend


class Failing(ReferenceBackend):
    """Raises in the method that it is told to."""

    failing = ""

    def compile(self, module: Any, signature: Any) -> Any:
        if self.failing == "compile":
            raise ValueError("no such hardware")
        return super().compile(module, signature)

    def execute(self, executable: Any, arguments: Sequence[Any]) -> Any:
        if self.failing == "execute":
            raise ValueError("no such hardware")
        if self.failing == "results":
            return []
        return super().execute(executable, arguments)


@pytest.fixture
def device() -> Iterator[Failing]:
    with lazy.register(Failing()) as failing:
        yield failing


def test_an_error_in_compile_leaves_tensors_as_they_were(device: Failing) -> None:
    value = torch.ones(3, device="lazy") + 1
    device.failing = "compile"
    with pytest.raises(lazy.BackendError, match="compile fails: ValueError: no such hardware"):
        value.cpu()
    device.failing = ""
    assert value.cpu().tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("failing", "message"),
    [("execute", "ValueError: no such hardware"), ("results", "there are 0 results, not 1")],
)
def test_an_error_in_execute_arrives(device: Failing, failing: str, message: str) -> None:
    value = torch.ones(3, device="lazy") + 1
    device.failing = failing
    with pytest.raises(lazy.BackendError, match=message):
        value.cpu()


def test_an_error_of_a_step_that_nobody_waits_for_arrives_later(device: Failing) -> None:
    value = torch.ones(4, device="lazy") * 5  # noqa: F841
    device.failing = "execute"
    with pytest.raises(lazy.BackendError, match="no such hardware"):
        torch._lazy.mark_step(wait=False)
        torch._lazy.wait_device_ops()


def test_tensors_that_do_not_fit_are_an_error_at_once(device: Failing) -> None:
    with pytest.raises(RuntimeError):
        torch.ones(2, 3, device="lazy") @ torch.ones(2, 3, device="lazy")


def test_a_tensor_that_is_not_dense_is_an_error_at_once_and_spoils_no_other(
    device: Failing,
) -> None:
    values = torch.eye(3, device="lazy") + 1
    with pytest.raises(RuntimeError, match=r"to_sparse.* isn't dense, as lazy tensors are: Sparse"):
        values.to_sparse()
    torch._lazy.mark_step()
    assert values.sum().item() == 12
