# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every graph of one MLIR module shares while it is imported."""

from __future__ import annotations

from typing import Any

from torch._ops import OpOverload

from .. import ir
from .consumers import Accepts
from .hooks import FxImporterHooks
from .literals import LiteralCache
from .locations import LocationCache
from .references import RefTracker
from .signatures import Signature, signature_of
from .types import TypeCache


class ModuleContext:
    """Caches, hooks, and which operators the reader of the module knows.

    `accepts` is None for readers that know the whole dialect; otherwise operators of PyTorch that
    it refuses are written as `torch.operator`. `shared` holds literals of other importers too;
    `module_paths` lets locations tell the modules that nodes were called in.
    """

    def __init__(
        self,
        context: ir.Context,
        hooks: FxImporterHooks,
        importer: Any,
        accepts: Accepts | None = None,
        shared: RefTracker | None = None,
        module_paths: bool = False,
    ) -> None:
        # Who knows the dialect of sparse tensors reads their types too.
        sparse = accepts is None or accepts("sparse_tensor.assemble")
        self.types = TypeCache(context, sparse)
        self.literals = LiteralCache(self.types) if shared is None else shared.literals(self.types)
        self.locations = LocationCache(context, module_paths)
        self.hooks = hooks
        self.importer = importer
        self._accepts = accepts
        self._signatures: dict[OpOverload, Signature] = {}

    def hooked(self, name: str) -> bool:
        """Whether the user's hooks override the method `name`."""
        return getattr(type(self.hooks), name) is not getattr(FxImporterHooks, name)

    def accepts(self, operation: str) -> bool:
        """Whether the module's reader knows the operation, e.g. `torch.aten.relu`."""
        return self._accepts is None or self._accepts(operation)

    def signature(self, target: OpOverload) -> Signature:
        """How `target` is called, as far as this module's reader knows it."""
        found = self._signatures.get(target)
        if found is None:
            found = signature_of(target._schema, self.accepts)
            self._signatures[target] = found
        return found
