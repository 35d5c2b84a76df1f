// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels for the operators that PyTorch has no lazy ones for.

#ifndef TORCH_MLIR_LAZY_KERNELS_H
#define TORCH_MLIR_LAZY_KERNELS_H

#include <string>
#include <vector>

namespace torch_mlir::lazy {

/// Registers one kernel at the Lazy key for every operator that would fall back to the CPU and
/// writes to nothing but what it was given to write to (`out=`). It makes a node where the
/// operator's Meta kernel tells what it gives; otherwise the operator runs on the CPU, and is
/// counted in PyTorch's metrics as `aten::name.overload`. Once is enough.
void registerKernels();

/// The names of the operators that have it.
const std::vector<std::string> &getKernelNames();

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_KERNELS_H
