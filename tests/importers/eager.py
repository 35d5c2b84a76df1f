# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose operators stay as torch.export wrote them, held against eager PyTorch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from execution import run
from torch.utils._pytree import tree_flatten, tree_map_only

from torch_mlir import fx, ir


class Calls(torch.nn.Module):
    """A module that calls a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def module_of(called: Callable[..., Any]) -> torch.nn.Module:
    """`called`, if it is a module, or one that calls it."""
    return called if isinstance(called, torch.nn.Module) else Calls(called)


def shapes_of(called: Callable[..., Any], *shapes: Any) -> Any:
    """`dynamic_shapes` for the inputs of `called`, one mapping from axis to size for each."""
    return shapes if isinstance(called, torch.nn.Module) else (shapes,)


def exported(
    called: Callable[..., Any],
    args: Sequence[Any],
    *,
    shapes: Sequence[Any] | None = None,
    strict: bool = False,
    functional: bool = True,
) -> torch.export.ExportedProgram:
    """The program of `called`, in which nothing is decomposed.

    A `functional` one has no writes; one that isn't is as `torch.export.export` gives it.

    Skips the test where the installed PyTorch does not export it, or not so that it runs.
    """
    options: dict[str, Any] = {}
    if "strict" in inspect.signature(torch.export.export).parameters:
        options["strict"] = strict
    if shapes is not None:
        options["dynamic_shapes"] = shapes_of(called, *shapes)
    # Graphs that other tests let TorchDynamo keep would be used again, with their sizes.
    torch._dynamo.reset()
    try:
        program = torch.export.export(module_of(called), tuple(args), **options)
        program = program.run_decompositions({}) if functional else program
        if torch.__version__ < "2.4" and hasattr(program, "module"):
            # PyTorch 2.3 exports loops that it cannot run.
            program.module()(*copies(tuple(args)))
        return program
    except Exception as problem:
        # Of the PyTorch that the tests were written with it is known that it does.
        if torch.__version__ >= "2.13":
            raise
        pytest.skip(f"this PyTorch does not export it: {type(problem).__name__}: {problem}"[:200])


def held(
    called: Callable[..., Any],
    *args: Any,
    runs: Sequence[tuple] | None = None,
    target: str | None = None,
    **options: Any,
) -> ir.Module:
    """Import what `called` does, run it on the reference backend, and compare with eager.

    Args:
        called: a module or a function.
        args: the inputs to export it for.
        runs: the inputs to compare for; `args` by default.
        target: who reads the module; see `fx.export_and_import`.
        options: those of `exported`.

    Returns:
        The imported module.
    """
    program = exported(called, args, **options)
    imported = fx.export_and_import(program, decomposition_table={}, target=target)
    compare(imported, called, runs or [args])
    return imported


def compare(imported: ir.Module, called: Callable[..., Any], runs: Sequence[tuple]) -> None:
    """Hold what an imported module gives against what `called` gives, for each of some inputs."""
    for inputs in runs:
        got = leaves_of(run(imported, *copies(inputs)))
        # Until PyTorch 2.4, torch.cond wants of both branches that they need gradients or don't.
        with torch.no_grad():
            expected = leaves_of(called(*copies(inputs)))
        assert len(got) == len(expected)
        for actual, wanted in zip(got, expected):
            if isinstance(wanted, torch.Tensor):
                torch.testing.assert_close(actual, wanted, equal_nan=True)
            else:
                assert actual == wanted and type(actual) is type(wanted)


def leaves_of(results: Any) -> list[Any]:
    """What results consist of, None among them."""
    return tree_flatten(results)[0]


def copies(inputs: Any) -> Any:
    """The inputs with tensors of their own, which a program may write to."""
    return tree_map_only(torch.Tensor, torch.clone, inputs)
