// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialect/TorchDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

namespace torch_mlir::torch {

using namespace mlir;

/// Types with commas between, where there may be none: MLIR's own `type(...)` can't read
/// what it prints then.
static ParseResult parseTypes(OpAsmParser &parser, SmallVectorImpl<Type> &types) {
  Type first;
  OptionalParseResult found = parser.parseOptionalType(first);
  if (!found.has_value())
    return success();
  if (failed(*found))
    return failure();
  types.push_back(first);
  return succeeded(parser.parseOptionalComma()) ? parser.parseTypeList(types) : success();
}

static void printTypes(OpAsmPrinter &printer, Operation *, TypeRange types) { printer << types; }

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

OpFoldResult ConstantIntOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult ConstantFloatOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult ConstantBoolOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult ConstantStrOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult ConstantDeviceOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult ConstantNumberOp::fold(FoldAdaptor) { return getValueAttr(); }
OpFoldResult ConstantNoneOp::fold(FoldAdaptor) { return UnitAttr::get(getContext()); }
OpFoldResult ValueTensorLiteralOp::fold(FoldAdaptor) { return getValueAttr(); }

void ConstantIntOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "int" + std::to_string(getValueAttr().getInt()));
}

void ConstantFloatOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  std::string name;
  llvm::raw_string_ostream stream(name);
  stream << "float" << llvm::format("%e", getValue().convertToDouble());
  llvm::erase(name, '+');
  setName(getResult(), name);
}

void ConstantBoolOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getValue() ? "true" : "false");
}

void ConstantStrOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), "str"); }

void ConstantDeviceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getValue());
}

void ConstantNoneOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "none");
}

/// The type of a literal's attribute, null and a diagnostic where it can't be one.
static ValueTensorType verifyLiteral(Operation *op, TypedAttr value) {
  ValueTensorType type;
  if (isa<ElementsAttr, DenseResourceElementsAttr>(value))
    type = getLiteralType(value);
  if (!type)
    op->emitOpError() << "expected the elements of a tensor with a dtype that PyTorch has, but got "
                      << value.getType();
  return type;
}

/// The type of a literal that is being made, null and a diagnostic where it can't be one.
static ValueTensorType inferLiteral(std::optional<Location> location, TypedAttr value) {
  ValueTensorType type;
  if (isa_and_present<ElementsAttr, DenseResourceElementsAttr>(value))
    type = getLiteralType(value);
  if (!type)
    emitOptionalError(location,
                      "the value isn't the elements of a tensor with a dtype that PyTorch has");
  return type;
}

LogicalResult ValueTensorLiteralOp::inferReturnTypes(
    MLIRContext *, std::optional<Location> location, ValueRange operands, DictionaryAttr attributes,
    OpaqueProperties properties, RegionRange regions, SmallVectorImpl<Type> &types) {
  Adaptor adaptor(operands, attributes, properties, regions);
  ValueTensorType type = inferLiteral(location, adaptor.getValue());
  if (type)
    types.assign({type});
  return success(bool(type));
}

LogicalResult NonValueTensorLiteralOp::inferReturnTypes(
    MLIRContext *, std::optional<Location> location, ValueRange operands, DictionaryAttr attributes,
    OpaqueProperties properties, RegionRange regions, SmallVectorImpl<Type> &types) {
  Adaptor adaptor(operands, attributes, properties, regions);
  ValueTensorType type = inferLiteral(location, adaptor.getValue());
  if (type)
    types.assign({withoutValueSemantics(type)});
  return success(bool(type));
}

LogicalResult ValueTensorLiteralOp::verify() {
  ValueTensorType type = verifyLiteral(*this, getValue());
  if (!type)
    return failure();
  if (type != getType())
    return emitOpError() << "has elements of " << type << ", but the result's type is "
                         << getType();
  return success();
}

