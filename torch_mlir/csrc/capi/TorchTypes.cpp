// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "capi/TorchTypes.h"

#include "dialect/TorchDialect.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
namespace torch = torch_mlir::torch;

#define DEFINE_TYPE(Name)                                                                          \
  bool torchMlirTypeIsATorch##Name(MlirType type) { return isa<torch::Name##Type>(unwrap(type)); } \
  MlirTypeID torchMlirTorch##Name##TypeGetTypeID() { return wrap(torch::Name##Type::getTypeID()); }
#define DEFINE_PLAIN_TYPE(Name)                                                                    \
  DEFINE_TYPE(Name)                                                                                \
  MlirType torchMlirTorch##Name##TypeGet(MlirContext context) {                                    \
    return wrap(torch::Name##Type::get(unwrap(context)));                                          \
  }

DEFINE_PLAIN_TYPE(Any)
DEFINE_PLAIN_TYPE(Bool)
DEFINE_PLAIN_TYPE(Device)
DEFINE_PLAIN_TYPE(Float)
DEFINE_PLAIN_TYPE(Generator)
DEFINE_PLAIN_TYPE(Int)
DEFINE_PLAIN_TYPE(LinearParams)
DEFINE_PLAIN_TYPE(None)
DEFINE_PLAIN_TYPE(Number)
DEFINE_PLAIN_TYPE(QInt8)
DEFINE_PLAIN_TYPE(QInt16)
DEFINE_PLAIN_TYPE(QInt32)
DEFINE_PLAIN_TYPE(QUInt2x4)
DEFINE_PLAIN_TYPE(QUInt4x2)
DEFINE_PLAIN_TYPE(QUInt8)
DEFINE_PLAIN_TYPE(String)

DEFINE_TYPE(Dict)
DEFINE_TYPE(List)
DEFINE_TYPE(NnModule)
DEFINE_TYPE(NonValueTensor)
DEFINE_TYPE(Optional)
DEFINE_TYPE(Tuple)
DEFINE_TYPE(Union)
DEFINE_TYPE(ValueTensor)

#undef DEFINE_PLAIN_TYPE
#undef DEFINE_TYPE

/// A type, or null and a diagnostic at the location.
template <typename Type, typename... Parameters>
static MlirType getChecked(MlirLocation cLocation, Parameters... parameters) {
  Location location = unwrap(cLocation);
  return wrap(mlir::Type(Type::getChecked([location] { return emitError(location); },
                                          location.getContext(), parameters...)));
}

template <typename Tensor>
static MlirType getTensor(MlirLocation location, intptr_t numSizes, const int64_t *sizes,
                          MlirType dtype, MlirAttribute sparsity) {
  SmallVector<int64_t> shape;
  for (intptr_t i = 0; i < numSizes; ++i)
    shape.push_back(sizes[i] == -1 ? ShapedType::kDynamic : sizes[i]);
  return getChecked<Tensor>(location, numSizes >= 0, ArrayRef<int64_t>(shape), unwrap(dtype),
                            unwrap(sparsity));
}

MlirType torchMlirTorchValueTensorTypeGetChecked(MlirLocation location, intptr_t numSizes,
                                                 const int64_t *sizes, MlirType dtype,
                                                 MlirAttribute sparsity) {
  return getTensor<torch::ValueTensorType>(location, numSizes, sizes, dtype, sparsity);
}

MlirType torchMlirTorchNonValueTensorTypeGetChecked(MlirLocation location, intptr_t numSizes,
                                                    const int64_t *sizes, MlirType dtype,
                                                    MlirAttribute sparsity) {
  return getTensor<torch::NonValueTensorType>(location, numSizes, sizes, dtype, sparsity);
}

static torch::TensorParameters getParameters(MlirType type) {
  std::optional<torch::TensorParameters> parameters = torch::getTensorParameters(unwrap(type));
  assert(parameters && "expected a tensor type of the torch dialect");
  return *parameters;
}

bool torchMlirTorchTensorTypeHasSizes(MlirType type) {
  return getParameters(type).sizes.has_value();
}

