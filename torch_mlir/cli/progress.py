# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is being done, on a terminal; nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

# Seconds between two updates of a count.
_INTERVAL = 0.1


class Progress:
    """One line on the standard error that is written over and over."""

    def __init__(self) -> None:
        self.visible = sys.stderr.isatty()

    def step(self, text: str) -> None:
        """Say what comes next."""
        if self.visible:
            sys.stderr.write(f"\r\x1b[K{text} …")
            sys.stderr.flush()

    def counted(self, text: str, items: Sequence[Item]) -> Iterator[Item]:
        """`items`, while saying how many of them are done."""
        last = 0.0
        for done, item in enumerate(items):
            now = time.monotonic()
            if now - last > _INTERVAL:
                self.step(f"{text} {done:,}/{len(items):,}")
                last = now
            yield item
        self.step(f"{text} {len(items):,}/{len(items):,}")

    def clear(self) -> None:
        """Leave nothing of it on the terminal."""
        if self.visible:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """A `Progress` that is cleared at the end, before an error is told."""
    shown = Progress()
    try:
        yield shown
    finally:
        shown.clear()