LogicalResult NonValueTensorLiteralOp::verify() {
  ValueTensorType type = verifyLiteral(*this, getValue());
  if (!type)
    return failure();
  if (!isSubtype(withoutValueSemantics(type), getType()))
    return emitOpError() << "has elements of " << withoutValueSemantics(type)
                         << ", which is no subtype of the result's type " << getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

bool DerefineOp::areCastCompatible(TypeRange inputs, TypeRange outputs) {
  return isSubtype(inputs.front(), outputs.front());
}

bool PrimUncheckedCastOp::areCastCompatible(TypeRange inputs, TypeRange outputs) {
  return isSubtype(outputs.front(), inputs.front());
}

bool TensorStaticInfoCastOp::areCastCompatible(TypeRange inputs, TypeRange outputs) {
  return areTensorTypesCompatible(inputs.front(), outputs.front());
}

LogicalResult CopyToNonValueTensorOp::inferReturnTypes(MLIRContext *,
                                                       std::optional<Location> location,
                                                       ValueRange operands, DictionaryAttr,
                                                       OpaqueProperties, RegionRange,
                                                       SmallVectorImpl<Type> &types) {
  if (operands.size() != 1 || !isa<ValueTensorType>(operands.front().getType()))
    return emitOptionalError(location, "a !torch.vtensor is copied to a !torch.tensor");
  types.assign({withoutValueSemantics(operands.front().getType())});
  return success();
}

LogicalResult CopyToValueTensorOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                    ValueRange operands, DictionaryAttr,
                                                    OpaqueProperties, RegionRange,
                                                    SmallVectorImpl<Type> &types) {
  if (operands.size() != 1 || !isa<NonValueTensorType>(operands.front().getType()))
    return emitOptionalError(location, "a !torch.tensor is copied to a !torch.vtensor");
  types.assign({withValueSemantics(operands.front().getType())});
  return success();
}

//===----------------------------------------------------------------------===//
// Containers
//===----------------------------------------------------------------------===//

static LogicalResult verifyElements(Operation *op, StringRef what, ValueRange elements,
                                    Type expected) {
  for (auto [index, element] : llvm::enumerate(elements)) {
    if (!isSubtype(element.getType(), expected))
      return op->emitOpError() << what << " #" << index << " must be a subtype of " << expected
                               << ", but got " << element.getType();
  }
  return success();
}

LogicalResult PrimListConstructOp::verify() {
  return verifyElements(*this, "element", getElements(), getType().getContainedType());
}

LogicalResult PrimDictConstructOp::verify() {
  if (failed(verifyElements(*this, "key", getKeys(), getType().getKeyType())))
    return failure();
  return verifyElements(*this, "value", getValues(), getType().getValueType());
}

LogicalResult PrimTupleConstructOp::verify() {
  Type elements = TupleType::get(getContext(), llvm::to_vector(getElements().getTypes()));
  if (!isSubtype(elements, getType()))
    return emitOpError() << "the elements make a " << elements
                         << ", which is no subtype of the result's type " << getType();
  return success();
}

LogicalResult PrimTupleUnpackOp::verify() {
  Type results = TupleType::get(getContext(), llvm::to_vector(getResultTypes()));
  if (!isSubtype(getTup().getType(), results))
    return emitOpError() << "the results make a " << results << ", but the operand is a "
                         << getTup().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// prim.If
//===----------------------------------------------------------------------===//

ParseResult PrimIfOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::UnresolvedOperand condition;
  Region *thenRegion = state.addRegion();
  Region *elseRegion = state.addRegion();
  if (parser.parseOperand(condition) ||
      parser.resolveOperand(condition, BoolType::get(parser.getContext()), state.operands) ||
      parser.parseArrowTypeList(state.types) || parser.parseRegion(*thenRegion) ||
      parser.parseKeyword("else") || parser.parseRegion(*elseRegion) ||
      parser.parseOptionalAttrDict(state.attributes))
    return failure();
  return success();
}

void PrimIfOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getCondition() << " -> (" << getResultTypes() << ") ";
  printer.printRegion(getThenRegion(), /*printEntryBlockArgs=*/false);
  printer << " else ";
  printer.printRegion(getElseRegion(), /*printEntryBlockArgs=*/false);
  printer.printOptionalAttrDict((*this)->getAttrs());
}

void PrimIfOp::getSuccessorRegions(RegionBranchPoint point,
                                   SmallVectorImpl<RegionSuccessor> &successors) {
  if (!point.isParent()) {
    successors.emplace_back(getOperation(), getResults());
    return;
  }
  successors.emplace_back(&getThenRegion());
  successors.emplace_back(&getElseRegion());
}

//===----------------------------------------------------------------------===//
// prim.Loop
//===----------------------------------------------------------------------===//

LogicalResult PrimLoopOp::verify() {
  Block &body = getRegion().front();
  if (body.getNumArguments() != getIterArgsInit().size() + 1 ||
      !isa<IntType>(body.getArgument(0).getType()))
    return emitOpError() << "the region takes the number of the iteration, a !torch.int, and "
                            "then each of the "
                         << getIterArgsInit().size()
                         << " carried values, but its arguments are of types "
                         << body.getArgumentTypes();
  if (getNumResults() != getIterArgsInit().size())
    return emitOpError() << "carries " << getIterArgsInit().size() << " values, but has "
                         << getNumResults() << " results";
  return success();
}

OperandRange PrimLoopOp::getEntrySuccessorOperands(RegionSuccessor) { return getIterArgsInit(); }

void PrimLoopOp::getSuccessorRegions(RegionBranchPoint,
                                     SmallVectorImpl<RegionSuccessor> &successors) {
  // The region may run any number of times, none included. Its first argument is the
  // number of the iteration, which isn't carried.
  successors.emplace_back(&getRegion(), getRegion().getArguments().drop_front());
  successors.emplace_back(getOperation(), getResults());
}

MutableOperandRange PrimLoopConditionOp::getMutableSuccessorOperands(RegionSuccessor) {
  return getIterArgsMutable();
}

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

LogicalResult ClassTypeOp::verifyRegions() {
  llvm::StringMap<Operation *> members;
  for (Operation &member : getRegion().front().without_terminator()) {
    StringRef name;
    if (auto attribute = dyn_cast<AttrOp>(member))
      name = attribute.getName();
    else if (auto method = dyn_cast<MethodOp>(member))
      name = method.getName();
    else
      return member.emitOpError() << "isn't allowed in a torch.class_type";
    auto [first, isNew] = members.try_emplace(name, &member);
    if (isNew)
      continue;
    InFlightDiagnostic diagnostic = emitOpError() << "has two members named '" << name << "'";
    diagnostic.attachNote(first->second->getLoc()) << "the first is here";
    diagnostic.attachNote(member.getLoc()) << "the second is here";
    return diagnostic;
  }
  return success();
}

LogicalResult MethodOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Operation *found = symbols.lookupNearestSymbolFrom(*this, getFunctionAttr());
  auto function = dyn_cast_or_null<FunctionOpInterface>(found);
  if (!function)
    return emitOpError() << "'" << getFunctionAttr() << "' isn't a function";
  if (function.isExternal())
    return emitOpError() << "'" << getFunctionAttr() << "' is declared, not defined";
  if (function.getVisibility() != SymbolTable::Visibility::Private)
    return emitOpError() << "'" << getFunctionAttr() << "' must be private";
  auto self =
      NnModuleType::get(getContext(), cast<ClassTypeOp>((*this)->getParentOp()).getSymName());
  ArrayRef<Type> arguments = function.getArgumentTypes();
  if (arguments.empty() || arguments.front() != self)
    return emitOpError() << "'" << getFunctionAttr() << "' must take " << self << " first";
  return success();
}

