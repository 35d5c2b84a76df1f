#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the libraries that a CUDA build of PyTorch wants into tiny stand-ins.

PyPI's x86_64 wheels of PyTorch load only beside gigabytes of CUDA libraries,
though nothing on a CPU ever calls them. This reads which shared objects the
wheel's own ones name and the wheel lacks, and which symbols, under which
versions, they want from those. For each it writes a shared object of a few kB
that defines just that. Every function returns 100, which is
``cudaErrorNoDevice``, so that PyTorch finds no device; functions that return an
error's text return one that says whose they are.

The files are written here, byte by byte: no compiler is involved, and the same
wheel gives the same bytes. Sources of the format: the System V ABI (gabi,
"Dynamic Linking"), its x86-64 supplement, and the "Symbol Versioning" chapter
of the Linux Standard Base.
"""

from __future__ import annotations

import argparse
import os
import struct
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

#: What a manylinux wheel takes from the system that it runs on (PEP 600).
SYSTEM = frozenset(
    "ld-linux-x86-64.so.2 libc.so.6 libdl.so.2 libgcc_s.so.1 libm.so.6 libpthread.so.0"
    " libquadmath.so.0 librt.so.1 libstdc++.so.6 libutil.so.1 libz.so.1".split()
)

#: What names begin with that no vendor's C API has: CPython's own, and those of
#: the C++ run-time library (Itanium C++ ABI), which some builds want unversioned.
NOT_A_VENDORS = ("Py", "_Py", "_Z", "__cxa_", "__gxx_", "_Unwind_")

#: Functions of the CUDA libraries that return an error's name or text. The
#: driver's own (``cuGet...``) write theirs through a pointer instead.
TEXT_FUNCTIONS = ("GetErrorString", "GetErrorName", "GetStatusString", "GetStatusName")

NO_DEVICE = 100

SYMBOL = struct.Struct("<IBBHQQ")  # st_name, st_info, st_other, st_shndx, st_value, st_size


@dataclass(frozen=True)
class Want:
    """An undefined symbol. ``soname`` and ``version`` are None where it has no version."""

    symbol: str
    weak: bool
    soname: str | None = None
    version: str | None = None


@dataclass(frozen=True)
class Library:
    """What one shared object offers and asks for, by its dynamic section."""

    #: what the loader finds it by: its file's name, and the soname once it is loaded
    names: frozenset[str]
    needed: tuple[str, ...]
    #: soname -> the versions that the loader checks for before any symbol
    versions: Mapping[str, frozenset[str]]
    defined: frozenset[str]
    wanted: tuple[Want, ...]


@dataclass
class Stub:
    """What the stand-in for one shared object has to define.

    ``symbols`` maps each version to the names under it; the key None holds the
    names that are wanted without a version.
    """

    symbols: dict[str | None, set[str]] = field(default_factory=lambda: {None: set()})


def section_of(elf: ELFFile, name: str) -> Any:
    """The section ``name``. Raises ``ELFError`` where the file has none."""
    section = elf.get_section_by_name(name)
    if section is None:
        raise ELFError(f"{elf.stream.name} has no section {name}")
    return section


def read_library(path: Path) -> Library:
    """Reads the dynamic section of the ELF64 shared object ``path``.

    Raises ``elftools.common.exceptions.ELFError`` on anything else.
    """
    with path.open("rb") as file:
        elf = ELFFile(file)
        names = {path.name}
        needed = []
        for tag in section_of(elf, ".dynamic").iter_tags():
            if tag.entry.d_tag == "DT_NEEDED":
                needed.append(tag.needed)
            elif tag.entry.d_tag == "DT_SONAME":
                names.add(tag.soname)

        versions: dict[str, set[str]] = {}
        by_index: dict[int, tuple[str, str]] = {}
        version_needs: Any = elf.get_section_by_name(".gnu.version_r")
        if version_needs is not None:
            for need, entries in version_needs.iter_versions():
                for entry in entries:
                    versions.setdefault(need.name, set()).add(entry.name)
                    by_index[entry["vna_other"]] = (need.name, entry.name)

        # Through struct, not pyelftools' own iterator: libtorch_cpu.so has
        # several hundred thousand of these, and this is fifty times as fast.
        table = section_of(elf, ".dynsym")
        strings = elf.get_section(table["sh_link"]).data()
        symbols = list(SYMBOL.iter_unpack(table.data()))
        version_table = elf.get_section_by_name(".gnu.version")
        indices: Iterable[int] = (
            (index & 0x7FFF for (index,) in struct.iter_unpack("<H", version_table.data()))
            if version_table is not None
            else [0] * len(symbols)
        )
        defined = set()
        wanted = []
        for (name_at, info, _, section, _, _), index in zip(symbols, indices, strict=True):
            name = strings[name_at : strings.index(b"\0", name_at)].decode()
            if not name:
                continue
            if section != 0:
                defined.add(name)
            else:
                wanted.append(Want(name, info >> 4 == 2, *by_index.get(index, (None, None))))
    return Library(
        frozenset(names),
        tuple(needed),
        {name: frozenset(found) for name, found in versions.items()},
        frozenset(defined),
        tuple(wanted),
    )


def missing_of(library: Library, by_name: Mapping[str, Library]) -> Iterator[str]:
    """The sonames that ``library`` needs and nobody has, its own before its dependencies'."""
    seen = set(library.names)
    queue = [library]
    for current in queue:
        for soname in current.needed:
            if soname in seen or soname in SYSTEM:
                continue
            seen.add(soname)
            if soname in by_name:
                queue.append(by_name[soname])
            else:
                yield soname


