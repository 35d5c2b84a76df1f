"""The lock names files and hashes, and no host that they came from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

LOCK = Path(__file__).resolve().parents[3] / "poetry.lock"
PACKAGES = tomllib.loads(LOCK.read_text(encoding="utf-8"))["package"]


def test_every_package_has_files_with_sha256_hashes() -> None:
    without = [
        package["name"]
        for package in PACKAGES
        if not package["files"]
        or not all(re.fullmatch("sha256:[0-9a-f]{64}", file["hash"]) for file in package["files"])
    ]
    assert without == []


def test_no_package_names_a_source() -> None:
    assert [package["name"] for package in PACKAGES if "source" in package] == []
    assert "://" not in LOCK.read_text(encoding="utf-8")
