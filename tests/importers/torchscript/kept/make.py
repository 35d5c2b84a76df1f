# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the archives that are kept here, and beside each what its own PyTorch holds for it.

    python make.py [FOLDER]

`programs.txt` is scripted by the PyTorch that runs this, and saved into a folder of its version:
the same bytes each time, wherever it runs. What that PyTorch has in memory for an archive is
written as text, which doesn't depend on the PyTorch that reads it. Of each class, by name, its
attributes, and its methods, which are their arguments and a line for each node:

    %3 = aten.add.Scalar(%1, %2, 1)

Operators have their overload's name, other nodes their kind's, and in brackets what attribute or
method they are about. Constants stand where they are used, and containers of nothing but
constants; so do tensors, as their bytes. Nodes that only narrow a type are left out. Then the root
object: the attributes of each object, in which those of others lie.
"""

from __future__ import annotations

import ctypes
import io
import json
import linecache
import re
import sys
import types
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
NAMES = ("Branches", "Containers", "Objects", "Dtypes")

_NARROWING = ("prim::unchecked_cast",)


def programs() -> types.ModuleType:
    """The module of `programs.txt`, whose code lies in a file that is called the same anywhere."""
    text = (HERE / "programs.txt").read_text(encoding="utf-8")
    module = types.ModuleType("programs")
    module.__file__ = "programs.py"
    sys.modules["programs"] = module
    linecache.cache["programs.py"] = (len(text), None, text.splitlines(True), "programs.py")
    exec(compile(text, "programs.py", "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module


def archive(program: type[torch.nn.Module]) -> bytes:
    """The archive of a program, as this PyTorch writes it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        buffer = io.BytesIO()
        torch.jit.save(torch.jit.script(program().eval()), buffer)
    return buffer.getvalue()


def constant(value: Any) -> str:
    """A value as text."""
    if isinstance(value, torch.Tensor):
        plain = value.detach().contiguous()
        size = plain.numel() * plain.element_size()
        data = ctypes.string_at(plain.data_ptr(), size) if size else b""
        dtype = str(plain.dtype).removeprefix("torch.")
        return f"tensor({dtype}, {list(plain.shape)}, {data.hex()})"
    if isinstance(value, (list, tuple)):
        return sequence(isinstance(value, tuple), map(constant, value))
    if isinstance(value, dict):
        return mapping(map(constant, value.keys()), map(constant, value.values()))
    if isinstance(value, str):
        return json.dumps(value)
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    raise ValueError(f"no text for a {type(value)}")


def sequence(is_tuple: bool, elements: Any) -> str:
    """A list or tuple of texts."""
    return ("({})" if is_tuple else "[{}]").format(", ".join(elements))


def mapping(keys: Any, values: Any) -> str:
    """A dict of texts."""
    return "{{{}}}".format(", ".join(f"{key}: {value}" for key, value in zip(keys, values)))


class Graph:
    """The lines of a graph."""

    def __init__(self, graph: Any) -> None:
        self.values: dict[str, str] = {}
        self.count = 0
        self.graph = graph

    def lines(self) -> Iterator[str]:
        yield from self.block(self.graph, "arguments", "return", "")

    def new(self, value: Any) -> str:
        self.values[value.debugName()] = text = f"%{self.count}"
        self.count += 1
        return text

    def of(self, values: Any) -> list[str]:
        return [self.values[value.debugName()] for value in values]

    def block(self, block: Any, begin: str, end: str, indent: str) -> Iterator[str]:
        yield f"{indent}{begin}({', '.join(map(self.new, block.inputs()))})"
        for node in block.nodes():
            yield from self.node(node, indent)
        yield f"{indent}{end}({', '.join(self.of(block.outputs()))})"

    def node(self, node: Any, indent: str) -> Iterator[str]:
        kind = node.kind()
        inputs = self.of(node.inputs())
        if kind == "prim::Constant":
            self.values[node.output().debugName()] = constant(node.output().toIValue())
            return
        if kind in _NARROWING:
            self.values[node.output().debugName()] = inputs[0]
            return
        folded = fold(kind.replace("::", "."), inputs)
        if folded is not None:
            self.values[node.output().debugName()] = folded
            return
        schema = re.match(r"(\w+)::([\w.]+)\(", node.schema()) if "(" in node.schema() else None
        name = f"{schema[1]}.{schema[2]}" if schema else kind.replace("::", ".")
        about = f"[{node.s('name')}]" if node.hasAttribute("name") else ""
        results = ", ".join(map(self.new, node.outputs()))
        arrow = f"{results} = " if results else ""
        yield f"{indent}{arrow}{name}{about}({', '.join(inputs)})"
        for block in node.blocks():
            yield from self.block(block, "block", "yield", indent + "  ")