intptr_t torchMlirTorchTensorTypeGetRank(MlirType type) {
  return getParameters(type).sizes->size();
}

int64_t torchMlirTorchTensorTypeGetSize(MlirType type, intptr_t position) {
  int64_t size = (*getParameters(type).sizes)[position];
  return ShapedType::isDynamic(size) ? -1 : size;
}

MlirType torchMlirTorchTensorTypeGetDtype(MlirType type) { return wrap(getParameters(type).dtype); }

MlirAttribute torchMlirTorchTensorTypeGetSparsity(MlirType type) {
  return wrap(getParameters(type).sparsity);
}

MlirType torchMlirTorchValueTensorTypeGetFromAttribute(MlirAttribute attribute) {
  auto typed = dyn_cast<TypedAttr>(unwrap(attribute));
  return wrap(Type(typed ? torch::getLiteralType(typed) : torch::ValueTensorType()));
}

MlirType torchMlirTorchListTypeGetChecked(MlirLocation location, MlirType contained) {
  return getChecked<torch::ListType>(location, unwrap(contained));
}

MlirType torchMlirTorchListTypeGetContainedType(MlirType type) {
  return wrap(cast<torch::ListType>(unwrap(type)).getContainedType());
}

MlirType torchMlirTorchOptionalTypeGetChecked(MlirLocation location, MlirType contained) {
  return getChecked<torch::OptionalType>(location, unwrap(contained));
}

MlirType torchMlirTorchOptionalTypeGetContainedType(MlirType type) {
  return wrap(cast<torch::OptionalType>(unwrap(type)).getContainedType());
}

template <typename Nary>
static MlirType getNary(MlirLocation location, intptr_t numContained, MlirType const *contained) {
  SmallVector<Type> types;
  ArrayRef<Type> unwrapped = unwrapList(numContained, contained, types);
  return getChecked<Nary>(location, unwrapped);
}

MlirType torchMlirTorchTupleTypeGetChecked(MlirLocation location, intptr_t numContained,
                                           MlirType const *contained) {
  return getNary<torch::TupleType>(location, numContained, contained);
}

intptr_t torchMlirTorchTupleTypeGetNumTypes(MlirType type) {
  return cast<torch::TupleType>(unwrap(type)).getContainedTypes().size();
}

MlirType torchMlirTorchTupleTypeGetType(MlirType type, intptr_t position) {
  return wrap(cast<torch::TupleType>(unwrap(type)).getContainedTypes()[position]);
}

MlirType torchMlirTorchUnionTypeGetChecked(MlirLocation location, intptr_t numContained,
                                           MlirType const *contained) {
  return getNary<torch::UnionType>(location, numContained, contained);
}

intptr_t torchMlirTorchUnionTypeGetNumTypes(MlirType type) {
  return cast<torch::UnionType>(unwrap(type)).getContainedTypes().size();
}

MlirType torchMlirTorchUnionTypeGetType(MlirType type, intptr_t position) {
  return wrap(cast<torch::UnionType>(unwrap(type)).getContainedTypes()[position]);
}

MlirType torchMlirTorchDictTypeGetChecked(MlirLocation location, MlirType key, MlirType value) {
  return getChecked<torch::DictType>(location, unwrap(key), unwrap(value));
}

MlirType torchMlirTorchDictTypeGetKeyType(MlirType type) {
  return wrap(cast<torch::DictType>(unwrap(type)).getKeyType());
}

MlirType torchMlirTorchDictTypeGetValueType(MlirType type) {
  return wrap(cast<torch::DictType>(unwrap(type)).getValueType());
}

MlirType torchMlirTorchNnModuleTypeGet(MlirContext context, MlirStringRef className) {
  return wrap(torch::NnModuleType::get(unwrap(context), unwrap(className)));
}

MlirStringRef torchMlirTorchNnModuleTypeGetClassName(MlirType type) {
  return wrap(cast<torch::NnModuleType>(unwrap(type)).getClassName());
}

bool torchMlirTorchTypeIsSubtype(MlirType sub, MlirType super) {
  return torch::isSubtype(unwrap(sub), unwrap(super));
}
