# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiled part fits the PyTorch beside it: values, gradients, strings and exceptions cross
between their libraries."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.usefixtures("backend")


def test_it_is_built_for_this_pytorch():
    from torch_mlir._mlir_libs import _lazy_backend

    major_minor = _lazy_backend.torch_version.split(".")[:2]
    assert major_minor == torch.__version__.split(".")[:2]


def test_values_and_gradients_are_eager_ones():
    torch.manual_seed(0)
    inputs, weights = torch.randn(2, 3), torch.randn(4, 3, requires_grad=True)
    lazy_weights = weights.detach().to("lazy").requires_grad_()
    eager = torch.nn.functional.gelu(inputs @ weights.t()).sum()
    recorded = torch.nn.functional.gelu(inputs.to("lazy") @ lazy_weights.t()).sum()
    eager.backward()
    recorded.backward()
    torch.testing.assert_close(recorded.detach().cpu(), eager.detach())
    torch.testing.assert_close(lazy_weights.grad.cpu(), weights.grad)


@pytest.mark.parametrize("is_trained", [True, False])
def test_convolutions_and_batch_norms_are_eager_ones(is_trained):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, stride=2), torch.nn.BatchNorm2d(4), torch.nn.ReLU()
    ).train(is_trained)
    images = torch.randn(2, 3, 9, 9)
    eager = model(images).detach()
    recorded = model.to("lazy")(images.to("lazy"))
    torch.testing.assert_close(recorded.detach().cpu(), eager)


def test_pytorch_exceptions_arrive_as_such():
    with pytest.raises((RuntimeError, IndexError), match="[Dd]imension out of range"):
        torch.ones(2, 3, device="lazy").sum(dim=5).cpu()


def test_it_finds_pytorch_by_itself_and_without_a_warning():
    program = """
        import sys
        import torch_mlir.ir
        assert "torch" not in sys.modules
        from torch_mlir import lazy
        print(lazy.metrics.compilations())
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert "StaleExtensionWarning" not in done.stderr


def test_its_libraries_are_those_of_pytorch():
    mapped = {
        line.split(maxsplit=5)[5].strip()
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        if len(line.split(maxsplit=5)) == 6
    }
    for name in ("libtorch_cpu.so", "libc10.so", "libstdc++.so.6"):
        assert len([path for path in mapped if Path(path).name.startswith(name)]) == 1
