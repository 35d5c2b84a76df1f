# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a vendor gets and gives, registration, and the errors of all that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
import torch._lazy
from torch import nn

from torch_mlir import ir, lazy
from torch_mlir.lazy.reference import ReferenceBackend
from torch_mlir.lazy.signature import ModuleError

pytestmark = pytest.mark.usefixtures("backend")


class Spy(ReferenceBackend):
    """Keeps what it is called with."""

    def __init__(self):
        super().__init__()
        self.signatures, self.arguments = [], []

    def compile(self, module, signature):
        assert isinstance(module, ir.Module)
        self.signatures.append(signature)
        return super().compile(module, signature)

    def execute(self, executable, arguments):
        self.arguments.append(list(arguments))
        return super().execute(executable, arguments)


def run_python(program, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_backend_gets_a_module_and_its_signature():
    x = torch.arange(6.0).view(2, 3).to("lazy")
    with lazy.register(Spy()) as spy:
        product = torch.mm(x, x.t())
        assert product.cpu().tolist() == [[5, 14], [14, 50]]
    (signature,), (arguments,) = spy.signatures, spy.arguments
    assert signature.parameters == (lazy.ValueType("tensor", (2, 3), torch.float32),)
    assert signature.results == (lazy.ValueType("tensor", (2, 2), torch.float32),)
    assert arguments[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert str(signature.parameters[0]) == "float32[2, 3]"
    assert signature.parameters[0].mlir == "!torch.vtensor<[2,3],f32>"


def test_arguments_are_contiguous_and_without_gradients():
    x = torch.arange(6.0, requires_grad=True).view(2, 3).t().to("lazy")
    with lazy.register(Spy()) as spy:
        (x * x).sum().item()
    ((argument, *_),) = spy.arguments
    assert argument.is_contiguous() and not argument.requires_grad and argument.shape == (3, 2)


def test_execute_records_no_gradients():
    class Modes(Spy):
        def execute(self, executable, arguments):
            modes.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
            return super().execute(executable, arguments)

    modes = []
    with lazy.register(Modes()):
        (torch.ones(2, device="lazy") + 1).cpu()
        with torch.inference_mode():
            (torch.ones(2, device="lazy") + 1).cpu()
    assert modes == [(False, False), (False, False)]


def test_a_backend_may_have_contexts_of_its_own():
    class Own(Spy):
        def context(self):
            contexts.append(ir.Context())
            return contexts[-1]

        def compile(self, module, signature):
            assert module.context is contexts[-1]
            return super().compile(module, signature)

    contexts = []
    with lazy.register(Own()):
        x = torch.ones(2).to("lazy")
        x.sin().cpu()
        x.cos().cpu()
    assert len(contexts) == 2


def test_modules_of_one_backend_share_a_context():
    class Shared(Spy):
        def compile(self, module, signature):
            contexts.append(module.context)
            return super().compile(module, signature)

    contexts = []
    with lazy.register(Shared()):
        x = torch.ones(2).to("lazy")
        x.sin().cpu()
        x.cos().cpu()
    assert contexts[0] is contexts[1]


def test_a_with_block_puts_the_former_backend_back():
    x = torch.ones(2).to("lazy")
    outer, inner = Spy(), Spy()
    with lazy.register(outer) as given:
        assert given is outer
        (x + 1).cpu()
        with lazy.register(inner):
            (x + 1).cpu()
        with pytest.raises(ZeroDivisionError), lazy.register(inner):
            raise ZeroDivisionError
        (x + 2).cpu()
    assert (len(outer.arguments), len(inner.arguments)) == (2, 1)


def test_tensors_go_from_one_backend_to_the_next():
    with lazy.register(Spy()):
        x = torch.ones(2, device="lazy") + 1
        torch._lazy.mark_step()
        recorded = x * 3
    with lazy.register(Spy()):
        assert (x + 1).cpu().tolist() == [3, 3]
        assert recorded.cpu().tolist() == [6, 6]


def test_without_a_backend_pytorch_says_so(tmp_path):
    done = run_python(
        """
        import torch
        from torch_mlir import lazy
        from torch_mlir.lazy.reference import ReferenceBackend

        for _ in range(2):
            with lazy.register(ReferenceBackend()):
                x = torch.ones(2, device="lazy") + 1
                print(x.cpu().tolist())
            try:
                (x + 1).cpu()
            except RuntimeError as problem:
                print(problem)
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2.0, 2.0]\nLazy tensor backend not registered.\n" * 2


def test_pytorchs_own_backend_is_put_back(tmp_path):
    done = run_python(
        """
        import torch, torch._lazy.ts_backend
        from torch_mlir import lazy
        from torch_mlir.lazy.reference import ReferenceBackend

        class Counting(ReferenceBackend):
            count = 0

            def execute(self, executable, arguments):
                self.count += 1
                return super().execute(executable, arguments)

        torch._lazy.ts_backend.init()
        before = torch.ones(2).to("lazy") + 1
        print(before.cpu().tolist())
        with lazy.register(Counting()) as ours:
            during = before + 1
            print(during.cpu().tolist(), ours.count)
        print((during + before).cpu().tolist(), ours.count)
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2.0, 2.0]\n[3.0, 3.0] 1\n[5.0, 5.0] 1\n"


def test_only_backends_are_registered():
    with pytest.raises(TypeError, match=r"is a torch_mlir\.lazy\.Backend, not 'reference'"):
        lazy.register("reference")
    with pytest.raises(TypeError, match="abstract"):
        lazy.Backend()


READS = {
    "cpu": lambda x: x.cpu(),
    "item": lambda x: x.sum().item(),
    "print": lambda x: repr(x),
    "branch": lambda x: bool(x.sum() > 0),
    "mark_step": lambda x: torch._lazy.mark_step(),
    "sync": lambda x: torch._lazy.sync_multi([x], []),
}


@pytest.mark.parametrize("method", ["compile", "execute", "context"])
@pytest.mark.parametrize("read", READS)
def test_what_a_backend_raises_is_the_cause_of_an_error(read, method):
    class Failing(Spy):
        pass

    def fail(*arguments):
        raise LookupError("no such chip")

    setattr(Failing, method, fail)
    x = torch.ones(3).to("lazy")
    with lazy.register(Failing()):
        y = x + 1
        with pytest.raises(lazy.BackendError) as caught:
            READS[read](y)
        del y
    assert str(caught.value) == f"Failing.{method} fails: LookupError: no such chip"
    assert isinstance(caught.value.__cause__, LookupError)
    assert caught.value.__cause__.__traceback__.tb_next.tb_frame.f_code.co_name == "fail"


def test_a_failure_is_told_once_and_what_is_read_again_is_computed_again():
    class Moody(Spy):
        is_failing = True

        def execute(self, executable, arguments):
            if self.is_failing:
                raise LookupError("no such chip")
            return super().execute(executable, arguments)

    x = torch.ones(3).to("lazy")
    with lazy.register(Moody()) as moody:
        y = x + 1
        for read in (y.cpu, torch._lazy.mark_step, y.cpu):
            with pytest.raises(lazy.BackendError, match="no such chip"):
                read()
        moody.is_failing = False
        assert (x + 2).cpu().tolist() == [3, 3, 3]
        assert y.cpu().tolist() == [2, 2, 2]


def test_what_can_not_be_computed_spoils_no_other():
    class Picky(Spy):
        def compile(self, module, signature):
            if any(each.shape == (7,) for each in signature.results):
                raise LookupError("no sevens")
            return super().compile(module, signature)

    with lazy.register(Picky()):
        seven, five = torch.ones(7).to("lazy") + 1, torch.ones(5).to("lazy") + 1
        assert five.cpu().tolist() == [2] * 5
        with pytest.raises(lazy.BackendError, match="no sevens"):
            seven.cpu()
        assert seven.sum().item() == 14


def test_an_interrupt_stays_one():
    class Interrupted(Spy):
        def execute(self, executable, arguments):
            raise KeyboardInterrupt

    x = torch.ones(3).to("lazy")
    with lazy.register(Interrupted()), pytest.raises(KeyboardInterrupt):
        (x + 1).cpu()


WRONG_RESULTS = {
    "a tensor, not a list": (lambda: torch.ones(3), "TypeError: execute gave a tensor, not a list"),
    "none": (lambda: None, "TypeError: 'NoneType' object is not iterable"),
    "too few": (list, "ValueError: there are 0 results, not 1"),
    "too many": (lambda: [torch.ones(3)] * 2, "ValueError: there are 2 results, not 1"),
    "no tensor": (lambda: [1.0], "ValueError: result 0 is a float, not float32[3]"),
    "a shape": (lambda: [torch.ones(4)], "ValueError: result 0 is float32[4], not float32[3]"),
    "a dtype": (
        lambda: [torch.ones(3, dtype=torch.int8)],
        "ValueError: result 0 is int8[3], not float32[3]",
    ),
    "a device": (
        lambda: [torch.ones(3, device="meta")],
        "ValueError: result 0 is a torch.strided tensor on meta, not a dense one on the CPU",
    ),
}


@pytest.mark.parametrize("name", WRONG_RESULTS)
def test_results_of_another_kind_are_refused(name):
    give, message = WRONG_RESULTS[name]

    class Wrong(Spy):
        def execute(self, executable, arguments):
            return give()

    x = torch.ones(3).to("lazy")
    with lazy.register(Wrong()), pytest.raises(lazy.BackendError) as caught:
        (x + 1).cpu()
    assert str(caught.value).startswith(f"Wrong.execute fails: {message}")


def test_results_may_be_arguments_and_views_of_one_another():
    class Aliasing(lazy.Backend):
        def compile(self, module, signature):
            return signature

        def execute(self, executable, arguments):
            (x,) = (each for each in arguments if each.dim())
            return [x.view(each.shape) for each in executable.results]

    x = torch.arange(4.0).to("lazy")
    with lazy.register(Aliasing()):
        y, z = x.sin(), x.cos()
        torch._lazy.sync_multi([y, z], [])
    y.cpu()
    y.copy_(torch.zeros(4))
    assert x.cpu().tolist() == z.cpu().tolist() == [0, 1, 2, 3]
    assert y.cpu().tolist() == [0] * 4


MODULE = """
func.func @main(%0: !torch.vtensor<[2],f32>, %1: !torch.int) -> !torch.vtensor<[2],f32> {
  %2 = torch.aten.mul.Scalar %0, %1 : !torch.vtensor<[2],f32>, !torch.int -> !torch.vtensor<[2],f32>
  return %2 : !torch.vtensor<[2],f32>
}
"""
VECTOR = ((2,), torch.float32)
NUMBER = ((), torch.int64)


@pytest.fixture
def signature():
    return lazy.Signature.of(ir.Module.parse(MODULE, ir.Context()), [VECTOR, NUMBER], [VECTOR])


def test_numbers_are_parameters_too(signature):
    assert [each.kind for each in signature.parameters] == ["tensor", "int"]
    signature.check_module(ir.Module.parse(MODULE, ir.Context()))
    signature.check_arguments([torch.ones(2), 3])
    for wrong, message in [
        ([torch.ones(2), 3.0], "argument 1 is a float, not int"),
        ([torch.ones(2), True], "argument 1 is a bool, not int"),
        ([torch.ones(3), 3], r"argument 0 is float32\[3\], not float32\[2\]"),
        ([torch.ones(2)], "there are 1 arguments, not 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            signature.check_arguments(wrong)


WRONG_MODULES = {
    "opaque": (
        MODULE.replace(
            "torch.aten.mul.Scalar %0, %1", 'torch.operator "torch.my.scale"(%0, %1)'
        ).replace(
            ": !torch.vtensor<[2],f32>, !torch.int ->", ": (!torch.vtensor<[2],f32>, !torch.int) ->"
        ),
        r'"torch\.my\.scale" isn\'t lowered, at loc\(',
    ),
    "another dialect": (
        MODULE.replace("{", "{ %3 = arith.constant 1 : i32", 1),
        r"arith\.constant isn't lowered",
    ),
    "another shape": (
        MODULE.replace("[2]", "[3]"),
        r"argument 0 is !torch\.vtensor<\[3\],f32>, not !torch\.vtensor<\[2\],f32>",
    ),
    "no results": (
        "func.func @main(%0: !torch.vtensor<[2],f32>, %1: !torch.int) { return }",
        "main has 0 results, not 1",
    ),
    "no main": (MODULE.replace("@main", "@other"), "the module has no function main"),
}


@pytest.mark.parametrize("name", WRONG_MODULES)
@pytest.mark.parametrize("vendor", ["reference", pytest.param("iree", marks=pytest.mark.iree)])
def test_vendors_refuse_modules_that_are_not_as_promised(signature, name, vendor):
    text, message = WRONG_MODULES[name]
    module = ir.Module.parse(text, ir.Context())
    with pytest.raises(ModuleError, match=message):
        _vendor(vendor).compile(module, signature)


@pytest.mark.parametrize("vendor", ["reference", pytest.param("iree", marks=pytest.mark.iree)])
def test_vendors_hold_arguments_to_the_signature(signature, vendor):
    backend = _vendor(vendor)
    executable = backend.compile(ir.Module.parse(MODULE, ir.Context()), signature)
    (result,) = backend.execute(executable, [torch.ones(2), 3])
    assert result.tolist() == [3, 3]
    with pytest.raises(ValueError, match=r"argument 0 is int64\[2\], not float32\[2\]"):
        backend.execute(executable, [torch.ones(2, dtype=torch.int64), 3])


def _vendor(name):
    if name == "reference":
        return ReferenceBackend()
    pytest.importorskip("iree.compiler")
    pytest.importorskip("iree.runtime")
    from torch_mlir.lazy.iree import IreeBackend

    return IreeBackend()


@pytest.mark.iree
def test_iree_computes_what_eager_does():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3), nn.Softmax(-1))
    x = torch.randn(5, 4)
    wanted = model(x)
    with lazy.register(_vendor("iree")), torch.no_grad():
        model.to("lazy")
        lazy.metrics.reset()
        for _ in range(2):
            torch.testing.assert_close(model(x.to("lazy")).cpu(), wanted.detach())
        assert (lazy.metrics.compilations(), lazy.metrics.cache_hits()) == (1, 1)
        y = x.to("lazy")
        y[1:3] += 2.5
        assert y.sum().item() == pytest.approx(x.sum().item() + 20)
        for power in (2, 3, 2.0, -1):
            torch.testing.assert_close((x.to("lazy") ** power).cpu(), x**power)


@pytest.mark.iree
def test_iree_trains():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    x = torch.randn(6, 4)

    def train(device):
        losses = []
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        net.load_state_dict(model.state_dict())
        net.to(device)
        optimiser = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(4):
            optimiser.zero_grad()
            loss = net(x.to(device)).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    with lazy.register(_vendor("iree")):
        torch.testing.assert_close(train("lazy"), train("cpu"), rtol=1e-4, atol=1e-5)


@pytest.mark.iree
def test_what_iree_refuses_is_told():
    with lazy.register(_vendor("iree")):
        x = torch.ones(4).to("lazy")
        with pytest.raises(lazy.BackendError, match=r"IreeBackend\.compile fails: IreeError: "):
            torch.special.bessel_j0(x).cpu()


def test_locations_are_the_lines_of_the_program():
    class Debug(Spy):
        def compile(self, module, signature):
            texts.append(module.operation.get_asm(enable_debug_info=True))
            return super().compile(module, signature)

    texts = []
    x = torch.ones(3).to("lazy")
    with lazy.register(Debug()):
        with lazy.record_locations():
            y = x.sin()  # here
        y.cpu()
        x.cos().cpu()
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text.endswith("y = x.sin()  # here")
    )
    assert f'"{__file__}":{line}:0' in texts[0]
    assert "test_backend" not in texts[1]


def test_errors_of_pytorch_are_no_backends():
    with lazy.register(Spy()):
        x = torch.ones(2, 3).to("lazy")
        with pytest.raises(RuntimeError) as caught:
            (x @ x).cpu()
    assert not isinstance(caught.value, lazy.BackendError)


def test_without_pytorch_the_import_says_so(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')"
    )
    done = run_python(
        "import torch_mlir.ir\nimport torch_mlir.lazy",
        tmp_path,
        PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}",
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: torch_mlir.lazy needs PyTorch beside torch_mlir, and no PyTorch is installed "
        "in this environment (the rest of torch_mlir works without it)"
    )


