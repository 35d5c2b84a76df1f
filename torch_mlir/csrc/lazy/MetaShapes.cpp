// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types of what PyTorch's lazy nodes make on the way to their results, from Meta kernels: the
// importer's own rules do without kernels, and here there are all of them.

#include "torchscript/Shapes.h"

#include "lazy/MetaKernels.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>

namespace torch_mlir::torchscript {

using c10::FunctionSchema;
using c10::IValue;
using c10::TypeKind;

namespace {

/// A value that a Meta kernel takes; false where not enough is known.
bool toMeta(const Fact &fact, const c10::TypePtr &type, IValue &value) {
  c10::TypePtr inner = type;
  if (auto optional = type->cast<c10::OptionalType>()) {
    if (fact.isNone()) {
      value = inner->kind() == TypeKind::OptionalType &&
                      optional->getElementType()->kind() == TypeKind::DeviceObjType
                  ? IValue(c10::Device(c10::kMeta))
                  : IValue();
      return true;
    }
    inner = optional->getElementType();
  }
  switch (fact.kind) {
  case Fact::Kind::Unknown:
    return false;
  case Fact::Kind::Value:
    value = inner->kind() == TypeKind::DeviceObjType ? IValue(c10::Device(c10::kMeta)) : fact.value;
    return true;
  case Fact::Kind::Tensor: {
    const auto &sizes = fact.tensor.sizes;
    if (!sizes || !fact.tensor.dtype ||
        std::any_of(sizes->begin(), sizes->end(), [](int64_t size) { return size < 0; }))
      return false;
    value = at::empty(*sizes, at::TensorOptions(*fact.tensor.dtype).device(c10::kMeta));
    return true;
  }
  case Fact::Kind::List: {
    auto list = inner->cast<c10::ListType>();
    if (!list)
      return false;
    c10::impl::GenericList made(list->getElementType());
    for (const Fact &element : fact.elements) {
      IValue part;
      if (!toMeta(element, list->getElementType(), part))
        return false;
      made.push_back(part);
    }
    value = made;
    return true;
  }
  }
  return false;
}

/// What an operator's Meta kernel gives; empty where it has none, or none for such operands.
std::optional<torch::jit::Stack> run(const FunctionSchema &schema,
                                     const std::vector<Fact> &operands) {
  auto op = c10::Dispatcher::singleton().findSchema(schema.operator_name());
  if (!op || op->schema().is_mutable() || operands.size() != schema.arguments().size() ||
      op->schema().arguments().size() != operands.size())
    return std::nullopt;
  torch::jit::Stack stack(operands.size());
  for (size_t i = 0; i < operands.size(); ++i)
    if (!toMeta(operands[i], schema.arguments()[i].type(), stack[i]))
      return std::nullopt;
  at::AutoDispatchBelowADInplaceOrView below;
  if (!lazy::runMetaKernel(*op, stack))
    return std::nullopt; // the operation then has the type that is least known
  return stack;
}

TensorFact getFact(const at::Tensor &tensor) {
  TensorFact fact;
  if (!tensor.defined())
    return fact;
  fact.sizes = tensor.sizes().vec();
  fact.dtype = tensor.scalar_type();
  return fact;
}

} // namespace

std::vector<TensorFact> Shapes::infer(const FunctionSchema &schema,
                                      const std::vector<Fact> &operands) {
  std::vector<TensorFact> facts(schema.returns().size());
  auto results = run(schema, operands);
  for (size_t i = 0; results && i < std::min(results->size(), facts.size()); ++i)
    if ((*results)[i].isTensor())
      facts[i] = getFact((*results)[i].toTensor());
  return facts;
}

std::optional<std::vector<TensorFact>> Shapes::inferList(const FunctionSchema &schema,
                                                         const std::vector<Fact> &operands) {
  auto results = run(schema, operands);
  if (!results || results->size() != 1 || !results->front().isTensorList())
    return std::nullopt;
  std::vector<TensorFact> facts;
  for (const at::Tensor &tensor : results->front().toTensorVector())
    facts.push_back(getFact(tensor));
  return facts;
}

} // namespace torch_mlir::torchscript
