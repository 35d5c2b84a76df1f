// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shape and dtypes of operators' results, by the rules in torch_mlir/operators/results.tsv.

#include "torchscript/Shapes.h"

#include <ATen/core/jit_type.h>

#include <miniz.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <unordered_map>

#include "ResultRules.inc"

namespace torch_mlir::torchscript {

using c10::FunctionSchema;
using c10::ScalarType;

//===----------------------------------------------------------------------===//
// How rules are written
//===----------------------------------------------------------------------===//

static ResultRule parseRule(std::string_view &text) {
  auto skip = [&] {
    while (!text.empty() && text[0] == ' ')
      text.remove_prefix(1);
  };
  skip();
  size_t end = std::min(text.find_first_of("(), "), text.size());
  if (end == 0)
    throw std::invalid_argument("a rule without a name");
  ResultRule rule{std::string(text.substr(0, end)), {}};
  text.remove_prefix(end);
  skip();
  if (text.empty() || text[0] != '(')
    return rule;
  do {
    text.remove_prefix(1);
    rule.operands.push_back(parseRule(text));
    skip();
  } while (!text.empty() && text[0] == ',');
  if (text.empty() || text[0] != ')')
    throw std::invalid_argument("the rule '" + rule.name + "' doesn't end");
  text.remove_prefix(1);
  return rule;
}

ResultRule ResultRule::parse(std::string_view text) {
  std::string whole(text);
  ResultRule rule = parseRule(text);
  if (!text.empty())
    throw std::invalid_argument("the rule '" + whole + "' goes on after its end");
  return rule;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

static const Fact &getUnknown() {
  static const Fact unknown;
  return unknown;
}

/// What a rule's operand is: an argument of the operator, or a literal.
static Fact getOperand(const ResultRule &rule, const FunctionSchema &schema,
                       const std::vector<Fact> &operands) {
  const std::string &name = rule.name;
  if (name == "True" || name == "False")
    return Fact::of(c10::IValue(name == "True"));
  if (name == "None")
    return Fact::of(c10::IValue());
  if (name[0] == '-' || (name[0] >= '0' && name[0] <= '9'))
    return Fact::of(c10::IValue(static_cast<int64_t>(std::strtoll(name.c_str(), nullptr, 10))));
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    if (schema.arguments()[i].name() == name)
      return i < operands.size() ? operands[i] : getUnknown();
  }
  return getUnknown();
}

/// A dimension of so many, counted from the front; empty where it's none.
static std::optional<size_t> wrapDimension(int64_t dimension, size_t rank) {
  auto count = static_cast<int64_t>(std::max<size_t>(rank, 1));
  if (dimension < -count || dimension >= count)
    return std::nullopt;
  return static_cast<size_t>(dimension < 0 ? dimension + count : dimension);
}

//===----------------------------------------------------------------------===//
// Dtypes
//===----------------------------------------------------------------------===//

namespace {

/// What torch.result_type promotes (ATen/native/TypeProperties.cpp): tensors with dimensions
/// before those without, and these before numbers, where they are of the same kind of number.
struct Promotion {
  ScalarType dimensioned = ScalarType::Undefined;
  ScalarType zero = ScalarType::Undefined;
  ScalarType number = ScalarType::Undefined;

  static ScalarType join(ScalarType left, ScalarType right) {
    if (left == ScalarType::Undefined)
      return right;
    if (right == ScalarType::Undefined)
      return left;
    return c10::promoteTypes(left, right);
  }

  static ScalarType combine(ScalarType higher, ScalarType lower) {
    if (c10::isComplexType(higher))
      return higher;
    if (c10::isFloatingType(higher))
      return c10::isComplexType(lower) ? c10::toComplexType(higher) : higher;
    if (higher == ScalarType::Bool || c10::isFloatingType(lower) || c10::isComplexType(lower))
      return join(higher, lower);
    return higher != ScalarType::Undefined ? higher : lower;
  }