def fold(kind: str, inputs: list[str]) -> str | None:
    """A container of constants, keys and values by turns in a dict, as a constant."""
    if any(text.startswith("%") for text in inputs):
        return None
    if kind in ("prim.ListConstruct", "prim.TupleConstruct"):
        return sequence(kind == "prim.TupleConstruct", inputs)
    if kind == "prim.DictConstruct":
        return mapping(inputs[::2], inputs[1::2])
    return None


def classes(archive: bytes) -> dict[str, tuple[list[str], list[str]]]:
    """By the names of the classes that the archive's text defines: their attributes and methods.

    What PyTorch shows of a class has no list of either. NamedTuples are tuples.
    """
    found = {}
    with zipfile.ZipFile(io.BytesIO(archive)) as records:
        for record in records.namelist():
            folder, _, path = record.partition("/code/")
            if not folder or not path.endswith(".py"):
                continue
            prefix = path[: -len(".py")].replace("/", ".")
            text = records.read(record).decode()
            parts = r"^class (\w+)(?:\((\w*)\))?:\n((?:  .*\n|\n)*)"
            for name, base, body in re.findall(parts, text, re.MULTILINE):
                if base != "NamedTuple":
                    # Names that aren't Python's are written otherwise.
                    member = r'^  (?:(\w+) : (?!Final)|__annotations__\["(.*)"\] = )'
                    named = ["".join(names) for names in re.findall(member, body, re.MULTILINE)]
                    methods = re.findall(r"^  def (\w+)\(", body, re.MULTILINE)
                    found[f"{prefix}.{name}"] = named, methods
    return dict(sorted(found.items()))


def held(value: Any, named: dict[str, tuple[list[str], list[str]]]) -> str:
    """A value of an attribute, objects included."""
    if hasattr(value, "_type") and not isinstance(value, torch.Tensor):
        name = value._type().qualified_name()
        inner = (f"{each} = {held(value.getattr(each), named)}" for each in named[name][0])
        return f"{name}({', '.join(inner)})"
    return constant(value)


def description(archive: bytes) -> str:
    """What this PyTorch has in memory for an archive."""
    unit = torch._C.CompilationUnit()
    root = torch._C.import_ir_module_from_buffer(unit, archive, None, {}, False)
    named = classes(archive)
    lines = []
    for name, (attributes, methods) in named.items():
        lines.append(f"class {name}({', '.join(attributes)})")
        for method in methods:
            lines.append(f"method {method}")
            lines += Graph(unit.find_function(f"{name}.{method}").graph).lines()
    lines.append(f"root {held(root, named)}")
    return "\n".join([*lines, ""])


def main() -> None:
    """Write all archives, and what is held for them."""
    version = ".".join(torch.__version__.split(".")[:2])
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else HERE, version)
    folder.mkdir(parents=True, exist_ok=True)
    module = programs()
    for name in NAMES:
        data = archive(getattr(module, name))
        (folder / f"{name}.pt").write_bytes(data)
        (folder / f"{name}.txt").write_text(description(data), encoding="utf-8")


if __name__ == "__main__":
    main()
