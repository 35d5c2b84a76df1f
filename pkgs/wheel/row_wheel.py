#!/usr/bin/env python3
"""Makes the wheel of a PyTorch row out of the base wheel that all rows share.

The base wheel is what the build backend packs: the plain version, a ``linux`` platform
tag. The row's wheel is what a user installs: it names the row in its version and the
policy's platform, if auditwheel grants it that, and holds the license texts and the bill
of materials of all that is linked in. The same inputs give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import sys
from pathlib import Path

import parts as parts_data
from archive import read_wheel, write_wheel
from audit import policy
from audit.tools import policy_named, verdict
from audit.wheel import NotAWheel, Wheel
from bill import cyclonedx
from parts import Part

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# The shared objects of the package, a line each, with the extension modules in it.
SHARED_OBJECTS = "torch_mlir/_mlir_libs/shared_objects.txt"
# Which PyTorch the wheel was checked with.
RECORD_OF_ROW = "torch_mlir/_row.json"


def joined_expression(own: str, parts: list[Part]) -> str:
    """The license of a work that combines ours with the parts: each named once, by AND."""
    terms = own.split(" AND ")
    for part in parts:
        terms += [term for term in part.license.split(" AND ") if term not in terms]
    return " AND ".join(terms)


def rewritten_metadata(
    metadata: str, version: str, expression: str, license_files: list[str]
) -> str:
    """METADATA with another version and license; every other field stays as it is."""
    head, separator, body = metadata.partition("\n\n")
    replaced = ("version:", "license-expression:", "license-file:")
    lines = []
    for line in head.splitlines():
        if not line.lower().startswith(replaced):
            lines.append(line)
        elif line.lower().startswith("version:"):
            lines.append(f"Version: {version}")
    lines.append(f"License-Expression: {expression}")
    lines += [f"License-File: {file}" for file in license_files]
    return "\n".join(lines) + separator + body


def platform_of(base: Path, profile: policy.Profile) -> str:
    """The platform tag of the policy, which auditwheel has to grant the base wheel.

    Raises:
        ValueError: the wheel holds nothing compiled, or needs a newer platform than the
            policy allows.
    """
    analysis = verdict(base)
    if analysis is None:
        raise ValueError(f"{base.name} holds no shared object")
    ceiling = profile.checks["platform-tag"]["platform"]
    allowed = policy_named(analysis, ceiling)
    if allowed is None:
        raise ValueError(f"auditwheel knows no platform {ceiling}")
    if analysis.overall_policy < allowed:
        raise ValueError(
            f"auditwheel grants {base.name} only {analysis.overall_policy.name}, "
            f"the policy asks for {ceiling}"
        )
    return str(allowed.name)


def added_files(folder: Path, shared_objects: bytes) -> dict[str, bytes]:
    """What a row's wheel holds beside the base wheel's files, by name in the wheel.

    Args:
        folder: the files, laid out as they are installed. Each shared object is an extension
            module of its file's name.
        shared_objects: the base wheel's list of such.

    Raises:
        ValueError: the folder holds no file, or a shared object that the list has.
    """
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    if not files:
        raise ValueError(f"{folder} holds no file")
    lines = shared_objects.decode("utf-8").splitlines()
    listed = {line.split()[0] for line in lines}
    for name in files:
        if name.endswith(".so"):
            module = posixpath.basename(name)
            if module in listed:
                raise ValueError(f"the base wheel has a {module} already")
            lines.append(f"{module} {module.partition('.')[0]}")
    files[SHARED_OBJECTS] = ("\n".join(lines) + "\n").encode()
    return files


def pack(
    base: Path,
    row: str,
    torch: str,
    parts: list[Part],
    texts: dict[str, bytes],
    output: Path,
    added: Path | None = None,
) -> Path:
    """Writes the wheel of a row into the folder ``output``; returns its path.

    Args:
        base: the base wheel.
        row: the row's name, ``2_13``.
        torch: the PyTorch version of the row, ``2.13.0``.
        parts: what is linked in.
        texts: license texts by their names under ``.dist-info/licenses``.
        added: a folder with files of this row alone, laid out as they are installed.

    Raises:
        ValueError: the base wheel already has a local version, or isn't fit for the policy, or
            has what is to be added.
        NotAWheel: it isn't a wheel.
    """
    wheel = Wheel(base)
    if "+" in wheel.version:
        raise ValueError(f"{base.name} is already some row's wheel")
    profile = policy.load()[wheel.distribution]
    platform = platform_of(base, profile)
    version = f"{wheel.version}+torch{row.replace('_', '.')}"
    escaped: str = wheel.distribution.replace("-", "_")
    dist_info = f"{escaped}-{version}.dist-info"

    files = {
        name.replace(f"{wheel.dist_info}/", f"{dist_info}/", 1): data
        for name, data in read_wheel(base).items()
    }
    if added is not None:
        new = added_files(added, files[SHARED_OBJECTS])
        if old := sorted((new.keys() & files.keys()) - {SHARED_OBJECTS}):
            raise ValueError(f"{base.name} has a {old[0]} already")
        files |= new
    own = str(wheel.metadata["License-Expression"])
    expression = joined_expression(own, parts)
    own_files = [str(file) for file in wheel.metadata.get_all("License-File", [])]
    metadata = rewritten_metadata(
        files[f"{dist_info}/METADATA"].decode("utf-8"),
        version,
        expression,
        own_files + sorted(texts),
    )
    files[f"{dist_info}/METADATA"] = metadata.encode()
    for name, text in texts.items():
        files[f"{dist_info}/licenses/{name}"] = text

    python_abi = base.name.removesuffix(".whl").rsplit("-", 3)[1:3]
    tag = "-".join([*python_abi, platform])
    told = [
        line
        for line in files[f"{dist_info}/WHEEL"].decode("utf-8").splitlines()
        if line and not line.startswith("Tag:")
    ]
    files[f"{dist_info}/WHEEL"] = ("\n".join([*told, f"Tag: {tag}"]) + "\n").encode()

    files[f"{dist_info}/sboms/{wheel.distribution}.cdx.json"] = cyclonedx(
        wheel.distribution, version, expression, parts
    )
    record = {"row": row, "torch": torch}
    files[RECORD_OF_ROW] = (json.dumps(record, indent=2) + "\n").encode()

    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{escaped}-{version}-{tag}.whl"
    write_wheel(path, files, dist_info)
    return path


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path, metavar="BASE_WHEEL")
    parser.add_argument("--row", required=True, help="a row of the matrix, such as 2_13")
    parser.add_argument(
        "--package",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a wheel or Debian package that parts come from; each is known by its hash",
    )
    parser.add_argument("--suite", default="bookworm", help="the suite of the Debian packages")
    parser.add_argument("--parts", type=Path, default=HERE / "parts.json")
    parser.add_argument("--lock", type=Path, default=ROOT / "poetry.lock")
    parser.add_argument("--debian", type=Path, default=ROOT / "pkgs/fetch/debian.json")
    parser.add_argument("--matrix", type=Path, default=ROOT / "pkgs/matrix/rows.json")
    parser.add_argument(
        "--add", type=Path, metavar="FOLDER", help="files of this row alone, as they are installed"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path(), metavar="FOLDER")
    parser.add_argument("--version", action="version", version="row_wheel 1")
    args = parser.parse_args(arguments)

    rows = json.loads(args.matrix.read_text(encoding="utf-8"))
    if args.row not in rows:
        print(f"row_wheel: no row {args.row!r}; there are {', '.join(rows)}", file=sys.stderr)
        return 2
    try:
        parts, texts = parts_data.load(args.parts, args.package, args.lock, args.debian, args.suite)
        torch = rows[args.row]["version"]
        path = pack(args.base, args.row, torch, parts, texts, args.output, args.add)
    except (NotAWheel, ValueError) as error:
        print(f"row_wheel: {error}", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
