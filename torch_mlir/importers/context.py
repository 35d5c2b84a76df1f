# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every graph of one MLIR module shares while it is imported."""

from __future__ import annotations

from typing import Any

from torch._ops import OpOverload

from .. import ir
from .hooks import FxImporterHooks
from .literals import LiteralCache
from .locations import LocationCache
from .signatures import Signature, signature_of
from .types import TypeCache


class ModuleContext:
    """Caches, hooks, and which operators the reader of the module knows.

    `consumer_operators` is None for readers that know the whole dialect; otherwise operators
    outside of it are written as `torch.operator`.
    """

    def __init__(
        self,
        context: ir.Context,
        hooks: FxImporterHooks,
        importer: Any,
        consumer_operators: frozenset[str] | None = None,
    ) -> None:
        self.types = TypeCache(context)
        self.literals = LiteralCache(self.types)
        self.locations = LocationCache(context)
        self.hooks = hooks
        self.importer = importer
        self._consumer_operators = consumer_operators
        self._signatures: dict[OpOverload, Signature] = {}

    def hooked(self, name: str) -> bool:
        """Whether the user's hooks override the method `name`."""
        return getattr(type(self.hooks), name) is not getattr(FxImporterHooks, name)

    def accepts(self, operation: str) -> bool:
        """Whether the module's reader knows the operation, e.g. `torch.aten.relu`."""
        return self._consumer_operators is None or operation in self._consumer_operators

    def signature(self, target: OpOverload) -> Signature:
        """How `target` is called, as far as this module's reader knows it."""
        found = self._signatures.get(target)
        if found is None:
            found = signature_of(target._schema, self.accepts)
            self._signatures[target] = found
        return found
