// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that write to tensors they are given, and those that give what the others write.

#ifndef TORCH_MLIR_LAZY_FUNCTIONAL_H
#define TORCH_MLIR_LAZY_FUNCTIONAL_H

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>

#include <cstddef>
#include <optional>

namespace torch_mlir::lazy {

/// The number of arguments that are written to and given back, which are the last ones; 0 where
/// it isn't such an operator.
size_t countOutputs(const c10::FunctionSchema &schema);

/// The operator that gives what another writes. It takes the same arguments but for the outputs
/// and, with `mayTakeOptions`, a tensor's dtype, layout, device and memory after them.
std::optional<c10::OperatorHandle> findFunctional(const c10::FunctionSchema &schema,
                                                  bool mayTakeOptions);

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_FUNCTIONAL_H
