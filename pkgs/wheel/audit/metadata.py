"""Checks of what describes the wheel: identity, licenses, bill of materials."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.tags import parse_tag
from packaging.utils import canonicalize_name, canonicalize_version

from .findings import Finding, Parameters, check
from .wheel import Wheel

_SHA256 = re.compile(r"[0-9a-f]{64}")
# CycloneDX has no field that leads from a component to a file with its license's text.
LICENSE_FILE = "license-file"


@check("identity")
def identity(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """File name, .dist-info, METADATA and WHEEL tell the same name, version and tags."""
    name, version = wheel.metadata.get("Name", ""), wheel.metadata.get("Version", "")
    where = f"{wheel.dist_info}/METADATA"
    if canonicalize_name(name) != wheel.distribution:
        yield Finding(where, f"Name is {name!r}, the file is named {wheel.distribution!r}")
    if canonicalize_version(version, strip_trailing_zero=False) != wheel.version:
        yield Finding(where, f"Version is {version!r}, the file is named {wheel.version!r}")
    folder = "-".join(wheel.path.name.split("-")[:2]) + ".dist-info"
    if wheel.dist_info != folder:
        yield Finding(wheel.dist_info, f"should be {folder}")
    where = f"{wheel.dist_info}/WHEEL"
    told = wheel.message("WHEEL")
    tags = {tag for line in told.get_all("Tag", []) for tag in parse_tag(line)}
    if tags != set(wheel.tags):
        yield Finding(where, f"has the tags {', '.join(sorted(map(str, tags))) or 'none'}")
    pure = told.get("Root-Is-Purelib", "").lower()
    if pure != ("false" if wheel.shared_objects else "true") and wheel.shared_objects:
        yield Finding(where, f"Root-Is-Purelib is {pure!r}, but there are shared objects")
    if told.get("Wheel-Version") != "1.0":
        yield Finding(where, f"Wheel-Version is {told.get('Wheel-Version')!r}, not '1.0'")


def _license_files(wheel: Wheel) -> list[str]:
    return [str(value) for value in wheel.metadata.get_all("License-File", [])]


@check("license")
def license_texts(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """The license expression is SPDX and its texts are there (PEP 639)."""
    where = f"{wheel.dist_info}/METADATA"
    expression = wheel.metadata.get("License-Expression")
    files = _license_files(wheel)
    if expression is not None:
        try:
            canonicalize_license_expression(expression)
        except InvalidLicenseExpression as error:
            yield Finding(where, f"License-Expression {expression!r}: {error}")
    elif parameters.get("expression"):
        yield Finding(where, "has no License-Expression")
    if parameters.get("texts") and not files:
        yield Finding(where, "names no License-File")
    for file in files:
        data = wheel.info(f"licenses/{file}")
        if data is None:
            # Before PEP 639 the texts lay beside METADATA.
            data = wheel.info(file) if not parameters.get("texts") else None
        if data is None:
            yield Finding(f"{wheel.dist_info}/licenses/{file}", "is named, but missing")
        elif not data.strip():
            yield Finding(f"{wheel.dist_info}/licenses/{file}", "is empty")
    # Only since metadata 2.4 does every text have to be named.
    version = [int(part) for part in re.findall(r"\d+", wheel.metadata.get("Metadata-Version", ""))]
    if version < [2, 4] and not parameters.get("texts"):
        return
    prefix = f"{wheel.dist_info}/licenses/"
    for name in wheel.names:
        if name.startswith(prefix) and name.removeprefix(prefix) not in files:
            yield Finding(name, "isn't named by a License-File")


def _component(
    component: dict[str, Any], wheel: Wheel, expression: set[str], complete: bool
) -> Iterator[str]:
    """What is wrong with a component of a bill of materials."""
    label = component.get("name") or "a component"
    for field in ("type", "name"):
        if not component.get(field):
            yield f"{label} has no {field}"
    if not complete:
        return
    for field in ("version", "purl"):
        if not component.get(field):
            yield f"{label} has no {field}"
    hashes = [
        h.get("content", "") for h in component.get("hashes", []) if h.get("alg") == "SHA-256"
    ]
    if not hashes or not all(_SHA256.fullmatch(value) for value in hashes):
        yield f"{label} has no SHA-256 hash"
    licenses = [entry.get("expression", "") for entry in component.get("licenses", [])]
    if not any(licenses):
        yield f"{label} has no license expression"
    for part in (p for entry in licenses for p in entry.split(" AND ") if p):
        if part not in expression:
            yield f"{label} is under {part}, which License-Expression leaves out"
    files = [
        p.get("value", "") for p in component.get("properties", []) if p.get("name") == LICENSE_FILE
    ]
    if not files:
        yield f"{label} names no license text"
    for file in files:
        if file not in _license_files(wheel):
            yield f"{label} names the license text {file}, which is no License-File"


@check("sbom")
def sbom(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """Bills of materials are CycloneDX and cover what is linked in (PEP 770)."""
    prefix = f"{wheel.dist_info}/sboms/"
    bills = [name for name in wheel.names if name.startswith(prefix)]
    complete = bool(parameters.get("parts"))
    if complete and not bills:
        yield Finding(prefix, "holds no bill of materials")
    expression = set(wheel.metadata.get("License-Expression", "").split(" AND "))
    named: set[str] = set()
    for name in bills:
        if not name.endswith(".json"):
            continue  # other formats are allowed; nothing here reads them
        try:
            bill = json.loads(wheel.read(name))
        except ValueError as error:
            yield Finding(name, f"isn't JSON: {error}")
            continue
        if not isinstance(bill, dict) or bill.get("bomFormat") != "CycloneDX":
            if complete:
                yield Finding(name, "isn't a CycloneDX bill of materials")
            continue
        if bill.get("specVersion") not in ("1.4", "1.5", "1.6", "1.7"):
            yield Finding(name, f"has the specVersion {bill.get('specVersion')!r}")
        subject = bill.get("metadata", {}).get("component", {})
        if complete and (
            canonicalize_name(subject.get("name", "")) != wheel.distribution
            or subject.get("version") != wheel.version
        ):
            yield Finding(name, "is about another distribution or version")
        for component in bill.get("components", []):
            named.add(component.get("name", ""))
            for message in _component(component, wheel, expression, complete):
                yield Finding(name, message)
    if complete and bills:
        # The parts are data of the build; the path is relative to the policy's file.
        parts = json.loads(Path(parameters["parts"]).read_text())["parts"]
        for part in parts:
            if part["name"] not in named:
                yield Finding(prefix, f"no bill of materials names {part['name']}")
