"""A wheel opened for reading: its name, files and metadata (PEP 427, PEP 491)."""

from __future__ import annotations

import email.parser
import email.policy
import posixpath
import zipfile
from email.message import Message
from functools import cached_property
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from .elf import MAGIC, SharedObject


class NotAWheel(ValueError):
    """The file can't be audited at all; the message says why."""


class Wheel:
    """An open wheel.

    Raises:
        NotAWheel: the name isn't a wheel's, or the file isn't a readable zip archive
            with one ``.dist-info`` folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            name, version, build, tags = parse_wheel_filename(path.name)
        except InvalidWheelFilename as error:
            raise NotAWheel(f"{path.name}: {error}") from error
        self.distribution = str(name)
        self.version = str(version)
        self.tags: frozenset[Tag] = tags
        try:
            self.archive = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile) as error:
            raise NotAWheel(f"{path.name}: {error}") from error
        self.entries = [entry for entry in self.archive.infolist() if not entry.is_dir()]
        self.names = [entry.filename for entry in self.entries]
        folders = {n.split("/")[0] for n in self.names if ".dist-info/" in n}
        folders = {f for f in folders if f.endswith(".dist-info")}
        if len(folders) != 1:
            raise NotAWheel(f"{path.name}: has {len(folders)} .dist-info folders, not one")
        self.dist_info = folders.pop()

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            NotAWheel: its compressed data is damaged.
        """
        try:
            return self.archive.read(name)
        except zipfile.BadZipFile as error:
            raise NotAWheel(f"{self.path.name}: {error}") from error

    def info(self, name: str) -> bytes | None:
        """A file of ``.dist-info``, or None."""
        full = f"{self.dist_info}/{name}"
        return self.read(full) if full in self.names else None

    def message(self, name: str) -> Message[str, str]:
        """``METADATA`` or ``WHEEL`` as headers; empty if it is absent."""
        text = (self.info(name) or b"").decode("utf-8", "replace")
        return email.parser.Parser(policy=email.policy.compat32).parsestr(text)

    @cached_property
    def metadata(self) -> Message[str, str]:
        return self.message("METADATA")

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platform tags of the file name, in its order."""
        return tuple(self.path.name.removesuffix(".whl").split("-")[-1].split("."))

    @cached_property
    def shared_objects(self) -> tuple[SharedObject, ...]:
        """Every ELF file, whatever its name.

        Raises:
            NotAWheel: one is damaged or not for a 64-bit little-endian machine.
        """
        found = []
        for name in self.names:
            with self.archive.open(name) as file:
                if file.read(4) != MAGIC:
                    continue
            try:
                found.append(SharedObject(name, self.read(name)))
            except ValueError as error:
                raise NotAWheel(f"{self.path.name}: {error}") from error
        return tuple(found)

    @cached_property
    def packages(self) -> tuple[str, ...]:
        """The top-level import packages."""
        return tuple(
            sorted(
                {
                    name.split("/")[0]
                    for name in self.names
                    if "/" in name and not name.split("/")[0].endswith((".dist-info", ".data"))
                }
            )
        )

    def is_named(self, distribution: str) -> bool:
        return self.distribution == canonicalize_name(distribution)

    def leads_to(self, shared_object: SharedObject, library: str) -> bool:
        """Whether a search path of ``shared_object`` finds ``library`` in the wheel."""
        return any(
            folder is not None and posixpath.normpath(f"{folder}/{library}") in self.names
            for folder in map(
                lambda entry: resolve(shared_object.name, entry), shared_object.search_paths
            )
        )


def resolve(name: str, search_path: str) -> str | None:
    """The folder of the wheel that an RPATH entry of the file ``name`` means.

    None if it isn't relative to ``$ORIGIN`` or leaves the wheel.
    """
    for origin in ("$ORIGIN", "${ORIGIN}"):
        if search_path == origin or search_path.startswith(origin + "/"):
            folder = posixpath.normpath(posixpath.dirname(name) + search_path[len(origin) :])
            return None if folder.startswith(("..", "/")) else folder
    return None
