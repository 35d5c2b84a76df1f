# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The data of a module's graph, by values."""

from __future__ import annotations

import pytest

from torch_mlir import ir
from torch_mlir.cli.view import graph

NESTED = """
func.func @main(%x: !torch.vtensor<[2,?],f32>, %c: !torch.bool) -> !torch.vtensor<[2,?],f32> {
  %w = torch.vtensor.literal(dense<1.0> : tensor<3xf32>) : !torch.vtensor<[3],f32>
      loc("Net"("fc: Linear"("net.py":7:0)))
  %one = torch.constant.int 1
  %dims = torch.prim.ListConstruct %one : (!torch.int) -> !torch.list<int>
  %0 = torch.operator "my.op"(%x, %w, %dims) :
      (!torch.vtensor<[2,?],f32>, !torch.vtensor<[3],f32>, !torch.list<int>)
      -> !torch.vtensor<[2,?],f32>
      loc("Net"("fc: Linear"(callsite("lib.py":3:0 at "net.py":7:0))))
  %1 = torch.prim.If %c -> (!torch.vtensor<[2,?],f32>) {
    %2 = torch.aten.relu %0 : !torch.vtensor<[2,?],f32> -> !torch.vtensor<[2,?],f32>
    torch.prim.If.yield %2 : !torch.vtensor<[2,?],f32>
  } else {
    torch.prim.If.yield %x : !torch.vtensor<[2,?],f32>
  }
  return %1 : !torch.vtensor<[2,?],f32>
}
func.func @other() { return }
"""


@pytest.fixture(scope="module")
def nested():
    return graph.of_module(ir.Module.parse(NESTED, ir.Context()))


def test_groups_are_functions_modules_and_regions(nested):
    assert [(group.name, group.kind, group.parent) for group in nested.groups] == [
        ("main", "function", -1),
        ("Net", "module", 0),
        ("fc: Linear", "module", 1),
        ("prim.If", "operation", 0),
        ("region 0", "region", 3),
        ("region 1", "region", 3),
        ("other", "function", -1),
    ]
    assert nested.groups[2].literals == [("dense<1.000000e+00>", "3xf32")]


def test_nodes_are_in_their_groups_and_constants_in_their_users(nested):
    assert [(node.name, node.group) for node in nested.nodes] == [
        ("arg0", 0),
        ("arg1", 0),
        ("my.op", 2),
        ("prim.If", 3),
        ("aten.relu", 4),
        ("prim.If.yield", 4),
        ("prim.If.yield", 5),
        ("func.return", 0),
        ("func.return", 6),
    ]
    assert nested.nodes[2] == graph.Node(
        "my.op",
        2,
        operands=["arg0 #0: 2x?xf32", "dense<1.000000e+00>: 3xf32", "[1]"],
        constants=[1, 2],
        results=["2x?xf32"],
        source=["lib.py:3", "net.py:7"],
    )


def test_edges_carry_types_and_leave_regions_by_what_ends_them(nested):
    assert [(edge.source, edge.target, edge.label) for edge in nested.edges] == [
        (0, 2, "2x?xf32"),
        (1, 3, "bool"),
        (2, 4, "2x?xf32"),
        (4, 5, "2x?xf32"),
        (0, 6, "2x?xf32"),
        (5, 7, "2x?xf32"),
        (6, 7, "2x?xf32"),
    ]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("!torch.vtensor<[],f64>", "f64"),
        ("!torch.vtensor<*,si64>", "*xsi64"),
        ("!torch.tensor<[1,2],complex<f32>>", "1x2xcomplex<f32>"),
        ("!torch.list<vtensor<[2,?],f32>>", "list<2x?xf32>"),
        ("!torch.optional<int>", "optional<int>"),
    ],
)
def test_types_are_short(text, short):
    assert graph.short_type(ir.Type.parse(text, ir.Context())) == short
