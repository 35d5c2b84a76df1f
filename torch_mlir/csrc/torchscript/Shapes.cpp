// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shape and dtypes of operators' results, by the rules in torch_mlir/operators/results.tsv.

#include "torchscript/Shapes.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
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

/// A dimension of so many, counted from the front; empty where it's none.
static std::optional<size_t> wrapDimension(int64_t dimension, size_t rank) {
  auto count = static_cast<int64_t>(std::max<size_t>(rank, 1));
  if (dimension < -count || dimension >= count)
    return std::nullopt;
  return static_cast<size_t>(dimension < 0 ? dimension + count : dimension);
}

static Fact getOperand(const ResultRule &rule, const FunctionSchema &schema,
                       const std::vector<Fact> &operands);

/// What is made of an operator's arguments.
static Fact getMade(const ResultRule &rule, const FunctionSchema &schema,
                    const std::vector<Fact> &operands) {
  Fact of = getOperand(rule.operands[0], schema, operands);
  if (rule.operands.size() != 2)
    return getUnknown();
  Fact which = getOperand(rule.operands[1], schema, operands);
  if (rule.name == "part") {
    if (of.kind != Fact::Kind::List || !which.isInt() || which.value.toInt() < 0 ||
        which.value.toInt() >= static_cast<int64_t>(of.elements.size()))
      return getUnknown();
    return Fact(of.elements[static_cast<size_t>(which.value.toInt())]);
  }
  if (rule.name == "size") {
    if (of.kind != Fact::Kind::Tensor || !of.tensor.sizes || !which.isInt())
      return getUnknown();
    const Shape &sizes = *of.tensor.sizes;
    auto place = wrapDimension(which.value.toInt(), sizes.size());
    if (!place || *place >= sizes.size() || sizes[*place] < 0)
      return getUnknown();
    return Fact::of(c10::IValue(sizes[*place]));
  }
  if (rule.name == "twice") {
    if (!of.isInt() || which.kind != Fact::Kind::Value || !which.value.isBool() ||
        std::abs(of.value.toInt()) > (int64_t(1) << 60))
      return getUnknown();
    return Fact::of(c10::IValue(of.value.toInt() * (which.value.toBool() ? 2 : 1)));
  }
  return getUnknown();
}

