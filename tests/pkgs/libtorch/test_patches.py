# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pkgs/libtorch/patches: which are for which PyTorch, and that each can be applied."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

LIBTORCH = Path(__file__).parents[3] / "pkgs/libtorch"
PATCHES = sorted((LIBTORCH / "patches").glob("*.patch"))


def test_every_patch_is_named_with_its_reason():
    named = json.loads((LIBTORCH / "libtorch.json").read_text())["patches"]
    assert sorted(entry["patch"] for entry in named) == [path.name for path in PATCHES]


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.name)
def test_a_patch_changes_files_below_the_source_tree(path):
    text = path.read_text()
    old, new = (re.findall(rf"^{sign} (\S+)$", text, re.MULTILINE) for sign in ("---", r"\+\+\+"))
    assert new and old == [name.replace("b/", "a/", 1) for name in new]
    assert all(name.startswith("b/") and ".." not in name for name in new)


@pytest.mark.skipif(shutil.which("patch") is None, reason="no patch(1) here")
@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.name)
def test_a_patch_applies_to_what_it_shows_of_the_source(path, tmp_path):
    """On a tree of the lines that its hunks show, so that line counts are right."""
    wanted = {}
    for part in re.split(r"^--- a/", path.read_text(), flags=re.MULTILINE)[1:]:
        name, _, *lines = part.splitlines()
        shown = [line for line in lines if not line.startswith("@@")]
        wanted[name] = [line[1:] for line in shown if line[0] != "-"]
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("".join(line[1:] + "\n" for line in shown if line[0] != "+"))
    subprocess.run(
        ["patch", "-p1", "-F0", "-i", str(path)], cwd=tmp_path, check=True, capture_output=True
    )
    for name, lines in wanted.items():
        assert (tmp_path / name).read_text().splitlines() == lines


@pytest.mark.skipif(shutil.which("nix-instantiate") is None, reason="no Nix here")
@pytest.mark.parametrize(
    ("version", "others"),
    [
        ("1.13.1", ["sort_objects-1.13.patch"]),
        ("2.6.0", ["sort_objects.patch"]),
        ("2.10.0", ["sort_objects.patch"]),
    ],
)
def test_a_version_gets_the_patches_that_are_for_it(version, others):
    expression = f'map baseNameOf (import {LIBTORCH}/patches "{version}")'
    done = subprocess.run(
        ["nix-instantiate", "--eval", "--strict", "--json", "-E", expression],
        check=True,
        capture_output=True,
        text=True,
    )
    names = [path.split("-", 1)[1] for path in json.loads(done.stdout)]
    assert names == [
        "alias_analysis.patch",
        "object_slots.patch",
        "SmallVector.patch",
        "imports.patch",
        "operators.patch",
        *others,
    ]
