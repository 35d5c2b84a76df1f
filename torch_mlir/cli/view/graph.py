# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module as plain data: nodes, the groups they are in, and the edges between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ... import ir

_TENSOR = re.compile(r"v?tensor<(?:\[([^\]]*)\]|(\*)),((?:[^<>,]|<[^<>]*>)+)(?:,[^<>]*)?>")
_LITERALS = ("torch.vtensor.literal", "torch.tensor.literal")
_RESOURCE = re.compile(r"dense_resource<(.*)> : ", re.DOTALL)
# Elements of a literal that are shown; of more, only the type is.
_SHOWN_ELEMENTS = 8


@dataclass
class Group:
    """A function, a module of the hierarchy, an operation with regions, or a region.

    Attributes:
        parent: the index of the group around it, -1 at the top.
        literals: name or contents, and type, of the weights used in it.
    """

    name: str
    kind: str
    parent: int
    literals: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Node:
    """An operation, or the arguments of a block.

    Attributes:
        operands: how each is called: a constant by its value, others by node or literal.
        constants: which operands are constants or literals, by their positions.
        source: `file:line`, the innermost frame first.
    """

    name: str
    group: int
    operands: list[str] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str]] = field(default_factory=list)
    source: list[str] = field(default_factory=list)


@dataclass
class Edge:
    """A value's way from the node that has it to one that takes it; indices of nodes."""

    source: int
    target: int
    label: str


@dataclass
class Graph:
    """Everything that the page shows."""

    groups: list[Group] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


def of_module(module: ir.Module) -> Graph:
    """The graph of all functions of `module`, nested by the names in their locations."""
    builder = _Builder()
    for operation in module.body.operations:
        builder.top(operation.operation)
    return builder.graph


def short_type(kind: ir.Type) -> str:
    """`2x3xf32` for `!torch.vtensor<[2,3],f32>`; other types without their prefix."""

    def tensor(match: re.Match[str]) -> str:
        sizes, any_rank, element = match.groups()
        if any_rank:
            return f"*x{element}"
        return "x".join([*(size.strip() for size in sizes.split(",") if size), element])

    return _TENSOR.sub(tensor, str(kind)).replace("!torch.", "")


def module_path(location: ir.Location) -> tuple[list[str], ir.Location]:
    """The names around a location, outermost first, and what they are around."""
    names = []
    while location.is_a_name():
        names.append(location.name_str)
        location = location.child_loc
    return names, location


def frames(location: ir.Location) -> list[str]:
    """`file:line` of each frame, innermost first."""
    if location.is_a_file():
        return [f"{location.filename}:{location.start_line}"]
    if location.is_a_name():
        return frames(location.child_loc)
    if location.is_a_callsite():
        return [*frames(location.callee), *frames(location.caller)]
    if location.is_a_fused():
        return [frame for part in location.locations for frame in frames(part)]
    return []


