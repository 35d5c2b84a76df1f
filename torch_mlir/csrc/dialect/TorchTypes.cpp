// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialect/TorchDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "llvm/ADT/TypeSwitch.h"

namespace torch_mlir::torch {

using namespace mlir;
using llvm::function_ref;

//===----------------------------------------------------------------------===//
// Parsing and printing
//===----------------------------------------------------------------------===//

/// A type of this dialect without its `!torch.`, as it stands inside a container.
static Type parseContainedType(AsmParser &parser);
static void printContainedType(AsmPrinter &printer, Type type);

static ParseResult parseSizes(AsmParser &parser, SmallVectorImpl<int64_t> &sizes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalQuestion())) {
      sizes.push_back(ShapedType::kDynamic);
      return success();
    }
    SMLoc location = parser.getCurrentLocation();
    if (parser.parseInteger(sizes.emplace_back()))
      return failure();
    if (sizes.back() < 0)
      return parser.emitError(location, "a size can't be negative: write '?' where it's unknown");
    return success();
  });
}

template <typename TensorType>
static Type parseTensorType(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  MLIRContext *context = parser.getContext();
  if (failed(parser.parseOptionalLess()))
    return TensorType::get(context);

  SmallVector<int64_t> sizes;
  bool ranked = failed(parser.parseOptionalStar());
  if (ranked && parseSizes(parser, sizes))
    return {};
  if (parser.parseComma())
    return {};

  Type dtype;
  if (failed(parser.parseOptionalKeyword("unk"))) {
    OptionalParseResult found = parser.parseOptionalType(dtype);
    if (!found.has_value()) {
      parser.emitError(parser.getCurrentLocation(),
                       "expected a dtype: a type such as f32, si64 or !torch.qint8, or 'unk'");
      return {};
    }
    if (failed(*found))
      return {};
  }

  Attribute sparsity;
  if (succeeded(parser.parseOptionalComma()) && parser.parseAttribute(sparsity))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<TensorType>(location, context, ranked, ArrayRef<int64_t>(sizes), dtype,
                                       sparsity);
}

template <typename TensorType>
static void printTensorType(TensorType type, AsmPrinter &printer) {
  if (!type.getRanked() && !type.getDtype())
    return;
  printer << '<';
  if (type.getRanked()) {
    printer << '[';
    llvm::interleave(
        type.getShape(), printer.getStream(),
        [&](int64_t size) {
          if (ShapedType::isDynamic(size))
            printer << '?';
          else
            printer << size;
        },
        ",");
    printer << ']';
  } else {
    printer << '*';
  }
  printer << ',';
  if (Type dtype = type.getDtype())
    printer.printType(dtype);
  else
    printer << "unk";
  if (Attribute sparsity = type.getSparsity()) {
    printer << ',';
    printer.printAttribute(sparsity);
  }
  printer << '>';
}

static ParseResult parseContainedTypes(AsmParser &parser, SmallVectorImpl<Type> &types) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&]() -> ParseResult {
    types.push_back(parseContainedType(parser));
    return success(static_cast<bool>(types.back()));
  });
}

static void printContainedTypes(ArrayRef<Type> types, AsmPrinter &printer) {
  printer << '<';
  llvm::interleaveComma(types, printer.getStream(),
                        [&](Type type) { printContainedType(printer, type); });
  printer << '>';
}

template <typename UnaryType>
static Type parseUnaryType(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  Type contained = parseContainedType(parser);
  if (!contained || parser.parseGreater())
    return {};
  return parser.getChecked<UnaryType>(location, parser.getContext(), contained);
}

template <typename NaryType>
static Type parseNaryType(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  SmallVector<Type> contained;
  if (parseContainedTypes(parser, contained))
    return {};
  return parser.getChecked<NaryType>(location, parser.getContext(), ArrayRef<Type>(contained));
}

Type NonValueTensorType::parse(AsmParser &parser) {
  return parseTensorType<NonValueTensorType>(parser);
}
void NonValueTensorType::print(AsmPrinter &printer) const { printTensorType(*this, printer); }

