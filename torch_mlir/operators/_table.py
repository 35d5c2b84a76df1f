# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator table's format: its lines, and the schemas that stand in them.

A line is ``SCHEMA<TAB>FLAGS``, without the tab where there are no flags. The schema is
what PyTorch prints for a function schema (``operator<<`` of ``FunctionSchema`` writes the
text, ``torch/csrc/jit/frontend/function_schema_parser.cpp`` reads it); the flags are
words that the table's own header explains.

Only the standard library is used: builds run this before anything is installed.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TABLE_PATH = Path(__file__).with_name("table.txt")

# Type constructors that PyTorch writes like a call. After any other type,
# parentheses hold an alias annotation.
_CONSTRUCTORS = frozenset({"Await", "Dict", "Future", "RRef", "Union"})


class SchemaError(ValueError):
    """A schema or a table line that can't be read."""


@dataclass(frozen=True, slots=True)
class Type:
    """A schema type.

    ``name`` is what PyTorch writes (``"Tensor"``, ``"SymInt"``, ``"ScalarType"``,
    ``"t"``, ``"__torch__.torch.classes.quantized.LinearPackedParamsBase"``, …), or
    ``"List"``, ``"Optional"``, ``"Tuple"`` or a constructor such as ``"Dict"``, which
    have ``arguments``. ``size`` is a list's length where the schema fixes one.
    """

    name: str
    arguments: tuple[Type, ...] = ()
    size: int | None = None

    def __str__(self) -> str:
        if self.name == "List":
            return f"{self.arguments[0]}[{'' if self.size is None else self.size}]"
        if self.name == "Optional":
            return f"{self.arguments[0]}?"
        inner = ", ".join(map(str, self.arguments))
        if self.name == "Tuple":
            return f"({inner})"
        return f"{self.name}({inner})" if self.arguments else self.name

    @property
    def element(self) -> Type:
        """What a list or an optional holds; other types raise ``TypeError``."""
        if self.name not in ("List", "Optional"):
            raise TypeError(f"{self} has no element type")
        return self.arguments[0]

    @property
    def is_variable(self) -> bool:
        """Whether this is a type variable: ``t``, ``t1``, ``tVal``, …"""
        return not self.arguments and self.name[0] == "t" and self.name[1:] in ("", "1", "2", "Val")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an operator, or one of its results.

    ``annotations`` are the alias annotations in the order in which they are written:
    ``("a!",)`` for ``Tensor(a!) self``. ``default`` is the default's text, None without
    one. ``name`` is empty for a result without a name.
    """

    name: str
    type: Type
    annotations: tuple[str, ...] = ()
    default: str | None = None
    kwarg_only: bool = False

    @property
    def is_write(self) -> bool:
        """Whether the operator writes to what this argument refers to."""
        return any("!" in note.partition("->")[0] for note in self.annotations)

    @property
    def default_value(self) -> object:
        """What the operator gets by default: None, a bool, int, float or str, a list of those.

        A ``ScalarType``, ``Layout`` or ``MemoryFormat`` is its number.

        Raises:
            ValueError: for an argument without a default.
        """
        if self.default is None:
            raise ValueError(f"{self.name!r} has no default")
        value = ast.literal_eval(self.default)
        target = self.type
        while target.name == "Optional" and value is not None:
            target = target.element
        if target.name == "List" and not isinstance(value, list):
            # `int[2] padding=0` is that number twice.
            return [value] * (target.size or 1)
        return float(value) if target.name == "float" else value

    @property
    def alias_sets(self) -> frozenset[str]:
        """The names of the alias sets; ``*`` is "anything"."""
        return frozenset(
            part.strip(" !")
            for note in self.annotations
            for side in note.split("->")
            for part in side.split("|")
        )


@dataclass(frozen=True, slots=True)
class Schema:
    """An operator: ``namespace::name.overload(arguments) -> results``, and its flags.

    ``is_vararg`` and ``is_varret`` say that the operator takes or gives more than what
    is listed (``...`` in the text).
    """

    text: str
    namespace: str
    name: str
    overload: str
    arguments: tuple[Argument, ...]
    results: tuple[Argument, ...]
    flags: frozenset[str]
    is_vararg: bool = False
    is_varret: bool = False

    def __str__(self) -> str:
        return self.text

    @property
    def key(self) -> str:
        """``"aten.add.Tensor"``: the table's key; MLIR's name is ``"torch."`` + this."""
        return f"{self.namespace}.{self.name}" + (f".{self.overload}" if self.overload else "")

    @property
    def is_pure(self) -> bool:
        """Whether the results are all there is to it and depend on the operands alone."""
        return "pure" in self.flags

    @property
    def is_mutable(self) -> bool:
        """Whether the operator writes to one of its operands."""
        return any(a.is_write for a in self.arguments)

    @property
    def is_aliasing(self) -> bool:
        """Whether a result may share memory with an operand or with anything else."""
        return any(r.annotations for r in self.results)


class _Reader:
    """A position in a schema's text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, what: str) -> SchemaError:
        return SchemaError(f"{what} at column {self.at + 1} of {self.text!r}")

    def take(self, token: str) -> bool:
        found = self.text.startswith(token, self.at)
        if found:
            self.at += len(token)
        return found

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise self.fail(f"expected {token!r}")

    def word(self) -> str:
        start = self.at
        while self.at < len(self.text) and (
            self.text[self.at].isalnum() or self.text[self.at] in "_."
        ):
            self.at += 1
        return self.text[start : self.at]

    def annotation(self) -> str:
        end = self.text.find(")", self.at)
        if end < 0:
            raise self.fail("an alias annotation that doesn't end")
        note = self.text[self.at : end]
        self.at = end + 1
        return note

    def type(self, notes: list[str]) -> Type:
        if self.take("("):
            parsed = Type("Tuple", tuple(self._types(notes)))
        else:
            name = self.word()
            if not name:
                raise self.fail("expected a type")
            if name in _CONSTRUCTORS and self.take("("):
                parsed = Type(name, tuple(self._types(notes)))
            else:
                parsed = Type(name)
        while True:
            if self.take("?"):
                parsed = Type("Optional", (parsed,))
            elif self.take("["):
                digits = self.word()
                self.expect("]")
                parsed = Type("List", (parsed,), int(digits) if digits else None)
            elif self.take("("):
                notes.append(self.annotation())
            else:
                return parsed

    def _types(self, notes: list[str]) -> Iterator[Type]:
        while not self.take(")"):
            yield self.type(notes)
            self.take(", ")

    def default(self) -> str:
        """A literal: up to a comma or parenthesis that stands in no brackets or quotes."""
        start, depth, quote = self.at, 0, ""
        while self.at < len(self.text):
            c = self.text[self.at]
            if quote:
                if c == "\\":
                    self.at += 1
                elif c == quote:
                    quote = ""
            elif c in "\"'":
                quote = c
            elif c in "[(":
                depth += 1
            elif c in ",)]" and depth == 0:
                break
            elif c in ")]":
                depth -= 1
            self.at += 1
        return self.text[start : self.at]

    def argument(self, kwarg_only: bool) -> Argument:
        notes: list[str] = []
        parsed = self.type(notes)
        name = self.word() if self.take(" ") else ""
        default = self.default() if self.take("=") else None
        return Argument(name, parsed, tuple(notes), default, kwarg_only)

    def arguments(self) -> tuple[tuple[Argument, ...], bool]:
        found: list[Argument] = []
        variable = kwarg_only = False
        while not self.take(")"):
            if self.take("..."):
                variable = True
            elif self.take("*, "):
                kwarg_only = True
                continue
            else:
                found.append(self.argument(kwarg_only))
            if not self.take(", ") and not self.text.startswith(")", self.at):
                raise self.fail("expected ', ' or ')'")
        return tuple(found), variable

    def results(self) -> tuple[tuple[Argument, ...], bool]:
        if self.take("..."):
            return (), True
        # PyTorch puts a single tuple-typed result in parentheses of its own, so that a
        # leading one always opens the list.
        if self.take("("):
            return self.arguments()
        return (self.argument(False),), False


