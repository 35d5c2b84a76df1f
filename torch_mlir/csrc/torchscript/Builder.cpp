// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Making operations through MLIR's C interface.

#include "torchscript/Builder.h"

#include "capi/TorchTypes.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

namespace torch_mlir::torchscript {

MlirOperation createDetached(MlirContext context, const std::string &name, MlirLocation location,
                             const std::vector<MlirType> &results,
                             const std::vector<MlirValue> &operands,
                             const std::vector<Attribute> &attributes,
                             const std::vector<MlirRegion> &regions) {
  MlirOperationState state = mlirOperationStateGet(wrap(name), location);
  mlirOperationStateAddResults(&state, results.size(), results.data());
  mlirOperationStateAddOperands(&state, operands.size(), operands.data());
  std::vector<MlirNamedAttribute> named;
  named.reserve(attributes.size());
  for (const auto &[key, attribute] : attributes)
    named.push_back(mlirNamedAttributeGet(
        mlirIdentifierGet(context, mlirStringRefCreateFromCString(key)), attribute));
  mlirOperationStateAddAttributes(&state, named.size(), named.data());
  mlirOperationStateAddOwnedRegions(&state, regions.size(), regions.data());
  return mlirOperationCreate(&state);
}

MlirOperation Builder::create(const std::string &name, MlirLocation location,
                              const std::vector<MlirType> &results,
                              const std::vector<MlirValue> &operands,
                              const std::vector<Attribute> &attributes,
                              const std::vector<MlirRegion> &regions) {
  MlirOperation operation =
      createDetached(context, name, location, results, operands, attributes, regions);
  if (inFront)
    mlirBlockInsertOwnedOperationAfter(block, last, operation);
  else
    mlirBlockAppendOwnedOperation(block, operation);
  return last = operation;
}

MlirValue Builder::value(const std::string &name, MlirLocation location, MlirType result,
                         const std::vector<MlirValue> &operands,
                         const std::vector<Attribute> &attributes) {
  return mlirOperationGetResult(create(name, location, {result}, operands, attributes), 0);
}

static bool isTensor(MlirType type) {
  return torchMlirTypeIsATorchNonValueTensor(type) || torchMlirTypeIsATorchValueTensor(type);
}

MlirValue Builder::convert(MlirValue value, MlirType type, MlirLocation location) {
  MlirType from = mlirValueGetType(value);
  if (mlirTypeEqual(from, type))
    return value;
  bool widens = torchMlirTorchTypeIsSubtype(from, type);
  bool narrows = torchMlirTorchTypeIsSubtype(type, from);
  if ((widens || narrows) && isTensor(from) && isTensor(type))
    return this->value("torch.tensor_static_info_cast", location, type, {value});
  if (widens)
    return this->value("torch.derefine", location, type, {value});
  if (narrows)
    return this->value("torch.prim.unchecked_cast", location, type, {value});
  MlirType any = torchMlirTorchAnyTypeGet(context);
  value = this->value("torch.derefine", location, any, {value});
  return this->value("torch.prim.unchecked_cast", location, type, {value});
}

MlirAttribute Builder::string(const std::string &text) const {
  return mlirStringAttrGet(context, wrap(text));
}

MlirAttribute Builder::i64(int64_t number) const {
  return mlirIntegerAttrGet(mlirIntegerTypeGet(context, 64), number);
}

MlirAttribute Builder::type(MlirType type) const { return mlirTypeAttrGet(type); }

MlirAttribute Builder::symbol(const std::string &name) const {
  return mlirFlatSymbolRefAttrGet(context, wrap(name));
}

MlirAttribute Builder::unit() const { return mlirUnitAttrGet(context); }

} // namespace torch_mlir::torchscript
