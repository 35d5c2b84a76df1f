# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules in memory as archives: scripted or traced, and saved, by the PyTorch they belong to."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from ...compiler_utils import TensorPlaceholder, TorchMlirCompilerError

# Upstream's choice for open sizes: PyTorch does not specialise on it.
_EXAMPLE_SIZE = 7


class ExampleArgs:
    """Example arguments of one or several methods.

    Each is a tensor or a `TensorPlaceholder`; a single one may stand without a sequence.
    """

    def __init__(self) -> None:
        self._methods: dict[str, tuple[TensorPlaceholder | torch.Tensor, ...]] = {}

    def add_method(self, method_name: str, example_args: Any) -> ExampleArgs:
        """Add a method and its arguments; returns the object itself.

        Raises:
            ValueError: the method has arguments already.
            TypeError: an argument is neither a tensor nor a placeholder.
        """
        if method_name in self._methods:
            raise ValueError(f"method {method_name!r} has example arguments already")
        self._methods[method_name] = _checked(example_args)
        return self

    @staticmethod
    def get(example_args: Any) -> ExampleArgs:
        """`example_args` itself, or one that holds them as the arguments of `forward`.

        Raises:
            TypeError: an argument is neither a tensor nor a placeholder.
        """
        if isinstance(example_args, ExampleArgs):
            return example_args
        return ExampleArgs().add_method("forward", example_args)

    @property
    def methods(self) -> dict[str, tuple[TensorPlaceholder | torch.Tensor, ...]]:
        """The arguments of each method, in the order in which they were added."""
        return self._methods

    def for_tracing(self, ignore_traced_shapes: bool) -> dict[str, tuple[torch.Tensor, ...]]:
        """Tensors for each method: placeholders become tensors of ones.

        Raises:
            ValueError: there is a placeholder, and the trace is to be relied on.
        """
        return {
            method: tuple(_tensor(value, ignore_traced_shapes) for value in values)
            for method, values in self._methods.items()
        }


def _checked(example_args: Any) -> tuple[TensorPlaceholder | torch.Tensor, ...]:
    values = example_args if isinstance(example_args, Sequence) else [example_args]
    for value in values:
        if not isinstance(value, (TensorPlaceholder, torch.Tensor)):
            raise TypeError(
                "example arguments are tensors and TensorPlaceholders, or a sequence of them; "
                f"not a {type(value).__name__}"
            )
    return tuple(values)


def _tensor(value: TensorPlaceholder | torch.Tensor, ignore_traced_shapes: bool) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    if not ignore_traced_shapes:
        raise ValueError(
            "a TensorPlaceholder can be traced with `ignore_traced_shapes=True` only: what is "
            "traced are ones, and the trace may depend on that"
        )
    sizes = [_EXAMPLE_SIZE if size == -1 else size for size in value.shape]
    return torch.ones(sizes, dtype=value.dtype)


def script_of(
    module: Any, example: ExampleArgs, use_tracing: bool, ignore_traced_shapes: bool
) -> torch.jit.ScriptModule | torch.jit.ScriptFunction[..., Any]:
    """A module's TorchScript.

    Args:
        module: a ScriptModule or ScriptFunction, which is taken as it is; a graph of torch.fx or
            another module, which is scripted, or traced with the example arguments.

    Raises:
        TorchMlirCompilerError: PyTorch can't script or trace it, or it lacks a method.
        ValueError: see `ExampleArgs.for_tracing`.
    """
    if isinstance(module, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        script = module
    elif use_tracing:
        script = _traced(module, example.for_tracing(ignore_traced_shapes))
    else:
        script = _scripted(module, example)
    missing = [name for name in example.methods if not _has_method(script, name)]
    if missing:
        raise TorchMlirCompilerError(
            f"the module exports no method {missing[0]!r}, which has example arguments: mark it "
            "with @torch.jit.export before it is scripted"
        )
    return script


def archive_of(script: Any) -> memoryview:
    """The archive of a ScriptModule or ScriptFunction.

    Raises:
        TorchMlirCompilerError: PyTorch can't save it.
    """
    buffer = io.BytesIO()
    try:
        torch.jit.save(script, buffer)
    except Exception as error:  # saving runs the module's own __getstate__
        raise TorchMlirCompilerError(f"PyTorch cannot save the TorchScript: {error}") from error
    return buffer.getbuffer()


def schemas_of(script: Any) -> list[str]:
    """The schemas of the operators that a ScriptModule or ScriptFunction calls, custom ones too."""
    if isinstance(script, torch.jit.ScriptFunction):
        names = set(_kinds_of(script.inlined_graph))
    else:
        names = {name.split(".")[0] for name in torch.jit.export_opnames(script)}
    return [
        str(schema)
        for name in sorted(names)
        for schema in torch._C._jit_get_schemas_for_operator(name)
    ]


def _kinds_of(block: Any) -> Iterator[str]:
    for node in block.nodes():
        yield node.kind()
        for inner in node.blocks():
            yield from _kinds_of(inner)


def _traced(module: Any, inputs: dict[str, tuple[torch.Tensor, ...]]) -> Any:
    try:
        if isinstance(module, torch.nn.Module):
            return torch.jit.trace_module(module, inputs, check_trace=False)
        return torch.jit.trace(module, inputs["forward"], check_trace=False)
    except Exception as error:  # the user's code runs
        raise TorchMlirCompilerError(f"PyTorch cannot trace the module: {error}") from error


def _scripted(module: Any, example: ExampleArgs) -> Any:
    with _exported(type(module), [name for name in example.methods if name != "forward"]):
        try:
            return torch.jit.script(module)
        except Exception as error:  # the compiler's own errors, and those of what it evaluates
            raise TorchMlirCompilerError(
                f"PyTorch cannot script the module (use_tracing=True may do): {error}"
            ) from error


@contextlib.contextmanager
def _exported(kind: type, names: Iterable[str]) -> Iterator[None]:
    """While active, a class's methods of these names are marked, so that PyTorch scripts them."""
    mark = "_torchscript_modifier"
    methods = [method for name in names if (method := getattr(kind, name, None)) is not None]
    before = [(method, vars(method).get(mark)) for method in methods]
    for method in methods:
        torch.jit.export(method)
    try:
        yield
    finally:
        for method, modifier in before:
            if modifier is None:
                delattr(method, mark)
            else:
                setattr(method, mark, modifier)


def _has_method(script: Any, name: str) -> bool:
    if isinstance(script, torch.jit.ScriptFunction):
        return name == "forward"
    return bool(script._c._has_method(name))
