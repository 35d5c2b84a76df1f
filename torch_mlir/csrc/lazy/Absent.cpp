// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the importer of TorchScript asks beside the code that lowering shares with it: a graph here
// is of the running PyTorch, whose operators need no later release's arguments, and its values have
// the shapes of lazy nodes.

#include "torchscript/Schemas.h"
#include "torchscript/ShapeFunctions.h"

namespace torch_mlir::torchscript {

std::vector<const c10::FunctionSchema *> laterSchemas(const c10::FunctionSchema &) { return {}; }

const std::vector<std::optional<Shape>> &ShapeFunctions::call(const std::string &,
                                                              const std::vector<Fact> &) {
  static const std::vector<std::optional<Shape>> none;
  return none;
}

} // namespace torch_mlir::torchscript