class _Builder:
    def __init__(self) -> None:
        self.graph = Graph()
        self._groups: dict[tuple[int, str], int] = {}
        # Constants and literals, which have no node: what they are shown as.
        self._texts: dict[ir.Value, str] = {}
        # The nodes that give a value; an operation with regions gives what these yield.
        self._givers: dict[ir.Value, list[int]] = {}

    def top(self, operation: ir.Operation) -> None:
        attributes = operation.attributes
        name = operation.name
        if "sym_name" in attributes:
            name = ir.StringAttr(attributes["sym_name"]).value
        if not operation.regions:
            self._node(operation, self._group("module", "module", -1))
            return
        group = self._new_group(name, "function", -1)
        for region in operation.regions:
            self._region(region, group, 0)

    def _new_group(self, name: str, kind: str, parent: int) -> int:
        self.graph.groups.append(Group(name, kind, parent))
        return len(self.graph.groups) - 1

    def _group(self, name: str, kind: str, parent: int) -> int:
        """The one group of that name in `parent`."""
        if (parent, name) not in self._groups:
            self._groups[parent, name] = self._new_group(name, kind, parent)
        return self._groups[parent, name]

    def _region(self, region: ir.Region, group: int, depth: int) -> list[int]:
        """Add a region's operations; the nodes of its terminators.

        Args:
            depth: how many names of a location are groups around `group`.
        """
        ends = []
        for block in region.blocks:
            for argument in block.arguments:
                node = self._add(Node(f"arg{argument.arg_number}", group))
                self.graph.nodes[node].results = [short_type(argument.type)]
                self._givers[argument] = [node]
            operations = [operation.operation for operation in block.operations]
            for position, operation in enumerate(operations):
                last = position == len(operations) - 1
                end = self._operation(operation, group, depth, last)
                if last and end is not None:
                    ends.append(end)
        return ends

    def _operation(self, operation: ir.Operation, group: int, depth: int, last: bool) -> int | None:
        if self._fold_constant(operation):
            return None
        names, _ = module_path(operation.location)
        inner = group
        # What ends a block belongs to the block, whichever module it was made for.
        if not last or operation.results:
            for name in names[depth:]:
                inner = self._group(name, "module", inner)
        if operation.name in _LITERALS:
            text = _literal(operation.attributes["value"])
            kind = short_type(operation.results[0].type)
            self.graph.groups[inner].literals.append((text, kind))
            self._texts[operation.results[0]] = f"{text}: {kind}"
            return None
        if not operation.regions:
            return self._node(operation, inner)
        return self._nested(operation, inner, max(depth, len(names)))

    def _nested(self, operation: ir.Operation, group: int, depth: int) -> int:
        around = self._new_group(_operator(operation), "operation", group)
        head = self._node(operation, around)
        ends = []
        for number, region in enumerate(operation.regions):
            inner = self._new_group(f"region {number}", "region", around)
            ends += self._region(region, inner, depth)
            for block in region.blocks:
                for argument in block.arguments:
                    for node in self._givers[argument]:
                        self._edge(head, node, short_type(argument.type))
        for result in operation.results:
            self._givers[result] = ends or [head]
        return head

    def _fold_constant(self, operation: ir.Operation) -> bool:
        name = operation.name
        if name == "torch.prim.ListConstruct":
            texts = [self._texts.get(operand) for operand in operation.operands]
            if any(text is None or ": " in text for text in texts):
                return False
            text = f"[{', '.join(text for text in texts if text is not None)}]"
        elif name == "torch.constant.none":
            text = "None"
        elif name.startswith("torch.constant."):
            text = str(operation.attributes["value"]).partition(" : ")[0]
        else:
            return False
        self._texts[operation.results[0]] = text
        return True

    def _node(self, operation: ir.Operation, group: int) -> int:
        index = self._add(Node(_operator(operation), group))
        node = self.graph.nodes[index]
        node.results = [short_type(result.type) for result in operation.results]
        node.source = frames(module_path(operation.location)[1])
        attributes = operation.attributes
        hidden = ("name",) if operation.name == "torch.operator" else ()
        node.attributes = [
            (name, _literal(attributes[name])) for name in attributes if name not in hidden
        ]
        for position, operand in enumerate(operation.operands):
            if (text := self._texts.get(operand)) is not None:
                node.operands.append(text)
                node.constants.append(position)
                continue
            givers = self._givers.get(operand, [])
            kind = short_type(operand.type)
            node.operands.append(f"{self._names(givers)}: {kind}")
            for giver in givers:
                self._edge(giver, index, kind)
        for result in operation.results:
            self._givers[result] = [index]
        return index

    def _names(self, nodes: Sequence[int]) -> str:
        return " | ".join(f"{self.graph.nodes[node].name} #{node}" for node in nodes)

    def _add(self, node: Node) -> int:
        self.graph.nodes.append(node)
        return len(self.graph.nodes) - 1

    def _edge(self, source: int, target: int, label: str) -> None:
        self.graph.edges.append(Edge(source, target, label))


def _operator(operation: ir.Operation) -> str:
    """`aten.mm` for torch.aten.mm and for a torch.operator of that name."""
    name = operation.name
    if name == "torch.operator":
        name = ir.StringAttr(operation.attributes["name"]).value
    return name.removeprefix("torch.")


def _literal(attribute: ir.Attribute) -> str:
    """A resource's name, an attribute's contents if they are short."""
    if isinstance(attribute, ir.DenseElementsAttr):
        if len(attribute) > _SHOWN_ELEMENTS and not attribute.is_splat:
            return "dense<…>"
        return str(attribute).partition(" : ")[0]
    text = str(attribute)
    match = _RESOURCE.match(text)
    return match[1] if match else text
