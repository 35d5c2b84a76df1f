// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's own shape functions, on sizes of which some aren't known.

#include "torchscript/ShapeFunctions.h"

#include "torchscript/Versions.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/interned_strings.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/source_range.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/csrc/jit/runtime/serialized_shape_function_registry.h>
#include <torch/csrc/jit/serialization/import_source.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string_view>
#include <unordered_map>

namespace torch_mlir::torchscript {

using c10::IValue;
using c10::TypeKind;
using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;
namespace aten = c10::aten;
namespace prim = c10::prim;

namespace {

/// Nodes that one call may take, and elements that a list may get.
constexpr unsigned maxSteps = 50'000;
constexpr size_t maxElements = 1 << 12;

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

struct ShapeFunction {
  std::string_view text;
  bool isCompiled = false;
  /// Null before it is compiled, and where it can't be.
  std::shared_ptr<Graph> graph;
};

/// Importers run one at a time, see Import.cpp.
std::map<std::string, ShapeFunction> &getFunctions() {
  // Never destroyed: graphs outlive what is destroyed at exit.
  static auto *functions = [] {
    auto *made = new std::map<std::string, ShapeFunction>;
    std::string_view text = torch::jit::GetSerializedShapeFunctions();
    constexpr std::string_view start = "\ndef ";
    for (size_t at = text.find(start); at != text.npos;) {
      size_t next = text.find(start, at + 1);
      std::string_view own = text.substr(at + 1, next == text.npos ? next : next - at);
      std::string_view name = own.substr(4, own.find('(') - 4);
      (*made)[std::string(name)].text = own;
      at = next;
    }
    return made;
  }();
  return *functions;
}

std::shared_ptr<Graph> compile(const std::string &name, std::string_view text) {
  auto unit = std::make_shared<torch::jit::CompilationUnit>();
  auto source = std::make_shared<torch::jit::Source>(std::string(text));
  // The resolver keeps its address.
  static const auto *noConstants = new std::vector<at::IValue>;
  auto resolver = std::make_shared<torch::jit::SourceImporterImpl>(
      unit, noConstants, [source](const std::string &) { return source; }, /*version=*/1);
  unit->define(Optional<c10::QualifiedName>(), std::string(text), resolver, nullptr);
  return torch::jit::toGraphFunction(unit->get_function(name)).graph()->copy();
}

/// Null where there is no such function.
const Graph *getGraph(const std::string &name) {
  auto found = getFunctions().find(name);
  if (found == getFunctions().end())
    return nullptr;
  ShapeFunction &function = found->second;
  if (!function.isCompiled) {
    function.isCompiled = true;
    try {
      function.graph = compile(name, function.text);
    } catch (const c10::Error &) {
      // It calls what the operators of the archive's release lack.
    } catch (const torch::jit::ErrorReport &) {
    }
  }
  return function.graph.get();
}

//===----------------------------------------------------------------------===//
// Values that aren't known
//===----------------------------------------------------------------------===//

/// A value while a function runs.
struct Item {
  enum class Kind { Unknown, Known, List, Tuple };
  Kind kind = Kind::Unknown;
  bool mayBeNone = true;
  IValue value;
  /// A list's number.
  size_t list = 0;
  std::vector<Item> elements;

  static Item of(IValue value) {
    Item item;
    item.kind = Kind::Known;
    item.value = std::move(value);
    return item;
  }
  static Item unknown(bool mayBeNone) {
    Item item;
    item.mayBeNone = mayBeNone;
    return item;
  }
  bool isInt() const { return kind == Kind::Known && value.isInt(); }
};

struct List {
  std::vector<Item> elements;
  /// It may be one list or another: a write to it would have to be a write to both.
  bool isFrozen = false;
};

/// The function doesn't take its arguments.
struct Refusal : std::exception {};
/// What happens depends on what isn't known.
struct Undecided : std::exception {};

class Interpreter {
public:
  std::vector<Item> run(const Graph &graph, std::vector<Item> arguments) {
    for (size_t i = 0; i < graph.inputs().size(); ++i)
      frame[graph.inputs()[i]] =
          i < arguments.size() ? std::move(arguments[i]) : Item::of(IValue());
    runBlock(*graph.block());
    std::vector<Item> results;
    for (const Value *output : graph.outputs())
      results.push_back(get(output));
    return results;
  }

