# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile(model, backend="torch_mlir")`: import each graph, and run it on a backend.

AOTAutograd traces what TorchDynamo captures: it lifts parameters and buffers to inputs, turns
in-place operators and writes to inputs into values that it copies back, and splits training
graphs into a forward and a backward graph. Each of them is imported as one function.

Random operators draw from PyTorch's own generators where the backend runs PyTorch's kernels.

An operator that has no translation is an error of the importer, in which TorchDynamo wraps its
`BackendCompilerFailed`; `torch._dynamo.config.suppress_errors` runs such code eagerly instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .pytorch import require_torch

torch = require_torch("torch_mlir.dynamo")

from torch.fx import GraphModule, Node  # noqa: E402  torch may be missing, see above
from torch.utils._python_dispatch import _disable_current_modes  # noqa: E402

from . import backends  # noqa: E402
from .importers.decompositions import get_decomposition_table  # noqa: E402
from .importers.program import FxImporter  # noqa: E402

__all__ = ["backend", "compile_graph"]

Compiled = Callable[[list[Any]], list[Any]]


def backend(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """What TorchDynamo calls with each graph that it captured.

    Args:
        gm: the graph, whose operators are those of the user's program.
        example_inputs: its inputs; tensors and, where sizes are open, `SymInt`s.
        options: those of `torch.compile`. `backend` names a backend of `torch_mlir.backends`
            or is one, `"reference"` by default; `decomposition_table` tells which operators to
            decompose, the importer's default if it is left out; any other option is the
            backend's.
        mode: PyTorch's presets for its own compiler; there are none here.

    Returns:
        What runs the graph and its gradients.

    Raises:
        ValueError: no such backend, option or mode.
        TorchMlirCompilerError: something in the graph has no translation.
    """
    from torch._dynamo.backends.common import aot_autograd

    if mode not in (None, "default"):
        raise ValueError(f"mode {mode!r}: backend 'torch_mlir' has no modes; it takes `options`")
    remaining = dict(options or {})
    decompositions = remaining.pop("decomposition_table", None)
    is_default = decompositions is None
    if is_default:
        decompositions = get_decomposition_table()
    runner = _backend(remaining.pop("backend", "reference"), remaining)

    def compiler(graph: GraphModule, inputs: Sequence[Any]) -> Compiled:
        return _boxed(compile_graph(graph, runner))

    compile_all = aot_autograd(
        fw_compiler=compiler, decompositions=decompositions, partition_fn=_partition
    )
    in_parts = is_default or any("scaled_dot_product" in str(name) for name in decompositions)
    with _attention_in_parts() if in_parts else nullcontext():
        return compile_all(gm, example_inputs)


def _partition(joint: GraphModule, *args: Any, **kwargs: Any) -> Any:
    """The forward and the backward graph of `joint`.

    A checkpoint's values are computed again in the backward graph, but not where it draws random
    numbers: PyTorch would draw those again from the generator's state at the forward graph, and
    the Torch dialect has nothing for such states. Its values are kept instead.
    """
    from torch._functorch.partitioners import default_partition

    again = [node for node in joint.graph.nodes if "recompute" in node.meta]
    seeded = torch.Tag.nondeterministic_seeded
    if any(seeded in getattr(node.target, "tags", ()) for node in again):
        for node in again:
            del node.meta["recompute"]
    return default_partition(joint, *args, **kwargs)


def _attention_in_parts() -> AbstractContextManager[Any]:
    """Let attention be traced as products and a softmax.

    Decompositions apply below autograd: they would take the forward operator of a fused
    attention apart and leave its backward operator, which compilers lack.
    """
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ModuleNotFoundError:
        # Before PyTorch 2.3; CPU kernels obey it too.
        return torch.backends.cuda.sdp_kernel(
            enable_flash=False, enable_math=True, enable_mem_efficient=False
        )
    return sdpa_kernel(SDPBackend.MATH)


def _backend(wanted: Any, options: dict[str, Any]) -> backends.Backend[Any]:
    if isinstance(wanted, str):
        try:
            return backends.get(wanted, **options)
        except TypeError as problem:
            names = ", ".join(sorted(options))
            raise ValueError(f"backend {wanted!r} does not take {names}: {problem}") from problem
    if options:
        raise ValueError(
            f"options {', '.join(sorted(options))} belong to a backend that is named, "
            f"and {type(wanted).__name__} is an object"
        )
    return wanted


def compile_graph(gm: GraphModule, runner: backends.Backend[Any]) -> Callable[..., list[Any]]:
    """Import one graph of ATen operators, compile it with `runner`, and load it.

    Args:
        gm: a graph without side effects, such as AOTAutograd makes.
        runner: a backend, which has `compile` and `load`.

    Returns:
        What takes the graph's inputs and gives its outputs, always as a list. Outputs that the
        graph does not compute are put in their place without the backend's seeing them: inputs
        as they are, which a training graph keeps for its gradients, and constants, such as the
        None of an input that has no gradient.

    Raises:
        TorchMlirCompilerError: something in the graph has no translation.
    """
    nodes = list(gm.graph.nodes)
    returned = nodes[-1].args[0]
    outputs = returned if isinstance(returned, (list, tuple)) else (returned,)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    computed = list(
        dict.fromkeys(
            output for output in outputs if isinstance(output, Node) and output.op != "placeholder"
        )
    )
    given = {node: position for position, node in enumerate(placeholders)}
    made = {node: position for position, node in enumerate(computed)}
    run = _load(_returning(gm, computed), runner) if computed else None

    def call(*inputs: Any) -> list[Any]:
        results: Sequence[Any] = ()
        if run is not None:
            with torch.no_grad():
                result = run(*inputs)
            results = result if len(computed) > 1 else (result,)
        return [
            output
            if not isinstance(output, Node)
            else (results[made[output]] if output in made else inputs[given[output]])
            for output in outputs
        ]

    return call


def _load(gm: GraphModule, runner: backends.Backend[Any]) -> Callable[..., Any]:
    # AOTAutograd compiles under a mode in which every tensor is fake; constants are not.
    with _disable_current_modes():
        importer = FxImporter()
        importer.import_graph_module(gm)
        return runner.load(runner.compile(importer.module))


def _returning(gm: GraphModule, results: list[Node]) -> GraphModule:
    """The graph of `gm`, returning only `results`; `gm` stays as it is."""
    graph = torch.fx.Graph()
    copies: dict[Node, Node] = {}
    graph.graph_copy(gm.graph, copies)
    graph.output(tuple(copies[node] for node in results))
    return GraphModule(gm, graph)


def _boxed(call: Callable[..., list[Any]]) -> Compiled:
    """`call` with its inputs in one list, which it empties: they can be freed as it runs."""

    def boxed(inputs: list[Any]) -> list[Any]:
        given = tuple(inputs)
        inputs.clear()
        return call(*given)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed
