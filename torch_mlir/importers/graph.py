# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One FX graph into one MLIR block: values by node, and a walk over the nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.fx import GraphModule, Node

from .. import ir, operators
from ..compiler_utils import TorchMlirCompilerError
from . import higher_order
from .arguments import anything
from .builder import BlockBuilder
from .checks import CHECKS
from .composites import composite, is_composite
from .context import ModuleContext
from .errors import Unsupported, node_error
from .hooks import InputInfo
from .rewrites import REWRITES, scalar_overload
from .scalar_ops import SCALAR_OPS
from .signatures import REQUIRED, Signature
from .symbols import SymbolBinder

Deferred = Callable[[], ir.Value]
# One result of an operator that has several: None where it is missing, a list where it has parts.
Result = ir.Value | None | list["Result"]
# What a node stands for: one value, the results of an operator that has several, or what will
# make the value once it is used.
Binding = ir.Value | list[Result] | Deferred

_SCALARS = (int, float, bool, complex, torch.SymInt, torch.SymFloat, torch.SymBool)


class GraphImporter:
    """Imports nodes into a block.

    Attributes:
        builder: what appends to the block.
        scalars: the nodes that stand for a `!torch.int`, `!torch.float` or `!torch.bool`.
    """

    def __init__(
        self, module: ModuleContext, builder: BlockBuilder, symbols: SymbolBinder | None = None
    ) -> None:
        self.module = module
        self.types = module.types
        self.builder = builder
        self.scalars: set[Node] = set()
        self.symbols = symbols
        self._bindings: dict[Node, Binding] = {}
        self._unpacked: dict[Node, Sequence[ir.Value]] = {}
        self._when_produced: dict[str, list[Callable[[ir.Value], object]]] = {}

    @classmethod
    def create(
        cls, module: ModuleContext, builder: BlockBuilder, symbols: SymbolBinder | None = None
    ) -> GraphImporter:
        """An importer for another block; a subclass may have a constructor of its own."""
        return cls(module, builder, symbols)

    # Values

    def bind(self, node: Node, binding: Binding) -> None:
        """Let `node` stand for `binding`."""
        self._bindings[node] = binding
        if isinstance(node.meta.get("val"), _SCALARS):
            self.scalars.add(node)
        if node.name in self._when_produced:
            for react in self._when_produced[node.name]:
                react(self.value(node))

    def when_produced(self, name: str, react: Callable[[ir.Value], object]) -> None:
        """Call `react` with the value of the node `name` as soon as it has one."""
        self._when_produced.setdefault(name, []).append(react)

    def value(self, node: Node) -> ir.Value:
        """The one value that `node` stands for.

        Raises:
            Unsupported: it stands for several, or for none.
        """
        binding = self._bindings.get(node)
        if isinstance(binding, ir.Value):
            return binding
        if binding is None:
            if node.op != "get_attr":
                raise Unsupported(f"node {node.name!r} is used before it has a value")
            value = self._attribute(node)
        elif callable(binding):
            value = binding()
        else:
            raise Unsupported(f"node {node.name!r} has several results; one is wanted")
        self._bindings[node] = value
        return value

    def results(self, node: Node) -> Sequence[Result] | None:
        """The results of a node that has several; None for a node with one value."""
        binding = self._bindings.get(node)
        return binding if isinstance(binding, list) else None

    def _attribute(self, node: Node) -> ir.Value:
        target = self.attribute_of(node)
        if isinstance(target, torch.Tensor):
            return self.literal(target, str(node.target))
        if isinstance(target, GraphModule):
            raise Unsupported(f"the subgraph {node.target!r} is used as a value")
        return self.builder.constant(target)

    def attribute_of(self, node: Node) -> Any:
        """What a `get_attr` node refers to in the module that owns its graph.

        Raises:
            Unsupported: the module has no such attribute.
        """
        owner: Any = node.graph.owning_module
        for name in str(node.target).split("."):
            if owner is None or not hasattr(owner, name):
                raise Unsupported(f"the module has no attribute {node.target!r}")
            owner = getattr(owner, name)
        return owner

    def literal(self, tensor: torch.Tensor, name: str, info: InputInfo | None = None) -> ir.Value:
        """The contents of `tensor`, or what the hooks want in their place."""
        if self.module.hooked("resolve_literal"):
            with self.builder.location, ir.InsertionPoint(self.builder.block):
                value = self.module.hooks.resolve_literal(self, tensor, info)
            if value is not None:
                return value
        if is_composite(tensor):
            return composite(self, tensor, name)
        return self.builder.tensor(tensor, name)

    # Operations

    def operation(
        self, name: str, results: Sequence[ir.Type], operands: Sequence[ir.Value]
    ) -> ir.Operation:
        """Append an operator of PyTorch: `name` without the dialect's prefix."""
        in_dialect = name in operators.load() and self.module.accepts(f"torch.{name}")
        append = self.builder.emit if in_dialect else self.builder.operator
        return append(f"torch.{name}", results, operands)

    def coerce(self, value: ir.Value, wanted: ir.Type, truncate: bool = False) -> ir.Value:
        """A scalar as another kind of scalar: bool to int, int or bool to float, int to bool.

        Raises:
            Unsupported: `value` is no scalar, or would lose its fraction (see `truncate`).
        """
        types, given = self.types, value.type
        if given == wanted:
            return value
        name = None
        if wanted == types.int and given == types.bool:
            name = "aten.Int.bool"
        elif wanted == types.int and given == types.float and truncate:
            name = "aten.Int.float"
        elif wanted == types.float and given == types.int:
            name = "aten.Float.Scalar"
        elif wanted == types.float and given == types.bool:
            return self.coerce(self.coerce(value, types.int), wanted)
        elif wanted == types.bool and given == types.int:
            name = "aten.Bool.int"
        elif wanted == types.bool and given == types.float:
            name = "aten.Bool.float"
        if name is None:
            raise Unsupported(f"{wanted} is wanted, and the value is {given}")
        return self.operation(name, [wanted], [value]).results[0]

    def choose(
        self, condition: ir.Value, result: ir.Type, if_true: ir.Value, if_false: ir.Value
    ) -> ir.Value:
        """`if_true` where `condition` holds, else `if_false`."""
        choice = self.builder.emit("torch.prim.If", [result], [condition], regions=2)
        for region, value in zip(choice.regions, (if_true, if_false), strict=True):
            with self.builder.location:
                block = ir.Block.create_at_start(region, [])
            branch = BlockBuilder(block, self.types, self.module.literals)
            branch.location = self.builder.location
            branch.emit("torch.prim.If.yield", [], [value])
        return choice.results[0]

    # Nodes

    def import_nodes(self, nodes: Iterable[Node]) -> None:
        """Import every call among `nodes`, in order.

        Placeholders and the output are left to the caller, who knows what they are bound to.

        Raises:
            TorchMlirCompilerError: a node has no translation.
        """
        builder, locations = self.builder, self.module.locations
        for node in nodes:
            if node.op == "call_function":
                builder.location = locations.of_node(node, builder.location)
                try:
                    self._call(node)
                    if self.symbols is not None:
                        self.bind_shape(node)
                except Unsupported as problem:
                    raise node_error(node, problem) from problem.__cause__
                except ir.MLIRError as problem:
                    reason = f"MLIR refuses the operation: {problem}"
                    raise node_error(node, Unsupported(reason)) from problem
            elif node.op in ("call_module", "call_method"):
                reason = (
                    "only graphs of torch.export and make_fx are imported, which call operators"
                )
                raise node_error(node, Unsupported(reason))

    def bind_shape(self, node: Node) -> None:
        """Tell the symbolic sizes of a node's tensor."""
        tensor = node.meta.get("val")
        if self.symbols is not None and isinstance(tensor, torch.Tensor):
            self.symbols.bind(self.value(node), tensor, self.builder)

    def _call(self, node: Node) -> None:
        target = node.target
        if target is operator.getitem:
            self._getitem(node)
        elif target in REWRITES:
            self._overload(node, *REWRITES[target](node))
        elif target in CHECKS and CHECKS[target](self, node):
            return
        elif isinstance(target, OpOverload):
            self._overload(node, target, node.args, node.kwargs)
        elif isinstance(target, HigherOrderOperator):
            higher_order.import_call(self, node, target)
        elif SCALAR_OPS.handles(target):
            self.bind(node, SCALAR_OPS.emit(self, node))
        elif isinstance(target, OpOverloadPacket) and "default" in target.overloads():
            self._overload(node, target.default, node.args, node.kwargs)
        else:
            raise Unsupported(f"calls of {type(target).__name__} {target!r} are not imported")

    def _getitem(self, node: Node) -> None:
        source, index = node.args
        results = self.results(source)
        if results is None:
            results = self._unpack(source)
        if not isinstance(index, int) or not -len(results) <= index < len(results):
            raise Unsupported(f"index {index} into {len(results)} results of {source.name!r}")
        value = results[index]
        if value is None:
            value = self.builder.constant(None)
        self.bind(node, value)

    def _unpack(self, source: Node) -> Sequence[ir.Value]:
        """The elements of a list; PyTorch knows how many there are."""
        found = self._unpacked.get(source)
        if found is None:
            elements = source.meta.get("val")
            if not isinstance(elements, (list, tuple)):
                raise Unsupported(f"{source.name!r} is indexed, and is not a list of known length")
            types = [self.types.of_value(element) for element in elements]
            unpack = self.builder.emit("torch.prim.ListUnpack", types, [self.value(source)])
            found = self._unpacked[source] = list(unpack.results)
        return found

    def _overload(
        self, node: Node, target: OpOverload, args: tuple, kwargs: Mapping[str, Any]
    ) -> None:
        if len(args) > 1 and self._is_scalar(args[1]):
            target = scalar_overload(target, args)
        signature = self.module.signature(target)
        if signature.writes_to is not None:
            raise Unsupported(
                "the operator writes to it, and tensors of a graph are values: functionalise the "
                "program first (ExportedProgram.run_decompositions, "
                "torch.func.functionalize)",
                signature.writes_to,
            )
        operands = self.operands(signature, args, kwargs)
        count = signature.result_count
        if count == 1:
            types = [self.types.of_node(node)]
        elif count == 0:
            types = []
        else:
            types = [self.types.of_value(value) for value in node.meta["val"]]
        builder = self.builder
        append = builder.emit if signature.in_dialect else builder.operator
        operation = append(signature.name, types, operands)
        if count == 1:
            self.bind(node, operation.results[0])
        elif count:
            self.bind(node, list(operation.results))

    def _is_scalar(self, arg: Any) -> bool:
        if isinstance(arg, Node):
            return arg in self.scalars
        return isinstance(arg, (int, float, complex))

    def operands(
        self, signature: Signature, args: tuple, kwargs: Mapping[str, Any]
    ) -> list[ir.Value]:
        """The arguments of a call as values, in the order of the operation's operands.

        Raises:
            Unsupported: an argument is missing or has no translation.
        """
        values = []
        given = len(args)
        for parameter in signature.parameters:
            position = parameter.position
            if position is not None and position < given:
                arg = args[position]
            else:
                arg = kwargs.get(parameter.name, parameter.default)
                if arg is REQUIRED:
                    raise Unsupported("the call does not give it", parameter.name)
            try:
                values.append(parameter.convert(self, arg))
            except Unsupported as problem:
                raise Unsupported(problem.reason, problem.argument or parameter.name) from problem
        return values

    # Results of the graph

    def output(self, value: Any, name: str = "output") -> ir.Value:
        """One result of the graph: a node, a tensor, or a constant.

        Raises:
            TorchMlirCompilerError: nothing in MLIR corresponds.
        """
        try:
            if isinstance(value, Node):
                return self.value(value)
            if isinstance(value, torch.Tensor):
                return self.literal(value, name)
            return anything(self, value)
        except Unsupported as problem:
            raise TorchMlirCompilerError(f"{name} of the program: {problem.reason}") from problem
