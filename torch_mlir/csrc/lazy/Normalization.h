// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lazy graphs in the terms that modules are in.

#ifndef TORCH_MLIR_LAZY_NORMALIZATION_H
#define TORCH_MLIR_LAZY_NORMALIZATION_H

#include <torch/csrc/jit/ir/ir.h>

namespace torch_mlir::lazy {

/// In a graph whose tensors are values:
///
///   - Copies of views (`t_copy`) become views, which are the same on values.
///   - Conjugates and negatives that PyTorch takes when they are read are taken.
///   - Views with another shape are `reshape`, which any value takes, whatever it is laid out like
///     where the module runs. Before operators that look at strides is a copy in a row.
///   - Operators with outputs to write to (`arange.start_out`), as some of PyTorch's lazy nodes
///     are lowered to, become those that give them.
///   - Devices are left out: all there is lives on one.
void normalize(torch::jit::Graph &graph);

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_NORMALIZATION_H
