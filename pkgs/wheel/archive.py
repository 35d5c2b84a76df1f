"""Reads wheels and Debian packages; writes wheels that depend on their files alone."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import posixpath
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

# The earliest time that a zip archive can hold.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def read_wheel(path: Path) -> dict[str, bytes]:
    """The files of a wheel."""
    with zipfile.ZipFile(path) as archive:
        return {e.filename: archive.read(e) for e in archive.infolist() if not e.is_dir()}


def _record(files: dict[str, bytes], name: str) -> bytes:
    """RECORD of the files (PEP 376, PEP 427)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for file in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[file]).digest()).rstrip(b"=")
        writer.writerow([file, f"sha256={digest.decode()}", len(files[file])])
    writer.writerow([name, "", ""])
    return text.getvalue().encode()


def write_wheel(path: Path, files: dict[str, bytes], dist_info: str) -> None:
    """Writes a wheel; RECORD is made anew, ``.dist-info`` comes last (PEP 427).

    The same files give the same bytes: names are sorted, times and permissions fixed.
    """
    record = f"{dist_info}/RECORD"
    files = {name: data for name, data in files.items() if name != record}
    ordered = sorted(files, key=lambda name: (name.startswith(f"{dist_info}/"), name))
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for name in [*ordered, record]:
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.create_system = 3  # Unix: external_attr holds its permissions
                mode = 0o755 if name.endswith(".so") else 0o644
                entry.external_attr = (0o100000 | mode) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                data = _record(files, record) if name == record else files[name]
                archive.writestr(entry, data, compresslevel=9)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _deb_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The members of an ar archive (deb(5), ar(5))."""
    if not data.startswith(b"!<arch>\n"):
        raise ValueError("not a Debian package")
    position = 8
    while position + 60 <= len(data):
        header = data[position : position + 60]
        size = int(header[48:58])
        yield header[:16].decode().strip().rstrip("/"), data[position + 60 : position + 60 + size]
        position += 60 + size + size % 2


def _tar_members(data: bytes, member: str) -> Iterator[tuple[str, bytes]]:
    """The files of a tar archive, compressed or not, whose names match a glob."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for entry in archive:
            inside = posixpath.normpath(entry.name)
            if fnmatchcase(inside, member) and (file := archive.extractfile(entry)):
                yield inside, file.read()


def read_member(package: Path, member: str) -> tuple[str, bytes]:
    """A file of a wheel, a Debian package or a source archive, by a glob that one name matches.

    Returns:
        Its name in the package and its bytes.

    Raises:
        ValueError: no file or several match.
    """
    if zipfile.is_zipfile(package):
        with zipfile.ZipFile(package) as archive:
            names = [name for name in archive.namelist() if fnmatchcase(name, member)]
            found = [(name, archive.read(name)) for name in names]
    elif tarfile.is_tarfile(package):
        found = list(_tar_members(package.read_bytes(), member))
    else:
        found = []
        for name, data in _deb_members(package.read_bytes()):
            if name.startswith("data.tar"):
                found += _tar_members(data, member)
    if len(found) != 1:
        raise ValueError(f"{package.name}: {len(found)} files match {member}, not one")
    return found[0]
