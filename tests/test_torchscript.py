# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch_mlir.torchscript`: sources, arguments and errors of `import_archive` and `compile`."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from torch_mlir import ir, torchscript
from torch_mlir.backends import reference
from torch_mlir.torchscript import (
    ExampleArgs,
    TensorArgument,
    TensorPlaceholder,
    TorchMlirCompilerError,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(6.0).reshape(3, 2))

    def forward(self, x, n: int = 2):
        return torch.relu(x @ self.w) * n

    @torch.jit.export
    def halved(self, x):
        return x / 2


class Two(torch.nn.Module):
    def forward(self, x):
        return x + 1

    def other(self, x):
        return x * 2


class Branch(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] > 2:
            return x + 1
        return x - 1


def archive(module=None) -> bytes:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Net() if module is None else module), buffer)
    return buffer.getvalue()


def type_of(module: ir.Module, name: str = "forward") -> str:
    """The type of a function."""
    for view in module.body.operations:
        operation = view.operation
        if (
            operation.name == "func.func"
            and ir.StringAttr(operation.attributes["sym_name"]).value == name
        ):
            return str(ir.TypeAttr(operation.attributes["function_type"]).value)
    raise AssertionError(f"no function {name}")


def run(module: ir.Module, *args, function: str = "forward"):
    return reference.ReferenceBackend().compile(module).function(function)(*args)


X = torch.tensor([[1.0, 2.0, 3.0]])


# import_archive


def test_paths_bytes_and_files_hold_the_same(tmp_path):
    data = archive()
    path = tmp_path / "net.pt"
    path.write_bytes(data)
    expected = str(torchscript.import_archive(data))
    assert "torch.class_type" in expected
    with open(path, "rb") as file:
        sources = [path, str(path), bytearray(data), memoryview(data), io.BytesIO(data), file]
        for source in sources:
            assert str(torchscript.import_archive(source)) == expected


def test_files_are_read_from_where_they_stand():
    file = io.BytesIO(b"something else" + archive())
    file.seek(len(b"something else"))
    assert "torch.class_type" in str(torchscript.import_archive(file))


def test_what_is_no_source_is_told(tmp_path):
    with pytest.raises(FileNotFoundError):
        torchscript.import_archive(tmp_path / "missing.pt")
    with pytest.raises(TypeError, match="binary file"):
        torchscript.import_archive(io.StringIO("text"))
    for broken in (b"", b"hello", archive()[:-30]):
        with pytest.raises(TorchMlirCompilerError, match="<bytes>"):
            torchscript.import_archive(broken)


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "broken.pt"
    path.write_bytes(archive()[:200])
    with pytest.raises(TorchMlirCompilerError, match=str(path)):
        torchscript.import_archive(path)
    with open(path, "rb") as file, pytest.raises(TorchMlirCompilerError, match=str(path)):
        torchscript.import_archive(file)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("1x3xf32", "!torch.vtensor<[1,3],f32>"),
        ("?x3xf32", "!torch.vtensor<[?,3],f32>"),
        (TensorArgument((-1, 3), "float32"), "!torch.vtensor<[?,3],f32>"),
        (TensorPlaceholder([-1, 3], torch.float32), "!torch.vtensor<[?,3],f32>"),
        (X, "!torch.vtensor<[1,3],f32>"),
        (None, "!torch.vtensor"),
    ],
)
def test_inputs_tell_the_types_of_arguments(given, kind):
    module = torchscript.import_archive(archive(), output_type="torch", inputs=[given])
    assert type_of(module).startswith(f"({kind}) -> ")
    torch.testing.assert_close(run(module, X), Net()(X))


def test_shapes_and_dtypes_follow_from_the_inputs():
    module = torchscript.import_archive(archive(), output_type="torch", inputs=["?x3xf32"])
    assert type_of(module) == "(!torch.vtensor<[?,3],f32>) -> !torch.vtensor<[?,2],f32>"


def test_arguments_that_are_no_tensors_stay_arguments():
    module = torchscript.import_archive(archive(), output_type="torch", inputs=[X, None])
    assert type_of(module).startswith("(!torch.vtensor<[1,3],f32>, !torch.int) -> ")
    torch.testing.assert_close(run(module, X, 5), Net()(X, 5))


def test_methods_by_name():
    module = torchscript.import_archive(
        archive(), output_type="torch", inputs={"halved": ["4xf64"], "forward": ["1x3xf32"]}
    )
    assert type_of(module, "halved") == "(!torch.vtensor<[4],f64>) -> !torch.vtensor<[4],f64>"
    torch.testing.assert_close(run(module, X), Net()(X))
    only = torchscript.import_archive(archive(), output_type="torch", methods=["halved"])
    assert run(only, X, function="halved").tolist() == [[0.5, 1.0, 1.5]]
    with pytest.raises(AssertionError):
        type_of(only, "forward")
    with pytest.raises(TorchMlirCompilerError, match="absent"):
        torchscript.import_archive(archive(), output_type="torch", methods=["absent"])


