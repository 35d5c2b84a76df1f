# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What holds imports against PyTorch's graphs finds what is different: modules are changed here."""

from __future__ import annotations

import re

import pytest
from compare import differences

from torch_mlir import ir, torchscript


@pytest.fixture
def changed(archive_of):
    """Replaces text in a case's import; what the comparison says then."""

    def change(name: str, old: str, new: str) -> list[str]:
        archive = archive_of(name)
        module = torchscript.import_archive(archive)
        assert differences(archive, module) == []
        text, count = re.subn(old, new, str(module), count=1)
        assert count == 1, f"{old!r} is not in\n{module}"
        return differences(archive, ir.Module.parse(text, ir.Context()))

    return change


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        # Classes and objects
        ("Methods", r'torch.method "scale", .*\n', "", "methods"),
        ("Methods", r'torch.attr "factor" : !torch.float', 'torch.attr "factor" : !torch.any',
         "attributes"),
        ("Methods", r'torch.method "scale", @(\S+)\.scale', r'torch.method "scale", @\1.forward',
         "method scale"),
        ("Methods", r"constant.float 2.0\S+", "constant.float 2.5", "factor: 2.5, and 2.0"),
        ("ListsOfEverything", r'constant.str "\\C3\\A9"', 'constant.str "e"', "words.1"),
        # Constants
        ("Branches", r"constant.int 3\b", "constant.int 4", "constant"),
        ("NumericConstants", r"constant.float -0.0\S+", "constant.float 0.0", "constant"),
        ("ConstantTensors", r'803F"', '8040"', "constant"),
        # Functions
        ("Products", r"torch.aten.addmm (%\d+), (%arg\d), (%arg\d)", r"torch.aten.addmm \1, \3, \2",
         "operand 1 of torch.aten.addmm"),
        ("function_alone", r"torch.aten.relu", "torch.aten.neg", "torch.aten.neg stands where"),
        ("Loops", r"torch.prim.Loop %arg2,", "torch.prim.Loop %int10,",
         "operand 0 of torch.prim.Loop"),
        ("Lists", r"torch.aten.extend.t .*\n", "", "stands where torch.aten.extend.t"),
        ("Submodules", r'\["forward"\]', '["backward"]', "is about 'backward'"),
        ("State", r'torch.prim.SetAttr (%\S+)\["calls"\]', r'torch.prim.SetAttr \1["total"]',
         "is about 'total'"),
    ],
)  # fmt: skip
def test_a_change_is_found(changed, name, old, new, says):
    found = changed(name, old, new)
    assert found != []
    assert says in found[0]


def with_a_copy(text: str, slot: str) -> str:
    """A module in which the last slot of that name holds a copy of what it held."""
    *_, held = re.finditer(rf'torch.slot "{slot}", (%\w+) ', text)
    made = re.search(rf"\n  {held[1]} = (torch.nn_module \{{\n(?:.*\n)*?  \}}.*|torch.*)\n", text)
    assert made is not None
    text = text[: held.start(1)] + "%copy" + text[held.end(1) :]
    return text[: made.end()] + f"  %copy = {made[1]}\n" + text[made.end() :]


@pytest.mark.parametrize(
    ("name", "slot", "what"),
    [("TiedWeights", "weight", "tensor"), ("SharedSubmodule", "same", "object")],
)
def test_what_is_shared_no_more_is_found(archive_of, name, slot, what):
    archive = archive_of(name)
    module = torchscript.import_archive(archive)
    before = differences(archive, module)
    copied = with_a_copy(str(module), slot)
    found = differences(archive, ir.Module.parse(copied, ir.Context()))
    assert any(f"two {what}s, and one {what} in PyTorch" in line for line in found)
    assert not any(f"two {what}s" in line for line in before)
