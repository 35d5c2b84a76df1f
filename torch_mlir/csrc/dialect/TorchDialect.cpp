// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialect/TorchDialect.h"

#include "dialect/OperatorTable.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"

#include "dialect/TorchDialect.cpp.inc"

namespace torch_mlir::torch {

using namespace mlir;

namespace {
/// Any operator may be inlined anywhere: none looks at the function it stands in.
struct TorchInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
};
} // namespace

void TorchDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialect/TorchOps.cpp.inc"
      >();
  registerOperatorTable();
  addInterfaces<TorchInlinerInterface>();
}

Operation *TorchDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                             Location location) {
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    if (isa<IntType>(type))
      return ConstantIntOp::create(builder, location, type, integer);
    if (isa<BoolType>(type))
      return ConstantBoolOp::create(builder, location, type, integer);
  }
  if (auto real = dyn_cast<FloatAttr>(value); real && isa<FloatType>(type))
    return ConstantFloatOp::create(builder, location, type, real);
  if (isa<IntegerAttr, FloatAttr>(value) && isa<NumberType>(type))
    return ConstantNumberOp::create(builder, location, type, value);
  if (auto text = dyn_cast<StringAttr>(value)) {
    if (isa<StringType>(type))
      return ConstantStrOp::create(builder, location, type, text);
    if (isa<DeviceType>(type))
      return ConstantDeviceOp::create(builder, location, type, text);
  }
  if (isa<UnitAttr>(value) && isa<NoneType>(type))
    return ConstantNoneOp::create(builder, location, type);
  if (auto typed = dyn_cast<TypedAttr>(value); typed && isa<ValueTensorType>(type))
    return ValueTensorLiteralOp::create(builder, location, type, typed);
  return nullptr;
}

LogicalResult TorchDialect::verifyRegionArgAttribute(Operation *op, unsigned region,
                                                     unsigned argument, NamedAttribute attribute) {
  if (attribute.getName() != kTypeBoundAttr)
    return op->emitError() << "the torch dialect has no argument attribute '"
                           << attribute.getName().getValue() << "'";
  auto bound = dyn_cast<TypeAttr>(attribute.getValue());
  if (!bound || !getTensorParameters(bound.getValue()))
    return op->emitError() << "'" << kTypeBoundAttr
                           << "' must be a tensor type of the torch dialect, but got "
                           << attribute.getValue();
  // A declaration has no arguments to look at, only a type.
  Type type;
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    type = function.getArgumentTypes()[argument];
  else
    type = op->getRegion(region).getArgument(argument).getType();
  if (!getTensorParameters(type))
    return op->emitError() << "'" << kTypeBoundAttr
                           << "' belongs on an argument of a tensor type of the torch dialect, "
                              "but this one is "
                           << type;
  return success();
}

static ParseResult parseMissingOperator(OpAsmParser &parser, OperationState &state) {
  return parser.emitError(parser.getNameLoc(), describeMissingOperator(state.name.getStringRef()));
}

std::optional<Dialect::ParseOpHook> TorchDialect::getParseOperationHook(StringRef) const {
  return ParseOpHook(parseMissingOperator);
}

} // namespace torch_mlir::torch
