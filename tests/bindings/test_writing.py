# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writing operations to files: in pieces, and with the errors that files raise."""

from __future__ import annotations

import errno
import io
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from torch_mlir import ir

PIECE = 2**20


@pytest.fixture
def module() -> Iterator[ir.Module]:
    """Four megabytes of text, in characters of two, three and four bytes, and as much data."""
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        module = ir.Module.parse("module { func.func private @f() }")
        attributes = module.operation.attributes
        # MLIR escapes strings; what it knows nothing of it writes as it is.
        attributes["some.text"] = ir.Attribute.parse(f'#some<"{"aé€😀" * (2**22 // 10)}">')
        kind = ir.RankedTensorType.get([2**22], ir.IntegerType.get_signless(8, context))
        attributes["some.data"] = ir.DenseResourceElementsAttr.get_from_buffer(
            bytes(range(256)) * 2**14, "data", kind, alignment=1
        )
        yield module


class Pieces:
    """Keeps what is written."""

    def __init__(self, most: int | None = None) -> None:
        self.pieces: list[bytes | str] = []
        self.most = most

    def write(self, piece: bytes | str) -> int:
        self.pieces.append(piece[: self.most])
        return len(self.pieces[-1])


def bytecode(module: ir.Module) -> bytes:
    with io.BytesIO() as file:
        module.operation.write_bytecode(file)
        return file.getvalue()


def test_bytecode_comes_in_pieces_of_a_megabyte(module: ir.Module) -> None:
    file = Pieces()
    module.operation.write_bytecode(file)
    sizes = [len(piece) for piece in file.pieces]
    assert set(sizes[:-1]) == {PIECE}
    assert 8 * PIECE < sum(sizes) < 9 * PIECE
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        again = ir.Module.parse(b"".join(file.pieces))  # type: ignore[arg-type]
        assert str(again) == str(module)


@pytest.mark.parametrize("with_state", [False, True])
def test_text_comes_in_pieces_that_do_not_cut_characters(
    module: ir.Module, with_state: bool
) -> None:
    file = Pieces()
    options = {"state": ir.AsmState(module.operation)} if with_state else {}
    module.operation.print(file=file, **options)
    assert max(len(piece.encode()) for piece in file.pieces if isinstance(piece, str)) <= PIECE
    assert len(file.pieces) < 16
    assert "".join(map(str, file.pieces)) == str(module)
    assert str(module).count("😀") == 2**22 // 10


def test_text_is_written_as_bytes_where_asked_for(module: ir.Module) -> None:
    file = io.BytesIO()
    module.operation.print(file=file, binary=True)
    assert file.getvalue().decode() == str(module)


def test_writing_takes_no_memory_for_the_whole(module: ir.Module) -> None:
    with open(os.devnull, "wb") as file:
        module.operation.write_bytecode(file)
        tracemalloc.start()
        module.operation.write_bytecode(file)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert PIECE <= peak < 3 * PIECE


def test_files_that_take_a_part_get_the_rest_too(module: ir.Module) -> None:
    file = Pieces(most=300_000)
    module.operation.write_bytecode(file)
    assert b"".join(file.pieces) == bytecode(module)  # type: ignore[arg-type]


def test_a_file_that_takes_nothing_is_an_error(module: ir.Module) -> None:
    with pytest.raises(BlockingIOError, match="takes no more"):
        module.operation.write_bytecode(Pieces(most=0))


def test_a_path_is_a_file(module: ir.Module, tmp_path: Path) -> None:
    path = tmp_path / "module.mlirbc"
    module.operation.write_bytecode(str(path))
    assert path.read_bytes() == bytecode(module)
    module.operation.print(file=path)
    assert path.read_text(encoding="utf-8") == str(module)


def test_a_device_that_is_full_raises(module: ir.Module) -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        module.operation.write_bytecode("/dev/full")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        module.operation.print(file="/dev/full")


def test_a_path_that_can_not_be_opened_raises(module: ir.Module, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        module.operation.write_bytecode(str(tmp_path / "missing" / "module.mlirbc"))


def test_the_first_error_of_a_file_is_raised_and_ends_the_writing(module: ir.Module) -> None:
    class Fails:
        calls = 0

        def write(self, piece: bytes) -> None:
            self.calls += 1
            if self.calls == 2:
                raise KeyboardInterrupt("second")

    for write in ("write_bytecode", "print"):
        file = Fails()
        with pytest.raises(KeyboardInterrupt, match="second"):
            getattr(module.operation, write)(file=file)
        assert file.calls == 2
    # Nothing is left behind that would keep the module from being written again.
    assert bytecode(module) == bytecode(module)


def test_a_version_that_mlir_does_not_write_is_an_error(module: ir.Module) -> None:
    with pytest.raises(ValueError, match="bytecode version 1000"):
        module.operation.write_bytecode(io.BytesIO(), desired_version=1000)


def test_an_operation_that_is_gone_is_not_written() -> None:
    with ir.Context():
        module = ir.Module.parse("module { func.func private @f() }")
        function = module.body.operations[0].operation
        function.erase()
        for write in (function.write_bytecode, lambda file: function.print(file=file)):
            with pytest.raises(RuntimeError, match="invalidated"):
                write(io.BytesIO())
