"""What a context of this package knows: dialects, external models, passes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from torch_mlir.passmanager import PassManager

from torch_mlir import ir
from torch_mlir._mlir_libs import _torchMlir, get_dialect_registry

DIALECTS = [
    "arith",
    "builtin",
    "cf",
    "func",
    "linalg",
    "math",
    "ml_program",
    "scf",
    "sparse_tensor",
    "tensor",
    "torch",
]

PASSES = [
    "bubble-down-memory-space-casts",
    "canonicalize",
    "composite-fixed-point-pass",
    "control-flow-sink",
    "convert-elementwise-to-linalg",
    "convert-linalg-to-affine-loops",
    "convert-linalg-to-loops",
    "convert-linalg-to-parallel-loops",
    "cse",
    "generate-runtime-verification",
    "inline",
    "linalg-block-pack-matmul{block-factors=2,2,2}",
    "linalg-detensorize",
    "linalg-fold-into-elementwise",
    "linalg-fold-unit-extent-dims",
    "linalg-fuse-elementwise-ops",
    "linalg-generalize-named-ops",
    "linalg-inline-scalar-operands",
    "linalg-morph-ops{named-to-generic}",
    "linalg-specialize-generic-ops",
    "loop-invariant-code-motion",
    "loop-invariant-subset-hoisting",
    "mem2reg",
    "print-ir",
    "print-op-stats",
    "reify-result-shapes",
    "remove-dead-values",
    "resolve-ranked-shaped-type-result-dims",
    "resolve-shaped-type-result-dims",
    "sccp",
    "simplify-depthwise-conv",
    "snapshot-op-locations{filename=-}",
    "sroa",
    "strip-debuginfo",
    "symbol-dce",
    "symbol-privatize",
    "topological-sort",
    "view-op-graph",
]

# Something of every dialect, for passes to ask for interfaces of.
PROGRAM = """
ml_program.global private @state(dense<0> : tensor<4xi32>) : tensor<4xi32>
func.func private @callee(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}
func.func @main(%a: tensor<?x8xf32>, %b: tensor<8x4xf32>, %n: index, %p: i1) -> tensor<?x4xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %a, %c0 : tensor<?x8xf32>
  %empty = tensor.empty(%rows) : tensor<?x4xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x4xf32>) -> tensor<?x4xf32>
  %mm = linalg.matmul ins(%a, %b : tensor<?x8xf32>, tensor<8x4xf32>)
                      outs(%fill : tensor<?x4xf32>) -> tensor<?x4xf32>
  %sum = arith.addf %mm, %mm : tensor<?x4xf32>
  %loop = scf.for %i = %c0 to %rows step %c1 iter_args(%t = %sum) -> tensor<?x4xf32> {
    %slice = tensor.extract_slice %t[%i, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<1x4xf32>
    %twice = arith.addf %slice, %slice : tensor<1x4xf32>
    %next = tensor.insert_slice %twice into %t[%i, 0] [1, 4] [1, 1]
      : tensor<1x4xf32> into tensor<?x4xf32>
    scf.yield %next : tensor<?x4xf32>
  }
  %flat = tensor.collapse_shape %loop [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  %size = tensor.dim %flat, %c0 : tensor<?xf32>
  %count = arith.divui %size, %n : index
  %again = tensor.expand_shape %flat [[0, 1]] output_shape [%count, 4]
    : tensor<?xf32> into tensor<?x4xf32>
  %padded = tensor.pad %again low[%n, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x4xf32> to tensor<?x4xf32>
  %height = tensor.dim %padded, %c0 : tensor<?x4xf32>
  %value = tensor.extract %padded[%height, %c1] : tensor<?x4xf32>
  %called = func.call @callee(%value) : (f32) -> f32
  %none = torch.constant.none
  cf.cond_br %p, ^then, ^else(%called : f32)
^then:
  cf.br ^else(%zero : f32)
^else(%x: f32):
  %result = linalg.fill ins(%x : f32) outs(%padded : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %result : tensor<?x4xf32>
}
"""

RUN_PASS = """
import sys
import torch_mlir.ir as ir
from torch_mlir.passmanager import PassManager
with ir.Context():
    module = ir.Module.parse(sys.argv[1])
    PassManager.parse(sys.argv[2]).run(module.operation)
    assert module.operation.verify()
"""


def test_the_dialects_are_the_ones_listed() -> None:
    assert _torchMlir.dialect_names(get_dialect_registry()) == DIALECTS


def test_a_context_loads_every_dialect() -> None:
    with ir.Context() as context:
        for name in DIALECTS:
            assert context.get_dialect_descriptor(name).namespace == name


@pytest.mark.parametrize("name", ["gpu", "llvm", "tosa", "stablehlo"])
def test_a_dialect_that_is_not_listed_is_unknown(name: str) -> None:
    with ir.Context() as context, pytest.raises(IndexError, match=f"Dialect '{name}' not found"):
        context.dialects[name]


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_runs_over_all_dialects_without_an_interface_missing(name: str) -> None:
    # A missing external model aborts: hence an interpreter of its own.
    of_functions = name == "linalg-detensorize"  # the one that takes nothing else
    pipeline = f"builtin.module(func.func({name}))" if of_functions else f"builtin.module({name})"
    result = subprocess.run(
        [sys.executable, "-P", "-c", RUN_PASS, PROGRAM, pipeline],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.parametrize("name", ["convert-func-to-llvm", "one-shot-bufferize", "torch-nothing"])
def test_a_pass_that_is_not_listed_is_unknown(name: str) -> None:
    with ir.Context(), pytest.raises(ValueError, match=f"'{name}' does not refer to a registered"):
        PassManager.parse(f"builtin.module({name})")


def test_result_shapes_are_reified_through_the_external_models_of_tensor() -> None:
    text = """
    func.func @f(%a: tensor<?x4xf32>, %low: index) -> index {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %0 = tensor.pad %a low[%low, 0] high[3, 0] {
      ^bb0(%i: index, %j: index):
        tensor.yield %zero : f32
      } : tensor<?x4xf32> to tensor<?x4xf32>
      %1 = tensor.dim %0, %c0 : tensor<?x4xf32>
      return %1 : index
    }
    """
    with ir.Context():
        module = ir.Module.parse(text)
        pipeline = "builtin.module(resolve-ranked-shaped-type-result-dims,canonicalize,cse)"
        PassManager.parse(pipeline).run(module.operation)
        result = str(module)
    assert "tensor.pad" not in result
    assert "affine.apply" in result
    assert "s0 + s1 + 3" in result


def test_the_inliner_inlines_a_call() -> None:
    with ir.Context():
        module = ir.Module.parse(
            "func.func private @g(%x: f32) -> f32 { return %x : f32 }\n"
            "func.func @f(%x: f32) -> f32 {\n"
            "  %0 = call @g(%x) : (f32) -> f32\n"
            "  return %0 : f32\n"
            "}"
        )
        PassManager.parse("builtin.module(inline,symbol-dce)").run(module.operation)
        assert "call" not in str(module)
        assert "@g" not in str(module)


def test_assertions_are_on() -> None:
    # A float type where C++ asserts an integer type, and nothing else checks it.
    result = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            """import torch_mlir.ir as ir
with ir.Context():
    print(ir.IntegerAttr.get(ir.F32Type.get(), 1))
""",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode < 0, result.stdout
    assert "Assertion `" in result.stderr
