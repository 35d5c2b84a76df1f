#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes out of shared objects what a run without a GPU never reads.

That is the code for NVIDIA's devices, which the CUDA runtime alone hands on to
a device, and the symbol tables for debuggers: more than half of a CUDA build of
PyTorch. Everything that the host runs stays as it is, so static initialisers,
vtables and operator registrations are those of the wheel.

Whole pages are cut out of the file. Where they lie in a loaded segment, the
segment is split in two at the cut, and no address moves. Before that, the
relocations are asked: had anything but the CUDA runtime's own table of device
code a pointer into it, the file would be refused.

Format: the System V ABI (gabi) and its x86-64 supplement.
"""

from __future__ import annotations

import argparse
import os
import struct
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from cpu_stubs import section_of
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section

#: What nvcc calls the sections that hold code for devices.
DEVICE_CODE = (".nv_fatbin", "__nv_relfatbin", ".nv_relfatbin")
#: The sections through which the CUDA runtime learns where that code is.
DEVICE_TABLES = (".nvFatBinSegment", "__nv_module_id")
#: For debuggers; the loader reads .dynsym and .dynstr.
DEBUGGING = (".symtab", ".strtab")

PAGE = 0x1000
PT_LOAD, PT_NOTE = 1, 4
SHT_NULL, SHT_NOBITS = 0, 8
R_X86_64_RELATIVE = 8

PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
RELOCATION = struct.Struct("<QQq")  # r_offset, r_info, r_addend


class Failure(Exception):
    """A file that cannot be trimmed without changing what it does."""


class Cut(NamedTuple):
    """Bytes ``start`` to ``end`` of the file; both at a page's edge."""

    start: int
    end: int


class Segment(NamedTuple):
    """One program header, in the order of the file."""

    type: int
    flags: int
    offset: int
    address: int
    physical: int
    file_size: int
    memory_size: int
    alignment: int


