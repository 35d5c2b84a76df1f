// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Room for libtorch's recursions.

#ifndef TORCH_MLIR_TORCHSCRIPT_DEEPSTACK_H
#define TORCH_MLIR_TORCHSCRIPT_DEEPSTACK_H

#include <functional>

namespace torch_mlir::torchscript {

/// Runs `work` in a thread whose stack has room for as many levels as Limits::sourceRecursion
/// allows, and returns when it has. What `work` throws is thrown here. If there is no such
/// thread to be had, `work` runs in this one, and less deep archives are refused.
void onDeepStack(const std::function<void()> &work);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_DEEPSTACK_H
