# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Backends compile modules, and load what they compiled as something that can be called.

    backend = backends.get("reference")
    program = backend.load(backend.compile(module))
    result = program(torch.ones(2, 3))

`reference` runs each operator with the installed PyTorch, `iree` compiles with IREE. A vendor's
backend needs the two methods of `Backend` and nothing else.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .. import ir

__all__ = ["NAMES", "Backend", "Program", "get"]

Artifact = TypeVar("Artifact")

# Where the backends are; their own dependencies are imported with them.
_CLASSES = {
    "iree": (".iree", "IreeBackend"),
    "reference": (".reference", "ReferenceBackend"),
}

NAMES = tuple(_CLASSES)
"""The names that `get` takes."""


class Program(Protocol):
    """A module that can be run.

    Tensors of the module are `torch.Tensor`s here, its other values Python's. One result comes
    bare, several come as a tuple, none as None. A `!torch.tensor` argument is written in place.
    """

    def __call__(self, *args: Any) -> Any:
        """Call the only public function, or `main` among several.

        Raises:
            ValueError: none of several functions is called `main`.
        """

    def function(self, name: str) -> Callable[..., Any]:
        """The public function `name`.

        Raises:
            ValueError: the module has no such function.
        """


class Backend(Protocol[Artifact]):
    """What compiles modules of the Torch dialect, and runs them."""

    def compile(self, module: ir.Module) -> Artifact:
        """Compile a module.

        Raises:
            TorchMlirCompilerError: something in the module is not supported.
        """

    def load(self, artifact: Artifact) -> Program:
        """Make what `compile` gave ready to run."""


def get(name: str, **options: Any) -> Backend[Any]:
    """The backend `name`, made with the options that its class takes.

    Raises:
        ValueError: there is no such backend; the message names those that there are.
        TypeError: the backend takes no such option.
        TorchMlirCompilerError: a package that the backend needs is not installed.
    """
    try:
        module, kind = _CLASSES[name]
    except KeyError:
        raise ValueError(f"no backend {name!r}: there are {', '.join(sorted(_CLASSES))}") from None
    backend: Backend[Any] = getattr(importlib.import_module(module, __name__), kind)(**options)
    return backend
