// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's own shape functions, on sizes of which some aren't known.

#ifndef TORCH_MLIR_TORCHSCRIPT_SHAPEFUNCTIONS_H
#define TORCH_MLIR_TORCHSCRIPT_SHAPEFUNCTIONS_H

#include "torchscript/Facts.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace torch_mlir::torchscript {

/// The functions in torch/csrc/jit/runtime/serialized_shape_function_registry.cpp, which take
/// lists of ints where the operators take tensors. One is compiled when it is first called.
class ShapeFunctions {
public:
  /// The names of all of them.
  static std::vector<std::string> getNames();
  /// The names of a function's parameters; empty where there is no such function.
  static std::vector<std::string> getParameters(const std::string &name);

  /// The sizes of each result, empty where they aren't known. No results at all where nothing
  /// can be said: the function refuses the arguments, or what it does depends on what isn't
  /// known. Arguments that the function takes beyond those given are None.
  const std::vector<std::optional<Shape>> &call(const std::string &name,
                                                const std::vector<Fact> &arguments);

private:
  /// By name and arguments.
  std::map<std::string, std::vector<std::optional<Shape>>> results;
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_SHAPEFUNCTIONS_H
