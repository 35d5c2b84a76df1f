# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pkgs/matrix/regenerate.py against an index of a few files on this machine."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REGENERATE = Path(__file__).parents[3] / "pkgs/matrix/regenerate.py"
OLD = b"\0_ZN3c106detail14torchCheckFailEPKcS2_jRKSs\0"
NEW = (
    b"\0_ZN3c106detail14torchCheckFailEPKcS2_jRK"
    b"NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE\0"
)


def wheel(symbols: bytes, filler: int = 0) -> bytes:
    """A wheel whose libc10.so holds ``symbols``, behind ``filler`` bytes of something else."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("torch/lib/libtorch_cuda.so", os.urandom(filler))
        archive.writestr("torch/lib/libc10.so", b"\x7fELF" + symbols)
    return content.getvalue()


class Index:
    """A simple index in its JSON form whose files answer range requests."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.yanked: set[str] = set()
        self.ranges = True
        self.sent = 0
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802  (the base class' name)
                index.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
        self.address = f"http://localhost:{self.server.server_port}/simple"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def listing(self) -> dict[str, Any]:
        return {
            "meta": {"api-version": "1.1"},
            "name": "torch",
            "files": [
                {
                    "filename": name,
                    "url": f"../../files/{name}",
                    "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                    "yanked": name in self.yanked,
                }
                for name, content in self.files.items()
            ],
        }

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        extra: dict[str, str] = {}
        name = request.path.rpartition("/")[2]
        if request.path == "/simple/torch/":
            content, status = json.dumps(self.listing()).encode(), 200
        elif request.path == "/html/torch/":
            content, status = b"<!DOCTYPE html><a href='torch.whl'>torch.whl</a>", 200
        elif name not in self.files:
            content, status = b"nothing here", 404
        else:
            content, status = self.files[name], 200
            asked = request.headers.get("Range")
            if asked and self.ranges:
                start, end = map(int, asked.removeprefix("bytes=").split("-"))
                extra["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
                content, status = content[start : end + 1], 206
            self.sent += len(content)
        request.send_response(status)
        for name, value in extra.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)


@pytest.fixture
def index() -> Iterator[Index]:
    index = Index()
    yield index
    index.server.shutdown()
    index.server.server_close()


def regenerate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(REGENERATE), *arguments], capture_output=True, text=True
    )


def rows(index: Index) -> dict[str, Any]:
    result = regenerate("--index", index.address, "-o", "-")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_row_holds_what_the_index_and_the_wheel_say(index: Index) -> None:
    old, new = wheel(OLD), wheel(NEW)
    index.files = {
        "torch-2.0.1-cp311-cp311-manylinux1_x86_64.whl": old,
        "torch-2.14.1-cp311-cp311-manylinux_2_28_x86_64.whl": new,
        "torch-2.14.1-cp313-cp313-manylinux_2_28_x86_64.whl": new + b"13",
    }
    assert rows(index) == {
        "2_0": {
            "version": "2.0.1",
            "wheels": {
                "cp311": {
                    "file": "torch-2.0.1-cp311-cp311-manylinux1_x86_64.whl",
                    "sha256": hashlib.sha256(old).hexdigest(),
                }
            },
            "cxx11_abi": False,
            "manylinux": "manylinux1",
            "libtorch_source": "1.13.1",
        },
        "2_14": {
            "version": "2.14.1",
            "wheels": {
                "cp311": {
                    "file": "torch-2.14.1-cp311-cp311-manylinux_2_28_x86_64.whl",
                    "sha256": hashlib.sha256(new).hexdigest(),
                },
                "cp313": {
                    "file": "torch-2.14.1-cp313-cp313-manylinux_2_28_x86_64.whl",
                    "sha256": hashlib.sha256(new + b"13").hexdigest(),
                },
            },
            "cxx11_abi": True,
            "manylinux": "manylinux_2_28",
            "libtorch_source": "2.6.0",
        },
    }


def test_the_newest_release_and_the_highest_build_are_taken(index: Index) -> None:
    plain = "cp311-cp311-manylinux_2_28_x86_64.whl"
    for name in ("2.9.1", "2.9.0", "2.10.0", "2.10.0-2", "2.10.0-10", "2.10.0-3"):
        index.files[f"torch-{name}-{plain}"] = wheel(NEW)
    found = rows(index)
    assert [row["wheels"]["cp311"]["file"] for row in found.values()] == [
        f"torch-2.9.1-{plain}",
        f"torch-2.10.0-10-{plain}",
    ]


