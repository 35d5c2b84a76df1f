// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What operators give, without values: of PyTorch's Meta kernels.

#ifndef TORCH_MLIR_LAZY_METAKERNELS_H
#define TORCH_MLIR_LAZY_METAKERNELS_H

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace torch_mlir::lazy {

/// Puts an operator's results in the place of its arguments, whose tensors are on the Meta device;
/// false where it has no Meta kernel, or none for these arguments. Then the stack holds neither.
bool runMetaKernel(const c10::OperatorHandle &op, torch::jit::Stack &stack);

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_METAKERNELS_H