def stubs_for(libraries: Iterable[Library]) -> dict[str, Stub]:
    """By soname, what stands in for each shared object that ``libraries`` lack.

    A symbol with a version belongs to the shared object that the version names.
    One without is looked up by name alone in all that its user needs, so it may
    stand in any of them: it goes to the first. Weak symbols stay undefined, as
    their users check for that.
    """
    libraries = tuple(libraries)
    by_name = {name: library for library in libraries for name in library.names}
    everywhere = frozenset().union(*(library.defined for library in libraries))
    stubs: dict[str, Stub] = {}
    for library in libraries:
        lacking = list(missing_of(library, by_name))
        for soname in lacking:
            stubs.setdefault(soname, Stub())
        for soname in stubs.keys() & library.versions.keys():
            for version in library.versions[soname]:
                stubs[soname].symbols.setdefault(version, set())
        for want in library.wanted:
            if want.weak:
                continue
            if want.soname is not None:
                if want.soname in stubs:
                    stubs[want.soname].symbols[want.version].add(want.symbol)
            elif (
                lacking
                and want.symbol not in everywhere
                and not want.symbol.startswith(NOT_A_VENDORS)
            ):
                stubs[lacking[0]].symbols[None].add(want.symbol)
    return dict(sorted(stubs.items()))


