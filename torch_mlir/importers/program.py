# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs into MLIR functions: an `ExportedProgram`, a `GraphModule`, or a bare graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from .. import ir
from ..compiler_utils import TorchMlirCompilerError
from .arguments import custom_object
from .builder import BlockBuilder
from .consumers import Accepts
from .context import ModuleContext
from .errors import Unsupported
from .graph import GraphImporter
from .hooks import FxImporterHooks, InputInfo
from .node_importer import ContextCache, GraphNodeImporter
from .references import RefTracker
from .symbols import Range, SymbolBinder, ranges_of

__all__ = ["REQUIRED_DIALECTS", "FxImporter"]

REQUIRED_DIALECTS = ("builtin", "func", "torch")

# What a program's graph returns, by the names of torch.export's `OutputKind`: results of its
# function, a training graph's loss and gradients among them, and new contents of what it writes.
_RESULTS = ("USER_OUTPUT", "LOSS_OUTPUT", "GRADIENT_TO_PARAMETER", "GRADIENT_TO_USER_INPUT")
# Results that the module does not return: new contents of what it writes to, and tokens.
_WRITES = ("BUFFER_MUTATION", "PARAMETER_MUTATION", "USER_INPUT_MUTATION", "TOKEN")


class FxImporter:
    """Imports programs as functions of one MLIR module.

    Args:
        module: the module to import into; a new one in `context` otherwise.
        context: where the new module is made; a new context otherwise.
        hooks: decide what becomes of parameters, buffers and literals.
        py_attr_tracker: given to several importers of one context, lets them share literals.
        graph_node_importer_cls: a `GraphNodeImporter`, to import nodes in another way.
        accepts: tells which operations, such as `torch.aten.relu`, the reader of the module
            knows; other operators of PyTorch become `torch.operator`. None: all are known.
        module_paths: let locations tell the modules that nodes were called in; see `locations`.
    """

    def __init__(
        self,
        *,
        module: ir.Module | None = None,
        context: ir.Context | None = None,
        config_check: bool = True,
        py_attr_tracker: RefTracker | None = None,
        hooks: FxImporterHooks | None = None,
        graph_node_importer_cls: type[GraphImporter] | None = None,
        accepts: Accepts | None = None,
        module_paths: bool = False,
    ) -> None:
        if module is not None and context is not None:
            raise ValueError("give a module or a context, not both")
        self._context = module.context if module else (context or ir.Context())
        if config_check:
            self._check_dialects()
        self._module = module or ir.Module.create(ir.Location.unknown(self._context))
        self._graph_importer = graph_node_importer_cls or GraphNodeImporter
        tracker = py_attr_tracker or RefTracker()
        self.state = ModuleContext(
            self._context, hooks or FxImporterHooks(), self, accepts, tracker, module_paths
        )
        self.context_cache = ContextCache(
            self._context,
            py_attr_tracker=tracker,
            types=self.state.types,
            locations=self.state.locations,
        )
        # Under these names subclasses of GraphNodeImporter know them.
        self._c, self._cc, self._hooks = self._context, self.context_cache, self.state.hooks
        self.symbol_table = ir.SymbolTable(self._module.operation)
        self.state.hooks.prepare_module(self._module.operation)

    def _check_dialects(self) -> None:
        for name in REQUIRED_DIALECTS:
            try:
                self._context.dialects[name]
            except IndexError:
                raise RuntimeError(f"the MLIR context has no dialect {name!r}") from None

    @property
    def module(self) -> ir.Module:
        """The module that programs are imported into."""
        return self._module

    @property
    def module_op(self) -> ir.Operation:
        """The operation of `module`."""
        return self._module.operation

    def import_frozen_program(
        self,
        prog: ExportedProgram,
        *,
        func_name: str = "main",
        func_visibility: str | None = None,
        import_symbolic_shape_expressions: bool = False,
    ) -> ir.Operation:
        """Import a program with its parameters, buffers and constants as literals.

        Its function takes the user's inputs, and returns what the program's graph returns: the
        new contents of buffers and inputs that the program writes to, then the user's results.

        Raises:
            TorchMlirCompilerError: something in the program has no translation.
        """
        lifted, objects = _lifted(prog), _objects(prog)
        ranges = ranges_of(prog.range_constraints) if import_symbolic_shape_expressions else None
        tokens = _tokens(prog)
        outputs = _output_kinds(prog)

        def enter(graph: GraphImporter, placeholder: Node, argument: Callable) -> None:
            if placeholder.name in tokens:
                graph.bind(placeholder, lambda: graph.builder.constant(None))
            elif placeholder.name in lifted:
                name, tensor = lifted[placeholder.name]
                # Made when it is first used, so that unused state costs nothing.
                graph.bind(placeholder, lambda: graph.literal(tensor, name))
            elif placeholder.name in objects:
                value = objects[placeholder.name]
                graph.bind(placeholder, lambda: custom_object(graph, value))
            else:
                graph.bind(placeholder, argument(graph.types.of_node(placeholder)))

        def leave(graph: GraphImporter, returned: Sequence[Any]) -> list[ir.Value]:
            kept = [value for kind, value in zip(outputs, returned, strict=True) if kind != "TOKEN"]
            return self._graph_results(graph, kept)

        return self._function(prog.graph, func_name, func_visibility, ranges, enter, leave)

    def import_program(
        self,
        prog: ExportedProgram,
        *,
        func_name: str = "main",
        func_visibility: str | None = None,
        import_symbolic_shape_expressions: bool = False,
    ) -> ir.Operation:
        """Import a program that may write to its inputs and buffers.

        Its function takes and returns what the user's module does; that of a training graph
        returns the loss and the gradients too, in the order of the graph. An input that is written
        to is a `!torch.tensor`, overwritten as soon as its new contents are known; buffers are
        written by the hooks' `store_produced_value`.

        Raises:
            TorchMlirCompilerError: something in the program has no translation.
        """
        from torch.export import graph_signature as kinds

        signature = prog.graph_signature
        lifted, objects = _lifted(prog), _objects(prog)
        ranges = ranges_of(prog.range_constraints) if import_symbolic_shape_expressions else None
        new_contents = {
            name: producer for producer, name in signature.user_inputs_to_mutate.items()
        }
        stored = {
            spec.target: spec.arg.name
            for spec in signature.output_specs
            if spec.kind.name in ("BUFFER_MUTATION", "PARAMETER_MUTATION")
        }
        specs = {spec.arg.name: spec for spec in signature.input_specs}
        hooks = self.state.hooks

        def enter(graph: GraphImporter, placeholder: Node, argument: Callable) -> None:
            spec = specs[placeholder.name]
            if spec.kind is kinds.InputKind.USER_INPUT:
                if isinstance(spec.arg, kinds.ConstantArgument):
                    value = spec.arg.value
                    graph.bind(placeholder, lambda: graph.builder.constant(value))
                elif placeholder.name in new_contents:
                    self._mutable_input(
                        graph, placeholder, new_contents[placeholder.name], argument
                    )
                else:
                    graph.bind(placeholder, argument(graph.types.of_node(placeholder)))
                return
            if spec.kind.name == "TOKEN":
                graph.bind(placeholder, lambda: graph.builder.constant(None))
                return
            if placeholder.name in objects:
                held = objects[placeholder.name]
                graph.bind(placeholder, lambda: custom_object(graph, held))
                return
            if placeholder.name not in lifted:
                raise Unsupported(f"inputs of kind {spec.kind.name} are not imported")
            name, tensor = lifted[placeholder.name]
            producer = stored.get(spec.target)
            info = InputInfo(
                prog,
                spec,
                placeholder,
                graph.types.of_node(placeholder),
                store_producer_node=producer,
            )
            graph.bind(placeholder, lambda: self._state_value(graph, tensor, name, info))
            if producer is not None:
                graph.when_produced(
                    producer,
                    lambda value: _hooked(
                        graph, lambda: hooks.store_produced_value(graph, tensor, value, info)
                    ),
                )

        def leave(graph: GraphImporter, returned: Sequence[Any]) -> list[ir.Value]:
            wanted = []
            for spec, value in zip(signature.output_specs, returned, strict=True):
                if spec.kind.name in _RESULTS:
                    wanted.append(value)
                elif spec.kind.name not in _WRITES:
                    raise TorchMlirCompilerError(
                        f"the program has a result of kind {spec.kind.name}, "
                        "which import_program does not know"
                    )
            return [graph.output(value, f"result {i}") for i, value in enumerate(wanted)]

        function = self._function(prog.graph, func_name, func_visibility, ranges, enter, leave)
        # What torch.export guarantees: sizes of equal symbols are equal, nothing broadcasts
        # that does not do so in the program.
        function.attributes["torch.assume_strict_symbolic_shapes"] = ir.UnitAttr.get(self._context)
        return function

    def _state_value(
        self, graph: GraphImporter, tensor: torch.Tensor, name: str, info: InputInfo
    ) -> ir.Value:
        if self.state.hooked("resolve_input"):
            value = _hooked(graph, lambda: self.state.hooks.resolve_input(graph, tensor, info))
            if value is not None:
                return value
        return graph.literal(tensor, name, info)

    def _mutable_input(
        self, graph: GraphImporter, placeholder: Node, producer: str, argument: Callable
    ) -> None:
        tensor = placeholder.meta["val"]
        storage = argument(graph.types.mutable_tensor(tensor.shape, tensor.dtype))
        contents = graph.builder.value(
            "torch.copy.to_vtensor", graph.types.of_tensor(tensor), [storage]
        )
        graph.bind(placeholder, contents)
        graph.when_produced(
            producer,
            lambda value: graph.builder.emit(
                "torch.overwrite.tensor.contents", [], [value, storage]
            ),
        )

    def import_graph_module(
        self,
        gm: GraphModule,
        *,
        func_name: str = "main",
        func_visibility: str | None = None,
        import_symbolic_shape_expressions: bool = False,
    ) -> ir.Operation:
        """Import the graph of `gm`, which has no side effects; see `import_stateless_graph`."""
        return self.import_stateless_graph(
            gm.graph,
            func_name=func_name,
            func_visibility=func_visibility,
            import_symbolic_shape_expressions=import_symbolic_shape_expressions,
        )

    def import_stateless_graph(
        self,
        g: Graph,
        *,
        func_name: str = "main",
        func_visibility: str | None = None,
        import_symbolic_shape_expressions: bool = False,
    ) -> ir.Operation:
        """Import a graph whose placeholders are the function's inputs.

        Raises:
            TorchMlirCompilerError: something in the graph has no translation.
        """

        def enter(graph: GraphImporter, placeholder: Node, argument: Callable) -> None:
            graph.bind(placeholder, argument(graph.types.of_node(placeholder)))

        ranges: dict[str, Range] | None = {} if import_symbolic_shape_expressions else None
        return self._function(g, func_name, func_visibility, ranges, enter, self._graph_results)

    @staticmethod
    def _graph_results(graph: GraphImporter, returned: Sequence[Any]) -> list[ir.Value]:
        return [graph.output(value, f"result {i}") for i, value in enumerate(returned)]

    def _function(
        self,
        graph: Graph,
        name: str,
        visibility: str | None,
        ranges: dict[str, Range] | None,
        enter: Callable[[GraphImporter, Node, Callable[[ir.Type], ir.Value]], None],
        leave: Callable[[GraphImporter, Sequence[Any]], list[ir.Value]],
    ) -> ir.Operation:
        """A `func.func` for `graph`.

        `enter` binds a placeholder, with an argument of the function if it asks for one; `leave`
        picks the function's results among what the graph returns. Nothing is left behind in the
        module when either fails.
        """
        nodes = list(graph.nodes)
        context, state = self._context, self.state
        location = _first_location(state, nodes)
        inputs: list[ir.Type] = []
        with context, location:
            function = ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get([], [])),
                },
                regions=1,
                ip=ir.InsertionPoint(self._module.body),
            )
            if visibility is not None:
                function.attributes["sym_visibility"] = ir.StringAttr.get(visibility)
            try:
                block = ir.Block.create_at_start(function.regions[0], [])
                builder = BlockBuilder(block, state.types, state.literals)
                builder.location = location
                symbols = None if ranges is None else SymbolBinder(builder, ranges)
                importer = self._graph_importer.create(state, builder, symbols)
                if symbols is not None:
                    symbols.declare_all()

                def argument(kind: ir.Type) -> ir.Value:
                    inputs.append(kind)
                    return block.add_argument(kind, location)

                for node in nodes:
                    if node.op == "placeholder":
                        try:
                            count = len(inputs)
                            enter(importer, node, argument)
                            if len(inputs) > count:
                                importer.bind_shape(node)
                        except Unsupported as problem:
                            raise _input_error(node, problem) from problem
                importer.import_nodes(nodes)
                returned = nodes[-1].args[0] if nodes and nodes[-1].op == "output" else ()
                if not isinstance(returned, (list, tuple)):
                    returned = (returned,)
                builder.location = location
                results = leave(importer, returned)
                builder.emit("func.return", [], results)
                kind = ir.FunctionType.get(inputs, [result.type for result in results])
                function.attributes["function_type"] = ir.TypeAttr.get(kind)
                self.symbol_table.insert(function)
            except BaseException:
                function.erase()
                raise
        return function


