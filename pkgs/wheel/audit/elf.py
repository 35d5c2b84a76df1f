"""What an ELF shared object asks of and offers to its process.

The structures are those of the System V gABI and of the LSB's symbol versions;
pyelftools finds the sections, the symbol table is unpacked here because a large
library holds a hundred thousand symbols.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from functools import cached_property

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

MAGIC = b"\x7fELF"

_BINDINGS = {0: "local", 1: "global", 2: "weak", 10: "unique"}
_VISIBILITIES = ("default", "internal", "hidden", "protected")
_PF_X = 1
_DF_TEXTREL = 0x4


@dataclass(frozen=True)
class Symbol:
    """A row of ``.dynsym``.

    ``binding`` is local, global, weak or unique (or the number of another one);
    ``version`` is the version that an undefined symbol asks for, ``""`` if none.
    """

    name: str
    binding: str
    visibility: str
    defined: bool
    version: str = ""

    @property
    def exported(self) -> bool:
        return (
            self.defined and self.binding != "local" and self.visibility in ("default", "protected")
        )


class SharedObject:
    """A 64-bit little-endian ELF file, read from bytes.

    Raises:
        ValueError: ``data`` isn't such a file, or is a damaged one.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        if data[:4] != MAGIC:
            raise ValueError(f"{name} is not an ELF file")
        if data[4:6] != b"\x02\x01":
            raise ValueError(f"{name} is not a 64-bit little-endian ELF file")
        try:
            self._elf = ELFFile(io.BytesIO(data))
            self._dynamic = next(
                (s for s in self._elf.iter_sections() if isinstance(s, DynamicSection)), None
            )
            self._tags = list(self._dynamic.iter_tags()) if self._dynamic else []
        except (ELFError, struct.error, UnicodeDecodeError) as error:
            raise ValueError(f"{name} is a damaged ELF file: {error}") from error

    def _strings(self, tag: str, attribute: str) -> tuple[str, ...]:
        return tuple(getattr(t, attribute) for t in self._tags if t.entry.d_tag == tag)

    @property
    def needed(self) -> tuple[str, ...]:
        """The libraries of DT_NEEDED, in order."""
        return self._strings("DT_NEEDED", "needed")

    @property
    def soname(self) -> str:
        return next(iter(self._strings("DT_SONAME", "soname")), "")

    @property
    def search_paths(self) -> tuple[str, ...]:
        """The entries of DT_RUNPATH, or of DT_RPATH where there is no RUNPATH."""
        value = self._strings("DT_RUNPATH", "runpath") or self._strings("DT_RPATH", "rpath")
        return tuple(entry for entry in ":".join(value).split(":") if entry)

    @property
    def has_text_relocations(self) -> bool:
        return any(
            t.entry.d_tag == "DT_TEXTREL"
            or (t.entry.d_tag == "DT_FLAGS" and t.entry.d_val & _DF_TEXTREL)
            for t in self._tags
        )

    @property
    def stack_is_executable(self) -> bool:
        """Whether the loader makes every stack executable for this object.

        It does so if PT_GNU_STACK says so and if there is no PT_GNU_STACK.
        """
        for segment in self._elf.iter_segments():
            if segment.header.p_type == "PT_GNU_STACK":
                return bool(segment.header.p_flags & _PF_X)
        return True

    @cached_property
    def _versions(self) -> dict[int, tuple[str, str]]:
        """Version index -> (version, library), of the versions asked for."""
        section = self._elf.get_section_by_name(".gnu.version_r")
        found: dict[int, tuple[str, str]] = {}
        if isinstance(section, GNUVerNeedSection):
            for library, auxiliaries in section.iter_versions():
                for auxiliary in auxiliaries:
                    found[auxiliary.entry.vna_other] = (auxiliary.name, library.name or "")
        return found

    @property
    def required_versions(self) -> dict[str, set[str]]:
        """Library -> the symbol versions asked of it (``GLIBC_2.17``)."""
        found: dict[str, set[str]] = {}
        for version, library in self._versions.values():
            found.setdefault(library, set()).add(version)
        return found

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The dynamic symbols, without the nameless first one."""
        table = self._elf.get_section_by_name(".dynsym")
        if table is None:
            return ()
        names = self._elf.get_section(table.header.sh_link).data()
        versions_of = self._elf.get_section_by_name(".gnu.version")
        rows = list(struct.iter_unpack("<IBBHQQ", table.data()))
        if versions_of is None:
            indices = [0] * len(rows)
        else:
            indices = [index for (index,) in struct.iter_unpack("<H", versions_of.data())]
        found = []
        for (offset, info, other, section, _, _), index in zip(rows, indices, strict=True):
            name = names[offset : names.index(b"\0", offset)].decode("utf-8", "replace")
            if name:
                found.append(
                    Symbol(
                        name,
                        _BINDINGS.get(info >> 4, str(info >> 4)),
                        _VISIBILITIES[other & 3],
                        section != 0,
                        self._versions.get(index & 0x7FFF, ("", ""))[0] if section == 0 else "",
                    )
                )
        return tuple(found)

    @property
    def initialisers(self) -> tuple[str, ...]:
        """The ``PyInit_*`` functions: what makes it an extension module."""
        return tuple(s.name for s in self.symbols if s.exported and s.name.startswith("PyInit_"))