def test_an_older_release_lends_no_wheel_to_a_newer_one(index: Index) -> None:
    for name in ("2.7.0-cp311-cp311", "2.7.0-cp313-cp313", "2.7.1-cp311-cp311"):
        index.files[f"torch-{name}-manylinux_2_28_x86_64.whl"] = wheel(NEW)
    assert list(rows(index)["2_7"]["wheels"]) == ["cp311"]


def test_other_files_and_yanked_ones_are_passed_over(index: Index) -> None:
    good = "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    yanked = "torch-2.8.1-cp311-cp311-manylinux_2_28_x86_64.whl"
    for name in (
        good,
        yanked,
        "torch-1.13.1-cp311-cp311-manylinux1_x86_64.whl",
        "torch-2.8.2-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-2.8.2-cp313-cp313t-manylinux_2_28_x86_64.whl",
        "torch-2.8.2-cp311-cp311-manylinux_2_28_aarch64.whl",
        "torch-2.8.2-cp311-cp311-win_amd64.whl",
        "torch-2.8.2+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.8.2rc1-cp311-cp311-manylinux_2_28_x86_64.whl",
    ):
        index.files[name] = wheel(NEW)
    index.yanked = {yanked}
    found = rows(index)
    assert [(name, row["wheels"]["cp311"]["file"]) for name, row in found.items()] == [
        ("2_8", good)
    ]


def test_a_new_row_takes_its_predecessors_sources(index: Index) -> None:
    for name in ("2.15.0", "2.16.0"):
        index.files[f"torch-{name}-cp311-cp311-manylinux_2_28_x86_64.whl"] = wheel(NEW)
    assert rows(index)["2_16"]["libtorch_source"] == "2.6.0"


def test_a_fraction_of_the_wheel_is_fetched(index: Index) -> None:
    content = wheel(NEW, filler=20_000_000)
    index.files = {"torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl": content}
    assert rows(index)["2_8"]["cxx11_abi"] is True
    assert index.sent < len(content) / 10


@pytest.mark.parametrize(("symbols", "word"), [(b"", "neither"), (OLD + NEW, "both")])
def test_a_library_that_does_not_tell_its_abi_is_an_error(
    index: Index, tmp_path: Path, symbols: bytes, word: str
) -> None:
    name = "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    index.files = {name: wheel(symbols)}
    result = regenerate("--index", index.address, "-o", str(tmp_path / "rows.json"))
    assert result.returncode == 1
    assert f"{name}: libc10.so names torchCheckFail with {word}" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_server_without_ranges_is_an_error(index: Index, tmp_path: Path) -> None:
    index.files = {"torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl": wheel(NEW)}
    index.ranges = False
    result = regenerate("--index", index.address, "-o", str(tmp_path / "rows.json"))
    assert result.returncode == 1
    assert "does not answer range requests" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_row_without_a_wheel_for_cpython_3_11_is_an_error(index: Index) -> None:
    index.files = {"torch-2.8.0-cp313-cp313-manylinux_2_28_x86_64.whl": wheel(NEW)}
    result = regenerate("--index", index.address, "-o", "-")
    assert (result.returncode, result.stdout) == (1, "")
    assert "row 2_8 has no wheel for cp311" in result.stderr


def test_the_output_file_is_replaced_whole(index: Index, tmp_path: Path) -> None:
    index.files = {"torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl": wheel(NEW)}
    output = tmp_path / "rows.json"
    output.write_text("what stood here before")
    assert regenerate("--index", index.address, "-o", str(output)).returncode == 0
    assert list(json.loads(output.read_text())) == ["2_8"]
    assert list(tmp_path.iterdir()) == [output]


@pytest.mark.parametrize(("path", "reason"), [("html", "Expecting value"), ("gone", "404")])
def test_an_index_without_the_json_form_is_an_error(index: Index, path: str, reason: str) -> None:
    address = index.address.replace("simple", path)
    result = regenerate("--index", address, "-o", "-")
    assert (result.returncode, result.stdout) == (1, "")
    assert f"{address}/torch/ gave no JSON file list" in result.stderr
    assert reason in result.stderr


def test_pips_index_is_asked_where_none_is_named(index: Index) -> None:
    index.files = {"torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl": wheel(NEW)}
    result = subprocess.run(
        [sys.executable, str(REGENERATE), "-o", "-"],
        capture_output=True,
        text=True,
        env={**os.environ, "PIP_INDEX_URL": index.address, "PIP_EXTRA_INDEX_URL": "file:///no"},
    )
    assert list(json.loads(result.stdout)) == ["2_8"]
