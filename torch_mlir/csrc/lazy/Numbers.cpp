// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program's numbers, which lazy graphs have as tensors.

#include "lazy/Numbers.h"

#include <ATen/core/jit_type.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <vector>

namespace torch_mlir::lazy {

using at::native::ResultTypeState;
using c10::IValue;
using c10::ScalarType;
using torch::jit::Graph;
using torch::jit::Value;

namespace {

ScalarType getDtype(const Value *value) {
  auto type = value->type()->cast<c10::TensorType>();
  return type && type->scalarType() && type->dim() ? *type->scalarType() : ScalarType::Undefined;
}

size_t getRank(const Value *value) { return *value->type()->expect<c10::TensorType>()->dim(); }

/// The dtypes that Python's numbers have as tensors.
bool mayBeNumber(const Value *value) {
  switch (getDtype(value)) {
  case ScalarType::Double:
  case ScalarType::Long:
  case ScalarType::ComplexDouble:
    return value->node()->kind() == torch::jit::prim::Param && getRank(value) == 0;
  default:
    return false;
  }
}

void include(ScalarType &in, ScalarType dtype) {
  in = in == ScalarType::Undefined ? dtype : c10::promoteTypes(in, dtype);
}

void includeTensor(ResultTypeState &state, const Value *value) {
  include(getRank(value) ? state.dimResult : state.zeroResult, getDtype(value));
}

/// As at::native::update_result_type_state does for tensors that wrap numbers.
void includeNumber(ResultTypeState &state, const Value *value) {
  ScalarType dtype = getDtype(value);
  if (c10::isComplexType(dtype))
    dtype = c10::typeMetaToScalarType(c10::get_default_complex_dtype());
  else if (c10::isFloatingType(dtype))
    dtype = c10::typeMetaToScalarType(c10::get_default_dtype());
  include(state.wrappedResult, dtype);
}

void convertNumbers(torch::jit::Node *node) {
  std::vector<Value *> tensors, numbers;
  for (Value *input : node->inputs()) {
    if (getDtype(input) == ScalarType::Undefined)
      continue;
    (mayBeNumber(input) ? numbers : tensors).push_back(input);
  }
  if (tensors.empty()) {
    // One of them is a tensor; integers change nothing else's dtype.
    auto isFloat = [](const Value *value) { return getDtype(value) != ScalarType::Long; };
    auto integers = std::stable_partition(numbers.begin(), numbers.end(), isFloat);
    tensors.assign(integers, numbers.end());
    numbers.erase(integers, numbers.end());
  }
  if (numbers.empty() || tensors.empty() || node->outputs().size() != 1)
    return;
  ResultTypeState asTensors, asNumbers;
  for (const Value *tensor : tensors) {
    includeTensor(asTensors, tensor);
    includeTensor(asNumbers, tensor);
  }
  for (const Value *number : numbers) {
    includeTensor(asTensors, number);
    includeNumber(asNumbers, number);
  }
  ScalarType taken = at::native::result_type(asTensors);
  ScalarType wanted = at::native::result_type(asNumbers);
  if (taken == wanted || getDtype(node->output()) == taken)
    return;
  Graph &graph = *node->owningGraph();
  for (Value *number : numbers) {
    torch::jit::WithInsertPoint here(node);
    std::vector<Value *> inputs = {number, graph.insertConstant(static_cast<int64_t>(wanted)),
                                   graph.insertConstant(false), graph.insertConstant(false),
                                   graph.insertConstant(IValue())};
    torch::jit::Node *converted = graph.insertNode(graph.create(c10::aten::to, inputs));
    converted->setSourceRange(node->sourceRange());
    converted->output()->setType(number->type()->expect<c10::TensorType>()->withScalarType(wanted));
    node->replaceInputWith(number, converted->output());
  }
}

void readNumber(torch::jit::Node *node) {
  ScalarType dtype = getDtype(node->input());
  bool isInt = c10::isIntegralType(dtype, /*includeBool=*/true);
  if (!isInt && !c10::isFloatingType(dtype))
    return;
  torch::jit::Node *read =
      node->owningGraph()->create(isInt ? c10::aten::Int : c10::aten::Float, {node->input()});
  read->insertBefore(node);
  read->setSourceRange(node->sourceRange());
  read->output()->setType(isInt ? c10::TypePtr(c10::IntType::get()) : c10::FloatType::get());
  node->replaceAllUsesWith(read);
  node->destroy();
}

} // namespace

void specializeNumbers(Graph &graph) {
  auto nodes = graph.nodes();
  for (auto at = nodes.begin(); at != nodes.end();) {
    torch::jit::Node *node = *at++;
    if (node->kind() == c10::aten::ScalarImplicit)
      readNumber(node);
    else
      convertNumbers(node);
  }
}

} // namespace torch_mlir::lazy
