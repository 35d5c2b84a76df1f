# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a vendor writes, and how it becomes the one that runs lazy tensors."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import torch

from .. import ir
from .native import load
from .signature import Signature

_native = load()


class BackendError(RuntimeError):
    """A backend fails to compile or execute a computation.

    What the backend raised is the cause.
    """


class Backend(ABC):
    """Compiles and runs what lazy tensors record.

    Both methods are called in the thread that asks for a value, one computation at a time on the
    device, without gradients being recorded. What they raise reaches the user's program as the
    cause of a BackendError.
    """

    @abstractmethod
    def compile(self, module: ir.Module, signature: Signature) -> Any:
        """Compile a module; PyTorch keeps what it gives, and calls again for other graphs only.

        Args:
            module: a module of the Torch dialect with one public function, `main`, which is
                yours to change. Its arguments and results are value tensors of fixed shape and
                dtype (`!torch.vtensor<[2,3],f32>`); an argument may be a number too
                (`!torch.int`, `!torch.float`), and then another number is no other graph. It has
                been verified.
            signature: the shapes and dtypes of arguments and results, in order.

        Returns:
            Whatever `execute` takes as `executable`.
        """

    @abstractmethod
    def execute(self, executable: Any, arguments: Sequence[Any]) -> Sequence[torch.Tensor]:
        """Run what `compile` gave.

        Args:
            executable: what `compile` gave.
            arguments: contiguous tensors on the CPU, and Python's `int` and `float` where the
                signature has numbers. They hold what lazy tensors hold: don't write to them.

        Returns:
            A tensor on the CPU for each result, of its shape and dtype; an argument, or a view
            of one, will do.
        """

    def context(self) -> ir.Context:
        """The context that the next module is made in: one for all, unless it is overridden.

        A context keeps the types and attributes of all modules that were made in it.
        """
        with _lock:
            if not hasattr(self, "_shared_context"):
                self._shared_context = ir.Context()
            return self._shared_context

    # What the compiled part calls; see csrc/lazy/PythonBackend.h.

    def _context(self) -> ir.Context:
        try:
            return self.context()
        except Exception as problem:
            raise self._error("context", problem) from problem

    def _compile(
        self,
        module: ir.Module,
        name: str,
        parameters: Sequence[tuple[tuple[int, ...], torch.dtype]],
        results: Sequence[tuple[tuple[int, ...], torch.dtype]],
    ) -> tuple[Any, Signature]:
        try:
            signature = Signature.of(module, parameters, results)
            return self.compile(module, signature), signature
        except Exception as problem:
            raise self._error("compile", problem) from problem

    def _execute(
        self, compiled: tuple[Any, Signature], arguments: Sequence[Any]
    ) -> list[torch.Tensor]:
        executable, signature = compiled
        # The user may record gradients, or be in inference mode.
        with torch.inference_mode(False), torch.no_grad():
            given = [
                value.contiguous()
                if isinstance(value, torch.Tensor)
                # PyTorch calls True an int here.
                else (int(value) if kind.kind == "int" else value)
                for value, kind in zip(arguments, signature.parameters, strict=True)
            ]
            try:
                results = self.execute(executable, given)
                if isinstance(results, torch.Tensor):
                    raise TypeError("execute gave a tensor, not a list of them")
                results = list(results)
                signature.check_results(results)
            except Exception as problem:
                raise self._error("execute", problem) from problem
            return _apart(results, given)

    def _error(self, method: str, problem: Exception) -> BackendError:
        return BackendError(
            f"{type(self).__name__}.{method} fails: {type(problem).__name__}: {problem}"
        )


_lock = threading.Lock()


def _apart(results: Sequence[torch.Tensor], arguments: Sequence[Any]) -> list[torch.Tensor]:
    """Results that share no memory: PyTorch writes to what one lazy tensor holds."""
    seen = {_memory(each) for each in arguments if isinstance(each, torch.Tensor)}
    apart = []
    for result in results:
        memory = _memory(result)
        if memory and memory in seen:
            result = result.clone(memory_format=torch.contiguous_format)
        else:
            seen.add(memory)
        apart.append(result.detach().contiguous())
    return apart


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class Registration:
    """A backend that runs lazy tensors, until a `with` block of it ends.

    Attributes:
        backend: the backend.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        if "_backend_interface" not in backend.__dict__:
            backend.__dict__["_backend_interface"] = _native.make_backend(backend)
        self._before = _native.register_backend(backend.__dict__["_backend_interface"])

    def __enter__(self) -> Backend:
        return self.backend

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _native.register_backend(self._before)


def register(backend: Backend) -> Registration:
    """From now on, have `backend` run lazy tensors, of all threads.

    In a `with` statement, until the block ends; then it is the backend before, PyTorch's own or
    none where it was so. Tensors go from one backend to the next; what was compiled does not.

        with lazy.register(MyDevice()) as device:
            torch.ones(2, device="lazy") + 1

    Raises:
        TypeError: it isn't a `Backend`.
    """
    if not isinstance(backend, Backend):
        raise TypeError(f"a backend of lazy tensors is a torch_mlir.lazy.Backend, not {backend!r}")
    return Registration(backend)
