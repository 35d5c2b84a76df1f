# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IREE's pass pipelines, run on a module of ours.

IREE carries the passes of the Torch dialect that this package leaves out. A module goes to
`iree-opt` and comes back as text in MLIR's generic form: it names the properties of each
operation, so an MLIR of another version reads it or refuses it, where bytecode would be misread.
The contents of resource blobs stay here: the text only names them.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator

from .. import ir
from .._mlir_libs import _torchMlir as _native
from ..compiler_utils import TorchMlirCompilerError
from . import iree_tools

_HANDLE = re.compile(r'dense_resource<("(?:[^"\\]|\\.)*"|[^>"]+)>')
_OPERATION_NAME = re.compile(r'"([\w$]+\.[\w$.]+)"\(')
_UNREGISTERED_PASS = re.compile(r"does not refer to a registered pass|not registered")


def run_pipeline(
    module: ir.Module, pipeline: str, summary: str, enable_ir_printing: bool = False
) -> None:
    """Run a pass pipeline of IREE's on `module`, in place.

    Operations of dialects that this package does not register, e.g. `tm_tensor.sort`, come back
    in generic form; the module's context then allows unregistered dialects, and a UserWarning
    names the operations.

    Args:
        pipeline: as MLIR writes it, `builtin.module(…)`.
        summary: the first line of an error.
        enable_ir_printing: write the module after each pass to the standard error.

    Raises:
        IreeError: a pass fails; the module is as it was.
        TorchMlirCompilerError: iree-base-compiler is not installed, or gives a module that
            cannot be read here.
    """
    flags = [
        f"--pass-pipeline={pipeline}",
        "--mlir-print-op-generic",
        "--mlir-print-debuginfo",
        "--mlir-elide-resource-strings-if-larger=0",
    ]
    if enable_ir_printing:
        flags += ["--mlir-print-ir-after-all", "--mlir-disable-threading"]
    text = module.operation.get_asm(
        large_resource_limit=0, enable_debug_info=True, print_generic_op_form=True
    )
    assert isinstance(text, str)
    result, printed = iree_tools.run("iree-opt", flags, text.encode(), summary)
    if enable_ir_printing:
        sys.stderr.write(printed)
    _replace(module, _read(result.decode(), _resources(module), module.context))


def knows_pipeline(pipeline: str) -> bool:
    """Whether IREE registers every pass of `pipeline`.

    Raises:
        IreeError: the pipeline is not well-formed.
        TorchMlirCompilerError: iree-base-compiler is not installed.
    """
    try:
        iree_tools.run("iree-opt", [f"--pass-pipeline={pipeline}"], b"module {}", pipeline)
    except iree_tools.IreeError as error:
        if _UNREGISTERED_PASS.search(error.output):
            return False
        raise
    return True


def _resource_attributes(
    module: ir.Module,
) -> Iterator[tuple[ir.Operation, str, ir.DenseResourceElementsAttr]]:
    """The operations' attributes that hold elements in a resource blob."""
    operations: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        operations.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for operation in operations:
        for name, attribute in operation.attributes.items():
            # MLIR's bindings give these no class of their own unless asked, and the cast of
            # other elements would print them.
            if type(attribute) is not ir.Attribute:
                continue
            try:
                yield operation, name, ir.DenseResourceElementsAttr(attribute)
            except ValueError:
                continue


def _key(attribute: ir.Attribute) -> str:
    match = _HANDLE.match(str(attribute))
    assert match is not None
    return match[1]


def _resources(module: ir.Module) -> dict[str, ir.Attribute]:
    return {_key(attribute): attribute for _, _, attribute in _resource_attributes(module)}


def _read(text: str, resources: dict[str, ir.Attribute], context: ir.Context) -> ir.Module:
    """Parse what IREE wrote; its resources are those of the module that went there."""
    # A context that has a resource of a name gives the one that it reads another name, with
    # `_1` behind it. Numbers between dots survive that.
    numbers = {key: number for number, key in enumerate(resources)}

    def renamed(match: re.Match[str]) -> str:
        if match[1] not in numbers:
            raise TorchMlirCompilerError(f"IREE's passes made a new resource blob: {match[0]}")
        return f"dense_resource<lowered.{numbers[match[1]]}.>"

    text = _HANDLE.sub(renamed, text)
    _allow(set(_OPERATION_NAME.findall(text)), context)
    try:
        module = ir.Module.parse(text, context)
    except ir.MLIRError as error:
        raise TorchMlirCompilerError(
            f"the module that IREE gives back does not parse: {error}"
        ) from None
    attributes = list(resources.values())
    for operation, name, attribute in _resource_attributes(module):
        number = int(_key(attribute).split(".")[1])
        operation.attributes[name] = _native.resource_elements_as(
            attributes[number], attribute.type
        )
    return module


def _allow(names: set[str], context: ir.Context) -> None:
    if context.allow_unregistered_dialects:
        return
    unknown = sorted(name for name in names if not _has_dialect(context, name.split(".")[0]))
    if unknown:
        context.allow_unregistered_dialects = True
        warnings.warn(
            "the lowered module holds operations of dialects that torch_mlir does not register, "
            f"in MLIR's generic form: {', '.join(unknown)}",
            stacklevel=2,
        )


def _has_dialect(context: ir.Context, name: str) -> bool:
    try:
        context.get_dialect_descriptor(name)
    except ValueError:
        return False
    return True


def _replace(module: ir.Module, other: ir.Module) -> None:
    """Give `module` the contents of `other`, which is left without any."""
    for operation in list(module.body.operations):
        operation.operation.erase()
    for operation in list(other.body.operations):
        module.body.append(operation)
    attributes, others = module.operation.attributes, other.operation.attributes
    for name in [name for name, _ in attributes.items() if name not in others]:
        del attributes[name]
    for name, attribute in others.items():
        attributes[name] = attribute