def test_another_version_of_pytorch_is_refused(tmp_path):
    program = """
        import torch
        torch.__version__ = "1.9.2+cpu"
        import torch_mlir.lazy
    """
    done = run_python(program, tmp_path)
    minor = ".".join(torch.__version__.split(".")[:2])
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: the lazy tensors of this torch_mlir are built for PyTorch {minor}, and "
        f"1.9.2+cpu is installed: install PyTorch {minor}, or the wheel of torch_mlir for "
        "PyTorch 1.9"
    )


LOADER = """
    import importlib.util, sys, torch, torch_mlir._mlir_libs
    name = "torch_mlir._mlir_libs._lazy_backend"

    class Finder:
        @staticmethod
        def find_spec(asked, path=None, target=None):
            if asked == name:
                {body}

    sys.meta_path.insert(0, Finder)
"""


def test_what_does_not_load_tells_what_it_was_built_for(tmp_path):
    # A file with the mark of another version, which refers to what this PyTorch hasn't.
    shutil.which("cc") or pytest.skip("needs a C compiler")
    source = tmp_path / "other.c"
    source.write_text(
        "extern int gone_since(void);\n"
        'const char mark[] = "torch_mlir lazy backend for PyTorch 1.4.0";\n'
        "void *PyInit__lazy_backend(void) { return gone_since() ? 0 : (void *)mark; }\n"
    )
    library = tmp_path / "_lazy_backend.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-z,now", "-o", library, source], check=True)
    body = f"return importlib.util.spec_from_file_location(name, {str(library)!r})"
    program = textwrap.dedent(LOADER).format(body=body) + "import torch_mlir.lazy"
    done = run_python(program, tmp_path)
    assert done.returncode == 1
    assert "are built for PyTorch 1.4, and" in done.stderr.splitlines()[-1]
    assert "gone_since" in done.stderr
    program = textwrap.dedent(LOADER).format(body=body)
    program += 'torch.__version__ = "1.4.1"\nimport torch_mlir.lazy'
    last = run_python(program, tmp_path).stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {library} doesn't load with PyTorch 1.4.1, though it was")
    assert last.endswith("undefined symbol: gone_since")


def test_a_wheel_without_lazy_tensors_says_so(tmp_path):
    program = """
        import importlib.util
        import torch, torch_mlir._mlir_libs

        find_spec = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: (
            None if name.endswith("._lazy_backend") else find_spec(name, *rest)
        )
        import torch_mlir.lazy
    """
    done = run_python(program, tmp_path)
    assert done.returncode == 1
    minor = ".".join(torch.__version__.split(".")[:2])
    assert done.stderr.splitlines()[-1] == (
        "ImportError: this torch_mlir was built without lazy tensors: install the wheel made for "
        f"PyTorch {minor}, the installed one"
    )
