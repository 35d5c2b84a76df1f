# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where an integrator steps in: what becomes of parameters, buffers and other literals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch.fx import Node

from .. import ir
from ..compiler_utils import TorchMlirCompilerError

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.export.graph_signature import InputSpec

    from .graph import GraphImporter


@dataclass(frozen=True)
class InputInfo:
    """What is known of a parameter or buffer when a hook is asked for it.

    `store_producer_node` names the node whose value the program writes back to the buffer.
    """

    program: ExportedProgram
    input_spec: InputSpec
    node: Node
    ir_type: ir.Type
    mutable_producer_node_name: str | None = None
    store_producer_node: str | None = None


class FxImporterHooks:
    """Does nothing: derive from it, override what is wanted.

    The hooks run with an insertion point and a location set, so that they can create operations.
    """

    def prepare_module(self, module_op: ir.Operation) -> None:
        """Called once, before anything is imported into the module."""

    def resolve_literal(
        self, gni: GraphImporter, literal: Any, info: InputInfo | None
    ) -> ir.Value | None:
        """The value that stands for a tensor literal, or None for its contents."""
        return None

    def resolve_input(self, gni: GraphImporter, value: Any, info: InputInfo) -> ir.Value | None:
        """The value that stands for a parameter or a buffer, or None to go on as a literal."""
        return None

    def store_produced_value(
        self, gni: GraphImporter, py_value: Any, produced_ir_value: ir.Value, info: InputInfo
    ) -> None:
        """Write `produced_ir_value` back to the buffer `py_value`, which the program mutates.

        Raises:
            TorchMlirCompilerError: always, unless overridden: only an integrator knows where
                buffers live.
        """
        raise TorchMlirCompilerError(
            f"the program writes to its buffer {info.input_spec.target!r}; give hooks whose "
            "store_produced_value says where to, or import it frozen "
            "(experimental_support_mutation=False), which returns the new contents first"
        )