Type ValueTensorType::parse(AsmParser &parser) { return parseTensorType<ValueTensorType>(parser); }
void ValueTensorType::print(AsmPrinter &printer) const { printTensorType(*this, printer); }

Type ListType::parse(AsmParser &parser) { return parseUnaryType<ListType>(parser); }
void ListType::print(AsmPrinter &printer) const {
  printContainedTypes(getContainedType(), printer);
}

Type OptionalType::parse(AsmParser &parser) { return parseUnaryType<OptionalType>(parser); }
void OptionalType::print(AsmPrinter &printer) const {
  printContainedTypes(getContainedType(), printer);
}

Type TupleType::parse(AsmParser &parser) { return parseNaryType<TupleType>(parser); }
void TupleType::print(AsmPrinter &printer) const {
  printContainedTypes(getContainedTypes(), printer);
}

Type UnionType::parse(AsmParser &parser) { return parseNaryType<UnionType>(parser); }
void UnionType::print(AsmPrinter &printer) const {
  printContainedTypes(getContainedTypes(), printer);
}

Type DictType::parse(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  Type key = parseContainedType(parser);
  if (!key || parser.parseComma())
    return {};
  Type value = parseContainedType(parser);
  if (!value || parser.parseGreater())
    return {};
  return parser.getChecked<DictType>(location, parser.getContext(), key, value);
}
void DictType::print(AsmPrinter &printer) const {
  printContainedTypes({getKeyType(), getValueType()}, printer);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

bool isTorchType(Type type) { return type && isa<TorchDialect>(type.getDialect()); }

bool isValidDtype(Type dtype) {
  if (auto integer = dyn_cast<IntegerType>(dtype)) {
    // torch.bool is i1; every other integer says whether it's signed. PyTorch has int1 to
    // int64 and uint1 to uint64.
    return integer.isSignless() ? integer.getWidth() == 1
                                : integer.getWidth() >= 1 && integer.getWidth() <= 64;
  }
  if (auto real = dyn_cast<mlir::FloatType>(dtype))
    return !isa<Float80Type, Float128Type, FloatTF32Type>(real);
  if (auto complex = dyn_cast<ComplexType>(dtype))
    return isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(complex.getElementType());
  return isa<QInt8Type, QUInt8Type, QInt16Type, QInt32Type, QUInt4x2Type, QUInt2x4Type, StringType>(
      dtype);
}

static LogicalResult verifyTensor(function_ref<InFlightDiagnostic()> emitError, bool ranked,
                                  ArrayRef<int64_t> shape, Type dtype, Attribute sparsity) {
  for (int64_t size : shape) {
    if (size < 0 && !ShapedType::isDynamic(size))
      return emitError() << "a tensor can't have the size " << size;
  }
  if (dtype && !isValidDtype(dtype)) {
    InFlightDiagnostic diagnostic = emitError();
    diagnostic << "a tensor can't have the dtype " << dtype;
    if (auto integer = dyn_cast<IntegerType>(dtype); integer && integer.isSignless())
      diagnostic << ": integers are signed (si" << integer.getWidth() << ") or unsigned (ui"
                 << integer.getWidth() << "), only i1 is neither";
    return diagnostic;
  }
  if (!sparsity)
    return success();
  auto encoding = dyn_cast<VerifiableTensorEncoding>(sparsity);
  if (!encoding)
    return emitError() << "expected an attribute that describes a sparse layout, but got "
                       << sparsity;
  if (!ranked || !dtype)
    return emitError() << "a tensor with a sparse layout needs sizes and a dtype";
  return encoding.verifyEncoding(shape, dtype, emitError);
}

LogicalResult NonValueTensorType::verify(function_ref<InFlightDiagnostic()> emitError, bool ranked,
                                         ArrayRef<int64_t> shape, Type dtype, Attribute sparsity) {
  return verifyTensor(emitError, ranked, shape, dtype, sparsity);
}

LogicalResult ValueTensorType::verify(function_ref<InFlightDiagnostic()> emitError, bool ranked,
                                      ArrayRef<int64_t> shape, Type dtype, Attribute sparsity) {
  return verifyTensor(emitError, ranked, shape, dtype, sparsity);
}

static LogicalResult verifyContained(function_ref<InFlightDiagnostic()> emitError, StringRef what,
                                     ArrayRef<Type> types) {
  for (Type type : types) {
    if (!isTorchType(type))
      return emitError() << "a !torch." << what << " holds types of the torch dialect, but got "
                         << type;
  }
  return success();
}

LogicalResult ListType::verify(function_ref<InFlightDiagnostic()> emitError, Type contained) {
  return verifyContained(emitError, getMnemonic(), contained);
}

LogicalResult OptionalType::verify(function_ref<InFlightDiagnostic()> emitError, Type contained) {
  return verifyContained(emitError, getMnemonic(), contained);
}

LogicalResult TupleType::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<Type> contained) {
  return verifyContained(emitError, getMnemonic(), contained);
}

