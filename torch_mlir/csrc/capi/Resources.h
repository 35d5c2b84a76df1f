// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements that lie in resource blobs.

#ifndef TORCH_MLIR_C_RESOURCES_H
#define TORCH_MLIR_C_RESOURCES_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The elements of `attribute`, in the same blob, as elements of another type, e.g. of
/// `tensor<4xi64>` in place of `tensor<4xsi64>`. Null if `attribute` has no blob, or if the
/// shapes or the widths of the elements differ.
MLIR_CAPI_EXPORTED MlirAttribute torchMlirDenseResourceElementsAttrGetAs(MlirAttribute attribute,
                                                                         MlirType shapedType);

#ifdef __cplusplus
}
#endif

#endif // TORCH_MLIR_C_RESOURCES_H
