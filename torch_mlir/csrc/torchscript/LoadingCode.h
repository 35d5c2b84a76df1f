// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code of an archive's that libtorch runs while it loads the archive: `__setstate__` methods and
// default arguments. libtorch's interpreter has no end of its own for loops, lists and strings.

#ifndef TORCH_MLIR_TORCHSCRIPT_LOADINGCODE_H
#define TORCH_MLIR_TORCHSCRIPT_LOADINGCODE_H

#include "Archive.h"

#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <memory>

namespace torch_mlir::torchscript {

/// What the code that this thread runs may do, from here to the end of the scope.
class LoadingBudget {
public:
  explicit LoadingBudget(const Limits &limits);
  ~LoadingBudget();
  LoadingBudget(const LoadingBudget &) = delete;
  LoadingBudget &operator=(const LoadingBudget &) = delete;

  /// Throws an ArchiveError if this thread has a budget and it is spent.
  static void spend(std::uint64_t steps);

private:
  std::uint64_t left_;
  LoadingBudget *outer_;
};

/// A copy of `graph` that spends its thread's budget as it is interpreted: for each turn of a
/// loop, and for each operator what it may have to look at or to make. The GraphExecutor makes
/// its plan of this rather than of a plain copy, and spends a step for each call.
std::shared_ptr<torch::jit::Graph> boundedCopy(const std::shared_ptr<torch::jit::Graph> &graph);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_LOADINGCODE_H
