// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types of operations' results, from what is known of their operands.

#include "torchscript/Refinement.h"

#include "torchscript/Builder.h"

#include "capi/TorchTypes.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <ATen/core/operator_name.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <string_view>

namespace torch_mlir::torchscript {

/// Operations that are looked through, and lists inside of one another.
static constexpr unsigned maxLookedThrough = 16;
/// Elements of a list that are looked at.
static constexpr intptr_t maxElements = 1024;

static std::string_view getName(MlirOperation operation) {
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(operation));
  return {name.data, name.length};
}

TensorFact Refinement::getFact(MlirType tensor) {
  TensorFact fact;
  if (torchMlirTorchTensorTypeHasSizes(tensor)) {
    fact.sizes.emplace();
    for (intptr_t i = 0; i < torchMlirTorchTensorTypeGetRank(tensor); ++i)
      fact.sizes->push_back(torchMlirTorchTensorTypeGetSize(tensor, i));
  }
  if (MlirType dtype = torchMlirTorchTensorTypeGetDtype(tensor); !mlirTypeIsNull(dtype))
    fact.dtype = types.getScalarType(dtype);
  return fact;
}

TensorFact Refinement::getFact(const at::Tensor &tensor, const Literals &literals) {
  TensorFact fact;
  if (!tensor.defined() || tensor.layout() != c10::kStrided)
    return fact;
  fact.sizes = tensor.sizes().vec();
  // It may be one that this libtorch lacks.
  c10::ScalarType dtype = literals.getDtype(tensor);
  if (static_cast<int>(dtype) < static_cast<int>(c10::ScalarType::Undefined))
    fact.dtype = dtype;
  return fact;
}

MlirType Refinement::getType(const TensorFact &fact) {
  MlirType dtype{nullptr};
  if (fact.dtype) {
    try {
      dtype = types.getElement(*fact.dtype);
    } catch (const Unsupported &) {
      // A dtype that has no type in the dialect is one that isn't known there.
    }
  }
  if (!fact.sizes)
    return types.getTensor(dtype);
  return types.getTensor(*fact.sizes, dtype);
}

Fact Refinement::getFact(MlirValue value, unsigned depth) {
  MlirType type = mlirValueGetType(value);
  if (torchMlirTypeIsATorchValueTensor(type))
    return Fact::of(getFact(type));
  if (torchMlirTypeIsATorchNone(type))
    return Fact::of(c10::IValue());
  if (mlirValueIsAOpResult(value) && depth < maxLookedThrough) {
    MlirOperation maker = mlirOpResultGetOwner(value);
    std::string_view name = getName(maker);
    if (name == "torch.derefine" || name == "torch.prim.unchecked_cast") {
      Fact fact = getFact(mlirOperationGetOperand(maker, 0), depth + 1);
      if (fact.kind != Fact::Kind::Unknown)
        return fact;
    }
    MlirAttribute attribute =
        mlirOperationGetAttributeByName(maker, mlirStringRefCreateFromCString("value"));
    if (name == "torch.constant.int")
      return Fact::of(c10::IValue(mlirIntegerAttrGetValueInt(attribute)));
    if (name == "torch.constant.bool")
      return Fact::of(c10::IValue(mlirBoolAttrGetValue(attribute)));
    if (name == "torch.constant.float")
      return Fact::of(c10::IValue(mlirFloatAttrGetValueDouble(attribute)));
    if (name == "torch.constant.str") {
      MlirStringRef text = mlirStringAttrGetValue(attribute);
      return Fact::of(c10::IValue(std::string(text.data, text.length)));
    }
    // Traces make a tensor of every size that they compute with.
    if (name == "torch.aten.Int.Tensor" && mlirValueIsAOpResult(mlirOperationGetOperand(maker, 0))) {
      MlirOperation number = mlirOpResultGetOwner(mlirOperationGetOperand(maker, 0));
      if (getName(number) == "torch.prim.NumToTensor.Scalar" &&
          torchMlirTypeIsATorchInt(mlirValueGetType(mlirOperationGetOperand(number, 0))))
        return getFact(mlirOperationGetOperand(number, 0), depth + 1);
    }
    // Objects of custom classes are what they were made of.
    bool isObject = torchMlirTypeIsATorchNnModule(type) || torchMlirTypeIsATorchLinearParams(type);
    if ((name == "torch.prim.ListConstruct" || (isObject && mlirOperationGetNumResults(maker) == 1)) &&
        mlirOperationGetNumOperands(maker) <= maxElements) {
      std::vector<Fact> elements;
      for (intptr_t i = 0; i < mlirOperationGetNumOperands(maker); ++i)
        elements.push_back(getFact(mlirOperationGetOperand(maker, i), depth + 1));
      return Fact::of(std::move(elements));
    }
  }
  if (torchMlirTypeIsATorchInt(type))
    return Fact::ofUnknown(Fact::Number::Int);
  if (torchMlirTypeIsATorchFloat(type))
    return Fact::ofUnknown(Fact::Number::Float);
  if (torchMlirTypeIsATorchBool(type))
    return Fact::ofUnknown(Fact::Number::Bool);
  Fact fact;
  fact.mayBeNone = torchMlirTypeIsATorchOptional(type) || torchMlirTypeIsATorchAny(type) ||
                   torchMlirTypeIsATorchUnion(type);
  return fact;
}