def whole_pages(section: Section, page: int) -> Cut | None:
    """The pages of the file that ``section`` alone fills, if there are any."""
    start = -(-section["sh_offset"] // page) * page
    end = (section["sh_offset"] + section["sh_size"]) // page * page
    return Cut(start, end) if start < end else None


def check_unreferenced(elf: ELFFile, device_code: Iterable[Section]) -> None:
    """Raises :class:`Failure` where host data or a symbol points into ``device_code``.

    Every pointer of a shared object is a relocation, so this sees all data; the
    host code that nvcc generates names device code through those tables only.
    """
    ranges = [(s["sh_addr"], s["sh_addr"] + s["sh_size"]) for s in device_code]
    tables = [
        (s["sh_addr"], s["sh_addr"] + s["sh_size"])
        for s in elf.iter_sections()
        if s.name in DEVICE_TABLES
    ]

    def within(address: int, spans: list[tuple[int, int]]) -> bool:
        return any(start <= address < end for start, end in spans)

    relocations = elf.get_section_by_name(".rela.dyn")
    if relocations is not None:
        for place, info, addend in RELOCATION.iter_unpack(relocations.data()):
            if info & 0xFFFFFFFF == R_X86_64_RELATIVE and within(addend, ranges):
                if not within(place, tables):
                    raise Failure(f"host data at {place:#x} points into the device code")
    for symbol in section_of(elf, ".dynsym").iter_symbols():
        if symbol["st_shndx"] != "SHN_UNDEF" and within(symbol["st_value"], ranges):
            raise Failure(f"{symbol.name} stands in the device code")


def split_segments(segments: Iterable[Segment], cuts: Iterable[Cut]) -> list[Segment]:
    """``segments`` with each loaded one split wherever a cut lies in it.

    Offsets stay those of the untrimmed file.
    """
    result = []
    for segment in segments:
        if segment.type != PT_LOAD:
            result.append(segment)
            continue
        start, end = segment.offset, segment.offset + segment.file_size
        beyond_file = segment.memory_size - segment.file_size
        shift = segment.address - segment.offset
        for cut in cuts:
            if not start <= cut.start < end:
                continue
            size = cut.start - start
            result.append(
                segment._replace(
                    offset=start,
                    address=start + shift,
                    physical=start + shift,
                    file_size=size,
                    memory_size=size,
                )
            )
            start = cut.end
        size = end - start
        result.append(
            segment._replace(
                offset=start,
                address=start + shift,
                physical=start + shift,
                file_size=size,
                memory_size=size + beyond_file,
            )
        )
    return result


def trimmed(path: Path) -> bytes | None:
    """The bytes of ``path`` without device code and symbol tables; None if it has neither.

    Raises :class:`Failure` where the host refers to the device code, or where
    there is no room for the program headers that a split segment needs.
    """
    with path.open("rb") as file:
        elf = ELFFile(file)
        sections = list(elf.iter_sections())
        device_code = [
            s for s in sections if s.name in DEVICE_CODE and s["sh_type"] != "SHT_NOBITS"
        ]
        debugging = [s for s in sections if s.name in DEBUGGING]
        file.seek(elf["e_phoff"])
        table = file.read(elf["e_phnum"] * PROGRAM_HEADER.size)
        segments = [Segment(*fields) for fields in PROGRAM_HEADER.iter_unpack(table)]
        page = max(PAGE, *(s.alignment for s in segments if s.type == PT_LOAD))
        cuts = sorted(
            cut for s in device_code + debugging if (cut := whole_pages(s, page)) is not None
        )
        if not cuts:
            return None
        if device_code:
            check_unreferenced(elf, device_code)

        def moved(offset: int) -> int:
            """Where the byte at ``offset`` stands in the trimmed file."""
            return offset - sum(
                min(cut.end, offset) - cut.start for cut in cuts if cut.start < offset
            )

        headers = split_segments(segments, cuts)
        headers_end = elf["e_phoff"] + len(headers) * PROGRAM_HEADER.size
        first_content = min(s["sh_offset"] for s in sections if s["sh_type"] != "SHT_NULL")
        while headers_end > first_content:
            # A build id is for debuggers; its header makes room.
            note = next((s for s in headers if s.type == PT_NOTE), None)
            if note is None:
                raise Failure(f"{path}: no room for the program headers of a split segment")
            headers.remove(note)
            headers_end -= PROGRAM_HEADER.size

        file.seek(0)
        content = bytearray()
        for cut in cuts:
            content += file.read(cut.start - file.tell())
            file.seek(cut.end)
        content += file.read()

        for number, segment in enumerate(headers):
            PROGRAM_HEADER.pack_into(
                content,
                elf["e_phoff"] + number * PROGRAM_HEADER.size,
                *segment._replace(offset=moved(segment.offset)),
            )
        sections_at = moved(elf["e_shoff"])
        for number, section in enumerate(sections):
            at = sections_at + number * SECTION_HEADER.size
            entry = list(SECTION_HEADER.unpack_from(content, at))
            entry[4] = moved(entry[4])
            if section.name in DEVICE_CODE:
                entry[1] = SHT_NOBITS
            elif section.name in DEBUGGING:
                entry[1:] = [SHT_NULL] + [0] * 8
            SECTION_HEADER.pack_into(content, at, *entry)
        struct.pack_into("<Q", content, 40, sections_at)  # e_shoff
        struct.pack_into("<H", content, 56, len(headers))  # e_phnum
    return bytes(content)


def trim(path: Path) -> int:
    """Trims the shared object ``path`` in place; gives how many bytes that saved."""
    before = path.stat()
    content = trimmed(path)
    if content is None:
        return 0
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as part:
        part.write(content)
    os.chmod(part.name, before.st_mode & 0o7777)
    os.replace(part.name, path)
    return before.st_size - len(content)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("libraries", nargs="+", type=Path, help="shared objects, changed in place")
    options = parser.parse_args(arguments)
    for path in options.libraries:
        try:
            saved = trim(path)
        except Failure as failure:
            print(f"trim.py: {path}: {failure}", file=sys.stderr)
            return 1
        print(f"{path.name}: {saved / 1e6:.1f} MB less")
    return 0


if __name__ == "__main__":
    sys.exit(main())
