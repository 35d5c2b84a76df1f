# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graph importer under the names that hooks and subclasses written for upstream use.

Hooks are given a `GraphNodeImporter`, and reach types through its `_cc`. A subclass, passed as
`graph_node_importer_cls`, imports operators in its own way: it overrides
`_import_torch_op_overload`, or has a method `_import_hop_<name>` for a higher-order operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import Node

from .. import ir
from .arguments import anything, converter_for
from .builder import BlockBuilder
from .context import ModuleContext
from .graph import Deferred, GraphImporter, Result
from .hooks import InputInfo
from .locations import LocationCache
from .references import RefTracker
from .symbols import SymbolBinder
from .types import TypeCache

if TYPE_CHECKING:
    from torch.fx.passes.shape_prop import TensorMetadata

    from .program import FxImporter

__all__ = ["ContextCache", "GraphNodeImporter"]


class ContextCache:
    """The types and locations of one MLIR context."""

    def __init__(
        self,
        context: ir.Context,
        *,
        py_attr_tracker: RefTracker | None = None,
        types: TypeCache | None = None,
        locations: LocationCache | None = None,
    ) -> None:
        self._c = context
        self._py_attr_tracker = py_attr_tracker or RefTracker()
        self._types = types = types or TypeCache(context)
        self._locations = locations or LocationCache(context)
        self.torch_bool_type = types.bool
        self.torch_float_type = types.float
        self.torch_int_type = types.int
        self.torch_none_type = types.none
        self.torch_str_type = types.str
        self.torch_device_type = types.device

    def integer_attr(self, value: int, bits: int) -> ir.Attribute:
        """`value` as an attribute of the signless type of so many bits."""
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(bits, self._c), value)

    def dtype_to_type(self, dtype: torch.dtype) -> ir.Type:
        """The element type of tensors of `dtype`."""
        return self._types.parse(self._types.element_text(dtype))

    def format_asm_shape(self, shape: Any) -> str:
        """The sizes as they stand in a tensor type, symbolic ones as `?`."""
        return ",".join(str(size) if type(size) is int else "?" for size in shape)

    def get_vtensor_type(
        self,
        shape: Any,
        dtype: torch.dtype,
        *,
        val: torch.Tensor | None = None,
        mutable: bool = False,
    ) -> ir.Type:
        """The type of a tensor; `val` tells its layout, where that is not a dense one."""
        if mutable:
            return self._types.mutable_tensor(shape, dtype)
        if val is not None and val.layout is not torch.strided:
            return self._types.of_tensor(val)
        return self._types.vtensor(shape, dtype)

    def create_vtensor_type(self, dtype: torch.dtype, size: Any) -> ir.Type:
        """The type of a dense tensor."""
        return self._types.vtensor(size, dtype)

    def tensor_to_vtensor_type(self, tensor: torch.Tensor) -> ir.Type:
        """The value-semantics type of `tensor`."""
        return self._types.of_tensor(tensor)

    def node_val_to_type(self, node: Node, *, mutable: bool = False) -> ir.Type:
        """The type of what `node` produces."""
        if mutable:
            value = node.meta.get("val")
            return self.value_info_to_type(
                value, tensor_meta=node.meta.get("tensor_meta"), mutable=True
            )
        return self._types.of_node(node)

    def value_info_to_type(
        self,
        val: Any,
        *,
        tensor_meta: TensorMetadata | None = None,
        mutable: bool = False,
    ) -> ir.Type:
        """The type of a value that FX recorded, or failing that of its `tensor_meta`."""
        if val is None and tensor_meta is not None:
            return self.tensor_metadata_to_type(tensor_meta, mutable=mutable)
        if mutable and isinstance(val, torch.Tensor):
            return self._types.mutable_tensor(val.shape, val.dtype)
        return self._types.of_value(val)

    def tensor_metadata_to_type(
        self, tm: TensorMetadata, *, val: torch.Tensor | None = None, mutable: bool = False
    ) -> ir.Type:
        """The type of a tensor that a shape propagation recorded."""
        return self.get_vtensor_type(tm.shape, tm.dtype, val=val, mutable=mutable)

    def get_node_location(self, node: Node) -> ir.Location | None:
        """Where the user's code made `node`, or None where that is not known."""
        if not node.meta.get("stack_trace"):
            return None
        return self._locations.of_node(node)