  Item makeItem(const Fact &fact) {
    switch (fact.kind) {
    case Fact::Kind::Unknown:
      return Item::unknown(fact.mayBeNone);
    case Fact::Kind::Value:
      return makeItem(fact.value);
    case Fact::Kind::Tensor: {
      if (!fact.tensor.sizes)
        return Item::unknown(false);
      std::vector<Item> sizes;
      for (int64_t size : *fact.tensor.sizes)
        sizes.push_back(size < 0 ? Item::unknown(false) : Item::of(size));
      return makeList(std::move(sizes));
    }
    case Fact::Kind::List: {
      std::vector<Item> elements;
      for (const Fact &element : fact.elements)
        elements.push_back(makeItem(element));
      return makeList(std::move(elements));
    }
    }
    return Item();
  }

  std::optional<Shape> getSizes(const Item &item) const {
    if (item.kind != Item::Kind::List)
      return std::nullopt;
    Shape sizes;
    for (const Item &element : lists[item.list].elements) {
      bool isKnown = element.isInt();
      if (isKnown && element.value.toInt() < 0)
        return std::nullopt;
      sizes.push_back(isKnown ? element.value.toInt() : -1);
    }
    return sizes;
  }

private:
  Item makeList(std::vector<Item> elements) {
    Item item;
    item.kind = Item::Kind::List;
    item.list = lists.size();
    lists.push_back({std::move(elements), false});
    return item;
  }

  Item makeItem(const IValue &value) {
    if (value.isList()) {
      std::vector<Item> elements;
      for (const IValue &element : value.toListRef())
        elements.push_back(makeItem(element));
      return makeList(std::move(elements));
    }
    if (value.isTuple()) {
      Item item;
      item.kind = Item::Kind::Tuple;
      for (const IValue &element : value.toTupleRef().elements())
        item.elements.push_back(makeItem(element));
      return item;
    }
    if (value.isTensor() || value.isGenericDict() || value.isObject())
      return Item::unknown(false);
    return Item::of(value);
  }

  /// As libtorch's operators take it; false where not all of it is known.
  bool toIValue(const Item &item, const c10::TypePtr &type, IValue &value) const {
    switch (item.kind) {
    case Item::Kind::Known:
      value = item.value;
      return true;
    case Item::Kind::List: {
      auto list = type->cast<c10::ListType>();
      if (!list)
        return false;
      c10::impl::GenericList made(list->getElementType());
      for (const Item &element : lists[item.list].elements) {
        IValue part;
        if (!toIValue(element, list->getElementType(), part))
          return false;
        made.push_back(part);
      }
      value = made;
      return true;
    }
    default:
      return false;
    }
  }

  const Item &get(const Value *value) const {
    auto found = frame.find(value);
    if (found == frame.end())
      throw Undecided();
    return found->second;
  }

  void bind(const Value *value, Item item) { frame[value] = std::move(item); }

  /// The list that an operator writes to.
  List &getWritten(const Item &item) {
    if (item.kind != Item::Kind::List || lists[item.list].isFrozen)
      throw Undecided();
    return lists[item.list];
  }

  void runBlock(const Block &block) {
    for (const Node *node : block.nodes()) {
      if (++steps > maxSteps)
        throw Undecided();
      runNode(node);
    }
  }

  void runNode(const Node *node) {
    switch (static_cast<c10::unique_t>(node->kind())) {
    case prim::Constant: {
      auto value = torch::jit::toIValue(node->output());
      return bind(node->output(), value ? makeItem(*value) : Item());
    }
    case prim::ListConstruct: {
      std::vector<Item> elements;
      for (const Value *input : node->inputs())
        elements.push_back(get(input));
      return bind(node->output(), makeList(std::move(elements)));
    }
    case prim::TupleConstruct: {
      Item item;
      item.kind = Item::Kind::Tuple;
      for (const Value *input : node->inputs())
        item.elements.push_back(get(input));
      return bind(node->output(), std::move(item));
    }
    case prim::TupleUnpack:
    case prim::ListUnpack: {
      Item item = get(node->input());
      std::vector<Item> parts = item.elements;
      if (item.kind == Item::Kind::List)
        parts = lists[item.list].elements;
      if (item.kind != Item::Kind::Unknown && parts.size() != node->outputs().size())
        throw Refusal();
      for (size_t i = 0; i < node->outputs().size(); ++i)
        bind(node->outputs()[i], item.kind == Item::Kind::Unknown ? Item() : parts[i]);
      return;
    }
    case prim::unchecked_cast:
    case prim::Uninitialized: {
      Item item = node->inputs().empty() ? Item() : get(node->input());
      item.mayBeNone = false;
      return bind(node->output(), std::move(item));
    }
    case prim::RaiseException:
      throw Refusal();
    case prim::If:
      return runIf(node);
    case prim::Loop:
      return runLoop(node);
    default:
      return runOperator(node);
    }
  }

