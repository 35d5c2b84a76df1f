// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions and classes of an archive as functions and `torch.class_type`s of a module.

#ifndef TORCH_MLIR_TORCHSCRIPT_FUNCTIONS_H
#define TORCH_MLIR_TORCHSCRIPT_FUNCTIONS_H

#include "torchscript/Builder.h"
#include "torchscript/Locations.h"
#include "torchscript/Types.h"
#include "torchscript/Values.h"

#include <ATen/core/class_type.h>
#include <ATen/core/function.h>
#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace torch_mlir::torchscript {

/// The functions of one module. What a function calls, and the classes that it names, are
/// imported after it.
class Functions {
public:
  Functions(MlirContext context, MlirBlock module, Types &types, Literals &literals,
            Locations &locations);

  /// The symbol of a function, which is imported later. Throws Unsupported for one that isn't
  /// written in TorchScript.
  std::string getSymbol(torch::jit::Function &function);
  /// The symbol of a graph that stands in a node of another; `name` is what it's called after.
  std::string getSymbol(std::shared_ptr<torch::jit::Graph> graph, const std::string &name);

  /// Imports all that was asked for, and what that asks for, before everything that stands in
  /// the module. Throws ImportError.
  void importAll();

  Types &getTypes() const { return types; }
  Literals &getLiterals() const { return literals; }
  Locations &getLocations() const { return locations; }

private:
  struct Pending {
    std::string symbol;
    torch::jit::Function *function;
    std::shared_ptr<torch::jit::Graph> graph;
  };
  std::string unique(const std::string &name);
  void importFunction(const Pending &pending);
  void importClass(const c10::ClassType &type);
  void importEnum(const c10::EnumType &type);
  MlirOperation createClass(const std::string &name, MlirRegion region);

  MlirContext context;
  MlirBlock module;
  Types &types;
  Literals &literals;
  Locations &locations;
  std::unordered_map<const torch::jit::Function *, std::string> symbols;
  std::unordered_set<std::string> taken;
  std::vector<Pending> pending;
  size_t imported = 0;
  size_t importedNamed = 0;
  MlirOperation lastClass{nullptr};
  MlirOperation lastFunction{nullptr};
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_FUNCTIONS_H
