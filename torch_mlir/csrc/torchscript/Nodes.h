// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes of a graph as operations.

#ifndef TORCH_MLIR_TORCHSCRIPT_NODES_H
#define TORCH_MLIR_TORCHSCRIPT_NODES_H

#include "torchscript/Builder.h"

#include <torch/csrc/jit/ir/ir.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace torch_mlir::torchscript {

class Functions;

/// Imports the nodes of one function.
class NodeImporter {
public:
  /// `symbol` is the function's.
  NodeImporter(Functions &functions, std::string symbol);

  void bind(const torch::jit::Value *value, MlirValue imported);
  /// Appends a block's nodes. Gives the block's outputs, as `types`. Throws ImportError, which
  /// names the node and its source line.
  std::vector<MlirValue> importBlock(const torch::jit::Block &block, Builder &builder,
                                     const std::vector<MlirType> &types);

private:
  void importNode(const torch::jit::Node *node);
  void importConstant(const torch::jit::Node *node);
  void importIf(const torch::jit::Node *node);
  void importLoop(const torch::jit::Node *node);
  void importCallFunction(const torch::jit::Node *node);
  void importCallMethod(const torch::jit::Node *node);
  void importCustomMethod(const torch::jit::Node *node, const std::string &type,
                          const std::string &name);
  void importFork(const torch::jit::Node *node);
  void importContainer(const torch::jit::Node *node);
  void importDict(const torch::jit::Node *node);
  void importSlice(const torch::jit::Node *node);
  void importChunk(const torch::jit::Node *node);
  void importIsInstance(const torch::jit::Node *node);
  void importModuleIndex(const torch::jit::Node *node);
  void importEnter(const torch::jit::Node *node);
  void importExit(const torch::jit::Node *node);
  void importSetAttr(const torch::jit::Node *node);
  bool importEnumOperator(const torch::jit::Node *node);
  void importOperator(const torch::jit::Node *node);

  /// Appends an operation of the node's operands and results.
  MlirOperation emit(const torch::jit::Node *node, const std::string &name,
                     const std::vector<Attribute> &attributes = {});
  MlirValue getAttr(MlirValue object, const std::string &name, MlirType type);
  MlirValue constantInt(int64_t number);

  MlirValue operand(const torch::jit::Value *value) const;
  std::vector<MlirValue> operands(const torch::jit::Node *node) const;
  std::vector<MlirType> resultTypes(const torch::jit::Node *node) const;
  MlirType type(const torch::jit::Value *value) const;
  /// The value, or a conversion of it, where a subtype of `type` is wanted.
  MlirValue fit(MlirValue value, MlirType type);
  /// Binds a node's results to an operation's, with the types that the node gives them.
  void bindResults(const torch::jit::Node *node, MlirOperation operation);
  void bindResult(const torch::jit::Value *value, MlirValue imported);

  Functions &functions;
  MlirContext context;
  std::string symbol;
  std::unordered_map<const torch::jit::Value *, MlirValue> values;
  // Where the node that is being imported goes, and comes from.
  Builder *builder = nullptr;
  MlirLocation location;
  const torch::jit::Node *lastPlaced = nullptr;
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_NODES_H