class GraphNodeImporter(GraphImporter):
    """A `GraphImporter` that speaks upstream's names.

    Attributes:
        fx_importer: the importer of the whole module.
    """

    def __init__(
        self,
        fx_importer: FxImporter,
        context: ir.Context,
        context_cache: ContextCache,
        block: ir.Block,
    ) -> None:
        state = fx_importer.state
        super().__init__(state, BlockBuilder(block, state.types, state.literals))
        self.fx_importer = fx_importer
        self._c = context
        self._cc = context_cache
        # Nodes whose results are bound one by one, by index.
        self._multi_result_nodes: set[Node] = set()

    # What a subclass imports in its own way.
    _overrides_operators = False
    _overrides_calls = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        base = GraphNodeImporter
        cls._overrides_operators = (
            cls._import_torch_op_overload is not base._import_torch_op_overload
        )
        cls._overrides_calls = cls._import_hop is not base._import_hop or any(
            name.startswith("_import_hop_") for name in dir(cls)
        )

    @classmethod
    def create(
        cls, module: ModuleContext, builder: BlockBuilder, symbols: SymbolBinder | None = None
    ) -> GraphImporter:
        importer = module.importer
        self = cls(importer, module.types.context, importer.context_cache, builder.block)
        self.builder, self.symbols = builder, symbols
        return self

    @property
    def _b(self) -> ir.Block:
        return self.builder.block

    @contextmanager
    def _at(self, location: ir.Location | None) -> Iterator[None]:
        """Let operations be appended at `location`."""
        before = self.builder.location
        if location is not None:
            self.builder.location = location
        try:
            with self.builder.location, ir.InsertionPoint(self.builder.block):
                yield
        finally:
            self.builder.location = before

    # Values

    def bind_node_value(
        self, node: Node, value: ir.Value | Deferred | None, result_index: int = 0
    ) -> None:
        """Let `node`, or one of its results, stand for `value` or for what makes it.

        Raises:
            ValueError: it stands for a value already.
        """
        held = self._bindings.get(node)
        if result_index == 0 and node not in self._multi_result_nodes:
            if held is not None:
                raise ValueError(f"node {node.name!r} has a value already")
            if value is None:
                value = self.builder.constant(None)
            self.bind(node, value)
            return
        if held is None:
            results: list[Result] = []
        elif isinstance(held, list):
            results = held
        else:
            results = [self.value(node)]
        results.extend([None] * (result_index + 1 - len(results)))
        if results[result_index] is not None:
            raise ValueError(f"result {result_index} of node {node.name!r} has a value already")
        results[result_index] = value() if callable(value) else value
        self.bind(node, results)

    def resolve_node_value(self, node: Node, result_index: int = 0) -> ir.Value | None:
        """What `node`, or one of its results, stands for."""
        results = self.results(node)
        if results is None and result_index == 0:
            return self.value(node)
        if results is None or not 0 <= result_index < len(results):
            raise KeyError(f"node {node.name!r} has no result {result_index}")
        result = results[result_index]
        if isinstance(result, list):
            raise KeyError(f"result {result_index} of node {node.name!r} has several parts")
        return result

    def import_constant(self, loc: ir.Location, node: Node, constant: Any) -> ir.Value:
        """Let `node` stand for a literal."""
        with self._at(loc):
            value = self._import_literal(constant)
        self.bind(node, value)
        return value

    def _import_literal(self, py_value: Any, info: InputInfo | None = None) -> ir.Value:
        if isinstance(py_value, torch.Tensor):
            return self.literal(py_value, "literal", info)
        return self.builder.constant(py_value)

    def _import_argument(
        self, loc: ir.Location | None, arg: Any, expected_jit_type: Any = None
    ) -> ir.Value:
        convert = anything if expected_jit_type is None else converter_for(expected_jit_type)[0]
        with self._at(loc):
            return convert(self, arg)

    def _import_list_argument(
        self, loc: ir.Location | None, arg: Any, expected_jit_type: Any
    ) -> ir.Value:
        return self._import_argument(loc, arg, expected_jit_type)

    def _import_default_value(
        self, loc: ir.Location | None, arg: Any, expected_jit_type: Any
    ) -> ir.Value:
        return self._import_argument(loc, arg, expected_jit_type)

    # Nodes

    def _call(self, node: Node) -> None:
        target = node.target
        if self._overrides_operators and isinstance(target, OpOverload):
            with self._at(None):
                self._import_torch_op_overload(self.builder.location, node)
        elif self._overrides_calls and isinstance(target, HigherOrderOperator):
            with self._at(None):
                self._import_hop(self.builder.location, node, target)
        else:
            super()._call(node)

    def _import_torch_op_overload(
        self, loc: ir.Location, node: Node, concrete_target: OpOverload | None = None
    ) -> None:
        """Import a call of an operator, or of `concrete_target` in its place."""
        with self._at(loc):
            if concrete_target is not None:
                self._overload(node, concrete_target, node.args, node.kwargs)
            else:
                super()._call(node)

    def _import_hop(self, loc: ir.Location, node: Node, hop: HigherOrderOperator) -> None:
        """Import a call of a higher-order operator, by the method that is named for it."""
        handler = getattr(self, f"_import_hop_{hop.name()}", None)
        if handler is not None:
            handler(loc, node, hop)
            return
        with self._at(loc):
            super()._call(node)
