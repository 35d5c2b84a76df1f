// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Python classes of the torch dialect's types.

#ifndef TORCH_MLIR_BINDINGS_TORCHTYPES_H
#define TORCH_MLIR_BINDINGS_TORCHTYPES_H

#include <nanobind/nanobind.h>

namespace torch_mlir {

/// Adds the classes to `module`.
void bindTorchTypes(nanobind::module_ &module);

} // namespace torch_mlir

#endif // TORCH_MLIR_BINDINGS_TORCHTYPES_H
