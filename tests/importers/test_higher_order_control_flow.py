# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches, and loops that run while a condition holds."""

from __future__ import annotations

import pytest
import torch
from eager import exported, held

from torch_mlir import fx

if not hasattr(torch, "cond"):
    pytest.skip("this PyTorch has no torch.cond", allow_module_level=True)

try:
    from torch._higher_order_ops.while_loop import while_loop
except ModuleNotFoundError:
    while_loop = None

Dim = torch.export.Dim
needs_while_loop = pytest.mark.skipif(while_loop is None, reason="this PyTorch has no while_loop")
# Positive and negative sums, which the predicates below tell apart.
SIGNS = [(torch.ones(3, 4),), (-torch.ones(3, 4),)]


class WithState(torch.nn.Module):
    """A parameter and a buffer; each branch reads one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))
        self.register_buffer("offset", torch.randn(4))

    def forward(self, x):
        return torch.cond(
            x.sum() > 0, lambda x: x * self.weight + 1, lambda x: (x - self.offset).sin(), (x,)
        )


def test_branches_read_parameters_and_buffers(operations):
    module = held(WithState(), *SIGNS[0], runs=SIGNS)
    (choice,) = operations(module, "torch.prim.If")
    assert len(choice.regions) == 2


@pytest.mark.parametrize("strict", [False, True])
def test_branches_give_several_results_in_containers(strict):
    def choose(x):
        return torch.cond(
            x.sum() > 0,
            lambda d: (d["a"] + 1, [d["a"].sum(), d["a"].max()]),
            lambda d: (d["a"] - 1, [d["a"].max(), d["a"].sum()]),
            ({"a": x},),
        )

    held(choose, *SIGNS[0], runs=SIGNS, strict=strict)


def test_branches_give_integers():
    def choose(x):
        return torch.cond(x.sum() > 0, lambda x: (x + 1, 2), lambda x: (x - 1, 3), (x,))

    held(choose, *SIGNS[0], runs=SIGNS)


def test_branches_give_tensors_of_different_sizes(operations):
    def choose(x):
        return torch.cond(x.sum() > 0, lambda x: x[:2].clone(), lambda x: x[:3].clone(), (x,))

    module = held(choose, *SIGNS[0], runs=SIGNS)
    casts = operations(module, "torch.tensor_static_info_cast")
    assert [str(cast.operands[0].type) for cast in casts] == [
        "!torch.vtensor<[2,4],f32>",
        "!torch.vtensor<[3,4],f32>",
    ]


def test_a_branch_within_a_branch(operations):
    def inner(x):
        return torch.cond(x.max() > 1, lambda x: x * 3, lambda x: x * 2, (x,))

    def choose(x):
        return torch.cond(x.sum() > 0, inner, lambda x: -x, (x,))

    x = torch.ones(3, 4)
    module = held(choose, x, runs=[(x * 9,), (x * 0.1,), (-x,)])
    assert len(operations(module, "torch.prim.If")) == 2


def test_a_predicate_on_an_open_size():
    def choose(x):
        return torch.cond(x.shape[0] > 4, lambda x: x[:2] + 1, lambda x: x[:2] * 2, (x,))

    x = torch.randn(6, 3)
    held(choose, x, runs=[(x,), (x[:5],), (x[:4],), (x[:3],)], shapes=[{0: Dim("rows", min=3)}])


def test_a_predicate_on_an_item():
    def choose(x, n):
        return torch.cond(
            n.item() > 2, lambda x: (x + 1, x.sum()), lambda x: (x * 2, x.sum() * 0), (x,)
        )

    x = torch.randn(3)
    held(choose, x, torch.tensor(4), runs=[(x, torch.tensor(4)), (x, torch.tensor(2))])


def test_a_bool_tensor_as_predicate():
    def choose(p, x):
        return torch.cond(p, lambda x: x + 1, lambda x: x * 2, (x,))

    x = torch.randn(3)
    yes, no = torch.tensor(True), torch.tensor([False])
    held(choose, yes, x, runs=[(yes, x), (~yes, x)])
    held(choose, no, x, runs=[(no, x), (~no, x)])


def test_open_sizes_within_branches():
    def choose(x):
        return torch.cond(
            x.sum() > 0, lambda x: x * x.shape[0], lambda x: x.flip(0) - x.shape[1], (x,)
        )

    x = torch.ones(3, 4)
    runs = [(x,), (-x,), (torch.ones(7, 5),), (-torch.ones(2, 6),)]
    held(choose, x, runs=runs, shapes=[{0: Dim("rows"), 1: Dim("columns")}])


@needs_while_loop
def test_a_loop_runs_as_often_as_its_tensor_says(operations):
    def double(n, x):
        return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2 + 1), (n, x))

    x = torch.ones(2)
    module = held(double, torch.tensor(5), x, runs=[(torch.tensor(n), x) for n in (0, 1, 5)])
    (loop,) = operations(module, "torch.prim.Loop")
    assert len(loop.results) == 2


@needs_while_loop
def test_a_loop_carries_integers():
    def count(x):
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + i), (0, x))

    held(count, torch.randn(3))


@needs_while_loop
def test_a_loop_reads_what_is_outside_of_it():
    def accumulate(n, x, y):
        return while_loop(
            lambda n, x: (n > 0) & (x.sum() < y.sum() * 2), lambda n, x: (n - 1, x + y), (n, x)
        )

    x, y = torch.zeros(3), torch.ones(3)
    held(accumulate, torch.tensor(9), x, y, runs=[(torch.tensor(n), x, y) for n in (1, 9)])


@needs_while_loop
def test_a_loop_reads_parameters():
    class Scales(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, n, x):
            return while_loop(
                lambda n, x: n > 0, lambda n, x: (n - 1, self.linear(x).sin()), (n, x)
            )

    n, x = torch.tensor(3), torch.randn(2, 3)
    held(Scales(), n, x, runs=[(n, x), (n * 0, x)])


@needs_while_loop
def test_a_loop_within_a_loop(operations):
    def inner(x, n):
        return while_loop(lambda m, z: m < 2, lambda m, z: (m + 1, z * 2), (n * 0, x))[1]

    def outer(n, x):
        return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, inner(x, n)), (n, x))

    module = held(outer, torch.tensor(3), torch.ones(3))
    assert len(operations(module, "torch.prim.Loop")) == 2


@needs_while_loop
def test_a_loop_within_a_branch():
    def triple(x):
        n = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda n, x: n < 2, lambda n, x: (n + 1, x * 3), (n, x))[1]

    def choose(x):
        return torch.cond(x.sum() > 0, triple, lambda x: x - 1, (x,))

    held(choose, *SIGNS[0], runs=SIGNS)


@needs_while_loop
def test_a_loop_over_open_sizes():
    def double(n, x):
        return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2), (n, x))

    n = torch.tensor(2)
    runs = [(n, torch.randn(4, 3)), (n, torch.randn(7, 3))]
    held(double, *runs[0], runs=runs, shapes=[None, {0: Dim("rows")}])


@pytest.mark.parametrize("strict", [False, True])
def test_what_a_branch_cannot_do_is_told_with_the_users_line(strict):
    class Chooses(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x.cos(), lambda x: x.sin(), (x,))

    program = exported(Chooses(), SIGNS[0], strict=strict)
    for body in program.graph_module.children():
        for node in body.graph.nodes:
            if node.target is torch.ops.aten.sin.default:
                node.target = torch.ops.aten.sin_.default
                if not node.meta.get("stack_trace"):
                    pytest.skip("this PyTorch records no lines within branches")
    line = (
        r"aten.sin_, argument 'self': .*\(at \S*_control_flow\.py:\d+, in \S+: return torch\.cond"
    )
    with pytest.raises(fx.TorchMlirCompilerError, match=line):
        fx.export_and_import(program, decomposition_table={})