LogicalResult UnionType::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<Type> contained) {
  return verifyContained(emitError, getMnemonic(), contained);
}

LogicalResult DictType::verify(function_ref<InFlightDiagnostic()> emitError, Type key, Type value) {
  return verifyContained(emitError, getMnemonic(), {key, value});
}

//===----------------------------------------------------------------------===//
// Relations
//===----------------------------------------------------------------------===//

std::optional<TensorParameters> getTensorParameters(Type type) {
  auto parameters = [](auto tensor) {
    return TensorParameters{tensor.getOptionalSizes(), tensor.getDtype(), tensor.getSparsity()};
  };
  return llvm::TypeSwitch<Type, std::optional<TensorParameters>>(type)
      .Case<NonValueTensorType>(parameters)
      .Case<ValueTensorType>(parameters)
      .Default([](Type) { return std::nullopt; });
}

ValueTensorType withValueSemantics(Type tensor) {
  TensorParameters parameters = *getTensorParameters(tensor);
  return ValueTensorType::get(tensor.getContext(), parameters.sizes, parameters.dtype,
                              parameters.sparsity);
}

NonValueTensorType withoutValueSemantics(Type tensor) {
  TensorParameters parameters = *getTensorParameters(tensor);
  return NonValueTensorType::get(tensor.getContext(), parameters.sizes, parameters.dtype,
                                 parameters.sparsity);
}

ValueTensorType getLiteralType(TypedAttr attribute) {
  auto shaped = dyn_cast<RankedTensorType>(attribute.getType());
  if (!shaped || !shaped.hasStaticShape())
    return {};
  Type dtype = shaped.getElementType();
  if (auto integer = dyn_cast<IntegerType>(dtype);
      integer && integer.isSignless() && integer.getWidth() != 1)
    dtype = IntegerType::get(dtype.getContext(), integer.getWidth(), IntegerType::Signed);
  if (!isValidDtype(dtype))
    return {};
  return ValueTensorType::get(dtype.getContext(), shaped.getShape(), dtype);
}

/// Whether `sub` says all that `super` says.
static bool isRefinement(const TensorParameters &sub, const TensorParameters &super) {
  if (super.dtype && sub.dtype != super.dtype)
    return false;
  if (super.sparsity && sub.sparsity != super.sparsity)
    return false;
  if (!super.sizes)
    return true;
  if (!sub.sizes || sub.sizes->size() != super.sizes->size())
    return false;
  return llvm::all_of(llvm::zip_equal(*sub.sizes, *super.sizes), [](auto sizes) {
    auto [subSize, superSize] = sizes;
    return ShapedType::isDynamic(superSize) || subSize == superSize;
  });
}

bool areTensorTypesCompatible(Type a, Type b) {
  std::optional<TensorParameters> left = getTensorParameters(a);
  std::optional<TensorParameters> right = getTensorParameters(b);
  if (!left || !right || a.getTypeID() != b.getTypeID())
    return false;
  if (left->dtype && right->dtype && left->dtype != right->dtype)
    return false;
  if (!left->sizes || !right->sizes)
    return true;
  if (left->sizes->size() != right->sizes->size())
    return false;
  return llvm::all_of(llvm::zip_equal(*left->sizes, *right->sizes), [](auto sizes) {
    auto [leftSize, rightSize] = sizes;
    return ShapedType::isDynamic(leftSize) || ShapedType::isDynamic(rightSize) ||
           leftSize == rightSize;
  });
}

