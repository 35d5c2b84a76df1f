// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialect/OperatorTable.h"

#include "dialect/TorchDialect.h"

#include "llvm/ADT/StringExtras.h"

#include <cstddef>

namespace torch_mlir::torch {

using namespace mlir;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

// All texts in one object, found by their offset: a pointer to each would cost as much
// again, and have to be relocated whenever the library is loaded. A row's text is its
// schema, the codes of its operands and those of its results, each ended by a zero. The
// operator's name begins the schema.
#define TEXT(schema, operandKinds, resultKinds) schema "\0" operandKinds "\0" resultKinds
#define MEMBER_(line) text##line
#define MEMBER(line) MEMBER_(line)

namespace {
struct Texts {
#define TORCH_OPERATOR(name, schema, operandKinds, resultKinds, flags)                             \
  char MEMBER(__LINE__)[sizeof(TEXT(schema, operandKinds, resultKinds))];
#include "dialect/OperatorTable.inc"
};
} // namespace

static constexpr Texts texts = {
#define TORCH_OPERATOR(name, schema, operandKinds, resultKinds, flags)                             \
  TEXT(schema, operandKinds, resultKinds),
#include "dialect/OperatorTable.inc"
};

static constexpr Operator operators[] = {
#define TORCH_OPERATOR(name, schema, operandKinds, resultKinds, flags)                             \
  {static_cast<uint32_t>(offsetof(Texts, MEMBER(__LINE__))), flags},
#include "dialect/OperatorTable.inc"
};

namespace {
enum Flag : uint32_t {
#define TORCH_OPERATOR_FLAG(name, bit) flag_##name = bit,
#include "dialect/OperatorTable.inc"
};
} // namespace

#undef MEMBER
#undef MEMBER_
#undef TEXT

static const char *begin(const Operator &row) {
  return reinterpret_cast<const char *>(&texts) + row.text;
}

StringRef Operator::getSchema() const { return begin(*this); }

StringRef Operator::getOperandKinds() const { return getSchema().end() + 1; }

StringRef Operator::getResultKinds() const { return getOperandKinds().end() + 1; }

bool Operator::isPure() const { return flags & flag_pure; }

const Operator *Operator::of(Operation *op) {
  // A row's address is the TypeID of its operator.
  std::less<const void *> less;
  const void *id = op->getName().getTypeID().getAsOpaquePointer();
  if (less(id, std::begin(operators)) || !less(id, std::end(operators)))
    return nullptr;
  return static_cast<const Operator *>(id);
}

/// Takes one whole code off the front: `!LT`, `?i`, `T`.
static StringRef takeKind(StringRef &kinds) {
  size_t length = std::min(kinds.find_first_not_of("!L?"), kinds.size() - 1) + 1;
  StringRef kind = kinds.take_front(length);
  kinds = kinds.drop_front(length);
  return kind;
}

bool Operator::isWritten(unsigned operand) const {
  StringRef kinds = getOperandKinds();
  StringRef kind;
  for (unsigned i = 0; i <= operand && !kinds.empty(); ++i) {
    // Of operands that the schema doesn't list nothing is known.
    if (kinds == "*")
      return !isPure();
    kind = takeKind(kinds);
  }
  return kind.starts_with("!");
}

/// A schema's argument list, with its parentheses, and what follows the arrow. (An alias
/// annotation may have an arrow too: `Tensor(a -> *) self`.)
static std::pair<StringRef, StringRef> halve(StringRef schema) {
  constexpr StringLiteral arrow = ") -> ";
  size_t end = schema.find(arrow) + 1;
  return {schema.slice(schema.find('('), end), schema.drop_front(end + arrow.size() - 1)};
}

/// What stands in a schema's argument list (`which` = 0) or among its results (1), without
/// the commas and the `*` that begins the keyword arguments.
static SmallVector<StringRef> splitSchema(StringRef schema, unsigned which) {
  auto [arguments, results] = halve(schema);
  StringRef list = which ? results : arguments;
  if (list.starts_with("(") && list.ends_with(")"))
    list = list.drop_front().drop_back();

  SmallVector<StringRef> entries;
  int depth = 0;
  char quote = 0;
  size_t start = 0;
  auto finish = [&](size_t end) {
    StringRef entry = list.slice(start, end).trim();
    if (!entry.empty() && entry != "*")
      entries.push_back(entry);
    start = end + 1;
  };
  for (size_t i = 0; i < list.size(); ++i) {
    char c = list[i];
    if (quote) {
      quote = c == quote ? 0 : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      finish(i);
    }
  }
  finish(list.size());
  return entries;
}

/// `Tensor(a!) self=None` taken apart: ("Tensor(a!)", "self").
static std::pair<StringRef, StringRef> splitEntry(StringRef entry) {
  // A type holds spaces inside its parentheses only (`Dict(str, int)`, `Tensor(a -> *)`).
  int depth = 0;
  for (size_t i = 0; i < entry.size(); ++i) {
    if (entry[i] == '(')
      ++depth;
    else if (entry[i] == ')')
      --depth;
    else if (entry[i] == ' ' && depth == 0)
      return {entry.take_front(i), entry.drop_front(i + 1).split('=').first};
  }
  return {entry, ""};
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Whether a value of this type may stand where the schema has that kind.
static bool matches(StringRef kind, Type type) {
  char code = kind.front();
  StringRef rest = kind.drop_front();
  if (code == '!') {
    // Only what is in memory can be written to.
    if (isa<ValueTensorType>(type))
      return false;
    if (auto list = dyn_cast<ListType>(type); list && isa<ValueTensorType>(list.getContainedType()))
      return false;
    return matches(rest, type);
  }
  if (code == 'A' || code == 'P')
    return isTorchType(type);

  // Each of the alternatives has to fit.
  if (auto alternatives = dyn_cast<UnionType>(type))
    return llvm::all_of(alternatives.getContainedTypes(),
                        [&](Type alternative) { return matches(kind, alternative); });
  switch (code) {
  case '?':
    if (isa<NoneType>(type))
      return true;
    if (auto optional = dyn_cast<OptionalType>(type))
      return matches(rest, optional.getContainedType());
    return matches(rest, type);
  case 'L': {
    auto list = dyn_cast<ListType>(type);
    return list && matches(rest, list.getContainedType());
  }
  case 'T':
    return isa<ValueTensorType, NonValueTensorType>(type);
  case 'i':
  case 'd':
    return isa<IntType>(type);
  case 'f':
    return isa<FloatType>(type);
  case 'b':
    return isa<BoolType>(type);
  case 'S':
    return isa<NumberType, IntType, FloatType, BoolType>(type);
  case 's':
    return isa<StringType>(type);
  case 'D':
    return isa<DeviceType>(type);
  case 'G':
    return isa<GeneratorType>(type);
  case 'N':
    return isa<NoneType>(type);
  case 'X':
    return isa<DictType>(type);
  }
  llvm_unreachable("a kind that emit_cpp.py doesn't write");
}

/// Whether a result that the schema describes so may have this type. An operator may give
/// no tensor where its schema has one: a gradient that isn't asked for, say.
static bool matchesResult(StringRef kind, Type type) {
  if (matches(kind, type))
    return true;
  if (kind != "T")
    return false;
  if (auto optional = dyn_cast<OptionalType>(type))
    type = optional.getContainedType();
  return isa<NoneType>(type) || matches(kind, type);
}

static LogicalResult verifyValues(Operation *op, const Operator &row, StringRef what,
                                  TypeRange types, StringRef kinds, unsigned which,
                                  function_ref<bool(StringRef, Type)> matches) {
  StringRef rest = kinds;
  for (auto [index, type] : llvm::enumerate(types)) {
    if (rest == "*") {
      if (isTorchType(type))
        continue;
      return op->emitOpError() << what << " #" << index
                               << " must have a type of the torch dialect, but got " << type
                               << "; schema: " << row.getSchema();
    }
    if (rest.empty())
      break;
    StringRef kind = takeKind(rest);
    if (matches(kind, type))
      continue;
    auto [wanted, name] = splitEntry(splitSchema(row.getSchema(), which)[index]);
    InFlightDiagnostic diagnostic = op->emitOpError() << what << " #" << index;
    if (!name.empty())
      diagnostic << " ('" << name << "')";
    diagnostic << " must be " << wanted << ", but got " << type;
    if (kind.starts_with("!") && matches(kind.drop_front(), type))
      diagnostic << ", which is a value and can't be written to";
    return diagnostic << "; schema: " << row.getSchema();
  }

  unsigned wanted = 0;
  for (StringRef all = kinds; !all.empty() && all != "*"; ++wanted)
    takeKind(all);
  bool open = kinds.ends_with("*");
  if (types.size() == wanted || (open && types.size() > wanted))
    return success();
  return op->emitOpError() << "expected " << (open ? "at least " : "") << wanted << ' ' << what
                           << (wanted == 1 ? "" : "s") << ", but got " << types.size()
                           << "; schema: " << row.getSchema();
}

static LogicalResult verifyOperator(Operation *op, const Operator &row) {
  if (op->getNumRegions() || op->getNumSuccessors())
    return op->emitOpError() << "takes neither regions nor successors; schema: " << row.getSchema();
  if (failed(verifyValues(op, row, "operand", op->getOperandTypes(), row.getOperandKinds(), 0,
                          matches)))
    return failure();
  return verifyValues(op, row, "result", op->getResultTypes(), row.getResultKinds(), 1,
                      matchesResult);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

// torch.aten.add.Tensor %a, %b, %c : T, T, T -> T
// torch.aten.format(%a, %b) : T, T -> T             (any number of operands)

static ParseResult parseOperator(OpAsmParser &parser, OperationState &state, const Operator &row) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> operandTypes, resultTypes;
  SMLoc location = parser.getCurrentLocation();
  auto delimiter = row.isVariadic() ? OpAsmParser::Delimiter::Paren : OpAsmParser::Delimiter::None;
  if (parser.parseOperandList(operands, delimiter) ||
      parser.parseOptionalAttrDict(state.attributes))
    return failure();
  if (operands.empty()) {
    // Nothing stands between the colon and the arrow; the colon itself may be missing.
    (void)parser.parseOptionalColon();
  } else if (parser.parseColon() || parser.parseTypeList(operandTypes)) {
    return failure();
  }
  if (succeeded(parser.parseOptionalArrow()) && !row.getResultKinds().empty() &&
      parser.parseTypeList(resultTypes))
    return failure();
  state.addTypes(resultTypes);
  return parser.resolveOperands(operands, operandTypes, location, state.operands);
}

static void printOperator(Operation *op, OpAsmPrinter &printer, const Operator &row) {
  // Upstream's parser asks for types then, whether or not there are operands.
  if (row.isVariadic() && op->getNumOperands() == 0)
    return printer.printGenericOp(op);
  printer << op->getName();
  if (row.isVariadic())
    printer << '(' << op->getOperands() << ')';
  else if (op->getNumOperands())
    printer << ' ' << op->getOperands();
  printer.printOptionalAttrDict(op->getAttrs());
  if (op->getNumOperands())
    printer << " : " << op->getOperandTypes();
  if (op->getNumResults())
    printer << " -> " << op->getResultTypes();
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

/// Whether a result may be, or hold, a list or dict that the operator is given.
static bool mayKeepContainers(const Operator &row) {
  if (!(row.flags & flag_aliases))
    return false;
  // A container with an alias annotation: `t[](a)`, `Tensor(a)[]`, `Dict(str, t)(a)`.
  StringRef arguments = halve(row.getSchema()).first;
  return arguments.contains("](") || arguments.contains(")[") || arguments.contains(")(");
}

/// Whether nothing can write to the list or dict that `value` is: it's made here, and
/// everything that takes it is known to only read it and not to keep it.
static bool isNeverWrittenTo(Value value) {
  Type contained;
  if (auto list = dyn_cast<ListType>(value.getType()))
    contained = list.getContainedType();
  else if (auto dict = dyn_cast<DictType>(value.getType()))
    contained = dict.getValueType();
  // What it holds is read with it.
  if (!contained || isReferenceType(contained) || !value.getDefiningOp())
    return false;

  auto isReader = [](Operation *op) {
    if (isa<PrimListUnpackOp>(op))
      return true;
    const Operator *row = Operator::of(op);
    return row && row->isPure() && !mayKeepContainers(*row);
  };
  Operation *maker = value.getDefiningOp();
  if (!isa<PrimListConstructOp, PrimDictConstructOp>(maker) && !isReader(maker))
    return false;
  return llvm::all_of(value.getUsers(), isReader);
}

static bool isMutable(Value value) {
  return isReferenceType(value.getType()) && !isNeverWrittenTo(value);
}

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

void getReadingEffects(Operation *op, Effects &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (isMutable(operand.get()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  }
  for (OpResult result : op->getResults()) {
    if (isMutable(result))
      effects.emplace_back(MemoryEffects::Allocate::get(), result);
  }
}

namespace {
struct OperatorEffects : MemoryEffectOpInterface::FallbackModel<OperatorEffects> {
  void getEffects(Operation *op, Effects &effects) const {
    const Operator &row = *Operator::of(op);
    if (row.isPure())
      return getReadingEffects(op, effects);

    // What is written to is known where the schema says so. Where it doesn't, the operator
    // does something that its schema can't say: draws random numbers, prints, raises.
    bool writesKnown = row.flags & flag_mutates;
    for (OpOperand &operand : op->getOpOperands()) {
      if (isReferenceType(operand.get().getType()))
        effects.emplace_back(MemoryEffects::Read::get(), &operand);
      if (row.isWritten(operand.getOperandNumber()))
        effects.emplace_back(MemoryEffects::Write::get(), &operand);
    }
    if (!writesKnown) {
      effects.emplace_back(MemoryEffects::Read::get());
      effects.emplace_back(MemoryEffects::Write::get());
    }
    for (OpResult result : op->getResults()) {
      if (isReferenceType(result.getType()))
        effects.emplace_back(MemoryEffects::Allocate::get(), result);
    }
  }
};

/// Names for the results of an operator that has several: `%values, %indices`.
struct OperatorResultNames : OpAsmOpInterface::ExternalModel<OperatorResultNames, Operation *> {
  void getAsmResultNames(Operation *op, OpAsmSetValueNameFn setName) const {
    StringRef schema = Operator::of(op)->getSchema();
    SmallVector<StringRef> entries = splitSchema(schema, 1);
    if (entries.size() != op->getNumResults())
      return;
    for (auto [index, entry] : llvm::enumerate(entries)) {
      StringRef name = splitEntry(entry).second;
      setName(op->getResult(index), name.empty() ? ("result" + Twine(index)).str() : name);
    }
  }
};

/// For operators whose one result's type follows from its kind alone.
template <typename ResultType>
struct OperatorResult : InferTypeOpInterface::FallbackModel<OperatorResult<ResultType>> {
  static LogicalResult inferReturnTypes(MLIRContext *context, std::optional<Location>, ValueRange,
                                        DictionaryAttr, OpaqueProperties, RegionRange,
                                        SmallVectorImpl<Type> &types) {
    types.assign(1, ResultType::get(context));
    return success();
  }
  static LogicalResult refineReturnTypes(MLIRContext *context, std::optional<Location> location,
                                         ValueRange operands, DictionaryAttr attributes,
                                         OpaqueProperties properties, RegionRange regions,
                                         SmallVectorImpl<Type> &types) {
    return inferReturnTypes(context, location, operands, attributes, properties, regions, types);
  }
  static bool isCompatibleReturnTypes(TypeRange inferred, TypeRange actual) {
    return inferred == actual;
  }
};
} // namespace

static mlir::detail::InterfaceMap getInterfaces(const Operator &row) {
  mlir::detail::InterfaceMap interfaces;
  interfaces.insertModels<OperatorEffects>();
  StringRef kinds = row.getResultKinds();
  if (kinds.empty())
    return interfaces;
  if (kinds == "i" || kinds == "d")
    interfaces.insertModels<OperatorResult<IntType>>();
  else if (kinds == "f")
    interfaces.insertModels<OperatorResult<FloatType>>();
  else if (kinds == "b")
    interfaces.insertModels<OperatorResult<BoolType>>();
  else if (kinds == "s")
    interfaces.insertModels<OperatorResult<StringType>>();
  else if (kinds == "D")
    interfaces.insertModels<OperatorResult<DeviceType>>();
  else if (kinds == "N")
    interfaces.insertModels<OperatorResult<NoneType>>();
  takeKind(kinds);
  if (!kinds.empty() && kinds != "*")
    interfaces.insertModels<OperatorResultNames>();
  return interfaces;
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

namespace {
/// What MLIR asks an operator for. mlir::DynamicOpDefinition would do much of it, but says
/// of any two operations that they differ, so that CSE does nothing, and holds seven
/// function objects for each operator.
class TableOperation final : public OperationName::Impl {
public:
  TableOperation(StringAttr name, Dialect *dialect, const Operator &row)
      : Impl(name, dialect, TypeID::getFromOpaquePointer(&row), getInterfaces(row)), row(row) {}

  LogicalResult foldHook(Operation *, ArrayRef<Attribute>, SmallVectorImpl<OpFoldResult> &) final {
    return failure();
  }
  void getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) final {}
  bool hasTrait(TypeID) final { return false; }
  OperationName::ParseAssemblyFn getParseAssemblyFn() final {
    return [this](OpAsmParser &parser, OperationState &state) {
      return parseOperator(parser, state, row);
    };
  }
  void populateDefaultAttrs(const OperationName &, NamedAttrList &) final {}
  void printAssembly(Operation *op, OpAsmPrinter &printer, StringRef) final {
    printOperator(op, printer, row);
  }
  LogicalResult verifyInvariants(Operation *op) final { return verifyOperator(op, row); }
  LogicalResult verifyRegionInvariants(Operation *) final { return success(); }

  // No properties: attributes of these operators are all discardable.
  std::optional<Attribute> getInherentAttr(Operation *, StringRef) final { return std::nullopt; }
  void setInherentAttr(Operation *op, StringAttr name, Attribute value) final {
    op->setDiscardableAttr(name, value);
  }
  void populateInherentAttrs(Operation *, NamedAttrList &) final {}
  LogicalResult verifyInherentAttrs(OperationName, NamedAttrList &,
                                    function_ref<InFlightDiagnostic()>) final {
    return success();
  }
  int getOpPropertyByteSize() final { return 0; }
  void initProperties(OperationName, OpaqueProperties, OpaqueProperties) final {}
  void deleteProperties(OpaqueProperties) final {}
  void populateDefaultProperties(OperationName, OpaqueProperties) final {}
  LogicalResult setPropertiesFromAttr(OperationName name, OpaqueProperties, Attribute,
                                      function_ref<InFlightDiagnostic()> emitError) final {
    return emitError() << "'" << name << "' has no properties";
  }
  Attribute getPropertiesAsAttr(Operation *) final { return {}; }
  void copyProperties(OpaqueProperties, OpaqueProperties) final {}
  bool compareProperties(OpaqueProperties, OpaqueProperties) final { return true; }
  llvm::hash_code hashProperties(OpaqueProperties) final { return llvm::hash_code(0); }

private:
  const Operator &row;
};
} // namespace

/// Appends the MLIR name of the operator whose schema this is.
static void appendName(StringRef schema, SmallVectorImpl<char> &name) {
  auto [space, rest] = schema.split("::");
  StringRef base = rest.take_until([](char c) { return c == '('; });
  llvm::append_range(name, space);
  name.push_back('.');
  llvm::append_range(name, base);
}

void TorchDialect::registerOperatorTable() {
  MLIRContext *context = getContext();
  SmallString<128> name;
  for (const Operator &row : operators) {
    name = "torch.";
    appendName(row.getSchema(), name);
    // Some of prim's are defined in TorchOps.td, for their text or a stricter verifier.
    if (name.starts_with("torch.prim.") && RegisteredOperationName::lookup(name, context))
      continue;
    RegisteredOperationName::insert(
        std::make_unique<TableOperation>(StringAttr::get(context, name), this, row), {});
  }
}

std::string describeMissingOperator(StringRef name) {
  StringRef key = name;
  key.consume_front("torch.");
  auto [space, rest] = key.split('.');
  StringRef base = rest.split('.').first;
  std::string message = "isn't in the torch dialect";

  // Overloads of the same operator, by what they'd be written as.
  SmallVector<std::string> others;
  std::string prefix = (space + "::" + base).str();
  for (const Operator &row : operators) {
    StringRef schema = row.getSchema();
    if (!base.empty() && schema.consume_front(prefix) &&
        (schema.starts_with("(") || schema.starts_with("."))) {
      SmallString<64> found("torch.");
      appendName(row.getSchema(), found);
      others.push_back(found.str().str());
    }
  }
  if (!others.empty())
    message += "; its overloads are " + llvm::join(others, ", ");
  else
    message += "; an operator that the dialect doesn't know is written as torch.operator \"" +
               key.str() + "\"(...)";
  return message;
}

} // namespace torch_mlir::torch