  ScalarType get() const { return combine(dimensioned, combine(zero, number)); }
};

/// Of which there may be several, where a tensor's rank isn't known.
using Promotions = std::vector<Promotion>;

/// The dtypes that c10::promoteTypes knows.
bool isPromotable(ScalarType dtype) {
  return c10::isIntegralType(dtype, /*includeBool=*/true) || c10::isComplexType(dtype) ||
         dtype == ScalarType::Double || dtype == ScalarType::Float || dtype == ScalarType::Half ||
         dtype == ScalarType::BFloat16;
}

std::optional<ScalarType> getNumberDtype(const Fact &fact) {
  if (fact.kind == Fact::Kind::Value) {
    if (fact.value.isBool())
      return ScalarType::Bool;
    if (fact.value.isInt())
      return ScalarType::Long;
    if (fact.value.isDouble())
      return ScalarType::Float;
    if (fact.value.isComplexDouble())
      return ScalarType::ComplexFloat;
    return std::nullopt;
  }
  if (fact.kind != Fact::Kind::Unknown || fact.mayBeNone)
    return std::nullopt;
  switch (fact.number) {
  case Fact::Number::Bool:
    return ScalarType::Bool;
  case Fact::Number::Int:
    return ScalarType::Long;
  case Fact::Number::Float:
    return ScalarType::Float;
  case Fact::Number::Complex:
    return ScalarType::ComplexFloat;
  case Fact::Number::Any:
    break;
  }
  return std::nullopt;
}

/// Adds an operand; false where too little is known of it.
bool promote(const Fact &fact, Promotions &promotions) {
  if (fact.isNone())
    return true;
  if (fact.kind == Fact::Kind::List)
    return std::all_of(fact.elements.begin(), fact.elements.end(),
                       [&](const Fact &element) { return promote(element, promotions); });
  if (fact.kind != Fact::Kind::Tensor) {
    auto dtype = getNumberDtype(fact);
    if (!dtype)
      return false;
    for (Promotion &each : promotions)
      each.number = Promotion::join(each.number, *dtype);
    return true;
  }
  auto dtype = fact.tensor.dtype;
  if (!dtype || !isPromotable(*dtype))
    return false;
  Promotions after;
  for (const Promotion &each : promotions) {
    if (!fact.tensor.sizes || fact.tensor.sizes->empty()) {
      after.push_back(each);
      after.back().zero = Promotion::join(each.zero, *dtype);
    }
    if (!fact.tensor.sizes || !fact.tensor.sizes->empty()) {
      after.push_back(each);
      after.back().dimensioned = Promotion::join(each.dimensioned, *dtype);
    }
  }
  promotions = std::move(after);
  return promotions.size() <= 64;
}

std::optional<ScalarType> getDtypeNamed(const std::string &name) {
  static const auto *dtypes = new std::unordered_map<std::string, ScalarType>{
      {"bool", ScalarType::Bool},
      {"uint8", ScalarType::Byte},
      {"int8", ScalarType::Char},
      {"int16", ScalarType::Short},
      {"int32", ScalarType::Int},
      {"int64", ScalarType::Long},
      {"float16", ScalarType::Half},
      {"bfloat16", ScalarType::BFloat16},
      {"float32", ScalarType::Float},
      {"float64", ScalarType::Double},
      {"complex64", ScalarType::ComplexFloat},
      {"complex128", ScalarType::ComplexDouble},
  };
  auto found = dtypes->find(name);
  return found == dtypes->end() ? std::nullopt : std::make_optional(found->second);
}

} // namespace

std::optional<ScalarType> Shapes::inferDtype(const ResultRule &rule, const FunctionSchema &schema,
                                             const std::vector<Fact> &operands) {
  const std::string &name = rule.name;
  if (rule.operands.empty())
    return getDtypeNamed(name);
  if (name == "of") {
    Fact fact = getOperand(rule.operands[0], schema, operands);
    if (fact.kind == Fact::Kind::List && !fact.elements.empty())
      fact = Fact(fact.elements[0]);
    return fact.kind == Fact::Kind::Tensor ? fact.tensor.dtype : std::nullopt;
  }
  if (name == "promote") {
    Promotions promotions(1);
    for (const ResultRule &operand : rule.operands) {
      if (!promote(getOperand(operand, schema, operands), promotions))
        return std::nullopt;
    }
    ScalarType dtype = promotions[0].get();
    for (const Promotion &each : promotions) {
      if (each.get() != dtype)
        return std::nullopt;
    }
    return dtype == ScalarType::Undefined ? std::nullopt : std::make_optional(dtype);
  }
  if (name == "given") {
    Fact fact = getOperand(rule.operands[0], schema, operands);
    if (fact.isInt() && fact.value.toInt() >= 0 &&
        fact.value.toInt() < static_cast<int64_t>(ScalarType::Undefined))
      return static_cast<ScalarType>(fact.value.toInt());
    if (fact.isNone() && rule.operands.size() > 1)
      return inferDtype(rule.operands[1], schema, operands);
    return std::nullopt;
  }
  auto dtype = inferDtype(rule.operands[0], schema, operands);
  if (!dtype)
    return std::nullopt;
  bool isIntegral = c10::isIntegralType(*dtype, /*includeBool=*/true);
  if (name == "default")
    return isIntegral ? ScalarType::Float : *dtype;
  if (name == "wide")
    return isIntegral ? ScalarType::Long : *dtype;
  if (name == "real")
    return c10::isComplexType(*dtype) ? c10::toRealValueType(*dtype) : *dtype;
  if (name == "complex") {
    switch (*dtype) {
    case ScalarType::Half:
    case ScalarType::Float:
    case ScalarType::Double:
      return c10::toComplexType(*dtype);
    default:
      return c10::isComplexType(*dtype) ? dtype : std::nullopt;
    }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// Broadcasts a tensor, or those in a list, with what is there; false where too little is known.
static bool broadcast(const Fact &fact, Shape &sizes) {
  if (fact.isNone())
    return true;
  if (fact.kind == Fact::Kind::List)
    return std::all_of(fact.elements.begin(), fact.elements.end(),
                       [&](const Fact &element) { return broadcast(element, sizes); });
  if (fact.kind != Fact::Kind::Tensor || !fact.tensor.sizes)
    return false;
  const Shape &other = *fact.tensor.sizes;
  if (other.size() > sizes.size())
    sizes.insert(sizes.begin(), other.size() - sizes.size(), 1);
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t &size = sizes[sizes.size() - other.size() + i];
    if (size == 1)
      size = other[i];
    else if (size < 0 && other[i] != 1)
      size = other[i]; // one is the other, or 1
    else if (size >= 0 && other[i] >= 0 && other[i] != 1 && other[i] != size)
      return false;
  }
  return true;
}

/// A number, -1 where it isn't known or can't be a size.
static int64_t getSize(const Fact &fact) {
  return fact.isInt() && fact.value.toInt() >= 0 ? fact.value.toInt() : -1;
}

static std::optional<Shape> getList(const Fact &fact) {
  if (fact.kind != Fact::Kind::List)
    return std::nullopt;
  Shape sizes;
  for (const Fact &element : fact.elements) {
    // Negative numbers mean something else wherever they are allowed.
    if (element.isInt() && element.value.toInt() < 0)
      return std::nullopt;
    sizes.push_back(getSize(element));
  }
  return sizes;
}

static std::optional<Shape> reduce(const Shape &sizes, const Fact &dims, const Fact &keep) {
  if (keep.kind != Fact::Kind::Value || !keep.value.isBool())
    return std::nullopt;
  std::vector<Fact> listed;
  if (dims.kind == Fact::Kind::List)
    listed = dims.elements;
  else if (dims.isInt())
    listed.push_back(dims);
  else if (!dims.isNone())
    return std::nullopt;
  std::vector<bool> isReduced(sizes.size(), listed.empty());
  for (const Fact &each : listed) {
    auto dimension = each.isInt() ? wrapDimension(each.value.toInt(), sizes.size()) : std::nullopt;
    if (!dimension)
      return std::nullopt;
    if (*dimension < sizes.size())
      isReduced[*dimension] = true;
  }
  Shape result;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!isReduced[i])
      result.push_back(sizes[i]);
    else if (keep.value.toBool())
      result.push_back(1);
  }
  return result;
}

