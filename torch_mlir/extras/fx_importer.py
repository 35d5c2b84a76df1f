# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The FX importer under upstream's name; see `torch_mlir.importers`."""

from __future__ import annotations

from ..importers.graph import GraphImporter as GraphNodeImporter
from ..importers.hooks import FxImporterHooks, InputInfo
from ..importers.program import FxImporter

__all__ = ["FxImporter", "FxImporterHooks", "GraphNodeImporter", "InputInfo"]