def test_what_is_not_frozen_is_a_variable():
    frozen = torchscript.import_archive(archive(), output_type="torch", inputs=[X])
    free = torchscript.import_archive(archive(), output_type="torch", inputs=[X], freeze=False)
    assert "torch.global_slot" not in str(frozen)
    assert "torch.global_slot.get" in str(free)
    torch.testing.assert_close(run(free, X), Net()(X))


def test_the_context_is_the_callers():
    context = ir.Context()
    module = torchscript.import_archive(archive(), context=context)
    assert module.context is context


def test_verbose_prints_the_module(capsys):
    module = torchscript.import_archive(archive(), verbose=True)
    assert str(module) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"output_type": "onnx"}, ValueError, "onnx"),
        ({"inputs": [X]}, ValueError, "takes no inputs"),
        ({"output_type": "torch", "inputs": ["3xf7"]}, ValueError, "3xf7"),
        ({"output_type": "torch", "inputs": "3xf32"}, TypeError, "one item for each argument"),
        ({"output_type": "torch", "inputs": [object()]}, TypeError, "object"),
        ({"torch_version": "1.4"}, ValueError, "torch_version '1.4' is not one of"),
        ({"output_type": "torch", "inputs": ["1x7xf32"]}, TorchMlirCompilerError, "matmul"),
    ],
)
def test_arguments_that_do_not_fit(options, error, says):
    with pytest.raises(error, match=says):
        torchscript.import_archive(archive(), **options)


def test_releases_are_known_by_name():
    versions = torchscript.torch_versions()
    assert {"2.1", "2.6", "2.13", "2.15"} <= set(versions)
    release = [tuple(map(int, version.split("."))) for version in versions]
    assert release == sorted(release)
    data = archive()
    for version in (versions[-1], "2.6.0+cpu"):
        module = torchscript.import_archive(data, torch_version=version)
        assert "torch.aten.relu" in str(module)


def test_no_pytorch_is_loaded(tmp_path):
    path = tmp_path / "net.pt"
    path.write_bytes(archive())
    program = (
        "import sys\n"
        "from torch_mlir import torchscript\n"
        f"module = torchscript.import_archive({str(path)!r}, output_type='torch')\n"
        "assert 'torch.aten.relu' in str(module)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-P", "-c", program], check=True, env=dict(os.environ))


# compile


def test_modules_are_scripted():
    module = torchscript.compile(Net(), X)
    assert type_of(module) == "(!torch.vtensor<[1,3],f32>) -> !torch.vtensor<[1,2],f32>"
    torch.testing.assert_close(run(module, X), Net()(X))


def test_script_modules_and_functions_are_taken_as_they_are():
    torch.testing.assert_close(run(torchscript.compile(torch.jit.script(Net()), [X]), X), Net()(X))

    @torch.jit.script
    def function(x):
        return x * 3

    assert run(torchscript.compile(function, X), X).tolist() == [[3.0, 6.0, 9.0]]


def test_tracing_takes_the_branch_of_the_example():
    short, long = torch.zeros(2), torch.zeros(4)
    scripted = torchscript.compile(Branch(), TensorPlaceholder([-1], torch.float32))
    traced = torchscript.compile(Branch(), long, use_tracing=True)
    assert run(scripted, short)[0] == -1 and run(scripted, long)[0] == 1
    assert run(traced, long)[0] == 1
    assert type_of(traced).startswith("(!torch.vtensor<[4],f32>)")
    anywhere = torchscript.compile(
        Branch(),
        TensorPlaceholder([-1], torch.float32),
        use_tracing=True,
        ignore_traced_shapes=True,
    )
    # It is traced with seven elements.
    assert run(anywhere, short)[0] == 1


def test_several_methods_with_their_own_arguments():
    example = ExampleArgs().add_method("forward", X).add_method("other", [torch.ones(2, 2)])
    for options in ({}, {"use_tracing": True}):
        module = torchscript.compile(Two(), example, **options)
        assert type_of(module).startswith("(!torch.vtensor<[1,3],f32>)")
        assert type_of(module, "other").startswith("(!torch.vtensor<[2,2],f32>)")
        assert run(module, X).tolist() == [[2.0, 3.0, 4.0]]
        assert run(module, torch.ones(2, 2), function="other").tolist() == [[2.0, 2.0]] * 2


def test_the_raw_form_is_all_of_the_module():
    module = torchscript.compile(Net(), X, output_type="raw")
    text = str(module)
    assert 'torch.method "halved"' in text and 'torch.slot "w"' in text


def test_open_sizes_stay_open():
    module = torchscript.compile(Net(), TensorPlaceholder.like(X, [0]))
    assert type_of(module) == "(!torch.vtensor<[?,3],f32>) -> !torch.vtensor<[?,2],f32>"