LogicalResult NnModuleOp::verifyRegions() {
  for (Operation &member : getRegion().front().without_terminator()) {
    if (!isa<SlotOp>(member))
      return member.emitOpError() << "isn't allowed in a torch.nn_module";
  }
  return success();
}

LogicalResult NnModuleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto name = StringAttr::get(getContext(), getType().getClassName());
  auto type = symbols.lookupNearestSymbolFrom<ClassTypeOp>(*this, name);
  if (!type)
    return emitOpError() << "there is no torch.class_type @" << name.getValue();
  auto attributes = llvm::to_vector(type.getRegion().getOps<AttrOp>());
  auto slots = llvm::to_vector(getRegion().getOps<SlotOp>());
  if (attributes.size() != slots.size())
    return emitOpError() << "has " << slots.size() << " slots, but the class has "
                         << attributes.size() << " attributes";
  for (auto [attribute, slot] : llvm::zip_equal(attributes, slots)) {
    if (attribute.getName() == slot.getName() &&
        isSubtype(slot.getValue().getType(), attribute.getType()))
      continue;
    InFlightDiagnostic diagnostic = slot.emitOpError()
                                    << "must give '" << attribute.getName() << "', of type "
                                    << attribute.getType() << ", a value";
    diagnostic.attachNote(attribute.getLoc()) << "the class's attribute is here";
    return diagnostic;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Global slots
//===----------------------------------------------------------------------===//

/// The slot that an operation names, null and a diagnostic where it names none.
static GlobalSlotOp lookupSlot(Operation *op, FlatSymbolRefAttr name,
                               SymbolTableCollection &symbols) {
  auto slot = symbols.lookupNearestSymbolFrom<GlobalSlotOp>(op, name);
  if (!slot)
    op->emitOpError() << "there is no torch.global_slot " << name;
  return slot;
}

LogicalResult GlobalSlotGetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  GlobalSlotOp slot = lookupSlot(*this, getSlotAttr(), symbols);
  if (!slot)
    return failure();
  // Either may know more: the bound what the slot holds at least, the result what it
  // turned out to hold.
  if (isSubtype(slot.getTypeBound(), getType()) || isSubtype(getType(), slot.getTypeBound()))
    return success();
  return emitOpError() << "gives " << getType() << ", but the slot holds " << slot.getTypeBound();
}

LogicalResult GlobalSlotSetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  GlobalSlotOp slot = lookupSlot(*this, getSlotAttr(), symbols);
  if (!slot)
    return failure();
  if (isSubtype(getValue().getType(), slot.getTypeBound()))
    return success();
  return emitOpError() << "sets " << getValue().getType() << ", but the slot holds "
                       << slot.getTypeBound();
}

LogicalResult GlobalSlotModuleInitializerOp::verify() {
  auto module = (*this)->getParentOp();
  if (!module)
    return success();
  for (Operation &other : module->getRegion(0).front()) {
    if (!isa<GlobalSlotModuleInitializerOp>(other))
      continue;
    if (&other == getOperation())
      return success();
    InFlightDiagnostic diagnostic = emitOpError() << "stands twice in its module";
    diagnostic.attachNote(other.getLoc()) << "the first is here";
    return diagnostic;
  }
  return success();
}

LogicalResult GlobalSlotModuleInitializerOp::verifyRegions() {
  if (!isa<InitializeGlobalSlotsOp>(getInitializer().front().back()))
    return emitOpError() << "must end in torch.initialize.global_slots";
  return success();
}

ParseResult InitializeGlobalSlotsOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<Attribute> names;
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseLSquare())
    return failure();
  while (failed(parser.parseOptionalRSquare())) {
    StringAttr name;
    OpAsmParser::UnresolvedOperand value;
    Type type;
    if (parser.parseSymbolName(name) || parser.parseLParen() || parser.parseOperand(value) ||
        parser.parseColonType(type) || parser.parseRParen() ||
        parser.resolveOperand(value, type, state.operands))
      return failure();
    names.push_back(FlatSymbolRefAttr::get(name));
  }
  state.addAttribute(getSlotSymNamesAttrName(state.name), parser.getBuilder().getArrayAttr(names));
  return success();
}

