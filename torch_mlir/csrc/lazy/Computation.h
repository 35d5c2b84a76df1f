// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lazy graph as a module of the Torch dialect, and what a vendor made of it.

#ifndef TORCH_MLIR_LAZY_COMPUTATION_H
#define TORCH_MLIR_LAZY_COMPUTATION_H

#include "Export.h"

#include "mlir-c/IR.h"

#include <torch/csrc/lazy/backend/lowering_context.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace torch_mlir::lazy {

/// A context of MLIR's, and whatever keeps it alive.
class TORCH_MLIR_LAZY_API Context {
public:
  virtual ~Context() = default;
  virtual MlirContext get() const = 0;
};

/// A context with the dialects of this package, which several computations and threads share; it
/// lives as long as one of them.
TORCH_MLIR_LAZY_API std::shared_ptr<Context> createContext();

/// Its module has one public function, `main`: a value tensor for each parameter, a number where
/// PyTorch made a parameter of one, and a value tensor for each result.
class TORCH_MLIR_LAZY_API Computation : public torch::lazy::Computation {
public:
  using Shapes = std::vector<torch::lazy::Shape>;

  Computation(std::string name, std::shared_ptr<Context> context, MlirModule module,
              Shapes parameters, std::vector<std::string> parameterNames, Shapes results);
  ~Computation() override;
  Computation(const Computation &) = delete;
  Computation &operator=(const Computation &) = delete;

  int parameters_size() const override { return static_cast<int>(parameters.size()); }
  const Shapes &parameter_shapes() const override { return parameters; }
  const std::vector<std::string> &parameter_names() const override { return parameterNames; }
  /// PyTorch asks for the shape of a tuple, which it has no type for: this is the first result's.
  const torch::lazy::Shape &result_shape() const override;
  const Shapes &result_shapes() const { return results; }
  /// The module's text.
  const std::string to_string() const override;

  const std::string &name() const { return called; }
  /// The computation owns it, until it is released.
  MlirModule module() const { return owned; }
  /// The caller owns it then, and the context has to outlive it.
  MlirModule releaseModule() { return std::exchange(owned, MlirModule{nullptr}); }
  const std::shared_ptr<Context> &context() const { return held; }

  /// What a vendor compiled it to.
  std::shared_ptr<void> executable;

private:
  std::string called;
  std::shared_ptr<Context> held;
  MlirModule owned;
  Shapes parameters;
  std::vector<std::string> parameterNames;
  Shapes results;
};

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_COMPUTATION_H