std::optional<Shape> Shapes::inferSizes(const ResultRule &rule, size_t which,
                                        const FunctionSchema &schema,
                                        const std::vector<Fact> &operands) {
  const std::string &name = rule.name;
  if (name == "scalar")
    return Shape();
  if (name == "function") {
    std::vector<Fact> arguments;
    for (size_t i = 1; i < rule.operands.size(); ++i)
      arguments.push_back(getOperand(rule.operands[i], schema, operands));
    const auto &results = functions.call(rule.operands.at(0).name, arguments);
    return which < results.size() ? results[which] : std::nullopt;
  }
  std::vector<Fact> facts;
  for (const ResultRule &operand : rule.operands)
    facts.push_back(getOperand(operand, schema, operands));
  if (name == "broadcast") {
    Shape sizes;
    for (const Fact &fact : facts) {
      if (!broadcast(fact, sizes))
        return std::nullopt;
    }
    return sizes;
  }
  if (facts.empty())
    return std::nullopt;
  if (name == "list")
    return getList(facts[0]);
  if (facts[0].kind != Fact::Kind::Tensor || !facts[0].tensor.sizes)
    return std::nullopt;
  Shape sizes = *facts[0].tensor.sizes;
  if (name == "of")
    return sizes;
  if (name == "rank")
    return Shape(sizes.size(), -1);
  if (facts.size() < 2)
    return std::nullopt;
  if (name == "reduce")
    return reduce(sizes, facts[1], facts.size() > 2 ? facts[2] : Fact::of(c10::IValue(false)));
  if (name == "append") {
    sizes.push_back(getSize(facts[1]));
    return sizes;
  }
  if (name == "repeat") {
    auto times = getList(facts[1]);
    if (!times || times->size() < sizes.size())
      return std::nullopt;
    sizes.insert(sizes.begin(), times->size() - sizes.size(), 1);
    for (size_t i = 0; i < sizes.size(); ++i) {
      bool isOpen = sizes[i] < 0 || (*times)[i] < 0;
      if (isOpen || __builtin_mul_overflow(sizes[i], (*times)[i], &sizes[i]))
        sizes[i] = -1;
    }
    return sizes;
  }
  if (name == "replace" && facts.size() > 2) {
    if (!facts[1].isInt())
      return Shape(sizes.size(), -1);
    auto dimension = wrapDimension(facts[1].value.toInt(), sizes.size());
    if (!dimension || *dimension >= sizes.size())
      return std::nullopt;
    sizes[*dimension] = getSize(facts[2]);
    return sizes;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The rules
//===----------------------------------------------------------------------===//

/// By the operator's name and overload: its line without them.
static const std::unordered_map<std::string_view, std::string_view> &getLines() {
  static const auto *lines = [] {
    auto *text = new std::string(inflatedResultRulesSize, '\0');
    size_t size = tinfl_decompress_mem_to_mem(text->data(), text->size(), deflatedResultRules,
                                              sizeof(deflatedResultRules),
                                              TINFL_FLAG_PARSE_ZLIB_HEADER);
    if (size != text->size())
      throw std::runtime_error("the rules of operators' results don't inflate");
    auto *found = new std::unordered_map<std::string_view, std::string_view>;
    for (std::string_view rest = *text; !rest.empty();) {
      size_t end = rest.find('\n');
      size_t tab = rest.find('\t');
      found->emplace(rest.substr(0, tab), rest.substr(tab + 1, end - tab - 1));
      rest.remove_prefix(end + 1);
    }
    return found;
  }();
  return *lines;
}

const std::vector<Shapes::ResultRules> &Shapes::getRules(const FunctionSchema &schema) {
  std::string name = schema.name();
  if (!schema.overload_name().empty())
    name += "." + schema.overload_name();
  auto [entry, isNew] = rules.try_emplace(name);
  auto line = isNew ? getLines().find(name) : getLines().end();
  if (line == getLines().end())
    return entry->second;
  std::vector<std::optional<ResultRule>> parsed;
  for (std::string_view rest = line->second;;) {
    size_t tab = rest.find('\t');
    std::string_view own = rest.substr(0, tab);
    parsed.push_back(own == "-" ? std::nullopt : std::make_optional(ResultRule::parse(own)));
    if (tab == rest.npos)
      break;
    rest.remove_prefix(tab + 1);
  }
  for (size_t i = 0; i + 1 < parsed.size(); i += 2)
    entry->second.push_back({parsed[i], parsed[i + 1]});
  return entry->second;
}

std::vector<TensorFact> Shapes::infer(const FunctionSchema &schema,
                                      const std::vector<Fact> &operands) {
  const auto &own = getRules(schema);
  std::vector<TensorFact> results(schema.returns().size());
  for (size_t i = 0; i < std::min(own.size(), results.size()); ++i) {
    if (own[i].dtype)
      results[i].dtype = inferDtype(*own[i].dtype, schema, operands);
    if (own[i].sizes)
      results[i].sizes = inferSizes(*own[i].sizes, i, schema, operands);
  }
  return results;
}

} // namespace torch_mlir::torchscript