/// What a rule's operand is: an argument of the operator, a literal, or what is made of these.
static Fact getOperand(const ResultRule &rule, const FunctionSchema &schema,
                       const std::vector<Fact> &operands) {
  const std::string &name = rule.name;
  if (!rule.operands.empty())
    return getMade(rule, schema, operands);
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
  if (name == "number") {
    auto dtype = getNumberDtype(getOperand(rule.operands[0], schema, operands));
    if (dtype == ScalarType::Float)
      return ScalarType::Double;
    return dtype == ScalarType::ComplexFloat ? ScalarType::ComplexDouble : dtype;
  }
  auto dtype = inferDtype(rule.operands[0], schema, operands);
  if (!dtype)
    return std::nullopt;
  if (name == "stored")
    return c10::isQIntType(*dtype) ? std::make_optional(c10::toUnderlying(*dtype)) : std::nullopt;
  bool isIntegral = c10::isIntegralType(*dtype, /*includeBool=*/true);
  if (name == "default")
    return isIntegral ? ScalarType::Float : *dtype;
  if (name == "floats")
    return c10::isFloatingType(*dtype) || c10::isComplexType(*dtype) ? dtype : std::nullopt;
  if (name == "truth")
    return *dtype == ScalarType::Byte ? ScalarType::Byte : ScalarType::Bool;
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
  // A number may stand where a tensor without dimensions does.
  if (fact.isNone() || (fact.kind == Fact::Kind::Value && fact.value.isScalar()))
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

/// The number with that place in a list that stands for all dimensions if it's short.
static std::optional<int64_t> getNumber(const Fact &fact, size_t place) {
  const Fact *number = &fact;
  if (fact.kind == Fact::Kind::List) {
    if (fact.elements.empty())
      return std::nullopt;
    number = &fact.elements[std::min(place, fact.elements.size() - 1)];
  }
  // What is larger can't be a size, and products of these are no overflow.
  if (!number->isInt() || std::abs(number->value.toInt()) > (int64_t(1) << 30))
    return std::nullopt;
  return number->value.toInt();
}

/// Of the last `count` dimensions.
static std::optional<Shape> pool(Shape sizes, const std::vector<Fact> &facts, size_t count) {
  const Fact &kernel = facts[1];
  const Fact &ceil = facts[5];
  if (count == 0 || count >= sizes.size() || ceil.kind != Fact::Kind::Value ||
      !ceil.value.isBool())
    return std::nullopt;
  bool hasStride = facts[2].kind != Fact::Kind::List || !facts[2].elements.empty();
  for (size_t i = 0; i < count; ++i) {
    int64_t &size = sizes[sizes.size() - count + i];
    auto window = getNumber(kernel, i);
    auto stride = getNumber(hasStride ? facts[2] : kernel, i);
    auto padding = getNumber(facts[3], i), dilation = getNumber(facts[4], i);
    if (size < 0 || size > (int64_t(1) << 40) || !window || !stride || !padding || !dilation ||
        *stride <= 0) {
      size = -1;
      continue;
    }
    int64_t left = size + 2 * *padding - *dilation * (*window - 1) - 1;
    if (left < 0 && !ceil.value.toBool())
      return std::nullopt;
    left += ceil.value.toBool() ? *stride - 1 : 0;
    if (left < 0)
      return std::nullopt;
    int64_t result = left / *stride + 1;
    // The last window starts inside of the input or the padding before it.
    if (ceil.value.toBool() && (result - 1) * *stride >= size + *padding)
      --result;
    size = result;
  }
  return sizes;
}

static std::optional<Shape> transposed(Shape sizes, const std::vector<Fact> &facts) {
  if (facts[1].kind != Fact::Kind::Tensor || !facts[1].tensor.sizes)
    return std::nullopt;
  const Shape &weight = *facts[1].tensor.sizes;
  size_t count = weight.size() - 2;
  if (weight.size() < 3 || sizes.size() < count + 1 || sizes.size() > count + 2)
    return std::nullopt;
  auto groups = getNumber(facts[5], 0);
  sizes[sizes.size() - count - 1] = groups && weight[1] >= 0 ? weight[1] * *groups : -1;
  for (size_t i = 0; i < count; ++i) {
    int64_t &size = sizes[sizes.size() - count + i];
    auto stride = getNumber(facts[2], i), padding = getNumber(facts[3], i);
    auto more = getNumber(facts[4], i), dilation = getNumber(facts[6], i);
    int64_t window = weight[2 + i];
    bool isKnown = size >= 0 && size <= (int64_t(1) << 30) && window >= 0 &&
                   window <= (int64_t(1) << 30) && stride && padding && more && dilation;
    size = isKnown ? (size - 1) * *stride - 2 * *padding + *dilation * (window - 1) + *more + 1
                   : -1;
    if (isKnown && size < 0)
      return std::nullopt;
  }
  return sizes;
}

/// How many integers there are from one to another.
static std::optional<Shape> countIntegers(const std::vector<Fact> &facts) {
  int64_t numbers[3] = {0, 0, 1};
  for (size_t i = 0; i < facts.size() && i < 3; ++i) {
    auto number = getNumber(facts[i], 0);
    if (!number)
      return Shape{-1};
    numbers[facts.size() == 1 ? 1 : i] = *number;
  }
  auto [start, end, step] = numbers;
  if (step == 0 || (end != start && (end > start) != (step > 0)))
    return std::nullopt;
  int64_t distance = std::abs(end - start), each = std::abs(step);
  return Shape{distance / each + (distance % each != 0)};
}

static std::optional<Shape> unflatten(const Shape &sizes, const Fact &dimension,
                                      const Fact &list) {
  auto place =
      dimension.isInt() ? wrapDimension(dimension.value.toInt(), sizes.size()) : std::nullopt;
  if (!place || *place >= sizes.size() || list.kind != Fact::Kind::List)
    return std::nullopt;
  Shape parts;
  std::optional<size_t> rest;
  int64_t product = 1;
  for (const Fact &element : list.elements) {
    auto number = getNumber(element, 0);
    if (number == -1)
      rest = parts.size();
    else if (!number || product < 0 || __builtin_mul_overflow(product, *number, &product))
      product = -1;
    parts.push_back(number && *number >= 0 ? *number : -1);
  }
  if (rest && product > 0 && sizes[*place] >= 0)
    parts[*rest] = sizes[*place] / product;
  Shape result = sizes;
  result.erase(result.begin() + static_cast<int64_t>(*place));
  result.insert(result.begin() + static_cast<int64_t>(*place), parts.begin(), parts.end());
  return result;
}

/// How many windows there are along each of the last dimensions; -1 where it isn't known. Numbers
/// that no image has aren't multiplied.
static int64_t countWindows(const Shape &sizes, const std::vector<Fact> &facts) {
  int64_t product = 1;
  for (size_t i = 0; i < 2; ++i) {
    int64_t size = sizes[sizes.size() - 2 + i];
    auto window = getNumber(facts[1], i), dilation = getNumber(facts[2], i);
    auto padding = getNumber(facts[3], i), stride = getNumber(facts[4], i);
    if (size < 0 || size > (int64_t(1) << 40) || !window || !dilation || !padding || !stride ||
        *stride <= 0)
      return -1;
    for (int64_t number : {*window, *dilation, *padding}) {
      if (number < 0 || number > (int64_t(1) << 30))
        return -1;
    }
    int64_t left = size + 2 * *padding - *dilation * (*window - 1) - 1;
    if (left < 0 || __builtin_mul_overflow(product, left / *stride + 1, &product))
      return -1;
  }
  return product;
}

static int64_t getArea(const Fact &kernel) {
  auto height = getNumber(kernel, 0), width = getNumber(kernel, 1);
  int64_t area = 0;
  bool isKnown = height && width && *height > 0 && *width > 0 &&
                 !__builtin_mul_overflow(*height, *width, &area);
  return isKnown ? area : -1;
}

/// What im2col gives: windows as columns.
static std::optional<Shape> getColumns(Shape sizes, const std::vector<Fact> &facts) {
  if (sizes.size() != 3 && sizes.size() != 4)
    return std::nullopt;
  int64_t windows = countWindows(sizes, facts), area = getArea(facts[1]);
  sizes.resize(sizes.size() - 2);
  if (area < 0 || sizes.back() < 0 || __builtin_mul_overflow(sizes.back(), area, &sizes.back()))
    sizes.back() = -1;
  sizes.push_back(windows);
  return sizes;
}

/// What col2im gives: columns as windows of an image.
static std::optional<Shape> getImage(Shape sizes, const Fact &size, const Fact &kernel) {
  if (sizes.size() != 2 && sizes.size() != 3)
    return std::nullopt;
  int64_t area = getArea(kernel);
  sizes.pop_back();
  sizes.back() = sizes.back() >= 0 && area > 0 ? sizes.back() / area : -1;
  for (size_t i = 0; i < 2; ++i) {
    auto number = getNumber(size, i);
    sizes.push_back(number && *number >= 0 ? *number : -1);
  }
  return sizes;
}

/// Indexing with tensors, with None where all of a dimension is taken.
static std::optional<Shape> getIndexed(const Shape &sizes, const Fact &indices) {
  if (indices.kind != Fact::Kind::List)
    return std::nullopt;
  // The dimensions of the tensor that are taken by indices, masks taking several.
  std::vector<bool> isTaken;
  std::vector<Fact> taking;
  for (const Fact &index : indices.elements) {
    if (index.isNone()) {
      isTaken.push_back(false);
      continue;
    }
    if (index.kind != Fact::Kind::Tensor || !index.tensor.sizes || !index.tensor.dtype)
      return std::nullopt;
    bool isMask =
        *index.tensor.dtype == ScalarType::Bool || *index.tensor.dtype == ScalarType::Byte;
    size_t count = isMask ? index.tensor.sizes->size() : 1;
    // A mask without dimensions takes none, and adds one.
    if (count == 0)
      return std::nullopt;
    isTaken.insert(isTaken.end(), count, true);
    // How many elements a mask has set isn't known.
    taking.push_back(isMask ? Fact::of(TensorFact{Shape{-1}, ScalarType::Long}) : index);
  }
  if (isTaken.size() > sizes.size() || taking.empty())
    return std::nullopt;
  isTaken.resize(sizes.size());
  Shape common;
  for (const Fact &index : taking) {
    if (!broadcast(index, common))
      return std::nullopt;
  }
  auto first = std::find(isTaken.begin(), isTaken.end(), true);
  auto last = std::find(isTaken.rbegin(), isTaken.rend(), true).base();
  bool isOneGroup = std::all_of(first, last, [](bool each) { return each; });
  Shape result;
  auto place = static_cast<size_t>(isOneGroup ? first - isTaken.begin() : 0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i == place)
      result.insert(result.end(), common.begin(), common.end());
    if (!isTaken[i])
      result.push_back(sizes[i]);
  }
  return result;
}

