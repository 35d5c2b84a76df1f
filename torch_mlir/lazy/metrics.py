# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch counts of lazy tensors, in the whole process.

`torch._lazy.metrics` has more of it, and as text.
"""

from __future__ import annotations

import torch._lazy.metrics

__all__ = ["cache_hits", "compilations", "fallbacks", "operators", "reset"]

# Names of PyTorch's counters: torch/csrc/lazy/core/lazy_graph_executor.cpp; that of an operator
# begins with its namespace if it ran on the CPU, with `lazy` if it became a node.
_COMPILED = "UncachedCompile"
_CACHED = "CachedCompile"
_NODE = "lazy::"


def reset() -> None:
    """Count from zero."""
    torch._lazy.metrics.reset()


def compilations() -> int:
    """How many graphs were compiled."""
    return _value(_COMPILED)


def cache_hits() -> int:
    """How many graphs had been compiled before."""
    return _value(_CACHED)


def fallbacks() -> dict[str, int]:
    """How often which operator ran eagerly on the CPU, e.g. `{"aten::_local_scalar_dense": 1}`."""
    return {
        name: _value(name)
        for name in sorted(torch._lazy.metrics.counter_names())
        if "::" in name and not name.startswith(_NODE)
    }


def operators() -> dict[str, int]:
    """How often which of PyTorch's lazy kernels recorded an operator, e.g. `{"add": 2}`."""
    return {
        name.removeprefix(_NODE): _value(name)
        for name in sorted(torch._lazy.metrics.counter_names())
        if name.startswith(_NODE)
    }


def _value(name: str) -> int:
    value = torch._lazy.metrics.counter_value(name)
    return 0 if value is None else int(value)
