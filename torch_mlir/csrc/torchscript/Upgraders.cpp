// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stands in for torch/csrc/jit/operator_upgraders/upgraders.cpp: the graphs that replace operators
// whose meaning changed. PyTorch compiles all of them before it loads anything; here, it does when
// an archive has such an operator.

#include "torchscript/Schemas.h"

#include <torch/csrc/jit/operator_upgraders/upgraders.h>
#include <torch/csrc/jit/operator_upgraders/upgraders_entry.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

namespace torch::jit {

/// Who asks would populate it.
bool is_upgraders_map_populated() { return true; }

void populate_upgraders_map(std::unordered_map<std::string, std::shared_ptr<Graph>> &&) {}

const std::unordered_map<std::string, std::shared_ptr<Graph>> &dump_upgraders_map() {
  // Never destroyed, as the operators that its nodes point to.
  static const auto *graphs = [] {
    std::unordered_map<std::string, std::shared_ptr<Graph>> made;
    torch_mlir::torchscript::withOwnSchemas([&] { made = generate_upgraders_graph(); });
    return new auto(std::move(made));
  }();
  return *graphs;
}

} // namespace torch::jit