bool isSubtype(Type sub, Type super) {
  if (sub == super || isa<AnyType>(super))
    return true;

  // Alternatives first: each of the subtype's has to fit.
  if (auto alternatives = dyn_cast<UnionType>(sub))
    return llvm::all_of(alternatives.getContainedTypes(),
                        [&](Type type) { return isSubtype(type, super); });
  if (auto optional = dyn_cast<OptionalType>(super)) {
    if (auto subOptional = dyn_cast<OptionalType>(sub))
      return isSubtype(subOptional.getContainedType(), optional.getContainedType());
    return isa<NoneType>(sub) || isSubtype(sub, optional.getContainedType());
  }
  if (auto alternatives = dyn_cast<UnionType>(super)) {
    if (llvm::any_of(alternatives.getContainedTypes(),
                     [&](Type type) { return isSubtype(sub, type); }))
      return true;
    auto subOptional = dyn_cast<OptionalType>(sub);
    return subOptional && isSubtype(NoneType::get(sub.getContext()), super) &&
           isSubtype(subOptional.getContainedType(), super);
  }

  if (isa<NumberType>(super))
    return isa<IntType, FloatType>(sub);
  if (auto tuple = dyn_cast<TupleType>(super)) {
    auto subTuple = dyn_cast<TupleType>(sub);
    return subTuple && subTuple.getContainedTypes().size() == tuple.getContainedTypes().size() &&
           llvm::all_of(
               llvm::zip_equal(subTuple.getContainedTypes(), tuple.getContainedTypes()),
               [](auto types) { return isSubtype(std::get<0>(types), std::get<1>(types)); });
  }

  // Lists and dicts are invariant: they can be written to.
  std::optional<TensorParameters> parameters = getTensorParameters(super);
  return parameters && sub.getTypeID() == super.getTypeID() &&
         isRefinement(*getTensorParameters(sub), *parameters);
}

bool isReferenceType(Type type) {
  return llvm::TypeSwitch<Type, bool>(type)
      .Case<NonValueTensorType, ListType, DictType, NnModuleType, AnyType, GeneratorType>(
          [](Type) { return true; })
      .Case([](OptionalType optional) { return isReferenceType(optional.getContainedType()); })
      .Case<TupleType, UnionType>(
          [](auto several) { return llvm::any_of(several.getContainedTypes(), isReferenceType); })
      .Default([](Type) { return false; });
}

} // namespace torch_mlir::torch

//===----------------------------------------------------------------------===//
// TableGen's part
//===----------------------------------------------------------------------===//

#define GET_TYPEDEF_CLASSES
#include "dialect/TorchTypes.cpp.inc"

namespace torch_mlir::torch {

static Type parseContainedType(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  StringRef mnemonic;
  Type type;
  OptionalParseResult found = generatedTypeParser(parser, &mnemonic, type);
  if (found.has_value())
    return succeeded(*found) ? type : Type();
  parser.emitError(location, "the torch dialect has no type '")
      << mnemonic << "'; inside a container it's written without '!torch.'";
  return {};
}

static void printContainedType(AsmPrinter &printer, Type type) {
  LogicalResult printed = generatedTypePrinter(type, printer);
  assert(succeeded(printed) && "a container holds types of this dialect only");
  (void)printed;
}

Type TorchDialect::parseType(DialectAsmParser &parser) const {
  SMLoc location = parser.getCurrentLocation();
  StringRef mnemonic;
  Type type;
  OptionalParseResult found = generatedTypeParser(parser, &mnemonic, type);
  if (found.has_value())
    return succeeded(*found) ? type : Type();
  parser.emitError(location, "the torch dialect has no type '") << mnemonic << "'";
  return {};
}

void TorchDialect::printType(Type type, DialectAsmPrinter &printer) const {
  printContainedType(printer, type);
}

void TorchDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/TorchTypes.cpp.inc"
      >();
}

} // namespace torch_mlir::torch
