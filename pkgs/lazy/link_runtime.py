# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies a shared library for the linker, without the symbols that a platform lacks.

What is linked with the copy runs with every version of the library that the platform
promises: the linker takes newer symbols from the static library that follows. The copy is
never loaded.

A symbol is taken out by the highest bit of its version index, which hides it from all that
don't ask for its version by name (Linux Standard Base, Symbol Versioning).
"""

from __future__ import annotations

import argparse
import struct
import sys
from pathlib import Path

from auditwheel.architecture import Architecture
from auditwheel.libc import Libc
from auditwheel.policy import WheelPolicies
from elftools.elf.elffile import ELFFile

HIDDEN = 0x8000


def copy_of(library: Path, allowed: dict[str, list[str]]) -> tuple[bytes, int]:
    """The library's bytes, and how many of its symbols were taken out.

    Args:
        library: a shared library with symbol versions.
        allowed: the versions of each family, ``{"GLIBCXX": ["3.4", …]}``. Versions of other
            families stay.

    Raises:
        ValueError: it has no symbol versions.
    """
    data = bytearray(library.read_bytes())
    with library.open("rb") as file:
        elf = ELFFile(file)
        definitions = elf.get_section_by_name(".gnu.version_d")
        table = elf.get_section_by_name(".gnu.version")
        if definitions is None or table is None:
            raise ValueError(f"{library} has no symbol versions")
        newer = set()
        for definition, names in definitions.iter_versions():
            family, _, number = next(iter(names)).name.partition("_")
            if number not in allowed.get(family, [number]):
                newer.add(definition["vd_ndx"])
        offset, size = table["sh_offset"], table["sh_size"]
    removed = 0
    for place in range(offset, offset + size, 2):
        (index,) = struct.unpack_from("<H", data, place)
        if index & ~HIDDEN in newer:
            struct.pack_into("<H", data, place, index | HIDDEN)
            removed += 1
    return bytes(data), removed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--platform", required=True, help="a policy, such as manylinux_2_28_x86_64")
    arguments = parser.parse_args()
    policies = WheelPolicies(libc=Libc.GLIBC, arch=Architecture.x86_64)
    try:
        policy = policies.get_policy_by_name(arguments.platform)
        allowed = {family: list(versions) for family, versions in policy.symbol_versions.items()}
        data, removed = copy_of(arguments.library, allowed)
    except (LookupError, ValueError) as error:
        print(f"link_runtime: {error}", file=sys.stderr)
        return 1
    arguments.output.write_bytes(data)
    print(f"{arguments.output.name}: {removed} symbols are newer than {arguments.platform}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