/// What an equation of torch.einsum tells (ATen/native/Linear.cpp).
static std::optional<Shape> getContracted(const Fact &equation, const Fact &list) {
  if (equation.kind != Fact::Kind::Value || !equation.value.isString() ||
      list.kind != Fact::Kind::List)
    return std::nullopt;
  std::string text = equation.value.toStringRef();
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  std::map<char, int64_t> sizes;
  std::map<char, unsigned> counts;
  Shape ellipsis;
  auto join = [](int64_t &size, int64_t other) {
    if (size == 1 || (size < 0 && other != 1))
      size = other;
    return size == other || size < 0 || other < 0 || other == 1;
  };
  // A term's letters; those of the ellipsis, if any, are counted by what the rank leaves.
  auto isTerm = [](const std::string &term) {
    size_t dots = term.find("...");
    std::string letters = term;
    if (dots != term.npos)
      letters.erase(dots, 3);
    return std::all_of(letters.begin(), letters.end(), [](char each) {
      return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z');
    });
  };
  size_t start = 0;
  for (const Fact &tensor : list.elements) {
    if (start > left.size() || tensor.kind != Fact::Kind::Tensor || !tensor.tensor.sizes)
      return std::nullopt;
    size_t end = std::min(left.find(',', start), left.size());
    std::string term = left.substr(start, end - start);
    start = end + 1;
    if (!isTerm(term))
      return std::nullopt;
    const Shape &own = *tensor.tensor.sizes;
    size_t dots = term.find("...");
    size_t letters = term.size() - (dots == term.npos ? 0 : 3);
    if (letters > own.size() || (dots == term.npos && letters != own.size()))
      return std::nullopt;
    size_t more = own.size() - letters, at = 0;
    for (size_t i = 0; i < term.size(); ++i) {
      if (i == dots) {
        Shape part(own.begin() + static_cast<int64_t>(at),
                   own.begin() + static_cast<int64_t>(at + more));
        if (!broadcast(Fact::of(TensorFact{part, std::nullopt}), ellipsis))
          return std::nullopt;
        at += more;
        i += 2;
        continue;
      }
      ++counts[term[i]];
      auto [entry, isNew] = sizes.try_emplace(term[i], own[at]);
      if (!isNew && !join(entry->second, own[at]))
        return std::nullopt;
      ++at;
    }
  }
  if (start <= left.size())
    return std::nullopt;
  Shape result;
  if (arrow == text.npos) {
    // Letters that stand once, those with upper case first.
    result = ellipsis;
    for (auto [letter, count] : counts) {
      if (count == 1)
        result.push_back(sizes[letter]);
    }
    return result;
  }
  std::string right = text.substr(arrow + 2);
  if (!isTerm(right))
    return std::nullopt;
  for (size_t i = 0; i < right.size(); ++i) {
    if (right[i] == '.') {
      result.insert(result.end(), ellipsis.begin(), ellipsis.end());
      i += 2;
    } else if (auto found = sizes.find(right[i]); found != sizes.end()) {
      result.push_back(found->second);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

static bool haveSameRank(const std::vector<Fact> &facts) {
  auto isKnown = [](const Fact &fact) {
    return fact.kind == Fact::Kind::Tensor && fact.tensor.sizes.has_value();
  };
  return facts.size() > 1 && isKnown(facts[0]) && isKnown(facts[1]) &&
         facts[0].tensor.sizes->size() == facts[1].tensor.sizes->size();
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
    // It counts on an image and a kernel of as many dimensions, which nobody asserts.
    if (rule.operands.at(0).name == "conv_forwards" && !haveSameRank(arguments))
      return std::nullopt;
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
  if (name == "count")
    return countIntegers(facts);
  if (name == "einsum" && facts.size() == 2)
    return getContracted(facts[0], facts[1]);
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
    if (!times)
      return std::nullopt;
    if (times->size() < sizes.size())
      times->insert(times->begin(), sizes.size() - times->size(), 1);
    sizes.insert(sizes.begin(), times->size() - sizes.size(), 1);
    for (size_t i = 0; i < sizes.size(); ++i) {
      bool isOpen = sizes[i] < 0 || (*times)[i] < 0;
      if (isOpen || __builtin_mul_overflow(sizes[i], (*times)[i], &sizes[i]))
        sizes[i] = -1;
    }
    return sizes;
  }
  if (name == "pad") {
    if (facts[1].kind != Fact::Kind::List || facts[1].elements.size() % 2 ||
        facts[1].elements.size() / 2 > sizes.size())
      return std::nullopt;
    for (size_t i = 0; i < facts[1].elements.size(); ++i) {
      int64_t &size = sizes[sizes.size() - 1 - i / 2];
      const Fact &more = facts[1].elements[i];
      if (size < 0 || !more.isInt() || __builtin_add_overflow(size, more.value.toInt(), &size) ||
          size < 0)
        size = -1;
    }
    return sizes;
  }
  if (name == "product") {
    if (facts[1].kind != Fact::Kind::Tensor || !facts[1].tensor.sizes)
      return std::nullopt;
    Shape right = *facts[1].tensor.sizes;
    if (sizes.size() < 2 || right.size() < 2)
      return std::nullopt;
    int64_t rows = sizes[sizes.size() - 2], columns = right.back();
    sizes.resize(sizes.size() - 2);
    right.resize(right.size() - 2);
    if (!broadcast(Fact::of(TensorFact{right, std::nullopt}), sizes))
      return std::nullopt;
    for (size_t i = 2; i < facts.size(); ++i) {
      if (facts[i].kind != Fact::Kind::Tensor || !facts[i].tensor.sizes ||
          facts[i].tensor.sizes->size() < 2)
        return std::nullopt;
      Shape other = *facts[i].tensor.sizes;
      other.resize(other.size() - 2);
      if (!broadcast(Fact::of(TensorFact{other, std::nullopt}), sizes))
        return std::nullopt;
    }
    sizes.insert(sizes.end(), {rows, columns});
    return sizes;
  }
  if (name == "last") {
    auto others = getList(facts[1]);
    if (!others || others->size() > sizes.size())
      return std::nullopt;
    std::copy(others->begin(), others->end(),
              sizes.end() - static_cast<int64_t>(others->size()));
    return sizes;
  }
  if (name == "unflatten" && facts.size() > 2)
    return unflatten(sizes, facts[1], facts[2]);
  if (name == "pool" && facts.size() > 5) {
    // How many dimensions are pooled the schema tells.
    for (const auto &argument : schema.arguments()) {
      if (argument.name() == rule.operands[1].name)
        return pool(std::move(sizes), facts, static_cast<size_t>(argument.N().value_or(0)));
    }
    return std::nullopt;
  }
  if (name == "index")
    return getIndexed(sizes, facts[1]);
  if (name == "columns" && facts.size() > 4)
    return getColumns(std::move(sizes), facts);
  if (name == "image" && facts.size() > 2)
    return getImage(std::move(sizes), facts[1], facts[2]);
  if (name == "transposed" && facts.size() > 6)
    return transposed(std::move(sizes), facts);
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

/// Parts that are told apart.
static constexpr int64_t maxParts = 1024;

std::optional<std::vector<Shape>> Shapes::inferParts(const ResultRule &rule,
                                                     const FunctionSchema &schema,
                                                     const std::vector<Fact> &operands) {
  std::vector<Fact> facts;
  for (const ResultRule &operand : rule.operands)
    facts.push_back(getOperand(operand, schema, operands));
  if (facts.size() < 2 || facts[0].kind != Fact::Kind::Tensor || !facts[0].tensor.sizes)
    return std::nullopt;
  Shape sizes = *facts[0].tensor.sizes;
  const Fact &last = facts.back();
  auto dimension = last.isInt() ? wrapDimension(last.value.toInt(), sizes.size()) : std::nullopt;
  if (!dimension || *dimension >= sizes.size())
    return std::nullopt;
  int64_t size = sizes[*dimension];
  if (rule.name == "unbind") {
    if (size < 0 || size > maxParts)
      return std::nullopt;
    sizes.erase(sizes.begin() + static_cast<int64_t>(*dimension));
    return std::vector<Shape>(static_cast<size_t>(size), sizes);
  }
  Shape parts;
  if (rule.name == "split" && facts[1].kind == Fact::Kind::List) {
    for (const Fact &element : facts[1].elements)
      parts.push_back(getSize(element));
  } else {
    int64_t number = getSize(facts[1]);
    if (size < 0 || number < 0)
      return std::nullopt;
    if (rule.name == "chunk" && number == 0)
      return std::nullopt;
    int64_t each = number;
    if (rule.name == "chunk")
      each = size / number + (size % number != 0);
    if (each == 0)
      parts.assign(rule.name == "chunk" ? static_cast<size_t>(std::min(number, maxParts + 1)) : 1, 0);
    for (int64_t done = 0; each > 0 && (done < size || done == 0); done += each) {
      if (static_cast<int64_t>(parts.size()) > maxParts)
        return std::nullopt;
      parts.push_back(std::min(each, size - done));
    }
    if (each == 0 && size != 0)
      return std::nullopt;
  }
  if (static_cast<int64_t>(parts.size()) > maxParts)
    return std::nullopt;
  std::vector<Shape> all;
  for (int64_t part : parts) {
    all.push_back(sizes);
    all.back()[*dimension] = part;
  }
  return all;
}

//===----------------------------------------------------------------------===//
// The rules
//===----------------------------------------------------------------------===//

/// By the operator's name and overload: its line without them.
static const std::unordered_map<std::string_view, std::string_view> &getLines() {
  static const auto *lines = [] {
    auto *found = new std::unordered_map<std::string_view, std::string_view>;
    for (std::string_view rest = resultRules; !rest.empty();) {
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

std::optional<std::vector<TensorFact>> Shapes::inferList(const FunctionSchema &schema,
                                                         const std::vector<Fact> &operands) {
  const auto &own = getRules(schema);
  if (own.size() != 1 || schema.returns().size() != 1 || !own[0].sizes)
    return std::nullopt;
  auto parts = inferParts(*own[0].sizes, schema, operands);
  if (!parts)
    return std::nullopt;
  std::optional<ScalarType> dtype;
  if (own[0].dtype)
    dtype = inferDtype(*own[0].dtype, schema, operands);
  std::vector<TensorFact> tensors;
  for (Shape &part : *parts)
    tensors.push_back({std::move(part), dtype});
  return tensors;
}

} // namespace torch_mlir::torchscript
