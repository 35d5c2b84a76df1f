// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers PyTorch's lazy nodes, one after the other, to a computation.

#ifndef TORCH_MLIR_LAZY_LOWERING_CONTEXT_H
#define TORCH_MLIR_LAZY_LOWERING_CONTEXT_H

#include "Backend.h"
#include "Export.h"

#include <torch/csrc/lazy/ts_backend/ts_lowering_context.h>

#include <string>
#include <utility>
#include <vector>

namespace torch_mlir::lazy {

/// PyTorch's nodes know how to become nodes of a TorchScript graph. They are given the shapes and
/// the user's lines that the lazy ones have, and the finished graph becomes a module.
class TORCH_MLIR_LAZY_API LoweringContext : public torch::lazy::TSLoweringContext {
public:
  LoweringContext(const Backend &backend, const std::string &name,
                  torch::lazy::BackendDevice device);
  LoweringContext(const Backend &backend, const std::string &name,
                  torch::lazy::BackendDevice device,
                  c10::ArrayRef<const torch::lazy::Node *> postOrder,
                  torch::lazy::Util::EmissionMap emitted);

  size_t AddResult(const torch::lazy::Output &output) override;
  void AddParameter(const torch::lazy::Output &output, size_t index,
                    const torch::lazy::Shape &shape, const std::string &name) override;
  /// Gives a Computation of ours.
  torch::lazy::ComputationPtr Build() override;

private:
  void lower(const torch::lazy::Node *node);

  const Backend &backend;
  std::string name;
  /// What is known of values; the graph's types tell when it's finished, because TorchScript would
  /// match operators' arguments with them.
  std::vector<std::pair<torch::jit::Value *, torch::lazy::Shape>> shapes;
  std::vector<torch::jit::Value *> results;
  Computation::Shapes resultShapes;
};

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_LOWERING_CONTEXT_H
