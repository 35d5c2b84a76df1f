// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators as operations of the dialect, whose table is of one release of PyTorch.

#ifndef TORCH_MLIR_TORCHSCRIPT_OPERATORS_H
#define TORCH_MLIR_TORCHSCRIPT_OPERATORS_H

#include "torchscript/Builder.h"

#include <ATen/core/function_schema.h>

#include <functional>
#include <string>
#include <vector>

namespace torch_mlir::torchscript {

/// An operator's name in the dialect: `aten.add.Tensor`.
std::string getName(const c10::FunctionSchema &schema);

/// Makes the dialect's operation for an operator of the chosen row; null where there is none that
/// takes such operands. What later releases gave an operator gets its default, which `constant`
/// makes.
MlirOperation createOperation(Builder &builder, MlirLocation location,
                              const c10::FunctionSchema &schema,
                              const std::vector<MlirType> &results,
                              const std::vector<MlirValue> &operands,
                              const std::function<MlirValue(const c10::Argument &)> &constant);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_OPERATORS_H
