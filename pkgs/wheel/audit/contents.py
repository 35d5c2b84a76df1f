"""Checks of the files: what there is, what there shouldn't be, how large it is."""

from __future__ import annotations

import ast
import base64
import csv
import hashlib
import io
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from configparser import ConfigParser
from configparser import Error as ConfigError
from fnmatch import fnmatchcase

from .findings import Finding, Parameters, check, some
from .wheel import Wheel

# PEP 427: RECORD doesn't hash itself and its signatures.
_UNHASHED = ("RECORD", "RECORD.jws", "RECORD.p7s")


@check("record")
def record(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """RECORD lists every file once, with its true hash and size."""
    name = f"{wheel.dist_info}/RECORD"
    text = wheel.info("RECORD")
    if text is None:
        yield Finding(name, "is missing")
        return
    for entry, count in Counter(wheel.names).items():
        if count > 1:
            yield Finding(entry, f"is in the archive {count} times")
        if entry.startswith("/") or ".." in entry.split("/"):
            yield Finding(entry, "would be installed outside the environment")
    rows = [row for row in csv.reader(io.StringIO(text.decode("utf-8", "replace"))) if row]
    listed = Counter(row[0] for row in rows)
    unhashed = {f"{wheel.dist_info}/{file}" for file in _UNHASHED}
    for entry in sorted(set(wheel.names) - set(listed) - unhashed):
        yield Finding(entry, "isn't in RECORD")
    for row in rows:
        entry, digest, size = (row + ["", ""])[:3]
        if listed[entry] > 1:
            yield Finding(entry, f"is in RECORD {listed[entry]} times")
        elif entry not in wheel.names:
            yield Finding(entry, "is in RECORD but not in the archive")
        elif entry not in unhashed:
            data = wheel.read(entry)
            algorithm, _, value = digest.partition("=")
            if algorithm not in ("sha256", "sha384", "sha512"):
                yield Finding(entry, f"has no sha256 or stronger hash in RECORD, but {digest!r}")
                continue
            actual = base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest())
            if actual.rstrip(b"=").decode() != value:
                yield Finding(entry, "isn't what RECORD's hash says")
            if size and size != str(len(data)):
                yield Finding(entry, f"is {len(data)} bytes, RECORD says {size}")


@check("junk")
def junk(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """No leftovers of building and developing."""
    for name in wheel.names:
        if any(fnmatchcase(name, pattern) for pattern in parameters.get("except", ())):
            continue
        for pattern in parameters["patterns"]:
            # A pattern without a slash means any folder or file of that name.
            parts = [name] if "/" in pattern else name.split("/")
            if any(fnmatchcase(part, pattern) for part in parts):
                yield Finding(name, f"is junk by the pattern {pattern}")
                break


@check("embedded-path")
def embedded_path(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """No file tells of the machine that built it."""
    for name in wheel.names:
        data = wheel.read(name)
        for pattern in parameters["patterns"]:
            found = sorted(set(re.findall(pattern.encode(), data)))
            if found:
                texts = [match.decode("utf-8", "replace") for match in found]
                yield Finding(name, f"holds the path {some(texts)}")


@check("typed")
def typed(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """Each package has py.typed (PEP 561)."""
    for package in wheel.packages:
        if f"{package}/py.typed" not in wheel.names:
            yield Finding(package, "has no py.typed")


@check("stub")
def stub(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """Each extension module has a stub that parses."""
    for shared_object in wheel.shared_objects:
        # One shared object may hold several modules.
        for initialiser in shared_object.initialisers:
            module = initialiser.removeprefix("PyInit_")
            base = f"{posixpath.dirname(shared_object.name)}/{module}".lstrip("/")
            stubs = [n for n in (f"{base}.pyi", f"{base}/__init__.pyi") if n in wheel.names]
            if not stubs:
                yield Finding(shared_object.name, f"has no stub {base}.pyi")
    for name in wheel.names:
        if name.endswith(".pyi"):
            try:
                ast.parse(wheel.read(name))
            except (SyntaxError, ValueError) as error:
                yield Finding(name, f"doesn't parse: {error}")


def _defines(source: bytes, attribute: str) -> bool:
    """Whether a module binds a name at its top level."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name == attribute:
                return True
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            if any((a.asname or a.name) in (attribute, "*") for a in node.names):
                return True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if node.id == attribute:
                return True
    return False


@check("entry-point")
def entry_point(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """Entry points lead to objects of the wheel; those that the policy names exist."""
    name = f"{wheel.dist_info}/entry_points.txt"
    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string((wheel.info("entry_points.txt") or b"").decode())
    except (ConfigError, UnicodeDecodeError) as error:
        yield Finding(name, f"can't be read: {error}")
        return
    for group, commands in parameters.get("required", {}).items():
        for command in commands:
            if not parser.has_option(group, command):
                yield Finding(name, f"lacks {command} in [{group}]")
    for group in parser.sections():
        for command, target in parser.items(group):
            module, _, attribute = target.split("[")[0].strip().partition(":")
            base = module.strip().replace(".", "/")
            files = [n for n in (f"{base}.py", f"{base}/__init__.py") if n in wheel.names]
            compiled = any(n.startswith(f"{base}.") and n.endswith(".so") for n in wheel.names)
            first = attribute.strip().split(".")[0]
            if module.split(".")[0] not in wheel.packages and not files:
                continue  # another distribution's module
            if not files and not compiled:
                yield Finding(name, f"{command} leads to {module}, which isn't in the wheel")
            elif files and first:
                try:
                    defined = _defines(wheel.read(files[0]), first)
                except (SyntaxError, ValueError) as error:
                    yield Finding(files[0], f"doesn't parse: {error}")
                    continue
                if not defined:
                    yield Finding(name, f"{command} leads to {module}:{first}, not defined there")


@check("size")
def size(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """The wheel and what it installs are within the policy's sizes, in bytes."""
    archive = wheel.path.stat().st_size
    installed = sum(entry.file_size for entry in wheel.entries)
    for what, value, limit in (
        ("the wheel", archive, parameters["wheel"]),
        ("what it installs", installed, parameters["installed"]),
    ):
        if value > limit:
            yield Finding("", f"{what} is {value / 1e6:.1f} MB, the limit is {limit / 1e6:.1f}")


@check("reproducible")
def reproducible(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """Nothing of the archive depends on when and where it was packed."""
    dates = {entry.date_time for entry in wheel.entries}
    if len(dates) > 1:
        yield Finding("", f"its files have {len(dates)} different times")
    modes = {entry.external_attr >> 16 & 0o7777 for entry in wheel.entries}
    odd = {mode for mode in modes if mode not in (0o644, 0o755)}
    if odd:
        yield Finding("", f"its files have the permissions {some([oct(m) for m in sorted(odd)])}")
    payload = [n for n in wheel.names if not n.startswith(wheel.dist_info)]
    if payload != sorted(payload):
        yield Finding("", "its files are in no fixed order")
