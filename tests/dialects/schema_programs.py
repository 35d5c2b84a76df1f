# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that call one operator of the table each, in MLIR's generic form."""

from __future__ import annotations

from torch_mlir.operators import Schema, Type

LEAVES = {
    "Any": "any",
    "AnyClassType": "any",
    "AnyEnumType": "any",
    "__torch__.torch.classes.quantized.LinearPackedParamsBase": "LinearParams",
    "Await": "any",
    "Device": "Device",
    "Dict": "dict<str, int>",
    "Future": "any",
    "Generator": "Generator",
    "Layout": "int",
    "MemoryFormat": "int",
    "NoneType": "none",
    "QScheme": "int",
    "RRef": "any",
    "Scalar": "number",
    "ScalarType": "int",
    "Storage": "any",
    "Stream": "any",
    "SymBool": "bool",
    "SymInt": "int",
    "Tuple": "any",
    "bool": "bool",
    "complex": "number",
    "float": "float",
    "int": "int",
    "str": "str",
}


def mlir_type(type: Type, in_memory: bool = False) -> str:
    """A type of the torch dialect, without ``!torch.``, that the schema's type admits."""
    if type.name == "Tensor":
        return "tensor" if in_memory else "vtensor"
    if type.name == "List":
        return f"list<{mlir_type(type.element, in_memory)}>"
    if type.name == "Optional":
        return f"optional<{mlir_type(type.element, in_memory)}>"
    if type.is_variable:
        return "any"
    return LEAVES.get(type.name, "any") if type.name.startswith("__torch__.") else LEAVES[type.name]


def function(schema: Schema, name: str) -> str:
    """A function ``name`` that calls the operator with its own arguments.

    Where the operator writes to something, its tensors are in memory: upstream wants all of
    them to be.
    """
    in_memory = schema.is_mutable
    operands = ["!torch." + mlir_type(a.type, in_memory) for a in schema.arguments]
    if schema.key == "prim.TupleUnpack":  # Its schema says Any.
        operands = ["!torch.tuple<int, vtensor>"]
    if schema.is_vararg:
        operands += ["!torch.int", "!torch.str"]
    results = ["!torch." + mlir_type(r.type, in_memory) for r in schema.results]
    if schema.is_varret:
        results += ["!torch.int", "!torch.vtensor"]
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(operands))
    values = ", ".join(f"%a{i}" for i in range(len(operands)))
    left = f"%r:{len(results)} = " if results else ""
    returned = ", ".join(f"%r#{i}" for i in range(len(results)))
    return (
        f"func.func private @{name}({arguments}) -> ({', '.join(results)}) {{\n"
        f'  {left}"torch.{schema.key}"({values}) : ({", ".join(operands)})'
        f" -> ({', '.join(results)})\n"
        f"  return {returned}{' : ' if results else ''}{', '.join(results)}\n"
        "}\n"
    )
