# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements in resource blobs, seen with another type."""

from __future__ import annotations

import array

import pytest

from torch_mlir import ir
from torch_mlir._mlir_libs._torchMlir import resource_elements_as


@pytest.fixture
def elements():
    with ir.Context():
        yield ir.DenseResourceElementsAttr.get_from_buffer(
            array.array("q", range(6)), "data", ir.Type.parse("tensor<6xsi64>")
        )


@pytest.mark.parametrize("kind", ["tensor<2x3xsi64>", "tensor<6xi64>", "tensor<3x2xui64>"])
def test_another_shape_or_sign_is_the_same_blob(elements, kind):
    seen = resource_elements_as(elements, ir.Type.parse(kind))
    assert str(seen) == f"dense_resource<data> : {kind}"


@pytest.mark.parametrize(
    "kind", ["tensor<5xsi64>", "tensor<6xsi32>", "tensor<6xf64>", "tensor<?xi64>"]
)
def test_other_elements_do_not_fit(elements, kind):
    with pytest.raises(ValueError, match="fit the type"):
        resource_elements_as(elements, ir.Type.parse(kind))
