# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public names of a torch_mlir installation, with parameters and defaults, as JSON.

Run by a Python that has upstream's torch-mlir installed, it regenerates the data beside it:

    python -P tests/extras/read_signatures.py > tests/extras/upstream_signatures.json
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import importlib.metadata
import inspect
import json
import sys
from typing import Any

MODULES = (
    "torch_mlir.fx",
    "torch_mlir.compiler_utils",
    "torch_mlir.extras.fx_importer",
    "torch_mlir.extras.fx_decomp_util",
)


def signature(function: Any) -> list[list[str]]:
    """Each parameter's name, kind, and the text of its default if it has one."""
    return [
        [parameter.name, parameter.kind.name]
        + ([] if parameter.default is parameter.empty else [default(parameter.default)])
        for parameter in inspect.signature(function).parameters.values()
    ]


def default(value: Any) -> str:
    return str(value) if isinstance(value, enum.Enum) else repr(value)


def wanted(name: str) -> bool:
    # Subclasses override the methods by which nodes are imported.
    return name == "__init__" or not name.startswith("_") or name.startswith("_import_")


def of_class(cls: type) -> dict[str, Any]:
    """Members of a class: of an enumeration, its names; of a dataclass, its fields."""
    if issubclass(cls, enum.Enum):
        own = {name: signature(getattr(cls, name)) for name in vars(cls) if name == "get"}
        return {"members": {member.name: member.value for member in cls}, "methods": own}
    if dataclasses.is_dataclass(cls):
        return {
            "fields": {
                field.name: None if field.default is dataclasses.MISSING else default(field.default)
                for field in dataclasses.fields(cls)
            }
        }
    members = {name: inspect.getattr_static(cls, name) for name in dir(cls) if wanted(name)}
    if members.get("__init__") in (object.__init__, Exception.__init__):
        del members["__init__"]
    return {
        "properties": sorted(n for n, m in members.items() if isinstance(m, property)),
        "methods": {
            name: signature(getattr(cls, name))
            for name, member in sorted(members.items())
            if inspect.isfunction(member) or isinstance(member, (staticmethod, classmethod))
        },
    }


def of_module(module: Any) -> dict[str, Any]:
    """Classes and functions that are defined in the module, and its tables."""
    found: dict[str, Any] = {"functions": {}, "classes": {}, "tables": []}
    for name, value in sorted(vars(module).items()):
        if name.startswith("_"):
            continue
        if inspect.isclass(value) and value.__module__ == module.__name__:
            found["classes"][name] = of_class(value)
        elif inspect.isroutine(value) and value.__module__ == module.__name__:
            found["functions"][name] = signature(value)
        elif name.isupper() and isinstance(value, (dict, list)):
            found["tables"].append(name)
    return found


def main() -> int:
    modules = {name: of_module(importlib.import_module(name)) for name in MODULES}
    version = importlib.metadata.version("torch-mlir")
    json.dump({"torch-mlir": version, "modules": modules}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
