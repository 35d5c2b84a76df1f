// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors that are parts of others, or show them differently.

#include "torchscript/Views.h"

#include "torchscript/Locations.h"

#include "capi/TorchTypes.h"

#include "mlir-c/BuiltinAttributes.h"

#include <unordered_map>

namespace torch_mlir::torchscript {

namespace {

/// How a view is written through.
enum class Inverse {
  /// By an operator that puts the value where the view is: its name.
  Scatter,
  /// By the same operator again.
  Itself,
  /// In the shape that the tensor had before.
  Reshape,
  /// By the permutation that undoes this one.
  Permutation,
  /// As a slice.
  Narrow,
  /// The value is the tensor.
  Identity,
  None,
};

struct Rule {
  Inverse inverse;
  const char *scatter = nullptr;
  /// The view is of the memory that the tensor lies in, so that contents alone don't give it.
  bool isOfMemory = false;
};

const std::unordered_map<std::string, Rule> &getRules() {
  static const auto *rules = new std::unordered_map<std::string, Rule>{
      {"torch.aten.select.int", {Inverse::Scatter, "torch.aten.select_scatter"}},
      {"torch.aten.slice.Tensor", {Inverse::Scatter, "torch.aten.slice_scatter"}},
      {"torch.aten.diagonal", {Inverse::Scatter, "torch.aten.diagonal_scatter"}},
      {"torch.aten.narrow", {Inverse::Narrow}},
      {"torch.aten.view", {Inverse::Reshape}},
      {"torch.aten.view_as", {Inverse::Reshape}},
      {"torch.aten.unsqueeze", {Inverse::Reshape}},
      {"torch.aten.squeeze", {Inverse::Reshape}},
      {"torch.aten.squeeze.dim", {Inverse::Reshape}},
      {"torch.aten.squeeze.dims", {Inverse::Reshape}},
      {"torch.aten.unflatten.int", {Inverse::Reshape}},
      {"torch.aten.transpose.int", {Inverse::Itself}},
      {"torch.aten.swapaxes", {Inverse::Itself}},
      {"torch.aten.swapdims", {Inverse::Itself}},
      {"torch.aten.t", {Inverse::Itself}},
      {"torch.aten.permute", {Inverse::Permutation}},
      {"torch.aten.detach", {Inverse::Identity}},
      {"torch.aten.alias", {Inverse::Identity}},
      {"torch.aten._conj", {Inverse::Itself}},
      {"torch.aten._neg_view", {Inverse::Itself}},
      {"torch.aten.as_strided", {Inverse::Scatter, "torch.aten.as_strided_scatter", true}},
      {"torch.aten.expand", {Inverse::None}},
      {"torch.aten.expand_as", {Inverse::None}},
  };
  return *rules;
}

/// The number of a torch.constant.int, null where the value is none.
std::unique_ptr<int64_t> getConstant(MlirValue value) {
  if (!mlirValueIsAOpResult(value))
    return nullptr;
  MlirAttribute attribute = mlirOperationGetAttributeByName(
      mlirOpResultGetOwner(value), mlirStringRefCreateFromCString("value"));
  if (mlirAttributeIsNull(attribute) || !mlirAttributeIsAInteger(attribute))
    return nullptr;
  return std::make_unique<int64_t>(mlirIntegerAttrGetValueInt(attribute));
}

MlirValue constantInt(Builder &builder, int64_t number, MlirLocation location) {
  return builder.value("torch.constant.int", location,
                       torchMlirTorchIntTypeGet(builder.getContext()), {},
                       {{"value", builder.i64(number)}});
}

} // namespace

bool View::isView(const std::string &operation) {
  auto found = getRules().find(operation);
  return found != getRules().end() && !found->second.isOfMemory;
}

MlirValue View::read(Builder &builder, MlirValue base, Refinement &refinement,
                     MlirLocation location) const {
  MlirValue of = parent ? parent->read(builder, base, refinement, location) : base;
  std::vector<MlirValue> operands = arguments;
  operands.insert(operands.begin(), of);
  return builder.value(operation, location, refinement.refine(operation, operands), operands);
}

MlirValue View::write(Builder &builder, MlirValue base, MlirValue value, Refinement &refinement,
                      MlirLocation location) const {
  if (!parent)
    return invert(builder, base, value, location);
  MlirValue before = parent->read(builder, base, refinement, location);
  return parent->write(builder, base, invert(builder, before, value, location), refinement,
                       location);
}

MlirValue View::invert(Builder &builder, MlirValue before, MlirValue value,
                       MlirLocation location) const {
  MlirType tensor = mlirValueGetType(before);
  std::vector<MlirValue> operands = arguments;
  MlirType integer = torchMlirTorchIntTypeGet(builder.getContext());
  MlirType integers = torchMlirTorchListTypeGetChecked(location, integer);
  Rule rule = getRules().at(operation);
  switch (overlapsItself ? Inverse::None : rule.inverse) {
  case Inverse::Scatter:
    operands.insert(operands.begin(), {before, value});
    return builder.value(rule.scatter, location, tensor, operands);
  case Inverse::Narrow: {
    MlirValue end =
        builder.value("torch.aten.add.int", location, integer, {arguments[1], arguments[2]});
    MlirValue one = constantInt(builder, 1, location);
    return builder.value("torch.aten.slice_scatter", location, tensor,
                         {before, value, arguments[0], arguments[1], end, one});
  }
  case Inverse::Itself:
    operands.insert(operands.begin(), value);
    return builder.value(operation, location, tensor, operands);
  case Inverse::Reshape: {
    MlirValue sizes = builder.value("torch.aten.size", location, integers, {before});
    return builder.value("torch.aten.reshape", location, tensor, {value, sizes});
  }
  case Inverse::Permutation: {
    std::vector<int64_t> places;
    MlirOperation list = mlirValueIsAOpResult(arguments[0]) ? mlirOpResultGetOwner(arguments[0])
                                                            : MlirOperation{nullptr};
    for (intptr_t i = 0; !mlirOperationIsNull(list) && i < mlirOperationGetNumOperands(list); ++i) {
      auto place = getConstant(mlirOperationGetOperand(list, i));
      if (!place)
        throw Unsupported("a write through a permutation that isn't constant");
      places.push_back(*place);
    }
    auto rank = static_cast<int64_t>(places.size());
    std::vector<MlirValue> inverse(places.size(), MlirValue{nullptr});
    for (int64_t i = 0; i < rank; ++i) {
      int64_t place = places[i] < 0 ? places[i] + rank : places[i];
      if (place < 0 || place >= rank)
        throw Unsupported("a write through a permutation that is none");
      inverse[place] = constantInt(builder, i, location);
    }
    for (MlirValue each : inverse) {
      if (mlirValueIsNull(each))
        throw Unsupported("a write through a permutation that is none");
    }
    MlirValue dims = builder.value("torch.prim.ListConstruct", location, integers, inverse);
    return builder.value(operation, location, tensor, {value, dims});
  }
  case Inverse::Identity:
    return value;
  case Inverse::None:
    break;
  }
  throw Unsupported("a write through " + operation.substr(6) +
                    ", whose elements may be the same memory");
}

} // namespace torch_mlir::torchscript
