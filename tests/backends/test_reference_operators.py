# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on the reference backend: PyTorch's own samples, traced, imported and run."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
# PyTorch's samples need a package that only its tests do.
pytest.importorskip("expecttest")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten  # noqa: E402

from torch_mlir import backends, operators  # noqa: E402
from torch_mlir.backends.reference import kernels, python_operators  # noqa: E402
from torch_mlir.importers.program import FxImporter  # noqa: E402

# Results that hold whatever the memory held before, or fresh random numbers.
_UNPREDICTABLE = frozenset(
    "empty empty_like empty_permuted empty_strided new_empty new_empty_strided".split()
)


def test_every_table_operator_has_a_kernel_but_those_of_other_releases() -> None:
    without = set()
    for key, schema in operators.load().items():
        try:
            kernels.kernel(key, len(schema.arguments))
        except kernels.NoKernel:
            without.add(key)
    ours = {key for key in operators.load() if _is_installed(key)}
    assert without == set(operators.load()) - ours
    # The table is the newest release's; all but a few of its operators are in every release
    # since 2.6.
    assert len(ours) > 4_000


def _is_installed(key: str) -> bool:
    """Whether PyTorch has an operator that takes the operands of the table's."""
    schema = operators.lookup(key)
    if python_operators.find(schema) is not None:
        return True
    name = f"{schema.namespace}::{schema.name}"
    for module in kernels.REGISTRARS.get(schema.namespace, ()):
        try:
            __import__(module)
        except ModuleNotFoundError:
            continue
    try:
        installed = operators.parse(str(torch._C._get_schema(name, schema.overload)))
    except RuntimeError:
        return False
    mine, theirs = installed.arguments, schema.arguments
    if [argument.type for argument in mine] == [argument.type for argument in theirs]:
        return True
    names = {argument.name for argument in mine}
    return all(a.name in names or a.default is not None for a in theirs)


def _sample(info: Any) -> Any:
    supported = info.supported_dtypes("cpu")
    dtype = torch.float32 if torch.float32 in supported else next(iter(supported), torch.float64)
    return next(iter(info.sample_inputs("cpu", dtype)))


def _names(infos: Any) -> list[str]:
    return [
        info.name.replace("torch.ops.", "")
        + (f"-{info.variant_test_name}" * bool(info.variant_test_name))
        for info in infos
    ]


# `broadcast_shapes` has no tensors at all.
_OPERATORS = [info for info in op_db if info.name != "broadcast_shapes"]


@pytest.mark.parametrize("info", _OPERATORS, ids=_names(_OPERATORS))
def test_pytorchs_sample_of_an_operator_gives_what_eager_gives(info: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _run_sample(info)


def _run_sample(info: Any) -> None:
    sample = _sample(info)
    leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def call(*tensors: Any) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        first, args, kwargs = tree_unflatten(filled, spec)
        return info.op(first, *args, **kwargs)

    def tensors() -> list[Any]:
        return [leaves[place].detach().clone() for place in places]

    try:
        expected = tree_leaves(call(*tensors()))
        graph = make_fx(torch.func.functionalize(call), tracing_mode="fake")(*tensors())
    except Exception as problem:
        pytest.skip(f"PyTorch itself doesn't trace it on fake tensors: {type(problem).__name__}")
    targets = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    if any(getattr(t, "_schema", None) is not None and t._schema.is_mutable for t in targets):
        pytest.skip("functionalize leaves a write in the graph")
    importer = FxImporter()
    importer.import_graph_module(graph)
    importer.module.operation.verify()
    reference = backends.get("reference")
    # The samples' own random operators seed the generator so.
    torch.manual_seed(42)
    results = tree_leaves(reference.load(reference.compile(importer.module))(*tensors()))
    if info.name in _UNPREDICTABLE:
        for actual, wanted in zip(results, expected, strict=True):
            assert (actual.shape, actual.dtype) == (wanted.shape, wanted.dtype)
        return
    torch.testing.assert_close(results, expected, equal_nan=True)
