// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lazy node for any operator.

#include "lazy/OperatorNode.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/lazy/ts_backend/ts_lowering_context.h>

#include <atomic>
#include <sstream>
#include <stdexcept>
#include <string>

namespace torch_mlir::lazy {

using c10::IValue;
using torch::jit::Graph;
using torch::jit::Value;
using torch::lazy::hash_t;

namespace {

/// Tells constants apart that print alike: floats to their last bit, numbers of different types.
void write(std::ostream &text, const IValue &value) {
  text << value.tagKind() << ':';
  if (value.isDouble()) {
    text << std::hexfloat << value.toDouble() << std::defaultfloat;
  } else if (value.isComplexDouble()) {
    auto number = value.toComplexDouble();
    text << std::hexfloat << number.real() << ',' << number.imag() << std::defaultfloat;
  } else if (value.isString()) {
    text << value.toStringRef().size() << ':' << value.toStringRef();
  } else if (value.isList()) {
    text << '[';
    for (const IValue &element : value.toListRef())
      write(text, element);
    text << ']';
  } else {
    text << value;
  }
  text << ';';
}

hash_t getHash(const c10::FunctionSchema &schema, const std::vector<OperatorArgument> &arguments,
               const Draw &draw) {
  std::ostringstream text;
  text << schema.name() << '.' << schema.overload_name() << ';' << draw.inGraph << ';';
  for (const OperatorArgument &argument : arguments) {
    if (argument.kind == OperatorArgument::Kind::Constant) {
      write(text, argument.constant);
      continue;
    }
    text << (argument.kind == OperatorArgument::Kind::Tensor ? "t" : "l");
    for (int64_t operand : argument.operands)
      text << operand << ',';
    text << ';';
  }
  std::string written = text.str();
  return torch::lazy::DataHash(written.data(), written.size());
}

thread_local size_t drawsInGraph = 0;
std::atomic<size_t> drawsInProcess{0};

size_t count(const std::vector<OperatorReturn> &returns) {
  size_t all = 0;
  for (const OperatorReturn &each : returns)
    all += each.count;
  return all;
}

} // namespace

Draw Draw::next() { return {++drawsInGraph, ++drawsInProcess}; }
void Draw::restart() { drawsInGraph = 0; }

OperatorNode::OperatorNode(const c10::FunctionSchema &schema,
                           std::vector<OperatorArgument> arguments, torch::lazy::OpList operands,
                           std::vector<OperatorReturn> returns,
                           std::vector<torch::lazy::Shape> shapes, Draw draw)
    : TsNode(torch::lazy::OpKind::Get(schema.name()), operands, std::move(shapes), count(returns),
             getHash(schema, arguments, draw)),
      schema(schema), arguments(std::move(arguments)), returns(std::move(returns)), drawn(draw) {}

torch::lazy::TSOpVector OperatorNode::Lower(std::shared_ptr<torch::jit::GraphFunction>,
                                            torch::lazy::TSLoweringContext *context) const {
  Graph &graph = *context->graph();
  auto getOperand = [&](int64_t number) {
    return number < 0 ? graph.insertConstant(IValue())
                      : context->GetOutputOp(operand(static_cast<size_t>(number)));
  };
  std::vector<Value *> inputs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const OperatorArgument &argument = arguments[i];
    switch (argument.kind) {
    case OperatorArgument::Kind::Constant:
      inputs.push_back(graph.insertConstant(argument.constant));
      // None alone would do for other overloads too, of which TorchScript takes the first.
      if (argument.constant.isNone() &&
          schema.arguments()[i].type()->kind() == c10::TypeKind::OptionalType)
        inputs.back()->setType(schema.arguments()[i].type());
      break;
    case OperatorArgument::Kind::Tensor:
      inputs.push_back(getOperand(argument.operands.at(0)));
      break;
    case OperatorArgument::Kind::TensorList: {
      std::vector<Value *> elements;
      for (int64_t number : argument.operands)
        elements.push_back(getOperand(number));
      auto type = schema.arguments()[i].type()->cast<c10::ListType>();
      inputs.push_back(
          graph.insertNode(graph.createList(type->getElementType(), elements))->output());
      break;
    }
    }
  }
  torch::jit::Node *node =
      graph.create(c10::Symbol::fromQualString(schema.name()), inputs, returns.size());
  for (size_t i = 0; i < returns.size(); ++i)
    node->outputs()[i]->setType(returns[i].isList || returns[i].count ? schema.returns()[i].type()
                                                                      : c10::NoneType::get());
  graph.insertNode(node);
  const torch::jit::Operator *found = node->maybeOperator();
  if (!found || found->schema().overload_name() != schema.overload_name())
    throw std::runtime_error("TorchScript takes the call for one of " +
                             (found ? toString(found->schema()) : std::string("no operator")));
  torch::lazy::TSOpVector results;
  for (size_t i = 0; i < returns.size(); ++i) {
    Value *output = node->outputs()[i];
    if (!returns[i].isList) {
      if (returns[i].count)
        results.push_back(output);
      continue;
    }
    torch::jit::Node *unpacked = graph.insertNode(graph.createListUnpack(output, returns[i].count));
    for (Value *element : unpacked->outputs())
      results.push_back(element);
  }
  return results;
}

} // namespace torch_mlir::lazy
