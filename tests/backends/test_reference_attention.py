# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.hop_flex_attention` on the reference backend gives what PyTorch's flex attention gives."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
flex = pytest.importorskip("torch.nn.attention.flex_attention", reason="this PyTorch has none")

from torch_mlir import backends, ir  # noqa: E402
from torch_mlir.backends.reference import UnsupportedOperation, refine  # noqa: E402

FUNCTIONS = """
  !Q = !torch.vtensor<[2,4,5,8],f32>
  !K = !torch.vtensor<[2,2,6,8],f32>
  !L = !torch.vtensor<[2,4,5],f32>
  !S = !torch.vtensor<[],f32>
  !I = !torch.vtensor<[],si32>
  !B = !torch.vtensor<[],i1>
  func.func private @lower(%s: !S, %b: !I, %h: !I, %i: !I, %j: !I) -> !S {
    %one = torch.constant.int 1
    %half = torch.constant.float 5.0e-01
    %0 = torch.aten.sub.Tensor %i, %j, %one : !I, !I, !torch.int -> !I
    %1 = torch.aten.mul.Scalar %0, %half : !I, !torch.float -> !S
    %2 = torch.aten.add.Tensor %s, %1, %one : !S, !S, !torch.int -> !S
    %3 = torch.aten.sub.Tensor %2, %h, %one : !S, !I, !torch.int -> !S
    return %3 : !S
  }
  func.func private @allowed(%b: !I, %h: !I, %i: !I, %j: !I) -> !B {
    %two = torch.constant.int 2
    %0 = torch.aten.ge.Tensor %i, %j : !I, !I -> !B
    %1 = torch.aten.ne.Scalar %i, %two : !I, !torch.int -> !B
    %2 = torch.aten.logical_and %0, %1 : !B, !B -> !B
    return %2 : !B
  }
  func.func private @odd(%b: !I) -> !B {
    %two = torch.constant.int 2
    %1 = torch.aten.ne.Scalar %b, %two : !I, !torch.int -> !B
    return %1 : !B
  }"""


def lower(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return score + (i - j) * 0.5 - h


def allowed(b: Any, h: Any, i: Any, j: Any) -> Any:
    # The third query has no key at all.
    return (i >= j) & (i != 2)


def attention(attributes: str, scale: str) -> ir.Module:
    text = f"""{FUNCTIONS}
  func.func @main(%q: !Q, %k: !K, %v: !K) -> (!Q, !L, !L) {{
    %scale = {scale}
    %true = torch.constant.bool true
    %o, %l, %m = torch.hop_flex_attention %q, %k, %v, %scale, %true, %true {attributes}
      : !Q, !K, !K, {"!torch.none" if "none" in scale else "!torch.float"}, !torch.bool, !torch.bool
      -> !Q, !L, !L
    return %o, %l, %m : !Q, !L, !L
  }}"""
    return ir.Module.parse(text, ir.Context())


@pytest.mark.parametrize("score", [None, lower])
@pytest.mark.parametrize("mask", [None, allowed])
@pytest.mark.parametrize("scale", [None, 0.25])
def test_flex_attention(score, mask, scale):
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 8)
    named = [
        f"{kind}_mod_fn = @{function.__name__}"
        for kind, function in (("score", score), ("mask", mask))
        if function is not None
    ]
    constant = "none" if scale is None else f"float {scale:e}"
    module = attention(f"{{{', '.join(named)}}}", f"torch.constant.{constant}")
    result, sums, maxima = backends.get("reference").compile(module)(q, k, v)
    blocks = None if mask is None else flex.create_block_mask(mask, 2, 4, 5, 6, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own is meant to be compiled
        expected, logarithms = flex.flex_attention(
            q, k, v, score, blocks, scale=scale, enable_gqa=True, return_lse=True
        )
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(sums * math.log(2), logarithms)
    # 6 numbers' exponentials sum to between the greatest and 6 times that.
    assert (maxima[:, :, 0] <= sums[:, :, 0] + 1e-5).all()
    assert (sums <= maxima + math.log2(6) + 1e-5).all()


def test_flex_attention_has_shapes_without_the_data():
    module = attention("{score_mod_fn = @lower}", "torch.constant.none")
    before = str(module)
    assert str(refine(module)) == before


def test_functions_that_take_other_arguments_are_refused():
    with pytest.raises(UnsupportedOperation, match="'odd' takes 1 arguments, not 4"):
        backends.get("reference").compile(attention("{mask_mod_fn = @odd}", "torch.constant.none"))
