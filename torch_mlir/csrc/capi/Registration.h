// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a context of this package knows: dialects, external models of
// interfaces, passes.

#ifndef TORCH_MLIR_C_REGISTRATION_H
#define TORCH_MLIR_C_REGISTRATION_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Adds every dialect of this package, and the external models that its
/// passes rely on, to `registry`.
MLIR_CAPI_EXPORTED void torchMlirRegisterAllDialects(MlirDialectRegistry registry);

/// Registers every pass of this package with MLIR's pass registry, which is
/// global to this library. May be called again.
MLIR_CAPI_EXPORTED void torchMlirRegisterAllPasses(void);

/// Calls `callback` with the name of each dialect in `registry`, in order.
MLIR_CAPI_EXPORTED void torchMlirForEachDialectName(MlirDialectRegistry registry,
                                                    MlirStringCallback callback, void *userData);

#ifdef __cplusplus
}
#endif

#endif // TORCH_MLIR_C_REGISTRATION_H
