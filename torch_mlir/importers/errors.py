# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors that name the operator, the argument and the line of the user's code."""

from __future__ import annotations

import os
import re

import torch
from torch.fx import Node

from ..compiler_utils import TorchMlirCompilerError

_PYTORCH = os.path.join(os.path.dirname(torch.__file__), "")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n(?:\s*(\S[^\n]*))?')


class Unsupported(Exception):
    """Something within one node that has no translation; `node_error` tells where it was.

    `argument` is the name of the operator's argument that it is about, if it is about one.
    """

    def __init__(self, reason: str, argument: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.argument = argument


def target_name(node: Node) -> str:
    """How a reader knows the operator of `node`: `aten.add.Tensor`, `cond`, `sub`."""
    target = node.target
    if isinstance(target, str):
        return f"{node.op} {target}"
    schema = getattr(target, "_schema", None)
    if schema is not None:
        overload = f".{schema.overload_name}" if schema.overload_name else ""
        return schema.name.replace("::", ".") + overload
    return getattr(target, "__name__", None) or str(target)


def user_line(node: Node) -> str | None:
    """`file:line, in function: code` of the innermost frame of the user's in the node's trace."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return None
    # Graphs that PyTorch made of the user's code have frames of their own; its functions too.
    written = [frame for frame in frames if not frame[0].startswith("<")]
    users = [frame for frame in written if not frame[0].startswith(_PYTORCH)]
    file, line, function, code = (users or written or frames)[-1]
    return f"{file}:{line}, in {function}" + (f": {code.strip()}" if code.strip() else "")


def node_error(node: Node, problem: Unsupported) -> TorchMlirCompilerError:
    """`problem` as an error that says at which operator, argument and line it arose."""
    about = f"{target_name(node)}"
    if problem.argument is not None:
        about += f", argument {problem.argument!r}"
    line = user_line(node)
    where = f" (at {line})" if line else f" (node {node.name!r}, which has no source line)"
    return TorchMlirCompilerError(f"{about}: {problem.reason}{where}")