  /// Of a condition that isn't known both sides are run. One that refuses is none.
  void runIf(const Node *node) {
    Item condition = get(node->input());
    auto take = [&](size_t side) {
      const Block &block = *node->blocks()[side];
      runBlock(block);
      std::vector<Item> outputs;
      for (const Value *output : block.outputs())
        outputs.push_back(get(output));
      return outputs;
    };
    std::vector<Item> outputs;
    if (condition.kind == Item::Kind::Known && condition.value.isBool()) {
      outputs = take(condition.value.toBool() ? 0 : 1);
    } else {
      std::vector<List> before = lists;
      std::vector<Item> sides[2];
      std::vector<List> after[2];
      bool isRefused[2] = {false, false};
      for (size_t side = 0; side < 2; ++side) {
        lists = before;
        try {
          sides[side] = take(side);
        } catch (const Refusal &) {
          isRefused[side] = true;
        }
        after[side] = std::move(lists);
      }
      if (isRefused[0] && isRefused[1])
        throw Refusal();
      if (isRefused[0] || isRefused[1]) {
        size_t side = isRefused[0] ? 1 : 0;
        lists = std::move(after[side]);
        outputs = std::move(sides[side]);
      } else {
        outputs = join(before.size(), sides, after);
      }
    }
    for (size_t i = 0; i < node->outputs().size(); ++i)
      bind(node->outputs()[i], std::move(outputs[i]));
  }

  /// What both sides say. Lists that were there before are the same lists on both.
  std::vector<Item> join(size_t known, std::vector<Item> sides[2], std::vector<List> after[2]) {
    // The second side's own lists come after the first's.
    size_t offset = after[0].size() - known;
    auto shift = [&](auto &&self, Item &item) -> void {
      if (item.kind == Item::Kind::List && item.list >= known)
        item.list += offset;
      for (Item &element : item.elements)
        self(self, element);
    };
    lists = after[0];
    for (size_t i = 0; i < after[1].size(); ++i) {
      for (Item &element : after[1][i].elements)
        shift(shift, element);
      if (i >= known)
        lists.push_back(after[1][i]);
    }
    for (Item &item : sides[1])
      shift(shift, item);
    for (size_t i = 0; i < known; ++i) {
      const List &left = after[0][i];
      const List &right = after[1][i];
      if (left.elements.size() != right.elements.size())
        throw Undecided();
      List joined = left;
      joined.isFrozen |= right.isFrozen;
      for (size_t j = 0; j < left.elements.size(); ++j)
        joined.elements[j] = join(left.elements[j], right.elements[j]);
      lists[i] = std::move(joined);
    }
    std::vector<Item> outputs;
    for (size_t i = 0; i < sides[0].size(); ++i)
      outputs.push_back(join(sides[0][i], sides[1][i]));
    return outputs;
  }

  Item join(const Item &left, const Item &right) {
    if (left.kind == Item::Kind::Known && right.kind == Item::Kind::Known) {
      bool isSame = left.value.tagKind() == right.value.tagKind() && left.value == right.value;
      return isSame ? left : Item::unknown(left.value.isNone() || right.value.isNone());
    }
    if (left.kind == Item::Kind::List && right.kind == Item::Kind::List) {
      if (left.list == right.list)
        return left;
      lists[left.list].isFrozen = lists[right.list].isFrozen = true;
      std::vector<Item> lefts = lists[left.list].elements;
      std::vector<Item> rights = lists[right.list].elements;
      if (lefts.size() != rights.size())
        return Item::unknown(false);
      for (size_t i = 0; i < lefts.size(); ++i)
        lefts[i] = join(lefts[i], rights[i]);
      Item joined = makeList(std::move(lefts));
      lists[joined.list].isFrozen = true;
      return joined;
    }
    if (left.kind == Item::Kind::Tuple && right.kind == Item::Kind::Tuple &&
        left.elements.size() == right.elements.size()) {
      Item joined = left;
      for (size_t i = 0; i < left.elements.size(); ++i)
        joined.elements[i] = join(left.elements[i], right.elements[i]);
      return joined;
    }
    auto mayBeNone = [](const Item &item) {
      return item.kind == Item::Kind::Known ? item.value.isNone()
                                            : item.kind == Item::Kind::Unknown && item.mayBeNone;
    };
    return Item::unknown(mayBeNone(left) || mayBeNone(right));
  }

