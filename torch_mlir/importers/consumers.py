# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Readers of the Torch dialect that know only some of its operators."""

from __future__ import annotations

from collections.abc import Callable

CONSUMERS = ("iree",)

Accepts = Callable[[str], bool]


def consumer(name: str) -> Accepts:
    """What tells whether the consumer `name` registers an operation, e.g. `torch.aten.relu`.

    The consumer itself is asked, so it has to be installed.

    Raises:
        ValueError: there is no such consumer.
        ImportError: the consumer is not installed.
    """
    if name != "iree":
        raise ValueError(f"target {name!r} is not one of {', '.join(CONSUMERS)}")
    try:
        from iree.compiler import ir
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("iree"):
            raise
        raise ImportError(
            "target 'iree' asks IREE's compiler which operators it knows: "
            "install iree-base-compiler",
            name="iree.compiler",
        ) from None
    return ir.Context().is_registered_operation