def elf_hash(name: bytes) -> int:
    """The System V ABI's hash of a symbol's name."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value >> 24 & 0xF0)) & 0x0FFFFFFF
    return value


class Strings:
    """A string table: gives each distinct string its offset."""

    def __init__(self) -> None:
        self.content = bytearray(b"\0")
        self.offsets: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        if text not in self.offsets:
            self.offsets[text] = len(self.content)
            self.content += text.encode() + b"\0"
        return self.offsets[text]


def returns_text(symbol: str) -> bool:
    return symbol.endswith(TEXT_FUNCTIONS) and not symbol.startswith("cuGet")


def code_of(soname: str) -> tuple[bytes, int]:
    """Machine code of the two functions, and the second one's offset.

    The first returns :data:`NO_DEVICE`, the second the address of a text.
    """
    number = b"\xb8" + struct.pack("<i", NO_DEVICE) + b"\xc3"  # mov eax, 100; ret
    number = number.ljust(16, b"\xcc")
    text = b"\x48\x8d\x05" + struct.pack("<i", 9) + b"\xc3"  # lea rax, [rip + 9]; ret
    text = text.ljust(16, b"\xcc")
    message = f"no CUDA: {soname} is a stand-in that only lets PyTorch load on a CPU\0"
    return number + text + message.encode(), len(number)


def shared_object(soname: str, stub: Stub) -> bytes:
    """The bytes of an x86-64 ELF shared object that defines what ``stub`` lists."""
    strings = Strings()
    versions = sorted(version for version in stub.symbols if version is not None)
    # Index 1 is the base version, named as the file itself; a symbol of index 1
    # has no version.
    index_of: dict[str | None, int] = {None: 1}
    index_of.update({version: 2 + position for position, version in enumerate(versions)})
    definitions = sorted(
        (name, index_of[version]) for version, names in stub.symbols.items() for name in names
    )

    version_definitions = bytearray()
    named = [(soname, 1, 1)] + [(version, index_of[version], 0) for version in versions]
    for position, (name, index, flags) in enumerate(named):
        following = 0 if position == len(named) - 1 else 28
        # vd_version, vd_flags, vd_ndx, vd_cnt, vd_hash, vd_aux, vd_next; then one
        # entry of vda_name, vda_next
        version_definitions += struct.pack(
            "<HHHHIIIII",
            *(1, flags, index, 1, elf_hash(name.encode()), 20, following),
            *(strings.add(name), 0),
        )

    soname_at = strings.add(soname)
    names_at = [strings.add(name) for name, _ in definitions]
    version_indices = struct.pack(
        f"<{len(definitions) + 1}H", 0, *(index for _, index in definitions)
    )

    buckets = [0] * max(1, len(definitions) // 2)
    chains = [0] * (len(definitions) + 1)
    for number, (name, _) in enumerate(definitions, start=1):
        slot = elf_hash(name.encode()) % len(buckets)
        chains[number], buckets[slot] = buckets[slot], number
    hashes = struct.pack(
        f"<{2 + len(buckets) + len(chains)}I", len(buckets), len(chains), *buckets, *chains
    )

    code, text_at = code_of(soname)
    symbols_size = SYMBOL.size * (len(definitions) + 1)
    page = 0x1000
    headers = 64 + 4 * 56

    # (name, type, flags, size, alignment, link, info, entry size); links count from 1
    layout = [
        (".hash", 5, 2, len(hashes), 8, 2, 0, 4),
        (".dynsym", 11, 2, symbols_size, 8, 3, 1, SYMBOL.size),
        (".dynstr", 3, 2, len(strings.content), 1, 0, 0, 0),
        (".gnu.version", 0x6FFFFFFF, 2, len(version_indices), 2, 2, 0, 2),
        (".gnu.version_d", 0x6FFFFFFD, 2, len(version_definitions), 8, 3, len(named), 0),
        (".text", 1, 6, len(code), 16, 0, 0, 0),
    ]
    at = {}
    position = headers
    for name, _, _, size, alignment, *_ in layout:
        position = -(-position // alignment) * alignment
        at[name] = position
        position += size
    readable_end = position
    dynamic_at = -(-position // page) * page

    symbols = bytearray(SYMBOL.size)
    for (name, _), name_at in zip(definitions, names_at, strict=True):
        value = at[".text"] + (text_at if returns_text(name) else 0)
        # global function, default visibility, in the sixth section
        symbols += SYMBOL.pack(name_at, 1 << 4 | 2, 0, 6, value, 16)

    tags = [
        (14, soname_at),  # DT_SONAME
        (4, at[".hash"]),  # DT_HASH
        (5, at[".dynstr"]),  # DT_STRTAB
        (6, at[".dynsym"]),  # DT_SYMTAB
        (10, len(strings.content)),  # DT_STRSZ
        (11, SYMBOL.size),  # DT_SYMENT
        (0x6FFFFFF0, at[".gnu.version"]),  # DT_VERSYM
        (0x6FFFFFFC, at[".gnu.version_d"]),  # DT_VERDEF
        (0x6FFFFFFD, len(named)),  # DT_VERDEFNUM
        (0, 0),
    ]
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    layout.append((".dynamic", 6, 3, len(dynamic), 8, 3, 0, 16))
    at[".dynamic"] = dynamic_at

    section_names = Strings()
    names = [section_names.add(entry[0]) for entry in layout]
    own_name = section_names.add(".shstrtab")
    section_names_at = dynamic_at + len(dynamic)
    sections_at = -(-(section_names_at + len(section_names.content)) // 8) * 8

    def section(*values: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", *values)

    sections = section(*[0] * 10)
    for (name, kind, flags, size, alignment, link, info, entry), name_at in zip(
        layout, names, strict=True
    ):
        sections += section(
            name_at, kind, flags, at[name], at[name], size, link, info, alignment, entry
        )
    sections += section(own_name, 3, 0, 0, section_names_at, len(section_names.content), 0, 0, 1, 0)

    def segment(kind: int, flags: int, start: int, size: int, alignment: int) -> bytes:
        return struct.pack("<IIQQQQQQ", kind, flags, start, start, start, size, size, alignment)

    content = bytearray(
        # ELF64, little-endian, System V; shared object for x86-64, version 1
        struct.pack(
            "<4sBBBBB7xHHIQQQIHHHHHH",
            *(b"\x7fELF", 2, 1, 1, 0, 0),
            *(3, 62, 1, 0, 64, sections_at, 0, 64, 56, 4, 64, len(layout) + 2, len(layout) + 1),
        )
        + segment(1, 5, 0, readable_end, page)  # PT_LOAD, readable and executable
        + segment(1, 6, dynamic_at, len(dynamic), page)  # PT_LOAD, writable: the loader's notes
        + segment(2, 6, dynamic_at, len(dynamic), 8)  # PT_DYNAMIC
        + segment(0x6474E551, 6, 0, 0, 16)  # PT_GNU_STACK: not executable
    )
    for name, part in (
        (".hash", hashes),
        (".dynsym", symbols),
        (".dynstr", strings.content),
        (".gnu.version", version_indices),
        (".gnu.version_d", version_definitions),
        (".text", code),
        (".dynamic", dynamic),
    ):
        content = content.ljust(at[name], b"\0") + part
    content += section_names.content
    return bytes(content.ljust(sections_at, b"\0") + sections)


def shared_objects(folder: Path) -> Iterator[Path]:
    """Every ELF shared object below ``folder``, in a fixed order."""
    for path in sorted(folder.rglob("*")):
        if ".so" in path.name and path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def write_stubs(stubs: Mapping[str, Stub], folder: Path) -> None:
    """Writes each of ``stubs`` as ``folder/<soname>``."""
    folder.mkdir(parents=True, exist_ok=True)
    for soname, stub in stubs.items():
        with tempfile.NamedTemporaryFile(dir=folder, prefix=soname, delete=False) as part:
            part.write(shared_object(soname, stub))
        os.chmod(part.name, 0o755)
        os.replace(part.name, folder / soname)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("torch", type=Path, help="the unpacked wheel's `torch` folder")
    parser.add_argument(
        "-o", "--output", type=Path, help="where the stand-ins go; by default the wheel's torch/lib"
    )
    options = parser.parse_args(arguments)
    found = [read_library(path) for path in shared_objects(options.torch)]
    if not found:
        print(f"cpu_stubs.py: no shared object below {options.torch}", file=sys.stderr)
        return 1
    stubs = stubs_for(found)
    write_stubs(stubs, options.output or options.torch / "lib")
    for soname, stub in stubs.items():
        versions = len(stub.symbols) - 1
        symbols = sum(len(names) for names in stub.symbols.values())
        print(f"{soname}: {symbols} symbols, {versions} versions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