def _hooked(graph: GraphImporter, call: Callable[[], Any]) -> Any:
    """Call a user's hook with the place where operations go set up for it."""
    with graph.builder.location, ir.InsertionPoint(graph.builder.block):
        return call()


def _first_location(state: ModuleContext, nodes: Iterable[Node]) -> ir.Location:
    for node in nodes:
        if node.meta.get("stack_trace"):
            return state.locations.of_node(node)
    return state.locations.unknown


def _input_error(node: Node, problem: Unsupported) -> TorchMlirCompilerError:
    return TorchMlirCompilerError(f"input {node.name!r} of the program: {problem.reason}")


def _objects(prog: ExportedProgram) -> dict[str, Any]:
    """Objects other than tensors that torch.export made inputs of the graph, by placeholder.

    What becomes of one is decided where it is used.
    """
    # PyTorch 2.1 and 2.2 lift no objects.
    targets = getattr(prog.graph_signature, "inputs_to_lifted_custom_objs", {})
    constants = getattr(prog, "constants", {})
    return {placeholder: constants.get(target) for placeholder, target in targets.items()}


def _tokens(prog: ExportedProgram) -> frozenset[str]:
    """Placeholders that only order effects; see `higher_order.effects`."""
    # PyTorch 2.1 has neither these nor tokens.
    specs = getattr(prog.graph_signature, "input_specs", ())
    return frozenset(spec.arg.name for spec in specs if spec.kind.name == "TOKEN")


