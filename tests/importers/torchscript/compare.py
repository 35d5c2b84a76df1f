# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds a raw import against what PyTorch has in memory for the same archive.

PyTorch's side is read through its graph API, and from the text of the classes in the archive,
which PyTorch wrote. Everything that differs is told with its place.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import io
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_mlir import ir, operators
from torch_mlir.backends.reference.program import Compiler, Frame, ReferenceProgram
from torch_mlir.backends.reference.structural import Object

# Operations that change what is known of a value, not the value. PyTorch's graphs have them in
# other places, or not at all.
_CASTS = frozenset(("torch.derefine", "torch.tensor_static_info_cast", "torch.prim.unchecked_cast"))

_NAMES = {
    "int": "int", "float": "float", "bool": "bool", "str": "str", "Tensor": "tensor",
    "NoneType": "none", "number": "number", "complex": "number", "Device": "Device",
    "Generator": "Generator", "Any": "any", "AnyListType": "any", "AnyTupleType": "any",
    "AnyClassType": "any", "AnyEnumType": "any", "Layout": "int", "MemoryFormat": "int",
}  # fmt: skip

_LINEAR_PARAMS = "__torch__.torch.classes.quantized.LinearPackedParamsBase"

_METHOD_OPERATORS = {
    _LINEAR_PARAMS: "linear",
    "__torch__.torch.classes.quantized.Conv2dPackedParamsBase": "conv2d",
    "__torch__.torch.classes.quantized.Conv3dPackedParamsBase": "conv3d",
    "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase": "embedding_bag",
}


def differences(archive: bytes, module: ir.Module) -> list[str]:
    """What `module` has otherwise than PyTorch, nothing if it is the archive's raw import."""
    comparison = _Comparison(_Loaded(archive), module)
    comparison.compare()
    return comparison.found


