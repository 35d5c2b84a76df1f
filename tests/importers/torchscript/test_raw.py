# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Raw imports: the object graph and every method, as PyTorch has them in memory."""

from __future__ import annotations

import io

import pytest
import torch
from compare import differences
from eager_calls import hold

from torch_mlir import ir, torchscript
from torch_mlir.backends import reference


def test_the_import_is_what_pytorch_has_in_memory(case, archive_of):
    archive = archive_of(case)
    module = torchscript.import_archive(archive)
    assert differences(archive, module) == []


def test_calls_give_what_pytorch_gives(case, archive_of):
    archive = archive_of(case)
    module = torchscript.import_archive(archive)
    program = reference.ReferenceBackend().compile(module)
    root = program.objects[-1]
    hold(
        case,
        archive,
        lambda method, args: program.function(program.compiler.methods[root.kind, method])(
            root, *args
        ),
    )


def test_what_has_no_form_in_the_dialect_is_refused(refused_case, archive_of):
    archive = archive_of(refused_case)
    with pytest.raises(torchscript.TorchMlirCompilerError, match=refused_case.refused):
        torchscript.import_archive(archive)


def test_text_and_bytecode_hold_the_whole_module(case, archive_of):
    module = torchscript.import_archive(archive_of(case))
    text = str(module)
    assert str(ir.Module.parse(text, ir.Context())) == text


def test_the_module_outlives_the_bytes(archive_of):
    archive = bytearray(archive_of("LargeTensor"))
    module = torchscript.import_archive(archive)
    del archive
    program = reference.ReferenceBackend().compile(module)
    table = program.objects[-1].attributes["table"]
    assert torch.equal(table, torch.arange(65536, dtype=torch.int32).reshape(256, 256))


def test_the_ranges_of_a_long_source_count_by_what_they_take():
    """Each of them names its source, and that all of its lines: together a square of those."""
    module = torch.jit.script(torch.nn.Module())
    count = 200
    module.define(
        "\n".join(["def forward(self, x):", *["    x = x + 1"] * count, "    return x\n"])
    )
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    limits = {"pickle_unshared_values": count * count // 4}
    text = str(torchscript.import_archive(buffer.getvalue(), limits=limits))
    assert text.count("torch.aten.add.Scalar") == count
