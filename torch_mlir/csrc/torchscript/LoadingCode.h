// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code of an archive's that libtorch runs while it loads the archive: `__setstate__` methods,
// default arguments, and operators on constants in any method. libtorch has no end of its own
// for what loops, lists and strings cost.
//
// Turns of loops and calls are counted by nodes that a pass puts into every graph that is
// interpreted; what operators cost by the registry (Schemas.cpp), which runs them through
// `runBounded`; and memory by operator new and the allocator of tensors (Allocation.cpp).

#ifndef TORCH_MLIR_TORCHSCRIPT_LOADINGCODE_H
#define TORCH_MLIR_TORCHSCRIPT_LOADINGCODE_H

#include "Archive.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace torch_mlir::torchscript {

/// What this thread may do and allocate, from here to the end of the scope.
class LoadingBudget {
public:
  explicit LoadingBudget(const Archive &archive);
  ~LoadingBudget();
  LoadingBudget(const LoadingBudget &) = delete;
  LoadingBudget &operator=(const LoadingBudget &) = delete;

  /// Throws if this thread has a budget and it is spent. libtorch drops some exceptions, so that
  /// whoever made the budget has to ask `isSpent`.
  static void spend(std::uint64_t steps);
  /// The same for memory; throws a std::bad_alloc, since it is allocators that call this.
  static void allocate(std::size_t bytes);

  bool isSpent() const { return exceeded_; }
  /// Throws an ArchiveError about what was spent; `context` may tell where.
  [[noreturn]] void fail(const std::string &context) const;

private:
  friend void runBounded(const std::function<void(torch::jit::Stack &)> &,
                         const c10::FunctionSchema &, torch::jit::Stack &);

  const Archive &archive_;
  std::uint64_t steps_;
  std::uint64_t bytes_;
  /// The limit that was exceeded, by its name in Python.
  const char *exceeded_ = nullptr;
  LoadingBudget *outer_;
};

/// Runs an operator of the schema on the stack. If the thread has a budget, it spends what the
/// operator may have to look at, and the time that it took.
void runBounded(const std::function<void(torch::jit::Stack &)> &operation,
                const c10::FunctionSchema &schema, torch::jit::Stack &stack);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_LOADINGCODE_H