def _output_kinds(prog: ExportedProgram) -> list[str]:
    """The names of the `OutputKind`s of what the graph returns."""
    specs = getattr(prog.graph_signature, "output_specs", None)
    if specs is not None:
        return [spec.kind.name for spec in specs]
    signature = prog.graph_signature  # of PyTorch 2.1
    return ["BUFFER_MUTATION"] * len(signature.buffers_to_mutate) + ["USER_OUTPUT"] * len(
        signature.user_outputs
    )


def _lifted(prog: ExportedProgram) -> dict[str, tuple[str, torch.Tensor]]:
    """What torch.export made inputs of the graph: placeholder's name to name and contents.

    Raises:
        TorchMlirCompilerError: the program names a tensor that it does not hold.
    """
    signature = prog.graph_signature
    targets = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        # PyTorch 2.1 keeps these among the buffers, and has no such attribute.
        **getattr(signature, "inputs_to_lifted_tensor_constants", {}),
    }
    state, constants = prog.state_dict, getattr(prog, "constants", {})
    found = {}
    for placeholder, target in targets.items():
        tensor = state.get(target)
        if tensor is None:
            # Buffers that are not persistent, and lifted constants.
            tensor = constants.get(target)
        if tensor is None:
            raise TorchMlirCompilerError(f"the program holds no contents for {target!r}")
        found[placeholder] = (target, tensor)
    return found
