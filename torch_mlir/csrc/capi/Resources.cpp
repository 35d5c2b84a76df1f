// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "capi/Resources.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

/// Whether elements of the two types have the same bits: integers that differ in their sign do.
static bool haveSameBits(Type left, Type right) {
  if (left == right)
    return true;
  return isa<IntegerType>(left) && isa<IntegerType>(right) &&
         left.getIntOrFloatBitWidth() == right.getIntOrFloatBitWidth();
}

MlirAttribute torchMlirDenseResourceElementsAttrGetAs(MlirAttribute attribute,
                                                      MlirType shapedType) {
  auto elements = dyn_cast<DenseResourceElementsAttr>(unwrap(attribute));
  auto type = dyn_cast<ShapedType>(unwrap(shapedType));
  if (!elements || !type || !type.hasStaticShape() ||
      type.getNumElements() != elements.getType().getNumElements() ||
      !haveSameBits(type.getElementType(), elements.getType().getElementType()))
    return wrap(Attribute());
  return wrap(DenseResourceElementsAttr::get(type, elements.getRawHandle()));
}

bool torchMlirElementsAttrGetData(MlirAttribute attribute, const void **data, size_t *size,
                                  bool *isSplat) {
  ArrayRef<char> contents;
  if (auto elements = dyn_cast<DenseResourceElementsAttr>(unwrap(attribute))) {
    AsmResourceBlob *blob = elements.getRawHandle().getBlob();
    if (!blob)
      return false;
    contents = blob->getData();
    *isSplat = false;
  } else if (auto elements = dyn_cast<DenseIntOrFPElementsAttr>(unwrap(attribute))) {
    contents = elements.getRawData();
    *isSplat = elements.isSplat();
  } else {
    return false;
  }
  *data = contents.data();
  *size = contents.size();
  return true;
}
