# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python objects and what stands for them in MLIR, so that each is made once.

An integrator keeps such a tracker for globals that were made of tensors; given to several
importers of one context, it also lets them share the literals of their tensors.
"""

from __future__ import annotations

from typing import Any

from .literals import LiteralCache
from .types import TypeCache

__all__ = ["Empty", "EmptyType", "RefMapping", "RefTracker"]


class EmptyType:
    """The class of `Empty`."""

    def __repr__(self) -> str:
        return "Empty"


# Says that nothing stands for an object yet; None may be what stands for it.
Empty = EmptyType()


class RefMapping:
    """What stands for one object: `value`, or `Empty`."""

    __slots__ = ("_referrent", "value")

    def __init__(self, referrent: Any) -> None:
        # Kept alive: an address that is given to another object would confuse the two.
        self._referrent = referrent
        self.value: Any = Empty

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands for the object yet."""
        return self.value is Empty

    def __repr__(self) -> str:
        return f"<RefMapping {type(self._referrent).__name__} -> {self.value!r}>"


class RefTracker:
    """Mappings by the identity of their object."""

    def __init__(self) -> None:
        self._mappings: dict[int, RefMapping] = {}
        self._shared: tuple[TypeCache, LiteralCache] | None = None

    def track(self, referrent: Any) -> RefMapping:
        """The mapping of `referrent`, always the same one for the same object."""
        found = self._mappings.get(id(referrent))
        if found is None:
            found = self._mappings[id(referrent)] = RefMapping(referrent)
        return found

    def literals(self, types: TypeCache) -> LiteralCache:
        """The literals that importers into the context of `types` share.

        Raises:
            ValueError: the tracker serves another context already; attributes belong to theirs.
        """
        if self._shared is None:
            self._shared = types, LiteralCache(types)
        owner, literals = self._shared
        if owner.context != types.context:
            raise ValueError("py_attr_tracker is used with two MLIR contexts; give each its own")
        return literals
