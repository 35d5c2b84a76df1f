# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Archives that several PyTorches wrote, and what each of them held for its own.

No PyTorch is needed: see kept/make.py, which wrote both and tells how the text reads.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from torch_mlir import ir, torchscript
from torch_mlir._mlir_libs import _torchMlir as native

KEPT = Path(__file__).parent / "kept"
ARCHIVES = sorted(KEPT.glob("*/*.pt"), key=lambda path: path.relative_to(KEPT).as_posix())

# What has no node in PyTorch's graph, or only narrows a type in it.
_CASTS = ("torch.derefine", "torch.tensor_static_info_cast", "torch.prim.unchecked_cast")


def description(module: ir.Module) -> str:
    """A raw import, as kept/make.py writes what PyTorch holds."""
    functions, lines, classes = {}, [], []
    values = _Values()
    root = ""
    for view in module.body.operations:
        operation = view.operation
        if operation.name == "func.func":
            functions[_text(operation, "sym_name")] = operation
        elif operation.name == "torch.class_type":
            classes.append(operation)
        else:
            root = values.constant(operation) or root
    for operation in sorted(classes, key=lambda operation: _text(operation, "sym_name")):
        members = [member.operation for member in operation.regions[0].blocks[0].operations]
        attributes = [_text(each, "name") for each in members if each.name == "torch.attr"]
        lines.append(f"class {_text(operation, 'sym_name')}({', '.join(attributes)})")
        for member in members:
            if member.name != "torch.method":
                continue
            lines.append(f"method {_text(member, 'name')}")
            called = functions[ir.FlatSymbolRefAttr(member.attributes["function"]).value]
            block = called.regions[0].blocks[0]
            lines += _Values().block(block, "arguments", "return", "")
    return "\n".join([*lines, f"root {root}", ""])


class _Values:
    """What the values of a block, and of those in it, are written as."""

    def __init__(self) -> None:
        self.texts: dict[ir.Value, str] = {}
        self.count = 0

    def new(self, value: ir.Value) -> str:
        self.texts[value] = text = f"%{self.count}"
        self.count += 1
        return text

    def of(self, values: Sequence[ir.Value]) -> list[str]:
        return [self.texts[value] for value in values]

    def block(self, block: ir.Block, begin: str, end: str, indent: str) -> Iterator[str]:
        yield f"{indent}{begin}({', '.join(map(self.new, block.arguments))})"
        *operations, last = (view.operation for view in block.operations)
        for operation in operations:
            yield from self.operation(operation, indent)
        yield f"{indent}{end}({', '.join(self.of(last.operands))})"

    def operation(self, operation: ir.Operation, indent: str) -> Iterator[str]:
        if self.constant(operation) is not None:
            return
        inputs = self.of(operation.operands)
        name = operation.name.removeprefix("torch.")
        if name == "operator":
            name = _text(operation, "name").removeprefix("torch.")
        if name == "prim.DictConstruct":
            half = len(inputs) // 2
            inputs = [text for pair in zip(inputs[:half], inputs[half:]) for text in pair]
        is_about = name in ("prim.GetAttr", "prim.SetAttr", "prim.CallMethod")
        about = f"[{_text(operation, 'name')}]" if is_about else ""
        results = ", ".join(map(self.new, operation.results))
        arrow = f"{results} = " if results else ""
        yield f"{indent}{arrow}{name}{about}({', '.join(inputs)})"
        for region in operation.regions:
            yield from self.block(region.blocks[0], "block", "yield", indent + "  ")

    def constant(self, operation: ir.Operation) -> str | None:
        """The text of what is no node of PyTorch's, which it takes note of; None for a node."""
        name = operation.name
        text: str | None = None
        if name in _CASTS:
            text = self.texts[operation.operands[0]]
        elif name == "torch.constant.none":
            text = "None"
        elif name == "torch.constant.bool":
            text = str(ir.BoolAttr(operation.attributes["value"]).value)
        elif name == "torch.constant.int":
            text = str(ir.IntegerAttr(operation.attributes["value"]).value)
        elif name == "torch.constant.float":
            text = repr(ir.FloatAttr(operation.attributes["value"]).value)
        elif name == "torch.constant.str":
            text = json.dumps(_text(operation, "value"))
        elif name == "torch.tensor.literal":
            text = _tensor(operation)
        elif name == "torch.nn_module":
            kind = re.search(r'"(.*)"', str(operation.results[0].type))
            assert kind is not None
            slots = (view.operation for view in operation.regions[0].blocks[0].operations)
            inner = [
                f"{_text(slot, 'name')} = {self.texts[slot.operands[0]]}"
                for slot in slots
                if slot.name == "torch.slot"
            ]
            text = f"{kind[1]}({', '.join(inner)})"
        elif name.endswith("Construct") and name.startswith("torch.prim."):
            text = self.container(name, self.of(operation.operands))
        elif name == "torch.prims.convert_element_type":
            # MLIR's bools are bits: those that differ are stored as bytes.
            text = self.texts[operation.operands[0]].replace("tensor(uint8", "tensor(bool")
        if text is not None:
            self.texts[operation.results[0]] = text
        return text

    def container(self, name: str, inputs: list[str]) -> str | None:
        if any(text.startswith("%") for text in inputs):
            return None
        if name == "torch.prim.TupleConstruct":
            return f"({', '.join(inputs)})"
        if name == "torch.prim.ListConstruct":
            return f"[{', '.join(inputs)}]"
        half = len(inputs) // 2
        pairs = (f"{key}: {value}" for key, value in zip(inputs[:half], inputs[half:]))
        return "{{{}}}".format(", ".join(pairs))


def _tensor(operation: ir.Operation) -> str:
    kind, address, size, is_splat = native.elements_data(operation, "value")
    match = re.match(r"tensor<((?:\d+x)*)(.*)>$", str(kind))
    assert match is not None
    shape = [int(length) for length in match[1].split("x") if length]
    count = 1
    for length in shape:
        count *= length
    dtype = torchscript.TensorArgument.parse(match[2]).dtype
    data = ctypes.string_at(address, size) if count else b""
    if dtype == "bool":
        data = bytes([data[0] & 1])
    return f"tensor({dtype}, {shape}, {(data * count if is_splat else data).hex()})"


def _text(operation: ir.Operation, name: str) -> str:
    return str(ir.StringAttr(operation.attributes[name]).value)


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_import_is_what_the_archives_own_pytorch_held(path):
    module = torchscript.import_archive(path, torch_version=path.parent.name)
    wanted = path.with_suffix(".txt").read_text(encoding="utf-8")
    assert description(module).splitlines() == wanted.splitlines()


def test_there_are_archives_of_several_releases():
    by_release = {}
    for path in ARCHIVES:
        by_release.setdefault(path.parent.name, []).append(path.stem)
    assert len(by_release) >= 4 and len({tuple(names) for names in by_release.values()}) == 1


def test_the_script_writes_the_same_again(tmp_path):
    torch = pytest.importorskip("torch")
    version = ".".join(torch.__version__.split(".")[:2])
    if not (KEPT / version).is_dir():
        pytest.skip(f"PyTorch {version} wrote none of those that are kept")
    subprocess.run([sys.executable, "-P", KEPT / "make.py", tmp_path], check=True)
    for kept in (KEPT / version).iterdir():
        assert (tmp_path / version / kept.name).read_bytes() == kept.read_bytes(), kept.name
