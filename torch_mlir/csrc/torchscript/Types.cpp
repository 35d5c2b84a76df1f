// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TorchScript's types as types of the torch dialect.

#include "torchscript/Types.h"

#include "torchscript/Builder.h"
#include "torchscript/Dtypes.h"
#include "torchscript/Locations.h"

#include "capi/TorchTypes.h"

#include "mlir-c/BuiltinTypes.h"

#include <ATen/core/class_type.h>
#include <ATen/core/enum_type.h>

namespace torch_mlir::torchscript {

using c10::TypeKind;
using c10::TypePtr;

/// Types inside of one another. Archives are checked for this when they are read; it holds for
/// what libtorch makes of them too.
static constexpr unsigned maxTypeDepth = 1024;

std::string getName(const c10::NamedType &type) {
  return type.name() ? type.name()->qualifiedName() : std::string();
}

bool isCustomClass(const c10::Type &type) {
  static const std::string prefix = "__torch__.torch.classes.";
  return type.kind() == TypeKind::ClassType &&
         getName(static_cast<const c10::NamedType &>(type)).compare(0, prefix.size(), prefix) == 0;
}

Types::Types(MlirContext context, bool valueTensors)
    : context(context), valueTensors(valueTensors) {
  MlirLocation location = mlirLocationUnknownGet(context);
  auto make = valueTensors ? torchMlirTorchValueTensorTypeGetChecked
                           : torchMlirTorchNonValueTensorTypeGetChecked;
  tensor = make(location, -1, nullptr, MlirType{nullptr}, MlirAttribute{nullptr});
}

MlirType Types::getTensor(c10::IntArrayRef sizes, MlirType dtype) const {
  MlirLocation location = mlirLocationUnknownGet(context);
  auto make = valueTensors ? torchMlirTorchValueTensorTypeGetChecked
                           : torchMlirTorchNonValueTensorTypeGetChecked;
  return make(location, static_cast<intptr_t>(sizes.size()), sizes.data(), dtype,
              MlirAttribute{nullptr});
}

MlirType Types::getTensor(MlirType dtype) const {
  MlirLocation location = mlirLocationUnknownGet(context);
  auto make = valueTensors ? torchMlirTorchValueTensorTypeGetChecked
                           : torchMlirTorchNonValueTensorTypeGetChecked;
  return make(location, -1, nullptr, dtype, MlirAttribute{nullptr});
}

MlirType Types::getElement(c10::ScalarType dtype) {
  const Dtype *known = getDtype(static_cast<size_t>(dtype));
  const char *text = known ? known->element : nullptr;
  if (!text)
    throw Unsupported(std::string("tensors of dtype ") +
                      (known ? known->name : c10::toString(dtype)) +
                      " have no type in the Torch dialect");
  auto [entry, isNew] = elements.try_emplace(dtype, MlirType{nullptr});
  if (isNew)
    entry->second = mlirTypeParseGet(context, mlirStringRefCreateFromCString(text));
  return entry->second;
}

std::optional<c10::ScalarType> Types::getScalarType(MlirType element) {
  if (dtypes.empty()) {
    for (int8_t i = 0; i < static_cast<int8_t>(c10::ScalarType::Undefined); ++i) {
      const Dtype *known = getDtype(static_cast<size_t>(i));
      if (known && known->element) {
        auto dtype = static_cast<c10::ScalarType>(i);
        dtypes.emplace(getElement(dtype).ptr, dtype);
      }
    }
  }
  auto found = dtypes.find(element.ptr);
  return found == dtypes.end() ? std::nullopt : std::make_optional(found->second);
}

MlirType Types::get(const TypePtr &type) {
  auto found = made.find(type.get());
  if (found != made.end())
    return found->second;
  struct Level {
    unsigned &depth;
    explicit Level(unsigned &depth) : depth(depth) { ++depth; }
    ~Level() { --depth; }
  } level(depth);
  if (depth > maxTypeDepth)
    throw Unsupported("a type holds more than " + std::to_string(maxTypeDepth) +
                      " types inside of one another");
  MlirType result = make(type);
  kept.push_back(type);
  made.emplace(type.get(), result);
  return result;
}

MlirType Types::getComplete(const TypePtr &type) {
  auto known = type->cast<c10::TensorType>();
  if (!known || !known->scalarType())
    return get(type);
  MlirType dtype = getElement(*known->scalarType());
  auto sizes = known->sizes().concrete_sizes();
  return sizes ? getTensor(*sizes, dtype) : getTensor(dtype);
}

MlirType Types::getClass(const c10::NamedType &type) {
  return torchMlirTorchNnModuleTypeGet(context, wrap(getName(type)));
}

MlirType Types::make(const TypePtr &type) {
  MlirLocation location = mlirLocationUnknownGet(context);
  switch (type->kind()) {
  case TypeKind::TensorType:
    return tensor;
  case TypeKind::IntType:
  case TypeKind::SymIntType:
  case TypeKind::ScalarTypeType:
  case TypeKind::LayoutType:
  case TypeKind::MemoryFormatType:
  case TypeKind::QSchemeType:
    return torchMlirTorchIntTypeGet(context);
  case TypeKind::FloatType:
    return torchMlirTorchFloatTypeGet(context);
  case TypeKind::BoolType:
    return torchMlirTorchBoolTypeGet(context);
  case TypeKind::NumberType:
  case TypeKind::ComplexType:
    return torchMlirTorchNumberTypeGet(context);
  case TypeKind::StringType:
    return torchMlirTorchStringTypeGet(context);
  case TypeKind::NoneType:
    return torchMlirTorchNoneTypeGet(context);
  case TypeKind::DeviceObjType:
    return torchMlirTorchDeviceTypeGet(context);
  case TypeKind::GeneratorType:
    return torchMlirTorchGeneratorTypeGet(context);
  case TypeKind::AnyType:
  case TypeKind::AnyListType:
  case TypeKind::AnyTupleType:
  case TypeKind::AnyClassType:
  case TypeKind::AnyEnumType:
    return torchMlirTorchAnyTypeGet(context);
  case TypeKind::OptionalType:
    return torchMlirTorchOptionalTypeGetChecked(
        location, get(type->castRaw<c10::OptionalType>()->getElementType()));
  case TypeKind::ListType:
    return torchMlirTorchListTypeGetChecked(
        location, get(type->castRaw<c10::ListType>()->getElementType()));
  case TypeKind::DictType: {
    const auto *dict = type->castRaw<c10::DictType>();
    return torchMlirTorchDictTypeGetChecked(location, get(dict->getKeyType()),
                                            get(dict->getValueType()));
  }
  case TypeKind::TupleType:
  case TypeKind::UnionType: {
    std::vector<MlirType> contained;
    for (const TypePtr &element : type->containedTypes())
      contained.push_back(get(element));
    auto make = type->kind() == TypeKind::TupleType ? torchMlirTorchTupleTypeGetChecked
                                                    : torchMlirTorchUnionTypeGetChecked;
    return make(location, static_cast<intptr_t>(contained.size()), contained.data());
  }
  case TypeKind::FutureType:
    return get(type->castRaw<c10::FutureType>()->getElementType());
  case TypeKind::ClassType:
  case TypeKind::EnumType: {
    // cast<NamedType>() leaves enums out.
    c10::NamedTypePtr name;
    if (type->kind() == TypeKind::EnumType)
      name = type->expect<c10::EnumType>();
    else
      name = type->expect<c10::ClassType>();
    if (isCustomClass(*type)) {
      // What torch.linear_params.create makes.
      std::string own = getName(*name);
      if (own.size() > 31 && own.rfind(".quantized.LinearPackedParamsBase") != std::string::npos)
        return torchMlirTorchLinearParamsTypeGet(context);
      return getClass(*name);
    }
    if (names.insert(getName(*name)).second)
      named.push_back(name);
    return getClass(*name);
  }
  case TypeKind::InterfaceType:
    return getClass(*type->castRaw<c10::InterfaceType>());
  default:
    throw Unsupported("values of type " + type->repr_str() + " are not supported");
  }
}

} // namespace torch_mlir::torchscript
