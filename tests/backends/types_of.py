# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes types away from modules, for refinement to find them."""

from __future__ import annotations

import re

from torch_mlir import ir
from torch_mlir.backends.reference.inference import nested


def forget_types(module: ir.Module) -> int:
    """Take shape and dtype away from all results of operators; the number of those."""
    forgotten = 0
    with module.context:
        bare = ir.Type.parse("!torch.vtensor")
        for view in module.body.operations:
            function = view.operation
            for operation in nested(function):
                if operation.name == "torch.vtensor.literal":
                    continue
                values = list(operation.results)
                for region in operation.regions:
                    values += region.blocks[0].arguments
                for value in values:
                    if str(value.type).startswith("!torch.vtensor<"):
                        value.set_type(bare)
                        forgotten += 1
            block = function.regions[0].blocks[0]
            returned = block.operations[len(block.operations) - 1].operation.operands
            kind = ir.FunctionType.get(
                [a.type for a in block.arguments], [v.type for v in returned]
            )
            function.attributes["function_type"] = ir.TypeAttr.get(kind)
    assert module.operation.verify()
    return forgotten


def open_arguments(module: ir.Module, what: str) -> int:
    """Take the `sizes` or the `ranks` of the functions' arguments away; the number of sizes."""
    opened = 0
    with module.context:
        for view in module.body.operations:
            block = view.operation.regions[0].blocks[0]
            for argument in block.arguments:
                match = re.fullmatch(r"!torch\.vtensor<\[([^\]]*)\],([^#]*)>", str(argument.type))
                if match is None:
                    continue
                count = len(match[1].split(",")) if match[1] else 0
                opened += count
                shape = "*" if what == "ranks" else f"[{','.join('?' * count)}]"
                argument.set_type(ir.Type.parse(f"!torch.vtensor<{shape},{match[2]}>"))
            returned = block.operations[len(block.operations) - 1].operation.operands
            kind = ir.FunctionType.get(
                [a.type for a in block.arguments], [v.type for v in returned]
            )
            view.operation.attributes["function_type"] = ir.TypeAttr.get(kind)
    assert module.operation.verify()
    return opened
