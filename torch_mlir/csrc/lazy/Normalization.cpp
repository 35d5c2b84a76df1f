// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lazy graphs in the terms that modules are in.

#include "lazy/Normalization.h"

#include "lazy/Functional.h"

#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace torch_mlir::lazy {

using c10::FunctionSchema;
using c10::IValue;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

namespace {

/// Puts a call of another operator in a node's place.
Node *replace(Node *node, const std::string &name, const std::vector<Value *> &inputs) {
  Graph &graph = *node->owningGraph();
  Node *made = graph.create(c10::Symbol::fromQualString(name), inputs, node->outputs().size());
  made->insertBefore(node);
  made->setSourceRange(node->sourceRange());
  for (size_t i = 0; i < node->outputs().size(); ++i)
    made->outputs()[i]->setType(node->outputs()[i]->type());
  node->replaceAllUsesWith(made);
  node->destroy();
  return made;
}

bool takesSame(const FunctionSchema &left, const FunctionSchema &right) {
  return std::equal(left.arguments().begin(), left.arguments().end(), right.arguments().begin(),
                    right.arguments().end(),
                    [](const c10::Argument &one, const c10::Argument &other) {
                      return one.name() == other.name() && *one.type() == *other.type();
                    });
}

/// The node that took its place, or itself.
Node *replaceCopy(Node *node, const FunctionSchema &schema) {
  constexpr std::string_view suffix = "_copy";
  std::string name = schema.name();
  if (name.size() <= suffix.size() || name.substr(name.size() - suffix.size()) != suffix)
    return node;
  name.resize(name.size() - suffix.size());
  auto view = torch::jit::findOperatorFor({name, schema.overload_name()});
  if (!view || view->schema().is_mutable() || !takesSame(schema, view->schema()) ||
      view->schema().returns().size() != schema.returns().size())
    return node;
  return replace(node, name, node->inputs().vec());
}

/// PyTorch's views of a tensor whose elements are conjugated or negated when they are read: values are
/// at once.
Node *replaceLazyView(Node *node, const FunctionSchema &schema) {
  static const auto *physical = new std::map<std::string, std::string>{
      {"aten::_conj", "aten::_conj_physical"}, {"aten::_neg_view", "aten::neg"}};
  auto found = physical->find(toString(schema.operator_name()));
  return found == physical->end() ? node : replace(node, found->second, {node->input(0)});
}

/// Values have no strides, so that any may be viewed as another shape.
Node *replaceView(Node *node, const FunctionSchema &schema) {
  static const auto *names =
      new std::set<std::string>{"aten::view", "aten::_unsafe_view", "aten::_reshape_alias"};
  if (!names->count(schema.name()) || !schema.overload_name().empty())
    return node;
  return replace(node, "aten::reshape", {node->input(0), node->input(1)});
}

/// What operators that look at strides look at is the tensor in a row, as lazy tensors are: whoever
/// runs operations on strided tensors has to make it so.
void makeContiguous(Node *node, const FunctionSchema &schema) {
  static const auto *names = new std::set<std::string>{
      "aten::as_strided", "aten::as_strided_scatter", "aten::view.dtype", "aten::view_as_complex"};
  if (!names->count(toString(schema.operator_name())))
    return;
  Graph &graph = *node->owningGraph();
  torch::jit::WithInsertPoint here(node);
  Value *format = graph.insertConstant(static_cast<int64_t>(c10::MemoryFormat::Contiguous));
  Node *copy = graph.create(c10::aten::clone, {node->input(0), format});
  copy->insertBefore(node);
  copy->setSourceRange(node->sourceRange());
  copy->output()->setType(node->input(0)->type());
  node->replaceInput(0, copy->output());
}

Node *replaceOutputs(Node *node, const FunctionSchema &schema) {
  size_t outputs = countOutputs(schema);
  if (!outputs || node->inputs().size() != schema.arguments().size())
    return node;
  auto functional = findFunctional(schema, /*mayTakeOptions=*/outputs == 1);
  if (!functional)
    return node;
  std::vector<Value *> inputs = node->inputs().vec();
  inputs.resize(inputs.size() - outputs);
  torch::jit::WithInsertPoint here(node);
  for (size_t i = inputs.size(); i < functional->schema().arguments().size(); ++i) {
    IValue value;
    auto type = node->output()->type()->cast<c10::TensorType>();
    if (functional->schema().arguments()[i].name() == "dtype" && type && type->scalarType())
      value = static_cast<int64_t>(*type->scalarType());
    inputs.push_back(node->owningGraph()->insertConstant(value));
  }
  return replace(node, schema.name(), inputs);
}

void clearDevices(Node *node, const FunctionSchema &schema) {
  for (size_t i = 0; i < std::min(node->inputs().size(), schema.arguments().size()); ++i) {
    auto type = schema.arguments()[i].type()->cast<c10::OptionalType>();
    if (!type || type->getElementType()->kind() != c10::TypeKind::DeviceObjType ||
        node->input(i)->mustBeNone())
      continue;
    torch::jit::WithInsertPoint here(node);
    node->replaceInput(i, node->owningGraph()->insertConstant(IValue()));
  }
}

} // namespace

void normalize(Graph &graph) {
  auto nodes = graph.nodes();
  for (auto at = nodes.begin(); at != nodes.end();) {
    Node *node = *at++;
    const FunctionSchema *schema = node->maybeSchema();
    if (!schema)
      continue;
    clearDevices(node, *schema);
    for (auto change : {replaceCopy, replaceLazyView, replaceOutputs, replaceView}) {
      node = change(node, *schema);
      schema = node->maybeSchema();
      if (!schema)
        break;
    }
    if (schema)
      makeContiguous(node, *schema);
  }
}

} // namespace torch_mlir::lazy
