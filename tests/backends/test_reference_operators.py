# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on the reference backend: PyTorch's own samples, traced, imported and run."""

from __future__ import annotations

import dataclasses
import itertools
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
# PyTorch's samples need a package that only its tests do.
pytest.importorskip("expecttest")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils._pytree import tree_flatten, tree_unflatten  # noqa: E402
from types_of import forget_types, open_arguments  # noqa: E402

from torch_mlir import backends, ir, operators  # noqa: E402
from torch_mlir.backends.reference import kernels, python_operators, refine  # noqa: E402
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
    first, *others = itertools.islice(info.sample_inputs("cpu", dtype), 8)
    # One with sizes says more than one without, which is often the first.
    return next((sample for sample in (first, *others) if _has_sizes(sample)), first)


def _has_sizes(sample: Any) -> bool:
    leaves = tree_flatten((sample.input, sample.args, sample.kwargs))[0]
    return any(isinstance(leaf, torch.Tensor) and leaf.dim() for leaf in leaves)


def _names(infos: Any) -> list[str]:
    return [
        info.name.replace("torch.ops.", "")
        + (f"-{info.variant_test_name}" * bool(info.variant_test_name))
        for info in infos
    ]


# Those without any tensor, and those whose kernels are for GPUs only.
_LEFT_OUT = re.compile(
    r"broadcast_shapes|jiterator_\w+|torch\.ops\.aten\._(flash|efficient)_attention_forward"
)
_OPERATORS = [info for info in op_db if not _LEFT_OUT.fullmatch(info.name)]


@dataclasses.dataclass
class Traced:
    """A sample of an operator: its tensors, what eager gives for them, and its graph."""

    name: str
    tensors: list[Any]
    expected: list[Any]
    graph: Any

    def inputs(self) -> list[Any]:
        return [tensor.detach().clone() for tensor in self.tensors]

    def imported(self) -> ir.Module:
        importer = FxImporter()
        importer.import_graph_module(self.graph)
        assert importer.module.operation.verify()
        return importer.module


@pytest.fixture(scope="module", params=_OPERATORS, ids=_names(_OPERATORS))
def traced(request: Any) -> Iterator[Traced]:
    info = request.param
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample = _sample(info)
        leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

        def call(*tensors: Any) -> Any:
            filled = list(leaves)
            for place, tensor in zip(places, tensors, strict=True):
                filled[place] = tensor
            first, args, kwargs = tree_unflatten(filled, spec)
            return info.op(first, *args, **kwargs)

        one = Traced(info.name, [leaves[place] for place in places], [], None)
        one.expected = tree_flatten(call(*one.inputs()))[0]
        try:
            function = torch.func.functionalize(call)
            one.graph = make_fx(function, tracing_mode="fake")(*one.inputs())
        except Exception as problem:
            pytest.skip(f"PyTorch itself doesn't trace it: {type(problem).__name__}")
        targets = [node.target for node in one.graph.graph.nodes if node.op == "call_function"]
        if any(getattr(t, "_schema", None) is not None and t._schema.is_mutable for t in targets):
            pytest.skip("functionalize leaves a write in the graph")
        yield one


def test_pytorchs_sample_of_an_operator_gives_what_eager_gives(traced: Traced) -> None:
    reference = backends.get("reference")
    program = reference.load(reference.compile(traced.imported()))
    # The samples' own random operators seed the generator so.
    torch.manual_seed(42)
    results = tree_flatten(program(*traced.inputs()))[0]
    if traced.name in _UNPREDICTABLE:
        for actual, wanted in zip(results, traced.expected, strict=True):
            assert (actual.shape, actual.dtype) == (wanted.shape, wanted.dtype)
        return
    torch.testing.assert_close(results, traced.expected, equal_nan=True)


def test_refinement_restores_the_types_of_a_sample(traced: Traced) -> None:
    module = traced.imported()
    if ",#" in str(module):
        pytest.skip("refinement knows nothing of sparse tensors")
    before = str(module)
    forget_types(module)
    assert str(refine(module)) == before


@pytest.mark.parametrize("what", ["sizes", "ranks"])
def test_refined_types_hold_for_a_sample_where_arguments_are_open(
    traced: Traced, what: str
) -> None:
    module = traced.imported()
    forget_types(module)
    if open_arguments(module, what) == 0:
        pytest.skip("it has no sizes")
    if traced.name == "as_strided":
        pytest.skip("the copies of the sample's tensor lack the memory that it looks at")
    refine(module)
    reference = backends.get("reference", is_checking=True)
    program = reference.load(reference.compile(module))
    program(*traced.inputs())  # checks all types