class _Loaded:
    """An archive as PyTorch loads it.

    Attributes:
        root: the root object.
        classes: by qualified name, as the archive's text defines them.
    """

    def __init__(self, archive: bytes) -> None:
        self.unit = torch._C.CompilationUnit()
        self.root = torch._C.import_ir_module_from_buffer(
            self.unit, archive, torch.device("cpu"), {}, False
        )
        self.classes = {kind.name: kind for kind in _class_definitions(archive)}

    def function(self, name: str) -> Any:
        """The function or method of a qualified name; None if there is none."""
        return self.unit.find_function(name)

    def type_text(self, annotation: str) -> str:
        """The Torch dialect's type, as text, of a TorchScript annotation.

        Raises:
            ValueError: the annotation is unknown here.
        """
        return f"!torch.{self._type(ast.parse(annotation, mode='eval').body)}"

    def _type(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and node.value is None:
            return "none"
        if isinstance(node, ast.Subscript):
            name = ast.unparse(node.value)
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if name == "Future":
                return self._type(inner[0])
            contained = [self._type(part) for part in inner if ast.unparse(part) != "()"]
            word = name.lower()
            if word in ("optional", "list", "dict", "tuple", "union"):
                return f"{word}<{', '.join(contained)}>"
            raise ValueError(f"no type of the dialect is known for {ast.unparse(node)}")
        name = ast.unparse(node)
        if name in _NAMES:
            return _NAMES[name]
        if name == _LINEAR_PARAMS:
            return "LinearParams"
        kind = self.classes.get(name)
        if kind is not None and kind.base == "NamedTuple":
            fields = [
                self._type(ast.parse(text, mode="eval").body) for text in kind.attributes.values()
            ]
            return f"tuple<{', '.join(fields)}>"
        if name.startswith("__torch__."):
            return f'nn.Module<"{name}">'
        raise ValueError(f"no type of the dialect is known for {name}")


@dataclass
class _Class:
    """A class as an archive's text has it: its base, its attributes and their annotations."""

    name: str
    base: str
    attributes: dict[str, str] = field(default_factory=dict)
    methods: list[str] = field(default_factory=list)


def _class_definitions(archive: bytes) -> Iterator[_Class]:
    with zipfile.ZipFile(io.BytesIO(archive)) as records:
        for record in records.namelist():
            folder, _, path = record.partition("/code/")
            if not folder or not path.endswith(".py"):
                continue
            prefix = path.removesuffix(".py").replace("/", ".")
            text = records.read(record).decode()
            for part in _top_level_classes(text):
                yield _class_definition(prefix, part)


def _top_level_classes(text: str) -> Iterator[str]:
    """Each class without the bodies of its methods: TorchScript's text is not all Python's."""
    lines: list[str] = []
    for line in [*text.splitlines(), "end"]:
        if line.startswith("class "):
            if lines:
                yield "\n".join(lines)
            lines = [line]
        elif line and not line[0].isspace():
            if lines:
                yield "\n".join(lines)
            lines = []
        elif lines and re.match(r"  \S", line):
            lines.append(line)


def _class_definition(prefix: str, text: str) -> _Class:
    head, *members = text.splitlines()
    match = re.match(r"class (\w+)\((\w*)\)", head) or re.match(r"class (\w+)()", head)
    assert match is not None, head
    found = _Class(f"{prefix}.{match[1]}", match[2])
    for line in members:
        member = line.strip()
        if " : Final[" in member:
            # Constants stand in the code, not in objects.
            continue
        if method := re.match(r"def (\w+)\(", member):
            found.methods.append(method[1])
        elif annotated := re.match(r'__annotations__\["(.*)"\] = (.*)', member) or re.match(
            r"(\w+) : (.*)", member
        ):
            found.attributes[annotated[1]] = annotated[2]
    return found


class _Comparison:
    def __init__(self, loaded: _Loaded, module: ir.Module) -> None:
        self.loaded = loaded
        self.module = module
        self.found: list[str] = []
        self._functions: dict[str, ir.Operation] = {}
        self._class_operations: dict[str, ir.Operation] = {}
        for view in module.body.operations:
            operation = view.operation
            if operation.name == "func.func":
                self._functions[_text(operation, "sym_name")] = operation
            elif operation.name == "torch.class_type":
                self._class_operations[_text(operation, "sym_name")] = operation
        self._compared: set[str] = set()
        self._pending: list[tuple[str, Any]] = []
        self._objects: dict[str, list[tuple[Any, Any]]] = {}

    def compare(self) -> None:
        """Find all differences."""
        # Its functions are compared, not run.
        program = ReferenceProgram(self.module, torch.device("cpu"), True, is_compiled=False)
        if not program.objects:
            self.found.append("the module has no object")
            return
        self._value("", self.loaded.root, program.objects[-1])
        self._identities()
        for name, operation in self._class_operations.items():
            self._class(name, operation)
        for name in self._functions:
            function = self.loaded.function(name)
            if function is not None:
                self._function(name, function.graph, function.schema)
        while self._pending:
            name, graph = self._pending.pop()
            self._function(name, graph, None)
        for name in self._functions:
            if name not in self._compared:
                self.found.append(f"function {name}: PyTorch has none, and no fork is it")

    def differs(self, where: str, ours: Any, theirs: Any) -> None:
        """Note a difference."""
        self.found.append(f"{where}: {ours}, and {theirs} in PyTorch")

    # Values

    def _value(self, path: str, theirs: Any, ours: Any) -> None:
        """Compare what an attribute holds; objects by their classes' attributes."""
        where = path or "the root object"
        # Kept until the end, so that an address names one object.
        self._objects.setdefault(path, []).append((theirs, ours))
        if isinstance(ours, Object):
            self._object(path, where, theirs, ours)
        elif isinstance(theirs, torch.Tensor) or isinstance(ours, torch.Tensor):
            problem = _tensor_difference(ours, theirs)
            if problem:
                self.found.append(f"{where}: {problem}")
        elif isinstance(theirs, (list, tuple)):
            if type(ours) not in (list, tuple) or isinstance(ours, list) != isinstance(
                theirs, list
            ):
                self.differs(where, type(ours).__name__, type(theirs).__name__)
            elif len(ours) != len(theirs):
                self.differs(where, f"{len(ours)} elements", len(theirs))
            else:
                for number, pair in enumerate(zip(theirs, ours, strict=True)):
                    self._value(f"{path}.{number}", *pair)
        elif isinstance(theirs, dict):
            if not isinstance(ours, dict) or len(ours) != len(theirs):
                self.differs(where, ours, theirs)
                return
            for number, (their_item, our_item) in enumerate(
                zip(theirs.items(), ours.items(), strict=True)
            ):
                self._value(f"{path}.key{number}", their_item[0], our_item[0])
                self._value(f"{path}.{their_item[0]}", their_item[1], our_item[1])
        elif not _same_scalar(ours, theirs):
            self.differs(where, repr(ours), repr(theirs))

    def _object(self, path: str, where: str, theirs: Any, ours: Object) -> None:
        kind = self.loaded.classes.get(ours.kind)
        if kind is None:
            self.found.append(f"{where}: the archive defines no class {ours.kind}")
            return
        if kind.base == "Enum":
            their_values = (theirs.name, theirs.value)
            if ours.attributes != dict(zip(("name", "value"), their_values, strict=True)):
                self.differs(where, ours.attributes, their_values)
            return
        their_kind, attribute = _of_object(theirs)
        if ours.kind != their_kind:
            self.differs(where, f"class {ours.kind}", their_kind)
            return
        if list(ours.attributes) != list(kind.attributes):
            self.differs(where, f"attributes {list(ours.attributes)}", list(kind.attributes))
        for name in kind.attributes:
            if name in ours.attributes:
                inner = f"{path}.{name}" if path else name
                self._value(inner, attribute(name), ours.attributes[name])

    def _identities(self) -> None:
        """What is one tensor or one memory in PyTorch is so in the module too."""
        tensors = [
            (path, theirs, ours)
            for path, pairs in self._objects.items()
            for theirs, ours in pairs
            if isinstance(theirs, torch.Tensor) and isinstance(ours, torch.Tensor)
        ]
        for number, (path, theirs, ours) in enumerate(tensors):
            for other, their_other, our_other in tensors[:number]:
                if (theirs is their_other) != (ours is our_other):
                    self.found.append(
                        f"{path} and {other}: {_one_or_two(ours is our_other, 'tensor')}, "
                        f"and {_one_or_two(theirs is their_other, 'tensor')} in PyTorch"
                    )
                    continue
                wanted = _distance(theirs, their_other)
                given = _distance(ours, our_other)
                # What lies apart from one another may have been one storage's once.
                if wanted != given and (_overlap(theirs, their_other) or _overlap(ours, our_other)):
                    self.found.append(f"{path} and {other}: {given}, and {wanted} in PyTorch")
        self._module_identities()

    def _module_identities(self) -> None:
        """Objects are told apart by what is written to them: PyTorch has no other way to ask."""
        modules = [
            (path, theirs, ours)
            for path, pairs in self._objects.items()
            for theirs, ours in pairs
            if isinstance(ours, Object)
            and hasattr(theirs, "hasattr")
            and theirs.hasattr("training")
        ]
        for number, (path, theirs, ours) in enumerate(modules):
            before = theirs.getattr("training")
            theirs.setattr("training", not before)
            for other, their_other, our_other in modules[:number]:
                # Of two with different flags, one is changed; of equal ones, both or one.
                their_flag = their_other.getattr("training")
                theirs.setattr("training", before)
                is_one = their_other.getattr("training") != their_flag
                theirs.setattr("training", not before)
                if is_one != (ours is our_other):
                    self.found.append(
                        f"{path} and {other}: {_one_or_two(ours is our_other, 'object')}, "
                        f"and {_one_or_two(is_one, 'object')} in PyTorch"
                    )
            theirs.setattr("training", before)

    # Classes

    def _class(self, name: str, operation: ir.Operation) -> None:
        where = f"class {name}"
        kind = self.loaded.classes.get(name)
        if kind is None:
            self.found.append(f"{where}: the archive defines none of that name")
            return
        attributes, methods = {}, {}
        for view in operation.regions[0].blocks[0].operations:
            member = view.operation
            if member.name == "torch.attr":
                attributes[_text(member, "name")] = str(
                    ir.TypeAttr(member.attributes["type"]).value
                )
            elif member.name == "torch.method":
                function = ir.FlatSymbolRefAttr(member.attributes["function"]).value
                methods[_text(member, "name")] = function
        if kind.base == "Enum":
            self._enumeration(where, kind, attributes)
            return
        expected = {key: self.loaded.type_text(text) for key, text in kind.attributes.items()}
        if list(attributes.items()) != list(expected.items()):
            self.differs(where, f"attributes {attributes}", expected)
        if set(methods) != set(kind.methods):
            self.differs(where, f"methods {sorted(methods)}", sorted(kind.methods))
        for method, function in methods.items():
            if function not in self._functions:
                self.found.append(
                    f"{where}: method {method} is the function {function}, and none is"
                )
            elif function not in (f"{name}.{method}",):
                self.differs(f"{where}, method {method}", function, f"{name}.{method}")

    def _enumeration(self, where: str, kind: _Class, attributes: dict[str, str]) -> None:
        if list(attributes) != ["name", "value"] or attributes["name"] != "!torch.str":
            self.differs(where, attributes, "a name and a value")

    # Functions

    def _function(self, name: str, graph: Any, schema: Any) -> None:
        self._compared.add(name)
        operation = self._functions[name]
        kind = ir.FunctionType(ir.TypeAttr(operation.attributes["function_type"]).value)
        inputs = [self.loaded.type_text(value.type().annotation_str) for value in graph.inputs()]
        if [str(given) for given in kind.inputs] != inputs:
            self.differs(f"function {name}", f"arguments {[*map(str, kind.inputs)]}", inputs)
            return
        if schema is None:
            results = [value.type().annotation_str for value in graph.outputs()]
        else:
            results = [result.type.annotation_str for result in schema.returns]
        expected = [self.loaded.type_text(text) for text in results]
        if [str(given) for given in kind.results] != expected:
            self.differs(f"function {name}", f"results {[*map(str, kind.results)]}", expected)
        _Function(self, name).compare(graph, operation.regions[0].blocks[0])

    def fork(self, name: str, graph: Any) -> bool:
        """Note the graph of a fork to be compared with a function; whether there is that one."""
        if name not in self._functions:
            return False
        self._pending.append((name, graph))
        self._compared.add(name)
        return True


class _Mismatch(Exception):
    """Two operations that don't fit: what follows them can't be compared."""


class _Function:
    """Walks a graph of PyTorch's and a block of ours side by side."""

    def __init__(self, comparison: _Comparison, name: str) -> None:
        self._comparison = comparison
        self._loaded = comparison.loaded
        self._name = name
        # PyTorch's values by their names, which are unique within a graph.
        self._values: dict[str, ir.Value] = {}
        # What constants evaluate to, and what casts are of.
        self._constants: dict[ir.Value, Any] = {}
        self._origins: dict[ir.Value, ir.Value] = {}
        # PyTorch's constants, by the names of their values.
        self._wanted: dict[str, Any] = {}
        self._compiler = Compiler(comparison.module, torch.device("cpu"), is_checking=False)
        # Where the walk is.
        self._operations: list[ir.Operation] = []
        self._position = 0
        self._node = "its start"

    def compare(self, graph: Any, block: ir.Block) -> None:
        """Note the first place where they differ."""
        try:
            for value, argument in zip(graph.inputs(), block.arguments, strict=True):
                self._values[value.debugName()] = argument
            self._block(graph, block, "func.return")
        except _Mismatch as problem:
            where = f"function {self._name}, at {self._node}"
            self._comparison.found.append(f"{where}: {problem}")

    def _block(self, theirs: Any, ours: ir.Block, terminator: str) -> None:
        outer = self._operations, self._position
        self._operations = [view.operation for view in ours.operations]
        self._position = 0
        for node in theirs.nodes():
            self._node = " ".join(str(node).split("\n")[0].split())
            self._visit(node)
        self._node = "its end"
        end = self._next(terminator)
        self._operands(end, [*theirs.outputs()])
        if self._position != len(self._operations):
            raise _Mismatch("operations behind the terminator")
        self._operations, self._position = outer

    # Operations of ours

    def _skip_casts(self) -> None:
        while self._position < len(self._operations):
            operation = self._operations[self._position]
            if operation.name not in _CASTS:
                return
            source = operation.operands[0]
            self._origins[operation.results[0]] = self._origin(source)
            if self._origin(source) in self._constants:
                self._constants[operation.results[0]] = self._constants[self._origin(source)]
            self._position += 1

    def _peek(self) -> ir.Operation:
        self._skip_casts()
        if self._position == len(self._operations):
            raise _Mismatch("there is no operation more")
        return self._operations[self._position]

    def _next(self, *names: str) -> ir.Operation:
        operation = self._peek()
        while operation.name.startswith("torch.constant.") and operation.name not in names:
            self._evaluate(operation)
            self._position += 1
            operation = self._peek()
        if operation.name not in names:
            raise _Mismatch(f"{operation.name} stands where {' or '.join(names)} is wanted")
        self._position += 1
        return operation

    def _origin(self, value: ir.Value) -> ir.Value:
        return self._origins.get(value, value)

    def _bound(self, value: Any) -> ir.Value:
        try:
            return self._values[value.debugName()]
        except KeyError:
            raise _Mismatch(f"%{value.debugName()} has no value of ours") from None

    def _same(self, ours: ir.Value, theirs: Any, what: str) -> None:
        if theirs.debugName() in self._wanted:
            wanted = self._wanted[theirs.debugName()]
            origin = self._origin(ours)
            if origin not in self._constants or not _equal(self._constants[origin], wanted):
                raise _Mismatch(f"{what} is {origin}, and the constant {wanted!r} in PyTorch")
        elif self._origin(ours) != self._origin(self._bound(theirs)):
            raise _Mismatch(f"{what} is {ours.get_name()}, and %{theirs.debugName()} in PyTorch")

    def _without_news(self, operation: ir.Operation, name: str, schema: str) -> list[ir.Value]:
        """The operands without those that this PyTorch's operator lacks, which are defaults."""
        table = operators.lookup(name)
        arguments = operators.parse(schema).arguments
        names = {argument.name for argument in arguments}
        if len(operation.operands) == len(arguments) or table.is_vararg:
            return list(operation.operands)
        ours = []
        for operand, argument in zip(operation.operands, table.arguments, strict=True):
            if argument.name in names:
                ours.append(operand)
            elif self._constants[self._origin(operand)] != argument.default_value:
                raise _Mismatch(f"{argument.name} of {operation.name} isn't what it is by default")
        return ours

    def _operands(
        self,
        operation: ir.Operation,
        theirs: Sequence[Any],
        ours: Sequence[ir.Value] | None = None,
    ) -> None:
        ours = list(operation.operands) if ours is None else ours
        if len(ours) != len(theirs):
            raise _Mismatch(f"{operation.name} has {len(ours)} operands, not {len(theirs)}")
        for number, pair in enumerate(zip(ours, theirs, strict=True)):
            self._same(*pair, f"operand {number} of {operation.name}")

    def _results(self, operation: ir.Operation, theirs: Sequence[Any]) -> None:
        ours = list(operation.results)
        if len(ours) != len(theirs):
            raise _Mismatch(f"{operation.name} has {len(ours)} results, not {len(theirs)}")
        for result, value in zip(ours, theirs, strict=True):
            self._bind(value, result)

    def _bind(self, theirs: Any, ours: ir.Value) -> None:
        """`ours` is `theirs`; it has its type, or becomes a value of it at once."""
        wanted = self._loaded.type_text(theirs.type().annotation_str)
        self._skip_casts()
        chain = [ours, *(cast for cast, origin in self._origins.items() if origin == ours)]
        kinds = [str(value.type) for value in chain]
        if wanted not in kinds:
            raise _Mismatch(f"%{theirs.debugName()} has type {kinds[0]}, not {wanted}")
        self._values[theirs.debugName()] = ours

    # Nodes of PyTorch's

    def _visit(self, node: Any) -> None:
        kind = node.kind()
        handler = getattr(self, f"_{kind.replace('::', '_')}", None)
        if handler is not None:
            handler(node)
            return
        if kind in ("aten::eq", "aten::ne") and node.inputsAt(0).type().kind() == "EnumType":
            self._compare_enums(node)
            return
        schema = re.match(r"(\w+)::([\w.]+)\(", node.schema())
        if schema is None:
            raise _Mismatch("nodes of this kind have no schema, and nothing here knows them")
        name = f"{schema[1]}.{schema[2]}"
        operation = self._next(f"torch.{name}", "torch.operator")
        if operation.name == "torch.operator":
            given = _text(operation, "name").removeprefix("torch.")
            if given != name:
                raise _Mismatch(f"torch.operator {given!r} stands where {name!r} is wanted")
            ours = list(operation.operands)
        else:
            ours = self._without_news(operation, name, node.schema())
        self._operands(operation, [*node.inputs()], ours)
        self._results(operation, [*node.outputs()])

    def _prim_Constant(self, node: Any) -> None:
        output = node.output()
        if output.type().kind() == "FunctionType":
            return
        wanted = self._wanted[output.debugName()] = output.toIValue()
        if wanted is None or type(wanted) in (bool, int, float, str, torch.device):
            # One operation makes it, wherever that stands.
            return
        # Elements of a container come before it; what an enum holds is set after it.
        made = None
        while made is None or not _equal(made, wanted):
            operation = self._peek()
            value = self._evaluate(operation)
            self._position += 1
            made = value if len(operation.results) else made

    def _evaluate(self, operation: ir.Operation) -> Any:
        """What an operation on constants gives."""
        if operation.name == "torch.constant.device":
            # To run it, all devices would be one.
            device = self._constants[operation.results[0]] = torch.device(_text(operation, "value"))
            return device
        operands = []
        for operand in operation.operands:
            origin = self._origin(operand)
            if origin not in self._constants:
                raise _Mismatch(f"{operation.name} stands where a constant is wanted")
            operands.append(self._constants[origin])
        try:
            results = self._compiler.step(operation)(Frame(0, {}, None), operands)
        except Exception as problem:
            raise _Mismatch(f"{operation.name} is no constant: {problem}") from problem
        if not len(operation.results):
            return None
        self._constants[operation.results[0]] = results[0]
        return results[0]

    def _prim_If(self, node: Any) -> None:
        operation = self._next("torch.prim.If")
        self._operands(operation, [node.input()])
        for block, region in zip(node.blocks(), operation.regions, strict=True):
            self._block(block, region.blocks[0], "torch.prim.If.yield")
        self._results(operation, [*node.outputs()])

    def _prim_Loop(self, node: Any) -> None:
        operation = self._next("torch.prim.Loop")
        self._operands(operation, [*node.inputs()])
        (body,) = node.blocks()
        block = operation.regions[0].blocks[0]
        arguments = [*body.inputs()]
        if len(arguments) != len(block.arguments):
            raise _Mismatch(f"the loop has {len(block.arguments)} arguments, not {len(arguments)}")
        for theirs, ours in zip(arguments, block.arguments, strict=True):
            wanted = self._loaded.type_text(theirs.type().annotation_str)
            if str(ours.type) != wanted:
                raise _Mismatch(f"%{theirs.debugName()} has type {ours.type}, not {wanted}")
            self._values[theirs.debugName()] = ours
        self._block(body, block, "torch.prim.Loop.condition")
        self._results(operation, [*node.outputs()])

    def _named(self, node: Any, name: str, attribute: str, wanted: str) -> ir.Operation:
        operation = self._next(name)
        given = _text(operation, attribute)
        if given != wanted:
            raise _Mismatch(f"{name} is about {given!r}, not {wanted!r}")
        return operation

    def _prim_GetAttr(self, node: Any) -> None:
        operation = self._named(node, "torch.prim.GetAttr", "name", node.s("name"))
        self._operands(operation, [node.input()])
        self._results(operation, [node.output()])

    def _prim_SetAttr(self, node: Any) -> None:
        operation = self._named(node, "torch.prim.SetAttr", "name", node.s("name"))
        self._operands(operation, [*node.inputs()])

    def _prim_CallMethod(self, node: Any) -> None:
        prefix = _METHOD_OPERATORS.get(node.inputsAt(0).type().annotation_str)
        if prefix is not None:
            # Operators stand for methods of packed parameters.
            operation = self._next(f"torch.quantized.{prefix}_{node.s('name')}")
            self._operands(operation, [*node.inputs()])
            if len(operation.results) > 1:
                made = self._next("torch.prim.TupleConstruct")
                if [*map(self._origin, made.operands)] != list(operation.results):
                    raise _Mismatch("the tuple is of something else")
                operation = made
            self._results(operation, [node.output()])
            return
        operation = self._named(node, "torch.prim.CallMethod", "name", node.s("name"))
        self._operands(operation, [*node.inputs()])
        self._results(operation, [node.output()])

    def _prim_CallFunction(self, node: Any) -> None:
        called, *arguments = node.inputs()
        operation = self._next("func.call")
        callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
        wanted = called.type().annotation_str
        if callee != wanted:
            raise _Mismatch(f"{callee} is called, and {wanted} in PyTorch")
        self._operands(operation, arguments)
        self._results(operation, [*node.outputs()])

    def _prim_fork(self, node: Any) -> None:
        operation = self._next("func.call")
        callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
        if not self._comparison.fork(callee, node.g("Subgraph")):
            raise _Mismatch(f"a function {callee} is called, and there is none")
        self._operands(operation, [*node.inputs()])
        self._results(operation, [*node.outputs()])

    def _aten_wait(self, node: Any) -> None:
        # What forks give has been computed where they stand.
        self._alias(node)

    def _alias(self, node: Any) -> None:
        """The node's result is what it is given."""
        self._skip_casts()
        source, target = node.input().debugName(), node.output().debugName()
        if source in self._wanted:
            self._wanted[target] = self._wanted[source]
        else:
            self._values[target] = self._origin(self._bound(node.input()))

    def _simple(self, node: Any) -> ir.Operation:
        operation = self._next(f"torch.{node.kind().replace('::', '.')}")
        self._operands(operation, [*node.inputs()])
        self._results(operation, [*node.outputs()])
        return operation

    _prim_ListConstruct = _prim_TupleConstruct = _prim_ListUnpack = _prim_TupleUnpack = _simple
    _prim_CreateObject = _prim_Uninitialized = _simple

    def _prim_DictConstruct(self, node: Any) -> None:
        operation = self._next("torch.prim.DictConstruct")
        inputs = [*node.inputs()]
        self._operands(operation, [*inputs[::2], *inputs[1::2]])
        self._results(operation, [node.output()])

    def _prim_unchecked_cast(self, node: Any) -> None:
        self._alias(node)

    def _prim_isinstance(self, node: Any) -> None:
        operation = self._next("torch.operator")
        given = _text(operation, "name").removeprefix("torch.")
        if given != "prim.isinstance":
            raise _Mismatch(f"torch.operator {given!r} stands where 'prim.isinstance' is wanted")
        kinds = [
            str(ir.TypeAttr(kind).value) for kind in ir.ArrayAttr(operation.attributes["types"])
        ]
        wanted = [self._loaded.type_text(kind.annotation_str) for kind in node.tys("types")]
        if kinds != wanted:
            raise _Mismatch(f"it is held against {kinds}, not {wanted}")
        self._operands(operation, [node.input()])
        self._results(operation, [node.output()])

    def _prim_TupleSlice(self, node: Any) -> None:
        unpacked = self._next("torch.prim.TupleUnpack")
        self._operands(unpacked, [node.input()])
        made = self._next("torch.prim.TupleConstruct")
        if list(made.operands) != list(unpacked.results)[node.i("beg") : node.i("end")]:
            raise _Mismatch("it takes other elements")
        self._results(made, [node.output()])

    def _prim_ConstantChunk(self, node: Any) -> None:
        numbers = [self._evaluate(self._next("torch.constant.int")) for _ in range(2)]
        if numbers != [node.i("chunks"), node.i("dim")]:
            raise _Mismatch(f"it makes {numbers[0]} chunks along {numbers[1]}")
        chunk = self._next("torch.aten.chunk")
        self._same(chunk.operands[0], node.input(), "operand 0 of torch.aten.chunk")
        unpacked = self._next("torch.prim.ListUnpack")
        if list(unpacked.operands) != list(chunk.results):
            raise _Mismatch("it unpacks something else")
        self._results(unpacked, [*node.outputs()])

    def _prim_ModuleContainerIndex(self, node: Any) -> None:
        """The submodules as a list or dict, from which one is taken."""
        container, index = node.inputs()
        is_dict = index.type().kind() == "StringType"
        kind = self._loaded.classes[container.type().annotation_str]
        names = [name for name, text in kind.attributes.items() if text.startswith("__torch__.")]
        modules = []
        for name in names:
            operation = self._named(node, "torch.prim.GetAttr", "name", name)
            self._operands(operation, [container])
            modules.append(operation.results[0])
            if is_dict and self._evaluate(self._next("torch.constant.str")) != name:
                raise _Mismatch(f"the key of {name!r} is another")
        made = self._next(f"torch.prim.{'Dict' if is_dict else 'List'}Construct")
        if [self._origin(value) for value in made.operands][-len(modules) :] != modules:
            raise _Mismatch("other modules are taken together")
        taken = self._next(f"torch.aten.__getitem__.{'Dict_str' if is_dict else 't'}")
        if taken.operands[0] != made.results[0]:
            raise _Mismatch("one is taken from something else")
        self._same(taken.operands[1], index, "the index")
        self._results(taken, [node.output()])

    def _prim_Enter(self, node: Any) -> None:
        operation = self._next("torch.prim.Enter", "torch.prim.CallMethod")
        if operation.name == "torch.prim.CallMethod" and _text(operation, "name") != "__enter__":
            raise _Mismatch(f"method {_text(operation, 'name')} is called, not __enter__")
        self._operands(operation, [node.input()])
        if operation.name == "torch.prim.CallMethod":
            self._results(operation, [node.output()])
        elif [*node.output().uses()]:
            raise _Mismatch("torch.prim.Enter gives None, and what it gives is used")

    def _prim_Exit(self, node: Any) -> None:
        # The dialect's operation takes the object alone: no exception passes.
        operation = self._next("torch.prim.Exit")
        self._same(operation.operands[0], node.inputsAt(0), "operand 0 of torch.prim.Exit")
        if [*node.output().uses()]:
            self._results(operation, [node.output()])

    def _enum_attribute(self, node: Any, attribute: str) -> None:
        operation = self._named(node, "torch.prim.GetAttr", "name", attribute)
        self._operands(operation, [node.input()])
        self._results(operation, [node.output()])

    def _prim_EnumName(self, node: Any) -> None:
        self._enum_attribute(node, "name")

    def _prim_EnumValue(self, node: Any) -> None:
        self._enum_attribute(node, "value")

    def _compare_enums(self, node: Any) -> None:
        names = []
        for value in node.inputs():
            operation = self._named(node, "torch.prim.GetAttr", "name", "name")
            self._operands(operation, [value])
            names.append(operation.results[0])
        operation = self._next(f"torch.aten.{node.kind().removeprefix('aten::')}.str")
        if list(operation.operands) != names:
            raise _Mismatch("it compares other values")
        self._results(operation, [node.output()])


def _of_object(value: Any) -> tuple[str, Callable[[str], Any]]:
    """The class of an object of PyTorch's, and what gives its attributes."""
    if hasattr(value, "_type"):
        return value._type().qualified_name(), value.getattr
    # Of a class that this process has scripted, PyTorch makes an object of Python's.
    kind = type(value)
    return f"__torch__.{kind.__module__}.{kind.__qualname__}", functools.partial(getattr, value)


def _text(operation: ir.Operation, name: str) -> str:
    return str(ir.StringAttr(operation.attributes[name]).value)


def _one_or_two(is_one: bool, what: str) -> str:
    return f"one {what}" if is_one else f"two {what}s"


def _distance(one: torch.Tensor, other: torch.Tensor) -> str:
    """From one tensor to another in memory."""
    if one.untyped_storage().data_ptr() != other.untyped_storage().data_ptr():
        return "two storages"
    return f"{one.data_ptr() - other.data_ptr()} bytes apart in one storage"


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have bytes in common; those between their elements count as theirs."""
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return False
    if not one.numel() or not other.numel():
        return False
    if one.untyped_storage().data_ptr() != other.untyped_storage().data_ptr():
        return False

    def end(tensor: torch.Tensor) -> int:
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        last = sum((size - 1) * stride for size, stride in steps)
        return tensor.data_ptr() + (last + 1) * tensor.element_size()

    return one.data_ptr() < end(other) and other.data_ptr() < end(one)


def _same_scalar(ours: Any, theirs: Any) -> bool:
    """Whether two scalars, or packed parameters, are the same to the bit, types included."""
    if isinstance(theirs, torch._C.ScriptObject):
        return (
            isinstance(ours, torch._C.ScriptObject)
            and ours._type().qualified_name() == theirs._type().qualified_name()
            and _equal(*(packed.__getstate__() for packed in (ours, theirs)))
        )
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, torch.Generator):
        return (ours.device, ours.initial_seed()) == (theirs.device, theirs.initial_seed())
    if isinstance(ours, float):
        return (math.isnan(ours) and math.isnan(theirs)) or (
            ours == theirs and math.copysign(1, ours) == math.copysign(1, theirs)
        )
    return bool(ours == theirs)


def _equal(ours: Any, theirs: Any) -> bool:
    """Whether two constants are the same to the bit."""
    if isinstance(ours, Object):
        return (
            ours.attributes == {"name": theirs.name, "value": theirs.value}
            if hasattr(theirs, "name")
            else False
        )
    if isinstance(ours, torch.Tensor) or isinstance(theirs, torch.Tensor):
        return _tensor_difference(ours, theirs) is None
    if isinstance(theirs, (list, tuple)):
        # NamedTuples are tuples.
        return (
            isinstance(ours, list if isinstance(theirs, list) else tuple)
            and len(ours) == len(theirs)
            and all(map(_equal, ours, theirs))
        )
    if isinstance(theirs, dict):
        return (
            isinstance(ours, dict)
            and len(ours) == len(theirs)
            and all(map(_equal, ours.keys(), theirs.keys()))
            and all(map(_equal, ours.values(), theirs.values()))
        )
    return _same_scalar(ours, theirs)


def _tensor_difference(ours: Any, theirs: Any) -> str | None:
    """What is different about two tensors, to the bit; None if nothing is."""
    if not isinstance(ours, torch.Tensor) or not isinstance(theirs, torch.Tensor):
        return f"a {type(ours).__name__}, and a {type(theirs).__name__} in PyTorch"
    if ours.dtype is not theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{list(ours.shape)}, and {theirs.dtype}{list(theirs.shape)} in PyTorch"
    if ours.is_quantized:
        return _quantized_difference(ours, theirs)
    return None if _bytes(ours) == _bytes(theirs) else "its elements differ from PyTorch's"


def _bytes(tensor: torch.Tensor) -> bytes:
    """The elements in their order, whatever kernels the dtype has."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if not plain.numel():
        return b""
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    carrier = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    layout = plain.storage_offset(), plain.shape, plain.stride()
    raw = torch.empty(0, dtype=carrier[plain.element_size()]).set_(plain.untyped_storage(), *layout)
    raw = raw.contiguous()
    # Not by way of NumPy: older PyTorches know an older one.
    return ctypes.string_at(raw.data_ptr(), raw.numel() * raw.element_size())


def _quantized_difference(ours: torch.Tensor, theirs: torch.Tensor) -> str | None:
    if ours.qscheme() != theirs.qscheme():
        return f"{ours.qscheme()}, and {theirs.qscheme()} in PyTorch"
    if not torch.equal(ours.int_repr(), theirs.int_repr()):
        return "its integers differ from PyTorch's"
    if ours.qscheme() is torch.per_tensor_affine:
        parameters = [(x.q_scale(), x.q_zero_point()) for x in (ours, theirs)]
        return None if parameters[0] == parameters[1] else "its scale or zero point differs"
    if ours.q_per_channel_axis() != theirs.q_per_channel_axis():
        return "its axis differs from PyTorch's"
    same = torch.equal(ours.q_per_channel_scales(), theirs.q_per_channel_scales()) and torch.equal(
        ours.q_per_channel_zero_points(), theirs.q_per_channel_zero_points()
    )
    return None if same else "its scales or zero points differ from PyTorch's"