  void runLoop(const Node *node) {
    const Block &body = *node->blocks()[0];
    Item trips = get(node->inputs()[0]);
    Item condition = get(node->inputs()[1]);
    std::vector<Item> carried;
    for (size_t i = 2; i < node->inputs().size(); ++i)
      carried.push_back(get(node->inputs()[i]));
    for (int64_t done = 0;; ++done) {
      if (condition.kind != Item::Kind::Known || !trips.isInt())
        throw Undecided();
      if (!condition.value.toBool() || done >= trips.value.toInt())
        break;
      if (++steps > maxSteps)
        throw Undecided();
      bind(body.inputs()[0], Item::of(done));
      for (size_t i = 0; i < carried.size(); ++i)
        bind(body.inputs()[i + 1], carried[i]);
      runBlock(body);
      condition = get(body.outputs()[0]);
      for (size_t i = 0; i < carried.size(); ++i)
        carried[i] = get(body.outputs()[i + 1]);
    }
    for (size_t i = 0; i < carried.size(); ++i)
      bind(node->outputs()[i], carried[i]);
  }

  /// A place in a list; empty where it isn't known.
  static std::optional<size_t> getPlace(const Item &index, size_t length) {
    if (!index.isInt())
      return std::nullopt;
    int64_t place = index.value.toInt();
    place += place < 0 ? static_cast<int64_t>(length) : 0;
    if (place < 0 || place >= static_cast<int64_t>(length))
      throw Refusal();
    return static_cast<size_t>(place);
  }

  /// Operators on lists of which the elements aren't all known. False where it's none.
  bool runListOperator(const Node *node) {
    if (node->inputs().empty())
      return false;
    const Item self = get(node->input(0));
    switch (static_cast<c10::unique_t>(node->kind())) {
    case aten::len:
      if (self.kind != Item::Kind::List)
        return false;
      bind(node->output(), Item::of(static_cast<int64_t>(lists[self.list].elements.size())));
      return true;
    case aten::__getitem__: {
      if (self.kind != Item::Kind::List)
        return false;
      const std::vector<Item> &elements = lists[self.list].elements;
      auto place = getPlace(get(node->input(1)), elements.size());
      bind(node->output(), place ? elements[*place] : Item::unknown(false));
      return true;
    }
    case aten::append: {
      List &list = getWritten(self);
      if (list.elements.size() >= maxElements)
        throw Undecided();
      list.elements.push_back(get(node->input(1)));
      bind(node->output(), self);
      return true;
    }
    case aten::insert: {
      List &list = getWritten(self);
      const Item index = get(node->input(1));
      if (!index.isInt() || list.elements.size() >= maxElements)
        throw Undecided();
      auto length = static_cast<int64_t>(list.elements.size());
      int64_t place = index.value.toInt();
      place = std::clamp<int64_t>(place < 0 ? place + length : place, 0, length);
      list.elements.insert(list.elements.begin() + place, get(node->input(2)));
      return true;
    }
    case aten::_set_item: {
      List &list = getWritten(self);
      auto place = getPlace(get(node->input(1)), list.elements.size());
      if (!place)
        throw Undecided();
      list.elements[*place] = get(node->input(2));
      bind(node->output(), self);
      return true;
    }
    case aten::__contains__: {
      if (self.kind != Item::Kind::List)
        return false;
      const Item &item = get(node->input(1));
      bool isKnown = item.kind == Item::Kind::Known;
      bool isFound = false;
      for (const Item &element : lists[self.list].elements) {
        if (element.kind != Item::Kind::Known)
          isKnown = false;
        else if (item.kind == Item::Kind::Known)
          isFound |= element.value == item.value;
      }
      bind(node->output(), isKnown || isFound ? Item::of(isFound) : Item::unknown(false));
      return true;
    }
    case aten::__is__:
    case aten::__isnot__: {
      const Item &other = get(node->input(1));
      if (other.kind != Item::Kind::Known || !other.value.isNone())
        return false;
      Item result = Item::unknown(false);
      bool wantsNone = node->kind() == aten::__is__;
      if (self.kind == Item::Kind::Known)
        result = Item::of(self.value.isNone() == wantsNone);
      else if (self.kind != Item::Kind::Unknown || !self.mayBeNone)
        result = Item::of(!wantsNone);
      bind(node->output(), std::move(result));
      return true;
    }
    default:
      return false;
    }
  }