@pytest.mark.iree
def test_lower_output_types_go_by_way_of_iree():
    pytest.importorskip("iree.compiler")
    module = torchscript.compile(Net(), X, output_type="linalg-on-tensors")
    assert "linalg.matmul" in str(module) and "!torch" not in str(module)
    legal = torchscript.compile(Net(), X, backend_legal_ops=["aten.relu"])
    assert "torch.aten.mm" in str(legal), "matmul is reduced to mm"


def goofy〇twist〡shape(x: list[int], by: int = 1) -> list[int]:
    return swapped(x)


def swapped(x: list[int]) -> list[int]:
    return [x[1], x[0]]


def goofy〇twist〡dtype(x_rank_dtype: tuple[int, int], by: int = 1) -> int:
    _, dtype = x_rank_dtype
    return dtype


def goofy〇twist〡has_value_semantics() -> None:
    return


LIBRARY = [goofy〇twist〡shape, goofy〇twist〡dtype, goofy〇twist〡has_value_semantics]


def test_functions_tell_the_shapes_of_further_operators():
    from torch_mlir.importers.torchscript.library import library_text

    module = ir.Module.parse(library_text(LIBRARY), ir.Context())
    kinds = {
        ir.StringAttr(view.operation.attributes["sym_name"]).value: str(
            ir.TypeAttr(view.operation.attributes["function_type"]).value
        )
        for view in module.body.operations
    }
    assert kinds["__torch_mlir_shape_fn.goofy.twist"] == (
        "(!torch.list<int>, !torch.int) -> !torch.list<int>"
    )
    assert "__torch_mlir_dtype_fn.goofy.twist" in kinds
    assert "__torch_mlir_has_value_semantics_fn.goofy.twist" in kinds
    assert any(name.endswith(".swapped") for name in kinds)
    shape = (
        reference.ReferenceBackend().compile(module).function("__torch_mlir_shape_fn.goofy.twist")
    )
    assert shape([2, 3], 1) == [3, 2]
    with pytest.raises(ValueError, match="is not called like"):
        library_text([swapped])


TWISTED = """
func.func @main(%x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor {
  %int1 = torch.constant.int 1
  %0 = torch.operator "goofy.twist"(%x, %int1)
    : (!torch.vtensor<[2,3],f32>, !torch.int) -> !torch.vtensor
  return %0 : !torch.vtensor
}"""


@pytest.mark.iree
def test_the_lowering_takes_further_functions():
    pytest.importorskip("iree.compiler")
    from torch_mlir import lowering
    from torch_mlir.importers.torchscript.library import library_of

    module = ir.Module.parse(TWISTED, ir.Context())
    with library_of(LIBRARY) as library:
        lowering.lower(
            module,
            "torch",
            source="TorchScript",
            backend_legal_ops=["goofy.twist"],
            extra_library=library,
        )
        assert os.path.exists(library)
    assert '"goofy.twist"' in str(module)
    assert type_of(module, "main").endswith("-> !torch.vtensor<[3,2],f32>")
    assert not os.path.exists(library)
    with library_of([]) as library:
        assert library is None


@pytest.mark.parametrize(
    ("module", "example", "options", "error", "says"),
    [
        (Net(), X, {"ignore_traced_shapes": True}, ValueError, "requires `use_tracing`"),
        (
            Net(),
            X,
            {"backend_legal_ops": [], "output_type": "tosa"},
            ValueError,
            "only valid with the `torch` output type",
        ),
        (Net(), TensorPlaceholder([1, 3], torch.float32), {"use_tracing": True}, ValueError,
         "ignore_traced_shapes"),
        (Net(), [X, 3], {}, TypeError, "not a int"),
        (Net(), X, {"output_type": "onnx"}, ValueError, "onnx"),
        (
            torch.jit.script(Net()),
            ExampleArgs().add_method("absent", X),
            {},
            TorchMlirCompilerError,
            "'absent'",
        ),
    ],
)  # fmt: skip
def test_arguments_of_compile_that_do_not_fit(module, example, options, error, says):
    with pytest.raises(error, match=says):
        torchscript.compile(module, example, **options)


def test_what_cannot_be_scripted_is_told_with_pytorchs_reason():
    class Odd(torch.nn.Module):
        def forward(self, x):
            return x.tolist().__class__

    with pytest.raises(TorchMlirCompilerError, match="cannot script the module"):
        torchscript.compile(Odd(), X)

    class Fails(torch.nn.Module):
        def forward(self, x):
            raise KeyError("weights")

    with pytest.raises(TorchMlirCompilerError, match="cannot trace the module.*weights"):
        torchscript.compile(Fails(), X, use_tracing=True)


def test_a_method_has_arguments_once():
    with pytest.raises(ValueError, match="already"):
        ExampleArgs().add_method("forward", X).add_method("forward", X)
