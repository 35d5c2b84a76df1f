# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator registry follows the release of PyTorch that an archive is of."""

from __future__ import annotations

import io
import json
import random
import re
import subprocess
import sys
import textwrap
import threading
import warnings
import zipfile
from pathlib import Path

import pytest
import torch

from torch_mlir import torchscript
from torch_mlir._mlir_libs import _jit_ir_importer as native

OPERATORS = Path(__file__).parents[3] / "torch_mlir/operators"


def written(program: torch.nn.Module, **replaced: str) -> bytes:
    """The archive of a program, with names in its code replaced: PyTorch writes only what it
    has operators for itself."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # What PyTorch says of its own TorchScript.
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(program), buffer)
    if not replaced:
        return buffer.getvalue()
    result = io.BytesIO()
    with zipfile.ZipFile(buffer) as archive, zipfile.ZipFile(result, "w") as other:
        for item in archive.infolist():
            data = archive.read(item)
            if item.filename.endswith(".py"):
                text = data.decode()
                for old, new in replaced.items():
                    assert f"torch.{old}(" in text
                    text = text.replace(f"torch.{old}(", f"torch.{new}(")
                data = text.encode()
            if not item.filename.endswith(".debug_pkl"):
                other.writestr(item.filename, data)
    return result.getvalue()


class Divide(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.div(x, y)


class Relu(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


class Clamp(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(x, 0.0, 1.0)


class Maximum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.maximum(x, x)


class Computed(torch.nn.Module):
    """Loading it runs an operator."""

    @torch.jit.export
    def __getstate__(self) -> tuple[torch.Tensor, bool]:
        return torch.ones(2, 3), self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[torch.Tensor, bool]) -> None:
        self.weight = torch.relu(state[0])
        self.training = state[1]

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.ones(2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.weight


@pytest.fixture(scope="module")
def registries() -> dict[str, list[str]]:
    """What the data has for each row."""
    if not (OPERATORS / "_rows.py").exists():
        pytest.skip("no source tree")
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import _rows; rows = _rows.read()\n"
        "print(json.dumps({r: sum(rows.registry(r).values(), []) for r in rows.names}))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(OPERATORS)],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def as_read(schema: str) -> str:
    """As libtorch 2.6 reads and prints it: alias sets have no order, SymBool is younger."""
    sets = re.sub(r"\b\w(\|\w)+", lambda m: "|".join(sorted(m[0].split("|"))), schema)
    return re.sub(r"\bSymBool\b", "bool", sets)


def test_each_rows_registry_has_its_pytorchs_schemas_in_its_order(
    registries: dict[str, list[str]],
) -> None:
    assert native.rows() == list(registries)
    for row, schemas in registries.items():
        found = [as_read(schema) for schema in native.operators(row)]
        assert found == [as_read(schema) for schema in schemas], row


def test_rows_can_be_chosen_in_any_order() -> None:
    rows = native.rows()
    first = {row: native.operators(row) for row in rows}
    draw = random.Random(0)
    for row in draw.choices(rows, k=20):
        assert native.operators(row) == first[row], row


def test_an_unknown_row_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no row '1_12': there are schemas of 2_0 2_1 2_2"):
        native.operators("1_12")


@pytest.fixture(scope="module")
def fill() -> bytes:
    """Calls an operator that takes a generator, by default none, since 2.2."""
    return written(Clamp(), clamp="_no_grad_uniform_")


def test_operands_that_a_row_lacks_have_their_defaults(fill: bytes) -> None:
    for row in ("2.0", "2.6", "2.1", "2.15"):
        text = str(torchscript.import_archive(fill, torch_version=row))
        (call,) = (line for line in text.splitlines() if "_no_grad_uniform_" in line)
        operation, _, rest = call.partition(" = ")[2].partition(" ")
        assert operation == "torch.aten._no_grad_uniform_", row
        operands, _, types = rest.partition(" : ")
        assert operands.count("%") == 4, row
        assert types.startswith("!torch.tensor, !torch.float, !torch.float, !torch.none"), row


@pytest.mark.parametrize(
    ("program", "replaced", "having", "lacking"),
    [
        (Relu(), {"relu": "linalg_matrix_sqrth"}, "2.14", "2.13"),
        (Maximum(), {"maximum": "align_as"}, "2.12", "2.13"),
    ],
)
def test_an_operator_resolves_in_the_rows_that_have_it(
    program: torch.nn.Module, replaced: dict[str, str], having: str, lacking: str
) -> None:
    archive = written(program, **replaced)
    (operator,) = replaced.values()
    assert f"aten.{operator}" in str(torchscript.import_archive(archive, torch_version=having))
    # Without a release, one that has it is found.
    assert f"aten.{operator}" in str(torchscript.import_archive(archive))
    with pytest.raises(torchscript.TorchMlirCompilerError, match=f"aten::{operator}"):
        torchscript.import_archive(archive, torch_version=lacking)


def test_libtorchs_own_torchscript_does_not_need_the_rows_operators() -> None:
    # Its upgraders call aten::full.names, which 2.13 dropped. All are compiled when the process
    # meets an operator that one replaces: up to version 3, integers were divided with truncation.
    old = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(written(Divide()))) as archive, zipfile.ZipFile(old, "w") as to:
        for item in archive.infolist():
            is_version = item.filename.endswith("/version")
            to.writestr(item.filename, b"3\n" if is_version else archive.read(item))
    program = textwrap.dedent("""
        import sys
        from torch_mlir import torchscript
        print(torchscript.import_archive(sys.stdin.buffer.read(), torch_version="2.15"))
    """)
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        input=old.getvalue(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"torch.aten.div.Tensor_mode" in done.stdout


def test_a_process_ends_well_after_a_load_that_failed() -> None:
    program = textwrap.dedent("""
        import sys
        from torch_mlir import torchscript
        try:
            torchscript.import_archive(sys.stdin.buffer.read(), torch_version="2.13")
        except torchscript.TorchMlirCompilerError as error:
            print("refused")
    """)
    archive = written(Relu(), relu="no_such_operator")
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], input=archive, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, [b"refused"]), done.stderr.decode()


def test_an_operator_that_loading_runs_and_has_no_kernel_is_named() -> None:
    with pytest.raises(torchscript.TorchMlirCompilerError, match=r"no kernel for aten::relu"):
        torchscript.import_archive(written(Computed()))


@pytest.mark.parametrize("row", native.rows())
def test_kernels_run_in_every_row(row: str) -> None:
    version = row.replace("_", ".")
    text = str(torchscript.import_archive(written(Computed(), relu="clone"), torch_version=version))
    assert re.search(r"tensor<2x3xf32>|\[2,3\],f32", text)


def test_threads_import_with_rows_of_their_own(fill: bytes) -> None:
    expected = {
        row: str(torchscript.import_archive(fill, torch_version=row)) for row in ("2.1", "2.15")
    }
    assert expected["2.1"] != expected["2.15"]
    wrong: list[str] = []

    def work(row: str) -> None:
        for _ in range(8):
            if str(torchscript.import_archive(fill, torch_version=row)) != expected[row]:
                wrong.append(row)

    threads = [threading.Thread(target=work, args=(row,)) for row in ("2.1", "2.15") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
