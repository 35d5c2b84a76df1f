// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a graph that PyTorch's lazy nodes are lowered to, to a module.

#ifndef TORCH_MLIR_LAZY_LOWERING_H
#define TORCH_MLIR_LAZY_LOWERING_H

#include "mlir-c/IR.h"

#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <string>

namespace torch_mlir::lazy {

/// A module with the function `name`, whose arguments and results are those of `graph`. Values
/// whose types have sizes and a dtype have them in the module too. The caller owns it.
///
/// Throws std::runtime_error, which names the operator and the user's line where it is known.
MlirModule lowerGraph(MlirContext context, const std::shared_ptr<torch::jit::Graph> &graph,
                      const std::string &name);

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_LOWERING_H