void InitializeGlobalSlotsOp::print(OpAsmPrinter &printer) {
  printer.printOptionalAttrDict((*this)->getAttrs(), getSlotSymNamesAttrName().getValue());
  printer << " [";
  for (auto [name, value] : llvm::zip_equal(getSlotSymNames(), getInitialValues())) {
    printer.printNewline();
    printer << "  " << name << '(' << value << " : " << value.getType() << ')';
  }
  printer.printNewline();
  printer << ']';
}

LogicalResult InitializeGlobalSlotsOp::verify() {
  if (getSlotSymNames().size() != getInitialValues().size())
    return emitOpError() << "names " << getSlotSymNames().size() << " slots, but has "
                         << getInitialValues().size() << " values";
  return success();
}

LogicalResult InitializeGlobalSlotsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  llvm::DenseSet<Operation *> initialized;
  for (auto [name, value] : llvm::zip_equal(getSlotSymNames(), getInitialValues())) {
    auto symbol = cast<FlatSymbolRefAttr>(name);
    GlobalSlotOp slot = lookupSlot(*this, symbol, symbols);
    if (!slot)
      return failure();
    if (!initialized.insert(slot).second)
      return emitOpError() << "gives " << symbol << " two values";
    if (!isSubtype(value.getType(), slot.getTypeBound()))
      return emitOpError() << "gives " << symbol << " a " << value.getType()
                           << ", but the slot holds " << slot.getTypeBound();
  }
  Operation *module = (*this)->getParentOp()->getParentOp();
  if (!module)
    return success();
  for (auto slot : module->getRegion(0).getOps<GlobalSlotOp>()) {
    if (initialized.contains(slot))
      continue;
    InFlightDiagnostic diagnostic = emitOpError() << "gives @" << slot.getSymName() << " no value";
    diagnostic.attachNote(slot.getLoc()) << "the slot is here";
    return diagnostic;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

static ParseResult parseShapeExpressions(OpAsmParser &parser, AffineMapAttr &expressions) {
  return parser.parseAttribute(expressions);
}

/// Without an alias: a tensor's shape is read where it stands.
static void printShapeExpressions(OpAsmPrinter &printer, Operation *, AffineMapAttr expressions) {
  expressions.print(printer.getStream());
}

LogicalResult BindSymbolicShapeOp::verify() {
  AffineMap map = getShapeExpressions().getValue();
  if (map.getNumDims())
    return emitOpError() << "the expressions may use symbols, not dimensions, but got "
                         << getShapeExpressionsAttr();
  if (map.getNumSymbols() != getShapeSymbols().size())
    return emitOpError() << "the expressions have " << map.getNumSymbols() << " symbols, but "
                         << getShapeSymbols().size() << " are given";
  for (auto [index, symbol] : llvm::enumerate(getShapeSymbols())) {
    if (!symbol.getDefiningOp<SymbolicIntOp>())
      return emitOpError() << "symbol #" << index << " must come from a torch.symbolic_int";
  }
  std::optional<ArrayRef<int64_t>> sizes = getTensorParameters(getOperand().getType())->sizes;
  if (sizes && sizes->size() != map.getNumResults())
    return emitOpError() << "has " << map.getNumResults() << " expressions for a tensor of rank "
                         << sizes->size();
  return success();
}

LogicalResult HigherOrderFlexAttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (FlatSymbolRefAttr name : {getScoreModFnAttr(), getMaskModFnAttr()}) {
    if (name && !isa_and_nonnull<FunctionOpInterface>(symbols.lookupNearestSymbolFrom(*this, name)))
      return emitOpError() << "'" << name << "' isn't a function";
  }
  return success();
}

} // namespace torch_mlir::torch

#define GET_OP_CLASSES
#include "dialect/TorchOps.cpp.inc"
