// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lazy node for any operator.

#ifndef TORCH_MLIR_LAZY_OPERATOR_NODE_H
#define TORCH_MLIR_LAZY_OPERATOR_NODE_H

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/lazy/ts_backend/ts_node.h>

#include <cstddef>
#include <vector>

namespace torch_mlir::lazy {

/// An argument as a node keeps it: tensors are operands, everything else is a constant.
struct OperatorArgument {
  enum class Kind { Constant, Tensor, TensorList };
  Kind kind = Kind::Constant;
  c10::IValue constant;
  /// The number of the operand; of those of a list, -1 standing for None.
  std::vector<int64_t> operands;
};

/// What an operator gives for one of its returns.
struct OperatorReturn {
  bool isList;
  /// The tensors of the list; where it's none 1, or 0 for a tensor that isn't defined.
  size_t count;
};

/// Which of those that draw random numbers a call is; zeros for one that draws none.
struct Draw {
  /// Counts this thread's since its tensors were computed. It tells two alike apart in a graph,
  /// and is the same for a step that is recorded again.
  size_t inGraph = 0;
  /// Counts all.
  size_t inProcess = 0;

  static Draw next();
  /// This thread's tensors have been computed.
  static void restart();
};

/// A call of an operator by its schema. Its outputs are the tensors that it gives, those in lists
/// too, in order.
class OperatorNode : public torch::lazy::TsNode {
public:
  OperatorNode(const c10::FunctionSchema &schema, std::vector<OperatorArgument> arguments,
               torch::lazy::OpList operands, std::vector<OperatorReturn> returns,
               std::vector<torch::lazy::Shape> shapes, Draw draw);

  const Draw &draw() const { return drawn; }

  torch::lazy::TSOpVector Lower(std::shared_ptr<torch::jit::GraphFunction> function,
                                torch::lazy::TSLoweringContext *context) const override;

private:
  const c10::FunctionSchema &schema;
  std::vector<OperatorArgument> arguments;
  std::vector<OperatorReturn> returns;
  Draw drawn;
};

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_OPERATOR_NODE_H
