"""Checks of the shared objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from posixpath import basename

from .findings import Finding, Parameters, beside, check, some
from .tools import judged, promised
from .wheel import Wheel, resolve

# The dynamic loader itself may be named as a dependency under every policy.
_LOADER = re.compile(r"ld-linux.*\.so\.\d+|ld64\.so\.\d+|ld-musl-.*\.so\.\d+")
_NUMBER = re.compile(r"\d+(\.\d+)*")


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


@check("needed")
def needed(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """DT_NEEDED names only what the platform allows, findable own files, and what is beside."""
    analysis = judged(wheel, parameters)
    if analysis is None:
        return
    policy = promised(wheel, analysis, parameters)
    own = {basename(s.name) for s in wheel.shared_objects}
    for shared_object in wheel.shared_objects:
        provided = beside(shared_object.name, parameters).libraries
        for library in shared_object.needed:
            if library in own:
                if not wheel.leads_to(shared_object, library):
                    yield Finding(
                        shared_object.name,
                        f"needs {library} of this wheel, but no RUNPATH entry leads to it",
                    )
            elif library not in policy.whitelist | provided and not _LOADER.fullmatch(library):
                yield Finding(
                    shared_object.name, f"needs {library}, which {policy.name} doesn't promise"
                )


@check("rpath")
def rpath(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """RPATH and RUNPATH stay inside the wheel, relative to $ORIGIN."""
    folders = {"."}
    for name in wheel.names:
        parts = name.split("/")
        folders.update("/".join(parts[:end]) for end in range(1, len(parts)))
    for shared_object in wheel.shared_objects:
        for entry in shared_object.search_paths:
            folder = resolve(shared_object.name, entry)
            if folder is None:
                yield Finding(shared_object.name, f"RPATH entry {entry} leads out of the wheel")
            elif folder not in folders:
                yield Finding(shared_object.name, f"RPATH entry {entry} leads to no folder")


@check("forbidden-library")
def forbidden_library(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """Libraries that the policy rules out are neither bundled nor needed, but by whom it names."""
    patterns = parameters["libraries"]

    def matches(library: str) -> bool:
        return any(fnmatchcase(library, pattern) for pattern in patterns)

    for shared_object in wheel.shared_objects:
        provided = beside(shared_object.name, parameters).libraries
        for library in shared_object.needed:
            if matches(library) and library not in provided:
                yield Finding(shared_object.name, f"needs {library}, which is forbidden")
        if matches(shared_object.soname):
            yield Finding(shared_object.name, f"is {shared_object.soname}, which is forbidden")
    for name in wheel.names:
        if matches(basename(name)):
            yield Finding(name, "is bundled, but forbidden")


@check("export")
def export(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """Shared objects export their entry points and nothing else."""
    for shared_object in wheel.shared_objects:
        allowed: list[str] = next(
            (
                rule["symbols"]
                for rule in parameters["rules"]
                if fnmatchcase(basename(shared_object.name), rule["files"])
            ),
            [],
        )
        extra = sorted(
            symbol.name
            for symbol in shared_object.symbols
            if symbol.exported and not any(fnmatchcase(symbol.name, p) for p in allowed)
        )
        if extra:
            yield Finding(shared_object.name, f"exports {some(extra)}")


@check("unique-symbol")
def unique_symbol(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """No STB_GNU_UNIQUE: such symbols are shared by every library of the process."""
    for shared_object in wheel.shared_objects:
        names = sorted(s.name for s in shared_object.symbols if s.binding == "unique")
        if names:
            yield Finding(shared_object.name, f"has STB_GNU_UNIQUE symbols {some(names)}")


@check("undefined-symbol")
def undefined_symbol(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """No undefined symbol of the families that the policy rules out."""
    patterns = [re.compile(pattern) for pattern in parameters["patterns"]]
    for shared_object in wheel.shared_objects:
        provided = beside(shared_object.name, parameters)
        names = sorted(
            s.name
            for s in shared_object.symbols
            if not s.defined
            and any(pattern.search(s.name) for pattern in patterns)
            and not (provided.symbols.match(s.name) or provided.libraries and s.version)
        )
        if names:
            yield Finding(shared_object.name, f"leaves {some(names)} undefined")


@check("unresolved-symbol")
def unresolved_symbol(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """Every symbol comes from a versioned system library, the interpreter, the wheel or beside."""
    interpreter = re.compile(parameters["interpreter"])
    offered = {s.name for o in wheel.shared_objects for s in o.symbols if s.exported}
    for shared_object in wheel.shared_objects:
        provided = beside(shared_object.name, parameters).symbols
        names = sorted(
            s.name
            for s in shared_object.symbols
            if not s.defined
            and not provided.match(s.name)
            and s.binding != "weak"
            and not s.version
            and s.name not in offered
            and not interpreter.match(s.name)
        )
        if names:
            yield Finding(shared_object.name, f"nothing defines {some(names)}")


@check("symbol-version")
def symbol_version(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """No shared object asks for newer system libraries than the platform has."""
    analysis = judged(wheel, parameters)
    if analysis is None:
        return
    policy = promised(wheel, analysis, parameters)
    newest = {
        family: max(_number(version) for version in versions if _NUMBER.fullmatch(version))
        for family, versions in policy.symbol_versions.items()
        if any(map(_NUMBER.fullmatch, versions))
    }
    for shared_object in wheel.shared_objects:
        required = {v for all in shared_object.required_versions.values() for v in all}
        for version in sorted(required):
            family, _, number = version.partition("_")
            if family not in newest or number in policy.symbol_versions[family]:
                continue
            if _NUMBER.fullmatch(number) and _number(number) <= newest[family]:
                continue
            names = sorted(s.name for s in shared_object.symbols if s.version == version)
            yield Finding(
                shared_object.name,
                f"needs {version} for {some(names) or 'its loader'}; "
                f"{policy.name} ends at {family}_{'.'.join(map(str, newest[family]))}",
            )


@check("executable-stack")
def executable_stack(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """No shared object asks for an executable stack."""
    for shared_object in wheel.shared_objects:
        if shared_object.stack_is_executable:
            yield Finding(shared_object.name, "makes the process's stacks executable")


@check("text-relocation")
def text_relocation(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """No shared object has its code rewritten when it is loaded."""
    for shared_object in wheel.shared_objects:
        if shared_object.has_text_relocations:
            yield Finding(shared_object.name, "has text relocations")