  void runOperator(const Node *node) {
    if (runListOperator(node))
      return;
    const c10::FunctionSchema *schema = node->maybeSchema();
    if (!schema)
      throw Undecided();
    for (const auto &argument : schema->arguments()) {
      if (argument.alias_info() && argument.alias_info()->isWrite())
        throw Undecided();
    }
    torch::jit::Stack stack;
    bool isKnown = true;
    for (const Value *input : node->inputs()) {
      IValue value;
      isKnown &= toIValue(get(input), input->type(), value);
      stack.push_back(std::move(value));
    }
    if (!isKnown) {
      for (const Value *output : node->outputs())
        bind(output, Item::unknown(output->type()->kind() == TypeKind::OptionalType));
      return;
    }
    try {
      node->getOperation()(stack);
    } catch (const std::exception &) {
      throw Refusal();
    }
    for (size_t i = 0; i < node->outputs().size(); ++i)
      bind(node->outputs()[i], makeItem(stack.at(i)));
  }

  std::unordered_map<const Value *, Item> frame;
  std::vector<List> lists;
  unsigned steps = 0;
};

std::string toHexadecimal(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%a", number);
  return text;
}

/// Tells arguments apart.
void appendKey(const Fact &fact, std::string &key) {
  switch (fact.kind) {
  case Fact::Kind::Unknown:
    key += fact.mayBeNone ? "??" : "?";
    break;
  case Fact::Kind::Value:
    if (fact.value.isInt())
      key += std::to_string(fact.value.toInt());
    else if (fact.value.isString())
      key += "s" + std::to_string(fact.value.toStringRef().size()) + ":" +
             fact.value.toStringRef();
    else if (fact.value.isDouble())
      key += "f" + toHexadecimal(fact.value.toDouble());
    else if (fact.value.isBool())
      key += fact.value.toBool() ? "T" : "F";
    else if (fact.value.isNone())
      key += "N";
    else
      key += "!"; // nothing that sizes depend on
    break;
  case Fact::Kind::Tensor:
    key += "t";
    if (fact.tensor.sizes) {
      for (int64_t size : *fact.tensor.sizes)
        key += std::to_string(size) + "x";
    } else {
      key += "*";
    }
    break;
  case Fact::Kind::List:
    key += "[";
    for (const Fact &element : fact.elements)
      appendKey(element, key);
    key += "]";
    break;
  }
  key += ",";
}

} // namespace

std::vector<std::string> ShapeFunctions::getNames() {
  std::vector<std::string> names;
  for (const auto &[name, function] : getFunctions())
    names.push_back(name);
  return names;
}

std::vector<std::string> ShapeFunctions::getParameters(const std::string &name) {
  std::vector<std::string> parameters;
  if (const Graph *graph = getGraph(name)) {
    for (const Value *input : graph->inputs()) {
      std::string parameter = input->debugName();
      // Graphs number what is called alike: self.1.
      parameters.push_back(parameter.substr(0, parameter.find('.')));
    }
  }
  return parameters;
}

const std::vector<std::optional<Shape>> &
ShapeFunctions::call(const std::string &name, const std::vector<Fact> &arguments) {
  std::string key = name + "(";
  for (const Fact &argument : arguments)
    appendKey(argument, key);
  auto [entry, isNew] = results.try_emplace(std::move(key));
  const Graph *graph = isNew ? getGraph(name) : nullptr;
  if (!graph)
    return entry->second;
  try {
    Interpreter interpreter;
    std::vector<Item> items;
    for (const Fact &argument : arguments)
      items.push_back(interpreter.makeItem(argument));
    for (const Item &item : interpreter.run(*graph, std::move(items))) {
      if (item.kind == Item::Kind::Tuple) {
        for (const Item &element : item.elements)
          entry->second.push_back(interpreter.getSizes(element));
      } else {
        entry->second.push_back(interpreter.getSizes(item));
      }
    }
  } catch (const Refusal &) {
  } catch (const Undecided &) {
  }
  return entry->second;
}

} // namespace torch_mlir::torchscript