def parse(text: str, flags: frozenset[str] = frozenset()) -> Schema:
    """The schema that ``text``, as PyTorch prints it, describes.

    Raises:
        SchemaError: where the text isn't a schema; the message has the column.
    """
    reader = _Reader(text)
    namespace = reader.word()
    reader.expect("::")
    name, _, overload = reader.word().partition(".")
    if not namespace or not name:
        raise reader.fail("expected namespace::name")
    reader.expect("(")
    arguments, is_vararg = reader.arguments()
    reader.expect(" -> ")
    results, is_varret = reader.results()
    if reader.at != len(text):
        raise reader.fail("unexpected text")
    return Schema(text, namespace, name, overload, arguments, results, flags, is_vararg, is_varret)


class Table(Mapping[str, Schema]):
    """Operators by key (``"aten.add.Tensor"``), in the table's order.

    A schema is parsed when it is asked for; the keys alone cost one pass over the text.
    """

    def __init__(self, text: str, source: str = "<table>") -> None:
        self.header: tuple[str, ...] = ()
        self._lines: dict[str, str] = {}
        self._parsed: dict[str, Schema] = {}
        header = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("#"):
                header.append(line[1:].removeprefix(" "))
                continue
            qualified, paren, _ = line.partition("(")
            namespace, colons, rest = qualified.partition("::")
            if not paren or not colons:
                raise SchemaError(f"{source}:{number}: not an operator: {line!r}")
            key = f"{namespace}.{rest}"
            if key in self._lines:
                raise SchemaError(f"{source}:{number}: {key} stands twice")
            self._lines[key] = line
        self.header = tuple(header)

    def __getitem__(self, key: str) -> Schema:
        schema = self._parsed.get(key)
        if schema is None:
            text, _, flags = self._lines[key].partition("\t")
            schema = self._parsed[key] = parse(text, frozenset(flags.split()))
        return schema

    def __contains__(self, key: object) -> bool:
        return key in self._lines

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    @functools.cached_property
    def overloads(self) -> Mapping[str, tuple[str, ...]]:
        """``"aten.add"`` to the keys of its overloads, in the table's order."""
        found: dict[str, list[str]] = {}
        for key in self._lines:
            found.setdefault(".".join(key.split(".", 2)[:2]), []).append(key)
        return {packet: tuple(keys) for packet, keys in found.items()}


@functools.cache
def load(path: Path = TABLE_PATH) -> Table:
    """The table; read once for each path."""
    return Table(path.read_text(encoding="utf-8"), str(path))


def lookup(key: str) -> Schema:
    """The operator with this key: ``"aten.add.Tensor"``, ``"aten.relu"``.

    ``"aten::add.Tensor"``, MLIR's ``"torch.aten.add.Tensor"`` and FX's
    ``"aten.relu.default"`` name the same operators.

    Raises:
        KeyError: where the table has no such operator.
    """
    table = load()
    found = key.replace("::", ".", 1).removeprefix("torch.")
    if found not in table:
        found = found.removesuffix(".default")
    if found not in table:
        raise KeyError(f"{key}: not in the operator table")
    return table[found]
