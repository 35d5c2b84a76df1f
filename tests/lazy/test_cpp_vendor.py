# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A vendor in C++ that is built out of tree, examples/lazy_vendor, against eager PyTorch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import torch_mlir

torch = pytest.importorskip("torch")

EXAMPLE = Path(__file__).parents[2] / "examples" / "lazy_vendor"

pytestmark = [pytest.mark.compiler, pytest.mark.slow]


def missing() -> str:
    """Why the vendor can't be built here; empty if it can."""
    if not EXAMPLE.exists():
        return f"there is no {EXAMPLE}"
    if not (Path(torch_mlir.cmake_prefix_path) / "TorchMLIRLazyConfig.cmake").exists():
        return "this build of torch_mlir has no CMake package for vendors"
    if not shutil.which("cmake"):
        return "there is no CMake"
    if not any(shutil.which(name) for name in (os.environ.get("CXX", "c++"), "c++", "g++")):
        return "there is no C++ compiler"
    return ""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Builds the vendor, and runs programs with it in processes of their own."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    # A build that was made before is only brought up to date.
    build = Path(os.environ.get("LAZY_VENDOR_BUILD") or tmp_path_factory.mktemp("lazy_vendor"))
    configure = ["cmake", "-S", EXAMPLE, "-B", build]
    configure += [f"-DCMAKE_PREFIX_PATH={torch_mlir.cmake_prefix_path}"]
    # It needn't lie beside torch_mlir.
    configure += [f"-DTORCH_MLIR_TORCH_DIR={Path(torch.__file__).parent}"]
    for command in (
        configure,
        ["cmake", "--build", build],
    ):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr

    def run(text: str) -> str:
        program = (
            "import torch, torch._lazy, lazy_vendor; lazy_vendor.register()\n"
            + textwrap.dedent(text)
        )
        path = os.pathsep.join([str(build / "python"), *filter(None, sys.path)])
        result = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", "-c", program],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return run


def test_a_perceptron_trains_as_in_eager(run):
    run(
        """
        def train(device):
            torch.manual_seed(0)
            net = torch.nn.Sequential(
                torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.LayerNorm(16),
                torch.nn.Linear(16, 3),
            )
            x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))
            net, x, y = net.to(device), x.to(device), y.to(device)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
            losses = []
            for _ in range(20):
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(net(x), y)
                loss.backward()
                optimizer.step()
                if device == "lazy":
                    torch._lazy.mark_step()
                losses.append(loss.item())
            return losses, {name: value.cpu() for name, value in net.state_dict().items()}

        losses, state = train("lazy")
        assert lazy_vendor.compiled() < 10, "the cache is used"
        wanted_losses, wanted = train("cpu")
        assert losses[-1] < losses[0] / 2
        torch.testing.assert_close(losses, wanted_losses)
        torch.testing.assert_close(state, wanted)
        executed = lazy_vendor.executed()
        assert "aten::native_layer_norm" in executed, executed
        assert "aten::nll_loss_backward" in executed, executed
        """
    )


def test_lists_literals_and_numbers(run):
    run(
        """
        def compute(device):
            torch.manual_seed(1)
            x = torch.arange(24, dtype=torch.float32).reshape(4, 6).to(device)
            i = torch.tensor([3, 0, 2]).to(device)
            z = torch.cat([x, x * 2], dim=1)
            parts = torch.split(z, 4, dim=1)
            w = torch.stack([parts[0], parts[2]]).sum((0,), keepdim=True)
            picked = z[i, :].to(torch.float64)
            mask = (x > 5) & (x < 20)
            y = x.clone()
            y[1:3].add_(1)
            y.view(-1)[5] = -1
            return [each.cpu() for each in (z, w, picked, mask, y, y.masked_fill(mask, 0.5))]
        torch.testing.assert_close(compute("lazy"), compute("cpu"), rtol=0, atol=0)
        """
    )


def test_what_a_kernel_refuses_arrives_as_an_exception_with_the_operators_name(run):
    output = run(
        """
        x = torch.ones(3).to("lazy")
        index = torch.tensor([7]).to("lazy")
        try:
            print(torch.index_select(x, 0, index).cpu())
        except RuntimeError as error:
            print("refused:", error)
        # PyTorch tells it once more to who uses the device next.
        try:
            torch._lazy.wait_device_ops()
            (x + 2).cpu()
        except RuntimeError as error:
            assert "index_select" in str(error)
        print((x + 1).cpu())
        """
    )
    assert "refused:" in output and "index_select" in output and "lazy_vendor" in output
    assert "tensor([2., 2., 2.])" in output


def test_many_graphs_are_compiled_in_two_threads(run):
    """More than one context serves, and both threads lower to the same ones."""
    run(
        """
        import threading
        problems = []
        def work(first):
            try:
                for size in range(first, first + 100, 2):
                    x = torch.arange(size, dtype=torch.float32)
                    y = x.to("lazy")
                    torch.testing.assert_close((y * 3 + y.sum()).cpu(), x * 3 + x.sum())
            except BaseException as problem:
                problems.append(problem)
        threads = [threading.Thread(target=work, args=[first]) for first in (2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == [], problems
        assert lazy_vendor.compiled() >= 100, lazy_vendor.compiled()
        """
    )
