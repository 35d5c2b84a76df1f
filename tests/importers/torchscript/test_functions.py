# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Methods as functions on values: their numbers, their types, and what has no such form."""

from __future__ import annotations

import io
import re
import warnings
from typing import Any

import pytest
import torch
from eager_calls import hold, inputs_of

from torch_mlir import backends, ir, torchscript
from torch_mlir.backends import reference

# Writes to tensors in memory.
_NO_VALUES = re.compile(r"!torch\.tensor\b|torch\.prim\.(SetAttr|GetAttr|CallMethod)|nn_module")


def functions_of(case: Any, archive: bytes, **options: Any) -> ir.Module:
    """The methods that a case calls, for tensors of the shapes and dtypes of the first calls."""
    with warnings.catch_warnings():
        # What callers do not see of a function's writes.
        warnings.simplefilter("ignore")
        return torchscript.import_archive(
            archive, output_type="torch", inputs=inputs_of(case, archive), **options
        )


def held(module: ir.Module, case: Any, archive: bytes, backend: Any = None) -> None:
    """Hold the functions of a module against PyTorch."""
    loaded = backend or reference.ReferenceBackend()
    program = loaded.load(loaded.compile(module))
    hold(case, archive, lambda method, args: program.function(method)(*args), flat=True)


@pytest.mark.parametrize("freeze", [True, False])
def test_functions_give_what_pytorch_gives(value_case, archive_of, freeze):
    archive = archive_of(value_case)
    module = functions_of(value_case, archive, freeze=freeze)
    assert _NO_VALUES.search(str(module)) is None
    held(module, value_case, archive)


def test_what_has_no_form_on_values_is_named_with_its_line(memory_case, archive_of):
    archive = archive_of(memory_case)
    problem = memory_case.functional
    with pytest.raises(torchscript.TorchMlirCompilerError, match=problem) as raised:
        torchscript.import_archive(archive, output_type="torch")
    if "::" in problem:
        assert re.search(r"\(at .*archives/\w+\.py:\d+, in \w+", str(raised.value))


@pytest.mark.parametrize("name", ["ConvNetFrozen", "TransformerLayerTraced", "Submodules"])
def test_without_pytorchs_help_types_say_less_and_numbers_are_the_same(archive_of, name):
    from archives import CASES

    case, archive = CASES[name], archive_of(name)
    module = functions_of(case, archive, refine=False)
    held(module, case, archive)


@pytest.mark.iree
@pytest.mark.parametrize(
    "name",
    [
        "LongChain",
        "Products",
        "Submodules",
        "TracedIntoScripted",
        "TracedMethods",
        "TransformerLayerTraced",
    ],
)
def test_iree_compiles_what_is_imported(archive_of, name):
    pytest.importorskip("iree.compiler")
    from archives import CASES

    case, archive = CASES[name], archive_of(name)
    held(functions_of(case, archive), case, archive, backends.get("iree"))


def test_results_have_the_shapes_that_pytorch_gives(archive_of):
    from archives import CASES

    archive = archive_of("ConvNetFrozen")
    module = torchscript.import_archive(archive, output_type="torch", inputs=["?x3x8x8xf32"])
    (function,) = (view.operation for view in module.body.operations)
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    assert [str(result) for result in kind.results] == ["!torch.vtensor<[?,5],f32>"]
    batch = torch.cat([CASES["ConvNetFrozen"].calls["forward"][0][0]] * 3)
    program = reference.ReferenceBackend().compile(module)
    assert program.function("forward")(batch).shape == (3, 5)


def names_of(module: ir.Module) -> list[str]:
    operations = [view.operation for view in module.body.operations]
    return [
        ir.StringAttr(operation.attributes["sym_name"]).value
        for operation in operations
        if operation.name == "func.func"
    ]


def test_public_methods_are_functions_where_nothing_is_said_of_them(archive_of):
    archive = archive_of("Methods")
    module = torchscript.import_archive(archive, output_type="torch")
    assert sorted(names_of(module)) == ["describe", "forward", "scale"]
    only = torchscript.import_archive(archive, output_type="torch", methods=["scale"])
    assert names_of(only) == ["scale"]


class Partly(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.ones(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.w

    @torch.jit.export
    def doubled(self, x: torch.Tensor):
        self.w.mul_(2)
        return x + self.w

    @torch.jit.export
    def written(self, x: torch.Tensor) -> torch.Tensor:
        self.w = torch.zeros(2)
        torch.add(x, x, out=x)
        return x


def saved(module: torch.nn.Module) -> bytes:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(module), buffer)
    return buffer.getvalue()


def test_a_method_that_has_no_form_on_values_is_left_out_with_its_reason():
    with pytest.warns(UserWarning, match=r"'written' is left out: aten::add.out: .*\(at .*\.py:"):
        module = torchscript.import_archive(saved(Partly()), output_type="torch")
    assert names_of(module) == ["forward", "doubled"]
    # Nothing of it is left: the attribute is no variable, what `doubled` writes to is.
    assert str(module).count('torch.global_slot "private" @') == 1
    program = reference.ReferenceBackend().compile(module)
    x = torch.ones(2)
    assert program.function("forward")(x).tolist() == [1.0, 1.0]
    assert program.function("doubled")(x).tolist() == [3.0, 3.0]
    assert program.function("forward")(x).tolist() == [2.0, 2.0]


def test_without_forward_and_methods_that_can_be_imported_the_reasons_are_told():
    class Written(torch.nn.Module):
        @torch.jit.export
        def written(self, x: torch.Tensor) -> torch.Tensor:
            torch.add(x, x, out=x)
            return x

    with pytest.raises(torchscript.TorchMlirCompilerError, match=r"no method 'forward', and .*out"):
        torchscript.import_archive(saved(Written()), output_type="torch")