std::vector<MlirType> Refinement::refine(const c10::FunctionSchema &schema,
                                         const std::vector<MlirValue> &operands,
                                         std::vector<MlirType> results) {
  if (!types.hasValueTensors() ||
      std::none_of(results.begin(), results.end(), torchMlirTypeIsATorchValueTensor))
    return results;
  std::vector<Fact> facts;
  for (MlirValue operand : operands)
    facts.push_back(getFact(operand, 0));
  std::vector<TensorFact> known = shapes.infer(schema, facts);
  for (size_t i = 0; i < std::min(results.size(), known.size()); ++i) {
    if (torchMlirTypeIsATorchValueTensor(results[i]))
      results[i] = getType(known[i]);
  }
  return results;
}

std::vector<MlirType> Refinement::refine(const std::string &operation,
                                         const std::vector<MlirValue> &operands, size_t count) {
  auto [entry, isNew] = schemas.try_emplace(operation, nullptr);
  if (isNew) {
    // torch.aten.add.Tensor: a namespace, a name, and an overload where there's another dot.
    size_t first = operation.find('.');
    size_t second = operation.find('.', first + 1);
    size_t third = operation.find('.', second + 1);
    if (second != operation.npos) {
      c10::OperatorName name(
          operation.substr(first + 1, second - first - 1) + "::" +
              operation.substr(second + 1, third == operation.npos ? third : third - second - 1),
          third == operation.npos ? "" : operation.substr(third + 1));
      // The registry keeps its operators.
      if (auto found = torch::jit::findOperatorFor(name))
        entry->second = &found->schema();
    }
  }
  std::vector<MlirType> results(count, types.getTensor());
  return entry->second ? refine(*entry->second, operands, std::move(results)) : results;
}

std::optional<std::vector<MlirType>>
Refinement::refineList(const c10::FunctionSchema &schema, const std::vector<MlirValue> &operands) {
  std::vector<Fact> facts;
  for (MlirValue operand : operands)
    facts.push_back(getFact(operand, 0));
  auto known = shapes.inferList(schema, facts);
  if (!known)
    return std::nullopt;
  std::vector<MlirType> tensors;
  for (const TensorFact &fact : *known)
    tensors.push_back(getType(fact));
  return tensors;
}

Unrefined *Refinement::note(const c10::FunctionSchema &schema,
                            const std::vector<MlirValue> &operands,
                            const std::vector<MlirType> &results) {
  auto isOpen = [this](MlirType type) {
    if (!torchMlirTypeIsATorchValueTensor(type))
      return false;
    TensorFact fact = getFact(type);
    return !fact.sizes || !fact.dtype;
  };
  if (std::none_of(results.begin(), results.end(), isOpen))
    return nullptr;
  for (MlirValue operand : operands) {
    if (isOpen(mlirValueGetType(operand)))
      return nullptr;
    if (!mlirValueIsAOpResult(operand))
      continue;
    MlirOperation maker = mlirOpResultGetOwner(operand);
    if (getName(maker) != "torch.prim.ListConstruct")
      continue;
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(maker); ++i) {
      if (isOpen(mlirValueGetType(mlirOperationGetOperand(maker, i))))
        return nullptr;
    }
  }
  std::string name = schema.name();
  if (!schema.overload_name().empty())
    name += "." + schema.overload_name();
  Unrefined &own = unrefined[name];
  ++own.count;
  return &own;
}

MlirType Refinement::join(MlirType left, MlirType right, MlirType general) {
  for (MlirType each : {left, right, general}) {
    if (!torchMlirTypeIsATorchValueTensor(each))
      return general;
  }
  TensorFact joined = getFact(left), other = getFact(right);
  if (joined.dtype != other.dtype)
    joined.dtype.reset();
  if (joined.sizes && other.sizes && joined.sizes->size() == other.sizes->size()) {
    for (size_t i = 0; i < joined.sizes->size(); ++i) {
      if ((*joined.sizes)[i] != (*other.sizes)[i])
        (*joined.sizes)[i] = -1;
    }
  } else {
    joined.sizes.reset();
  }
  return getType(joined);
}

} // namespace torch_mlir::torchscript
