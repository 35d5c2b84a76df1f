"""The wheel's bill of materials: CycloneDX 1.6 as JSON, for ``.dist-info/sboms`` (PEP 770).

It holds no time and no serial number: the same parts give the same bytes.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from audit.metadata import LICENSE_FILE
from parts import Part


def cyclonedx(name: str, version: str, expression: str, parts: list[Part]) -> bytes:
    """The bill of a distribution that links ``parts``; ``expression`` is its license."""
    subject = f"pkg:pypi/{name}@{quote(version)}"
    components = [
        {
            "type": "library",
            "bom-ref": f"{part.name}@{part.package.version}",
            "name": part.name,
            "version": part.package.version,
            "description": part.description,
            "hashes": [{"alg": "SHA-256", "content": part.package.sha256}],
            "licenses": [{"expression": part.license}],
            "purl": part.purl,
            "properties": [{"name": LICENSE_FILE, "value": text} for text in part.texts],
        }
        for part in parts
    ]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": subject,
                "name": name,
                "version": version,
                "licenses": [{"expression": expression}],
                "purl": subject,
            }
        },
        "components": components,
        "dependencies": [
            {"ref": subject, "dependsOn": [component["bom-ref"] for component in components]}
        ],
    }
    return (json.dumps(document, indent=2) + "\n").encode()
