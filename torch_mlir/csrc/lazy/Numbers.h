// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program's numbers, which lazy graphs have as tensors.

#ifndef TORCH_MLIR_LAZY_NUMBERS_H
#define TORCH_MLIR_LAZY_NUMBERS_H

#include <torch/csrc/jit/ir/ir.h>

namespace torch_mlir::lazy {

/// In a graph whose tensors have dtypes:
///
///   - A parameter that is a Python number (a tensor of float64, say, without dimensions) is given
///     the dtype that the operator promotes it to, where a tensor would make that another one.
///     PyTorch keeps no trace of what it was; the dtype of the operator's result tells, and where
///     that doesn't, it is taken for a number.
///   - A tensor that is read for a number argument becomes an int or a float.
void specializeNumbers(torch::jit::Graph &graph);

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_NUMBERS_H
