# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that an archive calls and no PyTorch has: their schemas are given with the archive."""

from __future__ import annotations

import io
import re

import pytest
import torch
from compare import differences

from torch_mlir import torchscript
from torch_mlir.backends import reference

SCHEMA = "goofy::twist(Tensor x, int by=1) -> Tensor"
X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(scope="module", autouse=True)
def goofy():
    library = torch.library.Library("goofy", "DEF")
    library.define(SCHEMA.partition("::")[2])
    library.impl("twist", lambda x, by=1: x.roll(by, 1), "CPU")
    yield library


class Twists(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = torch.ops.goofy.twist(x, 2)
        return torch.ops.goofy.twist(x) + 1


def saved() -> bytes:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Twists()), buffer)
    return buffer.getvalue()


def run(module):
    return reference.ReferenceBackend().compile(module).function("forward")(X)


def test_an_operator_is_known_by_its_schema_for_one_import():
    archive = saved()
    for _ in range(2):
        with pytest.raises(torchscript.TorchMlirCompilerError, match="goofy::twist"):
            torchscript.import_archive(archive)
        module = torchscript.import_archive(archive, schemas=[SCHEMA])
        assert differences(archive, module) == []
    assert re.search(
        r'torch\.operator "torch\.goofy\.twist"\(%\w+, %\w+\) : \(!torch\.tensor, !torch\.int\)',
        str(module),
    )


def test_a_row_that_has_no_such_operator_gets_it_too():
    module = torchscript.import_archive(
        saved(), output_type="torch", schemas=[SCHEMA], torch_version="2.6", refine=False
    )
    assert torch.equal(run(module), Twists()(X))


def test_functions_give_what_pytorch_gives():
    module = torchscript.import_archive(
        saved(), output_type="torch", inputs=["2x3xf32"], schemas=[SCHEMA]
    )
    assert torch.equal(run(module), Twists()(X))


def test_what_pytorch_has_in_memory_brings_its_schemas():
    module = torchscript.compile(Twists(), X)
    assert 'torch.operator "torch.goofy.twist"' in str(module)
    assert torch.equal(run(module), Twists()(X))
    raw = torchscript.compile(Twists(), X, output_type="raw")
    assert differences(saved(), raw) == []

    @torch.jit.script
    def twisted(x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = torch.ops.goofy.twist(x)
        return x

    assert torch.equal(run(torchscript.compile(twisted, X)), X.roll(2, 1))


def test_an_overload_that_the_release_has_stays_its_own():
    archive = saved()
    wrong = "aten::add.Tensor(Tensor self) -> Tensor"
    module = torchscript.import_archive(archive, schemas=[SCHEMA, wrong])
    assert differences(archive, module) == []


@pytest.mark.parametrize("schema", ["twist(Tensor x) -> Tensor", "goofy::twist", "goofy::twist(T"])
def test_a_schema_that_is_none_is_quoted(schema):
    with pytest.raises(torchscript.TorchMlirCompilerError, match=re.escape(f"'{schema}'")):
        torchscript.import_archive(saved(), schemas=[schema])
