// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of tensors, in resource blobs or inline.

#ifndef TORCH_MLIR_C_RESOURCES_H
#define TORCH_MLIR_C_RESOURCES_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The elements of `attribute`, in the same blob, as elements of another type, e.g. of
/// `tensor<4xi64>` in place of `tensor<2x2xsi64>`. Null if `attribute` has no blob, or if the
/// number of elements or their width differs.
MLIR_CAPI_EXPORTED MlirAttribute torchMlirDenseResourceElementsAttrGetAs(MlirAttribute attribute,
                                                                         MlirType shapedType);

/// Where the elements of `attribute` lie, as long as its context holds them: `size` bytes from
/// `data`, row by row and without gaps, or one element that stands for all where `isSplat` is
/// set. Complex numbers are their two parts; elements of `i1` in inline attributes are bits,
/// the first of them the lowest of a byte. False, and nothing told, if `attribute` has no
/// elements or if its blob is missing.
MLIR_CAPI_EXPORTED bool torchMlirElementsAttrGetData(MlirAttribute attribute, const void **data,
                                                     size_t *size, bool *isSplat);

#ifdef __cplusplus
}
#endif

#endif // TORCH_MLIR_C_RESOURCES_H
