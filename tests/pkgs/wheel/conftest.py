"""A base wheel in miniature and the wheel of a row made from it, once a session."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "pkgs" / "wheel")]

import parts as parts_data  # noqa: E402
import row_wheel  # noqa: E402
from archive import write_wheel  # noqa: E402
from small_wheel import DIST_INFO, PARTS, Packages, good_files  # noqa: E402

DEBIAN_NAMES = {"base-files", "gcc-12-base", "libfmt-dev", "libstdc++-12-dev"}


@pytest.fixture(scope="session")
def base_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return good_files(tmp_path_factory.mktemp("objects"))


@pytest.fixture(scope="session")
def base_wheel(base_files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("base") / "torch_mlir_static-0.1.0-cp311-cp311-linux_x86_64.whl"
    write_wheel(path, base_files, DIST_INFO)
    return path


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return Packages(tmp_path_factory.mktemp("packages") / "all", DEBIAN_NAMES)


@pytest.fixture(scope="session")
def row_wheel_path(
    base_wheel: Path, packages: Packages, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    parts, texts = parts_data.load(
        PARTS, packages.files, packages.lock, packages.debian, "bookworm"
    )
    folder = tmp_path_factory.mktemp("row")
    return row_wheel.pack(base_wheel, "2_13", "2.13.0", parts, texts, folder)
