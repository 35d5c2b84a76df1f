// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this vendor compiles a module to: a list of calls of PyTorch's own operators.

#ifndef LAZY_VENDOR_PROGRAM_H
#define LAZY_VENDOR_PROGRAM_H

#include "mlir-c/IR.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/lazy/core/shape.h>

#include <functional>
#include <string>
#include <vector>

namespace lazy_vendor {

using Shapes = std::vector<torch::lazy::Shape>;

class Program {
public:
  /// Compiles the function `main` of `module`, whose arguments and results have to be of the shapes
  /// and dtypes given. Throws std::runtime_error, which names what it can't compile, and where
  /// in the user's program that is.
  Program(MlirModule module, const Shapes &parameters, const Shapes &results);

  /// A tensor or a number for each parameter; gives a tensor for each result. Throws
  /// std::runtime_error, which names the operator that failed.
  std::vector<at::Tensor> run(std::vector<c10::IValue> arguments) const;

  /// The names of the operators that it calls, e.g. "aten::add.Tensor", in order.
  const std::vector<std::string> &operators() const { return called; }

private:
  /// Computes values from values; each has a number.
  struct Step {
    std::function<std::vector<c10::IValue>(std::vector<c10::IValue>)> compute;
    std::vector<size_t> operands;
    std::vector<size_t> results;
    /// What nobody asks for afterwards.
    std::vector<size_t> dead;
    /// The operation and its place, for messages.
    std::string text;
  };
  class Compiler;

  Shapes parameters;
  Shapes results;
  size_t numValues = 0;
  std::vector<Step> steps;
  std::vector<size_t> returned;
  std::vector<std::string> called;
};

} // namespace lazy_vendor

#endif // LAZY_VENDOR_PROGRAM_H
