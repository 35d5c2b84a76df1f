// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs TorchScript with what is known, and makes operations of the rest.

#include "torchscript/Evaluator.h"

#include "torchscript/Operators.h"
#include "torchscript/Views.h"

#include "capi/TorchTypes.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/class_type.h>
#include <ATen/core/interned_strings.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/normalize_ops.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace torch_mlir::torchscript {

using c10::FunctionSchema;
using c10::IValue;
using c10::TypeKind;
using c10::TypePtr;
using torch::jit::Block;
using torch::jit::Function;
using torch::jit::Node;
using torch::jit::Value;
namespace attr = c10::attr;
namespace aten = c10::aten;
namespace prim = c10::prim;

/// Iterations that are taken one by one where their number is known.
static constexpr int64_t maxUnrolled = 64;
/// Nodes beyond which loops are no longer taken apart, and beyond which nothing goes on.
static constexpr uint64_t maxUnrolledSteps = 200'000;
static constexpr uint64_t maxSteps = 20'000'000;
/// Calls inside of one another.
static constexpr size_t maxCalls = 500;
/// Numbers that tell how long a list or a text gets are held against this before libtorch gets
/// them, and so are the lengths of what lists and texts are made from.
static constexpr int64_t maxLength = 1 << 16;
/// Steps that it takes to make a value of something that is known.
static constexpr uint64_t stepsPerValue = 8;
/// Elements that are copied in a step.
static constexpr int64_t elementsPerStep = 64;

Evaluator::Evaluator(MlirContext context, MlirBlock block, Types &types, Literals &literals,
                     Locations &locations, const Names &names, const SharedMemory &shared,
                     Slots &slots, bool trustTypes)
    : context(context), types(types), literals(literals), locations(locations), names(names),
      shared(shared), slots(slots), trustTypes(trustTypes), refinement(types), front(context, block, /*inFront=*/true),
      body(context, block), builder(&body), location(locations.unknown()) {}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Whether a value of this type is, or holds, something that can be written to.
static bool holdsMemory(const TypePtr &type) {
  switch (type->kind()) {
  case TypeKind::TensorType:
  case TypeKind::ListType:
  case TypeKind::DictType:
  case TypeKind::AnyType:
  case TypeKind::ClassType:
  case TypeKind::InterfaceType:
    return true;
  case TypeKind::EnumType:
    return false;
  default:
    break;
  }
  for (const TypePtr &contained : type->containedTypes()) {
    if (holdsMemory(contained))
      return true;
  }
  return false;
}

/// Whether a value of this type may be None.
static bool mayBeNone(const TypePtr &type) {
  return type->kind() == TypeKind::AnyType || c10::NoneType::get()->isSubtypeOf(*type);
}

static TypePtr withoutNone(TypePtr type) {
  while (auto optional = type->cast<c10::OptionalType>())
    type = optional->getElementType();
  return type;
}

static bool isTensorValue(const IValue &value) {
  if (value.isTensor())
    return true;
  const Leaf *leaf = getLeaf(value);
  return leaf && leaf->kind == Leaf::Kind::Tensor;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

MlirOperation Evaluator::emit(const std::string &name, const std::vector<MlirType> &results,
                              const std::vector<MlirValue> &operands,
                              const std::vector<Attribute> &attributes) {
  return builder->create(name, location, results, operands, attributes);
}

IValue Evaluator::makeLeaf(MlirValue value, const TypePtr &type, const std::string &name) {
  if (type->kind() == TypeKind::NoneType)
    return IValue();
  if (auto future = type->cast<c10::FutureType>())
    return makeLeaf(value, future->getElementType(), name);
  if (auto tuple = type->cast<c10::TupleType>()) {
    std::vector<MlirType> results;
    for (const TypePtr &element : tuple->elements())
      results.push_back(types.get(element));
    MlirOperation unpacked = emit("torch.prim.TupleUnpack", results, {value});
    std::vector<IValue> elements;
    for (size_t i = 0; i < results.size(); ++i)
      elements.push_back(makeLeaf(mlirOperationGetResult(unpacked, static_cast<intptr_t>(i)),
                                  tuple->elements()[i], name));
    return c10::ivalue::Tuple::createNamed(std::move(elements), tuple);
  }
  LeafPtr leaf = makeHole(type);
  if (leaf->cell)
    leaf->cell->name = name;
  fill(leaf, value);
  return toIValue(leaf);
}

LeafPtr Evaluator::makeHole(const TypePtr &type) {
  auto leaf = c10::make_intrusive<Leaf>();
  leaf->type = type;
  if (type->kind() == TypeKind::TensorType)
    leaf->kind = Leaf::Kind::Tensor;
  else
    leaf->kind = holdsMemory(type) ? Leaf::Kind::Memory : Leaf::Kind::Plain;
  if (leaf->kind != Leaf::Kind::Plain)
    leaf->cell = heap.createCell(MlirValue{nullptr}, type);
  return leaf;
}

void Evaluator::fill(const LeafPtr &leaf, MlirValue value) {
  (leaf->cell ? leaf->cell->value : leaf->value) = value;
}

IValue Evaluator::makeArgument(MlirValue value, const TypePtr &type, const std::string &name) {
  IValue made = makeLeaf(value, type, name);
  std::set<Cell *> cells;
  collectCells(made, cells);
  for (Cell *cell : cells)
    cell->isArgument = true;
  return made;
}

/// Whether libtorch's operators may look at all of a value.
bool Evaluator::isKnown(const IValue &value) const {
  Visited visited;
  return isKnown(value, visited);
}

bool Evaluator::isKnown(const IValue &value, Visited &visited) const {
  if (value.isTensor() || value.isCapsule() || value.isObject())
    return false;
  if (!isContainer(value) || !visited.insert(value.internalToPointer()).second)
    return true;
  auto isElementKnown = [&](const IValue &element) { return isKnown(element, visited); };
  if (value.isTuple()) {
    const auto &elements = value.toTupleRef().elements();
    return std::all_of(elements.begin(), elements.end(), isElementKnown);
  }
  if (value.isList()) {
    if (heap.getDynamic(value))
      return false;
    auto elements = value.toListRef();
    return std::all_of(elements.begin(), elements.end(), isElementKnown);
  }
  for (const auto &entry : value.toGenericDict()) {
    if (!isElementKnown(entry.key()) || !isElementKnown(entry.value()))
      return false;
  }
  return true;
}

bool Evaluator::isSame(const IValue &left, const IValue &right) {
  spend(1);
  if (left.is(right))
    return true;
  if (left.isTuple() && right.isTuple()) {
    const auto &lefts = left.toTupleRef().elements();
    const auto &rights = right.toTupleRef().elements();
    return std::equal(lefts.begin(), lefts.end(), rights.begin(), rights.end(),
                      [this](const IValue &one, const IValue &two) { return isSame(one, two); });
  }
  if (left.isList() && right.isList()) {
    auto lefts = left.toListRef(), rights = right.toListRef();
    return std::equal(lefts.begin(), lefts.end(), rights.begin(), rights.end(),
                      [this](const IValue &one, const IValue &two) { return isSame(one, two); });
  }
  return left == right;
}

Cell *Evaluator::cellOf(const at::Tensor &tensor) {
  const at::TensorImpl *identity = tensor.unsafeGetTensorImpl();
  auto [entry, isNew] = tensors.try_emplace(identity, nullptr);
  if (!isNew)
    return entry->second;
  auto name = names.values.find(identity);
  Cell *cell = heap.createCell(MlirValue{nullptr}, c10::TensorType::get(),
                               name == names.values.end() ? "constant" : name->second);
  cell->literal = tensor;
  cell->origin = identity;
  entry->second = cell;
  // What constants of the program share with it, and with one another, isn't followed.
  if (tensor.defined() && tensor.has_storage() && tensor.numel() > 0 && !shared.find(tensor)) {
    const c10::StorageImpl *storage = tensor.storage().unsafeGetStorageImpl();
    auto &others = storages[storage];
    for (const at::TensorImpl *other : others) {
      Cell *cellOfOther = tensors.at(other);
      if (overlap(tensor, cellOfOther->literal))
        relate(cell, cellOfOther);
    }
    others.insert(identity);
    // The literal is what the archive holds, which is no longer true once another was written.
    if (auto written = writtenStorages.find(storage); written != writtenStorages.end())
      for (const auto &[other, write] : written->second)
        if (other.unsafeGetTensorImpl() != identity && overlap(tensor, other))
          cell->stale = write;
    if (!slots.allTensors) // else they are there whether or not they are written to
      for (const auto &[other, state] : slots.values)
        if (other != identity && state.isTensor() && overlap(tensor, state.toTensor()))
          cell->stale = std::make_shared<Write>(Write{{}, "a method of the module"});
  }
  if (slots.allTensors && name != names.values.end())
    slots.values.emplace(identity, tensor);
  if (slots.values.count(identity))
    cell->value = front.value("torch.global_slot.get", locations.unknown(), types.getTensor(), {},
                              {{"slot", front.symbol(cell->name)}});
  return cell;
}

Evaluator::Place Evaluator::placeOf(const at::Tensor &tensor) {
  at::Tensor memory = shared.findMemory(tensor);
  if (!memory.defined() || !slots.writtenMemory.count(memory.unsafeGetTensorImpl()))
    return {cellOf(tensor), nullptr};
  Place place{cellOf(memory), nullptr};
  const Alias *alias = shared.find(tensor);
  if (!alias)
    return place;
  std::shared_ptr<const View> &view = views[tensor.unsafeGetTensorImpl()];
  if (!view) {
    for (auto &[operation, arguments] : alias->getSteps(front, locations.unknown()))
      view = std::make_shared<View>(view, operation, std::move(arguments), alias->overlapsItself);
  }
  place.view = view;
  return place;
}

Evaluator::Place Evaluator::placeOf(const IValue &tensor) {
  if (const Leaf *leaf = getLeaf(tensor))
    return {leaf->cell, leaf->view};
  return placeOf(tensor.toTensor());
}

MlirValue Evaluator::read(const Place &place) {
  MlirValue base = read(place.cell);
  return place.view ? place.view->read(*builder, base, refinement, location) : base;
}

Cell *Evaluator::openCell(const IValue &list) {
  if (const Leaf *leaf = getLeaf(list))
    return leaf->cell;
  return heap.getDynamic(list);
}

MlirValue Evaluator::read(Cell *cell) {
  if (cell->stale) {
    std::string place;
    if (auto line = getUserLine(cell->stale->frames))
      place = " at " + line->file + ":" + std::to_string(line->line);
    throw Unsupported("it reads what may share memory with what " + cell->stale->what +
                      " writes to" + place + ", which can't be done on values");
  }
  for (std::set<Cell *> &each : reads)
    each.insert(cell);
  if (mlirValueIsNull(cell->value)) {
    try {
      cell->value = literals.create(front, cell->literal, cell->name, locations.unknown());
    } catch (const Unsupported &problem) {
      throw Unsupported("'" + cell->name + "' is " + problem.what());
    }
  }
  return cell->value;
}

MlirValue Evaluator::read(const Leaf &leaf) {
  switch (leaf.kind) {
  case Leaf::Kind::Tensor:
    return read(Place{leaf.cell, leaf.view});
  case Leaf::Kind::Memory:
    return read(leaf.cell);
  case Leaf::Kind::Plain:
    return leaf.value;
  case Leaf::Kind::Uninitialized:
    return builder->value("torch.prim.Uninitialized", location, types.get(leaf.type));
  }
  return MlirValue{nullptr};
}

void Evaluator::write(Cell *cell, MlirValue value, const std::string &what) {
  if (at::Tensor memory = cell->literal.defined() ? shared.findMemory(cell->literal) : at::Tensor();
      memory.defined() && slots.writtenMemory.insert(memory.unsafeGetTensorImpl()).second) {
    for (auto slot = slots.values.begin(); slot != slots.values.end();) {
      bool isPart = slot->second.isTensor() &&
                    shared.findMemory(slot->second.toTensor()).is_same(memory);
      slot = isPart ? slots.values.erase(slot) : std::next(slot);
    }
    throw Restart();
  }
  heap.willWrite(cell);
  cell->value = value;
  auto stale = std::make_shared<Write>();
  stale->what = what;
  stale->frames = getStack(lastPlaced);
  auto noteStorage = [&](const Cell *written) {
    if (written->literal.defined() && written->literal.has_storage())
      writtenStorages[written->literal.storage().unsafeGetStorageImpl()].emplace_back(
          written->literal, stale);
  };
  noteStorage(cell);
  for (Cell *other : cell->related) {
    heap.willWrite(other);
    other->stale = stale;
    noteStorage(other);
  }
  if (!cell->isArgument)
    return;
  std::string place;
  if (auto line = getUserLine(stale->frames))
    place = line->file + ":" + std::to_string(line->line) + ": ";
  std::string warning = place + what + " writes to the argument '" + cell->name +
                        "'; callers of the function don't see it";
  if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
    warnings.push_back(warning);
}

void Evaluator::relate(Cell *cell, Cell *other) {
  // What `other` may share its memory with, `cell` may as well. Those don't share theirs with
  // one another for that: a tensor that is one of two, depending on a condition, makes them no
  // more the same than they were.
  std::vector<Cell *> others = other->related;
  others.push_back(other);
  for (Cell *each : others) {
    if (each == cell ||
        std::find(cell->related.begin(), cell->related.end(), each) != cell->related.end())
      continue;
    cell->related.push_back(each);
    each->related.push_back(cell);
  }
}

void Evaluator::collectCells(const IValue &value, std::set<Cell *> &cells) {
  Visited visited;
  collectCells(value, cells, visited);
}

void Evaluator::collectCells(const IValue &value, std::set<Cell *> &cells, Visited &visited) {
  if (const Leaf *leaf = getLeaf(value)) {
    if (leaf->cell)
      cells.insert(leaf->cell);
    return;
  }
  if (value.isTensor()) {
    cells.insert(placeOf(value).cell);
    return;
  }
  if (!isContainer(value) || !visited.insert(value.internalToPointer()).second)
    return;
  if (value.isTuple()) {
    for (const IValue &element : value.toTupleRef().elements())
      collectCells(element, cells, visited);
  } else if (value.isList()) {
    if (Cell *open = heap.getDynamic(value)) {
      cells.insert(open);
      return;
    }
    for (const IValue &element : value.toListRef())
      collectCells(element, cells, visited);
  } else {
    for (const auto &entry : value.toGenericDict())
      collectCells(entry.value(), cells, visited);
  }
}

/// What tells constants apart that may share an operation; empty where they may not.
static std::string getKey(const IValue &value) {
  auto bits = [](double number) {
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return std::to_string(bits);
  };
  if (value.isNone())
    return "none";
  if (value.isBool())
    return value.toBool() ? "true" : "false";
  if (value.isInt())
    return "i" + std::to_string(value.toInt());
  if (value.isDouble())
    return "f" + bits(value.toDouble());
  if (value.isString())
    return "s" + value.toStringRef();
  if (value.isDevice())
    return "d" + value.toDevice().str();
  return {};
}

MlirValue Evaluator::constant(const IValue &value) {
  std::string key = getKey(value);
  auto found = key.empty() ? constants.end() : constants.find(key);
  if (found != constants.end())
    return found->second;
  Values made(front, types, literals, /*objects=*/false);
  MlirValue result = made.get(value, value.type(), "constant", locations.unknown());
  if (!key.empty())
    constants.emplace(key, result);
  return result;
}

MlirValue Evaluator::materialize(const IValue &value, const TypePtr &type) {
  spend(stepsPerValue);
  if (value.isEnum())
    throw Unsupported("which value of an enumeration it is isn't known before the program runs");
  if (const Leaf *leaf = getLeaf(value))
    return read(*leaf);
  if (value.isTensor())
    return read(placeOf(value));
  if (value.isList()) {
    if (Cell *open = heap.getDynamic(value))
      return read(open);
    TypePtr list = value.type();
    if (auto wanted = withoutNone(type)->cast<c10::ListType>();
        wanted && !wanted->hasFreeVariables())
      list = wanted;
    TypePtr element = list->expectRef<c10::ListType>().getElementType();
    std::vector<MlirValue> elements;
    for (const IValue &each : value.toListRef())
      elements.push_back(materializeAs(each, element));
    return builder->value("torch.prim.ListConstruct", location, types.get(list), elements);
  }
  if (value.isTuple()) {
    const auto &items = value.toTupleRef().elements();
    auto tuple = withoutNone(type)->cast<c10::TupleType>();
    std::vector<MlirValue> elements;
    std::vector<MlirType> elementTypes;
    for (size_t i = 0; i < items.size(); ++i) {
      if (tuple && i < tuple->elements().size())
        elements.push_back(materializeAs(items[i], tuple->elements()[i]));
      else
        elements.push_back(materialize(items[i], c10::AnyType::get()));
      elementTypes.push_back(mlirValueGetType(elements.back()));
    }
    MlirType result =
        tuple ? types.get(tuple)
              : torchMlirTorchTupleTypeGetChecked(
                    location, static_cast<intptr_t>(elementTypes.size()), elementTypes.data());
    return builder->value("torch.prim.TupleConstruct", location, result, elements);
  }
  if (value.isGenericDict()) {
    auto dict = value.type()->expect<c10::DictType>();
    std::vector<MlirValue> keys, items;
    for (const auto &entry : value.toGenericDict()) {
      keys.push_back(materializeAs(entry.key(), dict->getKeyType()));
      items.push_back(materializeAs(entry.value(), dict->getValueType()));
    }
    keys.insert(keys.end(), items.begin(), items.end());
    return builder->value("torch.prim.DictConstruct", location, types.get(dict), keys);
  }
  if (value.isObject() && isCustomClass(*value.toObject()->type())) {
    // Packed parameters. Whatever they are, nothing writes to them.
    MlirValue &made = packed[value.internalToPointer()];
    if (mlirValueIsNull(made)) {
      Values parameters(front, types, literals, /*objects=*/false);
      auto name = names.values.find(value.internalToPointer());
      made = parameters.get(value, value.type(),
                            name == names.values.end() ? "parameters" : name->second,
                            locations.unknown());
    }
    return made;
  }
  if (value.isObject())
    throw Unsupported("an object of class '" + value.type()->repr_str() +
                      "' would have to be a value");
  return constant(value);
}

MlirValue Evaluator::materializeAs(const IValue &value, const TypePtr &type) {
  MlirValue made = materialize(value, type);
  if (type->hasFreeVariables())
    return made;
  MlirType wanted = types.get(type);
  if (torchMlirTorchTypeIsSubtype(mlirValueGetType(made), wanted))
    return made;
  return builder->convert(made, wanted, location);
}

void Evaluator::flatten(const IValue &result, const TypePtr &type,
                        std::vector<MlirValue> &results) {
  if (result.isNone())
    return;
  spend(1);
  if (result.isTuple()) {
    auto tuple = type->cast<c10::TupleType>();
    const auto &elements = result.toTupleRef().elements();
    for (size_t i = 0; i < elements.size(); ++i)
      flatten(elements[i], tuple ? tuple->elements().at(i) : c10::AnyType::get(), results);
    return;
  }
  results.push_back(materialize(result, type));
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

void Evaluator::start() {
  heap.begin();
  for (const auto &[key, object] : slots.attributes) {
    const auto &holder = *object.toObject();
    const TypePtr &type = holder.type()->getAttribute(key.second);
    MlirValue value = front.value("torch.global_slot.get", locations.unknown(), types.get(type), {},
                                  {{"slot", front.symbol(names.attributes.at(key))}});
    // Leaves of a tuple are made by an operation too.
    Builder *outer = std::exchange(builder, &front);
    IValue leaf = makeLeaf(value, type, names.attributes.at(key));
    builder = outer;
    heap.willWriteAttribute(object, key.second);
    object.toObject()->setSlot(key.second, leaf);
  }
  for (const auto &[identity, list] : slots.values) {
    if (!list.isList())
      continue;
    const std::string &name = names.values.at(identity);
    MlirValue value = front.value("torch.global_slot.get", locations.unknown(),
                                  types.get(list.type()), {}, {{"slot", front.symbol(name)}});
    Cell *cell = heap.createCell(value, list.type(), name);
    cell->origin = identity;
    heap.setDynamic(list, cell);
  }
  heap.begin();
}

void Evaluator::finish() {
  // What was changed is given back, in the order of the names.
  std::map<std::string, std::pair<IValue, TypePtr>> given;
  for (const auto &[key, object] : slots.attributes)
    given[names.attributes.at(key)] = {object.toObject()->getSlot(key.second),
                                       object.toObject()->type()->getAttribute(key.second)};
  for (const auto &[identity, value] : slots.values) {
    if (value.isList())
      given[names.values.at(identity)] = {value, value.type()};
    else if (tensors.count(static_cast<const at::TensorImpl *>(identity)))
      given[tensors.at(static_cast<const at::TensorImpl *>(identity))->name] = {
          value, c10::TensorType::get()};
  }
  for (const auto &[name, entry] : given) {
    MlirValue value = materializeAs(entry.first, entry.second);
    MlirOperation maker = mlirValueIsAOpResult(value) ? mlirOpResultGetOwner(value)
                                                      : MlirOperation{nullptr};
    MlirAttribute slot{nullptr};
    if (!mlirOperationIsNull(maker))
      slot = mlirOperationGetAttributeByName(maker, mlirStringRefCreateFromCString("slot"));
    // As it was.
    if (!mlirAttributeIsNull(slot) && mlirAttributeEqual(slot, front.symbol(name)))
      continue;
    emit("torch.global_slot.set", {}, {value}, {{"slot", builder->symbol(name)}});
  }

  Heap::Change change = heap.undo();
  heap.undo();
  for (const auto &[thing, item] : change.items) {
    switch (thing.kind) {
    case Thing::Kind::Cell: {
      const auto *cell = static_cast<const Cell *>(thing.address);
      bool isWritten = !mlirValueIsNull(item.state.value) && !item.state.stale;
      if (cell->origin && cell->literal.defined() && isWritten)
        slots.values.emplace(cell->origin, cell->literal);
      break;
    }
    case Thing::Kind::List:
      if (names.values.count(thing.address))
        slots.values.emplace(thing.address, item.held);
      break;
    case Thing::Kind::Dict:
      break;
    case Thing::Kind::Attribute:
      if (names.attributes.count({thing.address, thing.slot}))
        slots.attributes.emplace(std::make_pair(thing.address, thing.slot), item.held);
      break;
    }
  }
}

//===----------------------------------------------------------------------===//
// Calls and blocks
//===----------------------------------------------------------------------===//

std::vector<SourceLine> Evaluator::getStack(const Node *node) const {
  std::vector<SourceLine> frames;
  if (node)
    frames = locations.getFrames(node);
  for (auto caller = callers.rbegin(); caller != callers.rend(); ++caller) {
    // A traced node has the whole stack already.
    if (frames.size() > 1)
      break;
    std::vector<SourceLine> outer = locations.getFrames(*caller);
    frames.insert(frames.end(), outer.begin(), outer.end());
  }
  return frames;
}

void Evaluator::fail(const Node *node, const std::string &message) {
  std::string name = node->kind().toQualString();
  if (const auto *schema = node->maybeSchema(); schema && !schema->overload_name().empty())
    name += "." + schema->overload_name();
  std::vector<SourceLine> stack = getStack(lastPlaced ? lastPlaced : node);
  if (trustTypes && stack.empty())
    throw ImportError(name + ": " + message); // it's no archive's, and lines aren't recorded
  throw errorAt(name + ": " + message, stack);
}

IValue Evaluator::call(Function &function, const std::vector<IValue> &arguments) {
  if (callers.size() > maxCalls)
    throw Unsupported("more than " + std::to_string(maxCalls) + " calls inside of one another");
  if (!function.isGraphFunction())
    throw Unsupported("the function '" + function.qualname().qualifiedName() +
                      "' isn't written in TorchScript");
  std::shared_ptr<torch::jit::Graph> graph = torch::jit::toGraphFunction(function).graph();
  // In place: the graphs are ours, and nobody runs them any more.
  if (normalized.insert(&function).second)
    torch::jit::NormalizeOps(graph);
  Frame inner;
  Frame *outer = std::exchange(frame, &inner);
  if (graph->inputs().size() != arguments.size())
    throw Unsupported("'" + function.qualname().qualifiedName() + "' takes " +
                      std::to_string(graph->inputs().size()) + " arguments, not " +
                      std::to_string(arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i)
    bind(graph->inputs()[i], arguments[i]);
  evaluateBlock(*graph->block());
  IValue result = get(graph->outputs().at(0));
  frame = outer;
  return result;
}

IValue Evaluator::callMethod(const IValue &object, const std::string &name,
                             std::vector<IValue> arguments) {
  if (!object.isObject())
    throw Unsupported("method '" + name + "' of an object that isn't known");
  auto type = object.toObject()->type();
  if (isCustomClass(*type))
    throw Unsupported("method '" + name + "' of the custom C++ class '" +
                      torchscript::getName(*type) + "' has no form in the Torch dialect");
  Function *method = type->findMethod(name);
  if (!method)
    method = type->findHook(name);
  if (!method)
    throw Unsupported("'" + torchscript::getName(*type) + "' has no method '" + name + "'");
  arguments.insert(arguments.begin(), object);
  return call(*method, arguments);
}

void Evaluator::spend(uint64_t count) {
  steps += count;
  if (steps > maxSteps)
    throw Unsupported("the program takes more than " + std::to_string(maxSteps) + " steps");
}

void Evaluator::evaluateBlock(const Block &block) {
  MlirLocation outerLocation = location;
  const Node *outerPlaced = lastPlaced;
  if (const Node *first = lastPlaced ? nullptr : locations.findPlaced(block)) {
    lastPlaced = first;
    location = locations.get(first);
  }
  for (const Node *node : block.nodes()) {
    spend(1);
    MlirLocation own = locations.get(node);
    if (!mlirLocationEqual(own, locations.unknown())) {
      lastPlaced = node;
      location = own;
      if (!callers.empty() && !locations.hasStack(node)) {
        std::vector<MlirLocation> outer;
        for (auto caller = callers.rbegin(); caller != callers.rend(); ++caller) {
          outer.push_back(locations.get(*caller));
          if (locations.hasStack(*caller))
            break;
        }
        MlirLocation stack = outer.back();
        for (size_t i = outer.size() - 1; i-- > 0;)
          stack = mlirLocationCallSiteGet(outer[i], stack);
        location = mlirLocationCallSiteGet(own, stack);
      }
    }
    try {
      evaluate(node);
    } catch (const Unsupported &problem) {
      fail(node, problem.what());
    }
  }
  location = outerLocation;
  lastPlaced = outerPlaced;
}

IValue &Evaluator::get(const Value *value) {
  auto found = frame->find(value);
  if (found == frame->end())
    throw Unsupported("its operand %" + value->debugName() + ", a " + value->type()->repr_str() +
                      ", is no value");
  return found->second;
}

std::vector<IValue> Evaluator::getInputs(const Node *node) {
  std::vector<IValue> inputs;
  for (const Value *input : node->inputs())
    inputs.push_back(get(input));
  return inputs;
}

void Evaluator::evaluate(const Node *node) {
  // The node that is evaluated is what calls, as long as it calls.
  struct Caller {
    std::vector<const Node *> &callers;
    Caller(std::vector<const Node *> &callers, const Node *node) : callers(callers) {
      callers.push_back(node);
    }
    ~Caller() { callers.pop_back(); }
  };
  switch (static_cast<c10::unique_t>(node->kind())) {
  case prim::Constant:
    return evaluateConstant(node);
  case prim::If:
    return evaluateIf(node);
  case prim::Loop:
    return evaluateLoop(node);
  case prim::CallFunction: {
    auto callee = node->input(0)->type()->expect<c10::FunctionType>();
    std::vector<IValue> arguments;
    for (size_t i = 1; i < node->inputs().size(); ++i)
      arguments.push_back(get(node->input(i)));
    Caller caller(callers, node);
    return bind(node->output(), call(*callee->function(), arguments));
  }
  case prim::CallMethod: {
    std::vector<IValue> arguments = getInputs(node);
    IValue object = arguments.front();
    arguments.erase(arguments.begin());
    Caller caller(callers, node);
    return bind(node->output(), callMethod(object, node->s(attr::name), arguments));
  }
  case prim::fork: {
    // It runs where it stands.
    const auto &graph = *node->g(attr::Subgraph);
    Frame inner;
    std::vector<IValue> arguments = getInputs(node);
    for (size_t i = 0; i < arguments.size(); ++i)
      inner[graph.inputs().at(i)] = arguments[i];
    Frame *outer = std::exchange(frame, &inner);
    {
      Caller caller(callers, node);
      evaluateBlock(*graph.block());
    }
    IValue result = get(graph.outputs().at(0));
    frame = outer;
    return bind(node->output(), result);
  }
  case aten::wait:
    return bind(node->output(), get(node->input()));
  case prim::ListConstruct: {
    c10::impl::GenericList list(node->output()->type()->expect<c10::ListType>()->getElementType());
    for (const IValue &element : getInputs(node))
      list.push_back(element);
    heap.noteBirth(list);
    return bind(node->output(), list);
  }
  case prim::TupleConstruct:
    return bind(node->output(),
                c10::ivalue::Tuple::createNamed(getInputs(node),
                                                node->output()->type()->expect<c10::TupleType>()));
  case prim::DictConstruct: {
    auto type = node->output()->type()->expect<c10::DictType>();
    c10::impl::GenericDict dict(type->getKeyType(), type->getValueType());
    std::vector<IValue> inputs = getInputs(node);
    for (size_t i = 0; i + 1 < inputs.size(); i += 2) {
      if (!isKnown(inputs[i]))
        throw Unsupported("a dict whose keys aren't known");
      dict.insert_or_assign(inputs[i], inputs[i + 1]);
    }
    heap.noteBirth(dict);
    return bind(node->output(), dict);
  }
  case prim::TupleUnpack:
  case prim::ListUnpack:
    return evaluateUnpack(node);
  case prim::TupleIndex: {
    const IValue &tuple = get(node->input(0));
    const IValue &index = get(node->input(1));
    if (!tuple.isTuple() || !index.isInt())
      throw Unsupported("an element of a tuple that isn't known");
    const auto &elements = tuple.toTupleRef().elements();
    int64_t place = index.toInt();
    place += place < 0 ? static_cast<int64_t>(elements.size()) : 0;
    if (place < 0 || place >= static_cast<int64_t>(elements.size()))
      throw Unsupported("the index " + std::to_string(index.toInt()) + " of a tuple of " +
                        std::to_string(elements.size()));
    return bind(node->output(), elements[static_cast<size_t>(place)]);
  }
  case prim::TupleSlice:
    return evaluateSlice(node);
  case prim::GetAttr: {
    const IValue &object = get(node->input());
    if (!object.isObject())
      throw Unsupported("an attribute of an object that isn't known");
    return bind(node->output(), object.toObject()->getAttr(node->s(attr::name)));
  }
  case prim::SetAttr: {
    const IValue &object = get(node->input(0));
    if (!object.isObject())
      throw Unsupported("an attribute of an object that isn't known");
    size_t slot = object.toObject()->type()->getAttributeSlot(node->s(attr::name));
    heap.willWriteAttribute(object, slot);
    object.toObject()->setSlot(slot, get(node->input(1)));
    return;
  }
  case prim::CreateObject: {
    auto type = node->output()->type()->expect<c10::ClassType>();
    if (isCustomClass(*type))
      throw Unsupported("the custom C++ class '" + type->annotation_str() +
                        "' has no form in the Torch dialect");
    IValue object = c10::ivalue::Object::create(
        c10::StrongTypePtr(type->compilation_unit(), type), type->numAttributes());
    heap.noteBirth(object);
    return bind(node->output(), object);
  }
  case prim::Uninitialized: {
    auto leaf = c10::make_intrusive<Leaf>();
    leaf->kind = Leaf::Kind::Uninitialized;
    leaf->type = node->output()->type();
    return bind(node->output(), toIValue(leaf));
  }
  case prim::unchecked_cast:
    return evaluateCast(node);
  case prim::isinstance:
    return evaluateIsInstance(node);
  case prim::ModuleContainerIndex:
    return evaluateModuleIndex(node);
  case prim::Enter: {
    Caller caller(callers, node);
    return bind(node->output(), callMethod(get(node->input()), "__enter__", {}));
  }
  case prim::Exit: {
    Caller caller(callers, node);
    return bind(node->output(),
                callMethod(get(node->input()), "__exit__", {IValue(), IValue(), IValue()}));
  }
  case prim::RaiseException: {
    const IValue &message = get(node->input(0));
    if (builder == &body)
      throw Unsupported("the method always gets here, and raises" +
                        (message.isString() ? ": " + message.toStringRef() : std::string()));
    return evaluateOperator(node);
  }
  default:
    return evaluateOperator(node);
  }
}

void Evaluator::evaluateConstant(const Node *node) {
  if (node->output()->type()->kind() == TypeKind::FunctionType)
    return;
  auto value = torch::jit::toIValue(node->output());
  if (!value)
    throw Unsupported("a constant of type " + node->output()->type()->repr_str() +
                      " is not supported");
  bind(node->output(), *value);
}

void Evaluator::evaluateUnpack(const Node *node) {
  const IValue value = get(node->input());
  auto outputs = node->outputs();
  if (value.isTuple() || (value.isList() && !heap.getDynamic(value))) {
    std::vector<IValue> elements;
    if (value.isTuple())
      elements.assign(value.toTupleRef().elements().begin(), value.toTupleRef().elements().end());
    else
      elements = value.toListRef().vec();
    if (elements.size() != outputs.size())
      throw Unsupported("it wants " + std::to_string(outputs.size()) + " elements of " +
                        std::to_string(elements.size()));
    for (size_t i = 0; i < elements.size(); ++i)
      bind(outputs[i], elements[i]);
    return;
  }
  std::vector<MlirType> results;
  for (const Value *output : outputs)
    results.push_back(types.get(output->type()));
  const char *name =
      node->kind() == prim::ListUnpack ? "torch.prim.ListUnpack" : "torch.prim.TupleUnpack";
  MlirOperation made = emit(name, results, {materialize(value, node->input()->type())});
  std::set<Cell *> whole, parts;
  collectCells(value, whole);
  for (size_t i = 0; i < outputs.size(); ++i) {
    IValue part =
        makeLeaf(mlirOperationGetResult(made, static_cast<intptr_t>(i)), outputs[i]->type());
    std::set<Cell *> cells;
    collectCells(part, cells);
    for (Cell *cell : cells) {
      for (Cell *other : whole)
        relate(cell, other);
    }
    bind(outputs[i], part);
  }
}

void Evaluator::evaluateSlice(const Node *node) {
  const IValue &tuple = get(node->input());
  if (!tuple.isTuple())
    throw Unsupported("elements of a tuple that isn't known");
  const auto &elements = tuple.toTupleRef().elements();
  std::vector<IValue> taken(elements.begin() + node->i(attr::beg),
                            elements.begin() + node->i(attr::end));
  bind(node->output(), c10::ivalue::Tuple::createNamed(
                           std::move(taken), node->output()->type()->expect<c10::TupleType>()));
}

void Evaluator::evaluateCast(const Node *node) {
  const IValue &value = get(node->input());
  const Leaf *leaf = getLeaf(value);
  const TypePtr &type = node->output()->type();
  if (!leaf || leaf->type->isSubtypeOf(*type) || leaf->kind == Leaf::Kind::Uninitialized)
    return bind(node->output(), value);
  MlirType wanted = types.get(type);
  IValue cast = makeLeaf(builder->convert(read(*leaf), wanted, location), type);
  std::set<Cell *> cells;
  collectCells(cast, cells);
  for (Cell *cell : cells) {
    if (leaf->cell)
      relate(cell, leaf->cell);
    cell->isArgument = leaf->cell && leaf->cell->isArgument;
    cell->name = leaf->cell ? leaf->cell->name : "";
  }
  bind(node->output(), cast);
}

void Evaluator::evaluateIsInstance(const Node *node) {
  const IValue &value = get(node->input());
  const Leaf *leaf = getLeaf(value);
  TypePtr own = leaf ? leaf->type : value.isTensor() ? TypePtr(c10::TensorType::get()) : value.type();
  bool may = false;
  for (const TypePtr &type : node->tys(attr::types)) {
    if (own->isSubtypeOf(*type))
      return bind(node->output(), true);
    may |= leaf && (own->kind() == TypeKind::AnyType || type->isSubtypeOf(*own));
  }
  if (!may)
    return bind(node->output(), false);
  std::vector<MlirAttribute> wanted;
  for (const TypePtr &type : node->tys(attr::types))
    wanted.push_back(builder->type(types.get(type)));
  MlirOperation made = emit("torch.operator", {torchMlirTorchBoolTypeGet(context)}, {read(*leaf)},
                            {{"name", builder->string("torch.prim.isinstance")},
                             {"types", mlirArrayAttrGet(context, static_cast<intptr_t>(wanted.size()),
                                                        wanted.data())}});
  bind(node->output(), makeLeaf(mlirOperationGetResult(made, 0), c10::BoolType::get()));
}

void Evaluator::evaluateModuleIndex(const Node *node) {
  const IValue &container = get(node->input(0));
  const IValue &index = get(node->input(1));
  if (!container.isObject() || !isKnown(index))
    throw Unsupported("which of the modules it is isn't known");
  std::string name = index.isString() ? index.toStringRef() : std::to_string(index.toInt());
  if (!container.toObject()->type()->findAttribute(name))
    throw Unsupported("there is no module '" + name + "'");
  bind(node->output(), container.toObject()->getAttr(name));
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

void Evaluator::evaluateIf(const Node *node) {
  const IValue condition = get(node->input());
  if (condition.isBool()) {
    const Block &taken = *node->blocks()[condition.toBool() ? 0 : 1];
    evaluateBlock(taken);
    for (size_t i = 0; i < node->outputs().size(); ++i)
      bind(node->outputs()[i], IValue(get(taken.outputs()[i])));
    return;
  }
  MlirValue value = materializeAs(condition, c10::BoolType::get());
  if (!evaluateAssertion(node, value))
    evaluateBranches(node, value);
}

/// Whether a branch raises whatever happens in it.
static const Node *findRaise(const Block &block) {
  for (const Node *node : block.nodes()) {
    if (node->kind() == prim::RaiseException)
      return node;
  }
  return nullptr;
}

/// A branch that raises is an assertion before what the other branch does.
bool Evaluator::evaluateAssertion(const Node *node, MlirValue condition) {
  for (size_t side = 0; side < 2; ++side) {
    const Block &raising = *node->blocks()[side];
    const Block &other = *node->blocks()[1 - side];
    const Node *raise = findRaise(raising);
    if (!raise || findRaise(other))
      continue;
    // The message, where it's a text that is known.
    MlirBlock scratch = mlirBlockCreate(0, nullptr, nullptr);
    Builder inner(context, scratch);
    Builder *outer = std::exchange(builder, &inner);
    std::string message = "an assertion of the model failed";
    heap.begin();
    for (const Node *each : raising.nodes()) {
      if (each == raise)
        break;
      evaluate(each);
    }
    if (const IValue &text = get(raise->input(0)); text.isString())
      message = text.toStringRef();
    heap.undo();
    builder = outer;
    mlirBlockDestroy(scratch);
    MlirType boolean = torchMlirTorchBoolTypeGet(context);
    if (side == 0)
      condition = builder->value("torch.aten.__not__", location, boolean, {condition});
    emit("torch.runtime.assert", {}, {condition}, {{"message", builder->string(message)}});
    evaluateBlock(other);
    for (size_t i = 0; i < node->outputs().size(); ++i)
      bind(node->outputs()[i], IValue(get(other.outputs()[i])));
    return true;
  }
  return false;
}

void Evaluator::evaluateBranches(const Node *node, MlirValue condition) {
  struct Branch {
    MlirBlock block;
    std::vector<IValue> outputs;
    Heap::Change change;
  };
  Branch branches[2];
  std::vector<Builder> builders;
  for (size_t side = 0; side < 2; ++side) {
    branches[side].block = mlirBlockCreate(0, nullptr, nullptr);
    builders.emplace_back(context, branches[side].block);
  }
  // Blocks belong to nobody yet.
  struct Guard {
    Branch *branches;
    bool isArmed = true;
    ~Guard() {
      for (size_t side = 0; isArmed && side < 2; ++side)
        mlirBlockDestroy(branches[1 - side].block);
    }
  } guard{branches};
  Builder *outer = builder;
  uint64_t start = heap.getClock();
  for (size_t side = 0; side < 2; ++side) {
    const Block &block = *node->blocks()[side];
    builder = &builders[side];
    heap.begin();
    evaluateBlock(block);
    for (const Value *output : block.outputs())
      branches[side].outputs.push_back(get(output));
    branches[side].change = heap.undo();
  }
  builder = outer;

  // What the ways give, where they differ.
  std::vector<Hole> holes;
  std::vector<IValue> results;
  for (size_t i = 0; i < node->outputs().size(); ++i)
    results.push_back(merge(branches[0].outputs[i], branches[1].outputs[i],
                            node->outputs()[i]->type(), holes));

  // What they write to.
  struct Joined {
    Thing thing;
    IValue held;
    State state;
    LeafPtr hole;
  };
  std::vector<Joined> joined;
  std::map<Thing, IValue> things;
  for (const Branch &branch : branches) {
    for (const auto &[thing, item] : branch.change.items) {
      if (heap.getBirth(thing) <= start) // others are gone with the branch
        things.emplace(thing, item.held);
    }
  }
  auto hole = [&](const IValue &left, const IValue &right, const TypePtr &type) {
    Hole made{{left, right}, type, makeHole(type)};
    holes.push_back(made);
    return made.leaf;
  };
  for (const auto &[thing, held] : things) {
    State states[2];
    for (size_t side = 0; side < 2; ++side) {
      auto found = branches[side].change.items.find(thing);
      states[side] = found == branches[side].change.items.end() ? heap.getState(thing, held)
                                                                 : found->second.state;
    }
    Joined join{thing, held, states[0], LeafPtr()};
    switch (thing.kind) {
    case Thing::Kind::Cell: {
      auto *cell = const_cast<Cell *>(static_cast<const Cell *>(thing.address));
      join.state.stale = states[0].stale ? states[0].stale : states[1].stale;
      if (mlirValueEqual(states[0].value, states[1].value))
        break;
      IValue sides[2];
      for (size_t side = 0; side < 2; ++side) {
        auto leaf = c10::make_intrusive<Leaf>();
        leaf->type = cell->type;
        if (mlirValueIsNull(states[side].value)) // not read yet
          states[side].value = read(cell);
        leaf->value = states[side].value;
        sides[side] = toIValue(leaf);
      }
      join.hole = hole(sides[0], sides[1], cell->type);
      break;
    }
    case Thing::Kind::List: {
      bool isOpen = states[0].dynamic || states[1].dynamic;
      if (isOpen || states[0].elements.size() != states[1].elements.size()) {
        join.hole = hole(held, held, held.type());
        break;
      }
      TypePtr element = held.type()->expectRef<c10::ListType>().getElementType();
      for (size_t i = 0; i < states[0].elements.size(); ++i)
        join.state.elements[i] =
            merge(states[0].elements[i], states[1].elements[i], element, holes);
      break;
    }
    case Thing::Kind::Dict: {
      bool isSame = states[0].entries.size() == states[1].entries.size();
      for (size_t i = 0; isSame && i < states[0].entries.size(); ++i)
        isSame = states[0].entries[i].first == states[1].entries[i].first;
      if (!isSame)
        throw Unsupported("which keys a dict has depends on a condition");
      TypePtr item = held.type()->expectRef<c10::DictType>().getValueType();
      for (size_t i = 0; i < states[0].entries.size(); ++i)
        join.state.entries[i].second =
            merge(states[0].entries[i].second, states[1].entries[i].second, item, holes);
      break;
    }
    case Thing::Kind::Attribute:
      join.state.attribute = merge(states[0].attribute, states[1].attribute,
                                   held.toObject()->type()->getAttribute(thing.slot), holes);
      break;
    }
    joined.push_back(std::move(join));
  }

  // Each way yields its side of the holes, as memory is at its end.
  std::vector<MlirValue> yielded[2];
  for (size_t side = 0; side < 2; ++side) {
    builder = &builders[side];
    heap.begin();
    heap.apply(branches[side].change);
    for (const Hole &each : holes)
      yielded[side].push_back(materialize(each.sides[side], each.type));
    heap.undo();
  }
  std::vector<MlirType> yieldedTypes;
  for (size_t i = 0; i < holes.size(); ++i)
    yieldedTypes.push_back(refinement.join(mlirValueGetType(yielded[0][i]),
                                           mlirValueGetType(yielded[1][i]),
                                           types.get(holes[i].type)));
  for (size_t side = 0; side < 2; ++side) {
    builder = &builders[side];
    for (size_t i = 0; i < holes.size(); ++i)
      yielded[side][i] = builder->convert(yielded[side][i], yieldedTypes[i], location);
    emit("torch.prim.If.yield", {}, yielded[side]);
  }
  builder = outer;
  std::vector<MlirRegion> regions;
  for (Branch &branch : branches) {
    regions.push_back(mlirRegionCreate());
    mlirRegionAppendOwnedBlock(regions.back(), branch.block);
  }
  guard.isArmed = false;
  MlirOperation made =
      builder->create("torch.prim.If", location, yieldedTypes, {condition}, {}, regions);
  for (size_t i = 0; i < holes.size(); ++i)
    fill(holes[i].leaf, mlirOperationGetResult(made, static_cast<intptr_t>(i)));
  Heap::Change change;
  for (Joined &join : joined) {
    if (join.hole && join.thing.kind == Thing::Kind::Cell)
      join.state.value = join.hole->cell->value;
    else if (join.hole)
      join.state.dynamic = join.hole->cell;
    change.items.emplace(join.thing, Heap::Change::Item{join.held, join.state});
  }
  heap.apply(change);
  for (size_t i = 0; i < results.size(); ++i)
    bind(node->outputs()[i], results[i]);
}

IValue Evaluator::merge(const IValue &left, const IValue &right, const TypePtr &type,
                        std::vector<Hole> &holes) {
  spend(1);
  const Leaf *leftLeaf = getLeaf(left);
  const Leaf *rightLeaf = getLeaf(right);
  auto isUninitialized = [](const Leaf *leaf) {
    return leaf && leaf->kind == Leaf::Kind::Uninitialized;
  };
  // Nothing looks at what isn't there.
  if (isUninitialized(leftLeaf) && (isKnown(right) || isUninitialized(rightLeaf)))
    return right;
  if (isUninitialized(rightLeaf) && isKnown(left))
    return left;
  if (leftLeaf && rightLeaf && leftLeaf->kind == rightLeaf->kind &&
      leftLeaf->cell == rightLeaf->cell && leftLeaf->view == rightLeaf->view &&
      mlirValueEqual(leftLeaf->value, rightLeaf->value) && !isUninitialized(leftLeaf))
    return left;
  std::string key = getKey(left);
  if (!key.empty() && key == getKey(right))
    return left;
  bool isReference = left.isTensor() || left.isList() || left.isGenericDict() || left.isObject();
  if (isReference && left.is(right))
    return left;
  if (left.isEnum() && right.isEnum() && left == right)
    return left;
  if (left.isTuple() && right.isTuple()) {
    const auto &lefts = left.toTupleRef().elements();
    const auto &rights = right.toTupleRef().elements();
    auto tuple = withoutNone(type)->cast<c10::TupleType>();
    if (tuple && lefts.size() == rights.size() && lefts.size() == tuple->elements().size()) {
      std::vector<IValue> elements;
      for (size_t i = 0; i < lefts.size(); ++i)
        elements.push_back(merge(lefts[i], rights[i], tuple->elements()[i], holes));
      return c10::ivalue::Tuple::createNamed(std::move(elements), tuple);
    }
  }
  if (left.isList() && right.isList() && !heap.getDynamic(left) && !heap.getDynamic(right) &&
      left.toListRef().size() == right.toListRef().size()) {
    TypePtr element = left.type()->expectRef<c10::ListType>().getElementType();
    c10::impl::GenericList list(element);
    for (size_t i = 0; i < left.toListRef().size(); ++i)
      list.push_back(merge(left.toListRef()[i], right.toListRef()[i], element, holes));
    // It's one of the two, so that a write to any of them would be a write to others.
    auto reason = std::make_shared<Write>();
    reason->frames = getStack(lastPlaced);
    for (const IValue &each : {IValue(list), left, right})
      heap.freeze(each, reason);
    return list;
  }
  // Where nothing looks at one side, the parts of the other are all that there is.
  for (const auto &[missing, present] : {std::make_pair(leftLeaf, &right),
                                         std::make_pair(rightLeaf, &left)}) {
    if (!isUninitialized(missing))
      continue;
    auto mergePart = [&](const IValue &part, const TypePtr &partType) {
      auto leaf = c10::make_intrusive<Leaf>();
      leaf->kind = Leaf::Kind::Uninitialized;
      leaf->type = partType;
      IValue nothing = torchscript::toIValue(leaf);
      return missing == leftLeaf ? merge(nothing, part, partType, holes)
                                 : merge(part, nothing, partType, holes);
    };
    auto tuple = withoutNone(type)->cast<c10::TupleType>();
    if (present->isTuple() && tuple) {
      std::vector<IValue> elements;
      for (size_t i = 0; i < tuple->elements().size(); ++i)
        elements.push_back(
            mergePart(present->toTupleRef().elements().at(i), tuple->elements()[i]));
      return c10::ivalue::Tuple::createNamed(std::move(elements), tuple);
    }
    if (present->isObject())
      return *present;
  }
  if (left.isObject() || right.isObject() || left.isEnum() || right.isEnum())
    throw Unsupported("which object it is depends on a condition");
  TypePtr known = type;
  if (isTensorValue(left) && isTensorValue(right))
    known = c10::TensorType::get();
  Hole hole{{left, right}, known, makeHole(known)};
  std::set<Cell *> cells;
  collectCells(left, cells);
  collectCells(right, cells);
  for (Cell *cell : cells) {
    if (hole.leaf->cell)
      relate(hole.leaf->cell, cell);
  }
  holes.push_back(hole);
  return toIValue(hole.leaf);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void Evaluator::evaluateLoop(const Node *node) {
  std::vector<IValue> carried = getInputs(node);
  IValue trips = carried[0], condition = carried[1];
  carried.erase(carried.begin(), carried.begin() + 2);
  const Block &body = *node->blocks().at(0);
  int64_t done = 0;
  // One by one, as long as it's known how it goes on. A condition that each iteration computes
  // may turn out not to be known, so it has to be a constant.
  auto next = torch::jit::toIValue(body.outputs()[0]);
  bool isCounted = next && next->isBool() && trips.isInt() && trips.toInt() <= maxUnrolled;
  while (condition.isBool()) {
    if (!condition.toBool() || (trips.isInt() && done >= trips.toInt())) {
      for (size_t i = 0; i < carried.size(); ++i)
        bind(node->outputs()[i], carried[i]);
      return;
    }
    if (!isCounted || steps > maxUnrolledSteps)
      break;
    bind(body.inputs()[0], done);
    for (size_t i = 0; i < carried.size(); ++i)
      bind(body.inputs()[i + 1], carried[i]);
    evaluateBlock(body);
    condition = get(body.outputs()[0]);
    for (size_t i = 0; i < carried.size(); ++i)
      carried[i] = get(body.outputs()[i + 1]);
    ++done;
  }
  evaluateOpenLoop(node, done, condition, std::move(carried));
}

void Evaluator::evaluateOpenLoop(const Node *node, int64_t done, const IValue &condition,
                                 std::vector<IValue> carried) {
  const Block &body = *node->blocks().at(0);
  MlirType integer = torchMlirTorchIntTypeGet(context);
  std::vector<bool> varies(carried.size(), false);
  std::vector<TypePtr> carriedTypes;
  for (size_t i = 0; i < carried.size(); ++i)
    carriedTypes.push_back(isTensorValue(carried[i]) ? TypePtr(c10::TensorType::get())
                                                     : body.inputs()[i + 1]->type());
  std::map<Thing, IValue> things;
  // What holds for tensors in each iteration.
  std::vector<MlirType> refined(carried.size(), MlirType{nullptr});
  std::map<Thing, MlirType> refinedThings;

  auto thingType = [](const Thing &thing, const IValue &held) -> TypePtr {
    switch (thing.kind) {
    case Thing::Kind::Cell:
      return static_cast<const Cell *>(thing.address)->type;
    case Thing::Kind::Attribute:
      return held.toObject()->type()->getAttribute(thing.slot);
    default:
      return held.type();
    }
  };
  // Lets a thing hold a value.
  auto setThing = [&](const Thing &thing, const IValue &held, MlirValue value) {
    TypePtr type = thingType(thing, held);
    if (thing.kind == Thing::Kind::Cell) {
      auto *cell = const_cast<Cell *>(static_cast<const Cell *>(thing.address));
      heap.willWrite(cell);
      cell->value = value;
    } else if (thing.kind == Thing::Kind::List) {
      Cell *cell = heap.createCell(value, type);
      std::set<Cell *> cells;
      collectCells(held, cells);
      for (Cell *other : cells)
        relate(cell, other);
      heap.setDynamic(held, cell);
    } else if (thing.kind == Thing::Kind::Attribute) {
      heap.willWriteAttribute(held, thing.slot);
      held.toObject()->setSlot(thing.slot, makeLeaf(value, type));
    } else {
      throw Unsupported("a loop changes a dict, in a number of iterations that isn't known");
    }
  };
  auto getThing = [&](const Thing &thing, const IValue &held) {
    if (thing.kind == Thing::Kind::Cell)
      return read(const_cast<Cell *>(static_cast<const Cell *>(thing.address)));
    if (thing.kind == Thing::Kind::Attribute)
      return materializeAs(held.toObject()->getSlot(thing.slot), thingType(thing, held));
    return materializeAs(held, held.type());
  };

  auto getCarriedType = [&](size_t i) {
    MlirType general = types.get(carriedTypes[i]);
    return mlirTypeIsNull(refined[i]) ? general : refinement.join(refined[i], refined[i], general);
  };
  auto getThingType = [&](const Thing &thing, const IValue &held) {
    auto found = refinedThings.find(thing);
    MlirType general = types.get(thingType(thing, held));
    return found == refinedThings.end()
               ? general
               : refinement.join(found->second, found->second, general);
  };
  // Takes a further value into account; whether less is known for it.
  auto widen = [&](MlirType &known, MlirValue value, MlirType general) {
    MlirType own = mlirValueGetType(value);
    MlirType joined = refinement.join(mlirTypeIsNull(known) ? own : known, own, general);
    bool isOther = mlirTypeIsNull(known) || !mlirTypeEqual(known, joined);
    known = joined;
    return isOther;
  };

  // A block that stands nowhere, with the loop's arguments.
  auto createBlock = [&] {
    std::vector<MlirType> arguments = {integer};
    for (size_t i = 0; i < carried.size(); ++i) {
      if (varies[i])
        arguments.push_back(getCarriedType(i));
    }
    for (const auto &[thing, held] : things)
      arguments.push_back(getThingType(thing, held));
    std::vector<MlirLocation> places(arguments.size(), location);
    return mlirBlockCreate(static_cast<intptr_t>(arguments.size()), arguments.data(),
                           places.data());
  };
  // Binds the body's inputs to a block's arguments.
  auto enter = [&](MlirBlock block) {
    MlirValue index = mlirBlockGetArgument(block, 0);
    if (done)
      index = builder->value("torch.aten.add.int", location, integer, {index, constant(done)});
    bind(body.inputs()[0], makeLeaf(index, c10::IntType::get()));
    intptr_t argument = 1;
    for (size_t i = 0; i < carried.size(); ++i) {
      if (!varies[i]) {
        bind(body.inputs()[i + 1], carried[i]);
        continue;
      }
      IValue leaf = makeLeaf(mlirBlockGetArgument(block, argument++), carriedTypes[i]);
      std::set<Cell *> own, outer;
      collectCells(leaf, own);
      collectCells(carried[i], outer);
      for (Cell *cell : own) {
        for (Cell *other : outer)
          relate(cell, other);
      }
      bind(body.inputs()[i + 1], leaf);
    }
    for (const auto &[thing, held] : things)
      setThing(thing, held, mlirBlockGetArgument(block, argument++));
  };

  // What an iteration changes shows when one is tried.
  Builder *outer = builder;
  uint64_t start = heap.getClock();
  for (bool isStable = false; !isStable;) {
    for (size_t i = 0; i < carried.size(); ++i) {
      if (varies[i] && carriedTypes[i]->kind() == TypeKind::TensorType)
        widen(refined[i], materialize(carried[i], carriedTypes[i]), types.getTensor());
    }
    for (const auto &[thing, held] : things) {
      if (thing.kind == Thing::Kind::Cell && thingType(thing, held)->kind() == TypeKind::TensorType)
        widen(refinedThings[thing], getThing(thing, held), types.getTensor());
    }
    MlirBlock scratch = createBlock();
    Builder inner(context, scratch);
    builder = &inner;
    heap.begin();
    auto outerReads = reads.size();
    try {
      enter(scratch);
      evaluateBlock(body);
    } catch (...) {
      mlirBlockDestroy(scratch);
      throw;
    }
    reads.resize(outerReads);
    isStable = true;
    bool isOtherwiseCarried = false;
    for (size_t i = 0; i < carried.size(); ++i) {
      std::vector<Hole> holes;
      const IValue &next = get(body.outputs()[i + 1]);
      if (isTensorValue(carried[i]) && !isTensorValue(next) &&
          carriedTypes[i]->kind() == TypeKind::TensorType) {
        carriedTypes[i] = body.inputs()[i + 1]->type();
        isStable &= !varies[i] || carriedTypes[i]->kind() == TypeKind::TensorType;
      }
      if (varies[i]) {
        if (!mlirTypeIsNull(refined[i]))
          isStable &= !widen(refined[i], materialize(next, carriedTypes[i]), types.getTensor());
        continue;
      }
      merge(carried[i], next, carriedTypes[i], holes);
      // A list that is another one each time may get longer.
      bool isOther = !holes.empty() || (carried[i].isList() && !carried[i].is(next)) ||
                     (carried[i].isTuple() && !isKnown(carried[i]) && !carried[i].is(next) &&
                      !holes.empty());
      if (isOther || (isKnown(carried[i]) && isKnown(next) && !isSame(carried[i], next))) {
        varies[i] = true;
        isStable = false;
        isOtherwiseCarried = true;
      }
    }
    for (auto &[thing, known] : refinedThings) {
      auto held = things.find(thing);
      if (held != things.end())
        isStable &= !widen(known, getThing(thing, held->second), types.getTensor());
    }
    Heap::Change change = heap.undo();
    // What was written to by way of a value that is carried may be another thing each time.
    if (isOtherwiseCarried)
      things.clear();
    for (const auto &[thing, item] : change.items) {
      if (isOtherwiseCarried)
        break;
      State before = heap.getState(thing, item.held);
      if (heap.getBirth(thing) > start) // made anew by each iteration
        continue;
      bool isValue = thing.kind != Thing::Kind::Cell ||
                     !mlirValueEqual(before.value, item.state.value);
      if (isValue && things.emplace(thing, item.held).second)
        isStable = false;
    }
    builder = outer;
    mlirBlockDestroy(scratch);
  }

  std::vector<MlirValue> initial;
  const IValue &trips = get(node->inputs()[0]);
  if (trips.isInt()) {
    initial.push_back(constant(trips.toInt() - done));
  } else {
    initial.push_back(materializeAs(trips, c10::IntType::get()));
    if (done)
      initial[0] =
          builder->value("torch.aten.sub.int", location, integer, {initial[0], constant(done)});
  }
  initial.push_back(materializeAs(condition, c10::BoolType::get()));
  std::vector<MlirType> results;
  auto add = [&](MlirValue value, MlirType type) {
    results.push_back(type);
    initial.push_back(builder->convert(value, type, location));
  };
  for (size_t i = 0; i < carried.size(); ++i) {
    if (varies[i])
      add(materialize(carried[i], carriedTypes[i]), getCarriedType(i));
  }
  for (const auto &[thing, held] : things)
    add(getThing(thing, held), getThingType(thing, held));

  MlirBlock block = createBlock();
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  MlirOperation made = outer->create("torch.prim.Loop", location, results, initial, {}, {region});
  Builder inner(context, block);
  builder = &inner;
  heap.begin();
  reads.emplace_back();
  enter(block);
  evaluateBlock(body);
  std::vector<MlirValue> next = {materializeAs(get(body.outputs()[0]), c10::BoolType::get())};
  size_t result = 0;
  for (size_t i = 0; i < carried.size(); ++i) {
    if (varies[i])
      next.push_back(builder->convert(materialize(get(body.outputs()[i + 1]), carriedTypes[i]),
                                      results[result++], location));
  }
  for (const auto &[thing, held] : things)
    next.push_back(builder->convert(getThing(thing, held), results[result++], location));
  emit("torch.prim.Loop.condition", {}, next);
  std::set<Cell *> read = std::move(reads.back());
  reads.pop_back();
  Heap::Change change = heap.undo();
  builder = outer;

  // Stale at the end of one iteration is stale in the next.
  for (const auto &[thing, item] : change.items) {
    if (thing.kind != Thing::Kind::Cell || !item.state.stale)
      continue;
    auto *cell = const_cast<Cell *>(static_cast<const Cell *>(thing.address));
    heap.willWrite(cell);
    cell->stale = item.state.stale;
    if (read.count(cell) && !things.count(thing))
      this->read(cell); // throws
  }
  intptr_t place = 0;
  for (size_t i = 0; i < carried.size(); ++i) {
    if (!varies[i]) {
      bind(node->outputs()[i], carried[i]);
      continue;
    }
    IValue leaf = makeLeaf(mlirOperationGetResult(made, place++), carriedTypes[i]);
    std::set<Cell *> own, cells;
    collectCells(leaf, own);
    collectCells(carried[i], cells);
    collectCells(get(body.outputs()[i + 1]), cells);
    for (Cell *cell : own) {
      for (Cell *other : cells)
        relate(cell, other);
    }
    bind(node->outputs()[i], leaf);
  }
  for (const auto &[thing, held] : things)
    setThing(thing, held, mlirOperationGetResult(made, place++));
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// The arguments that an operator writes to.
static std::vector<size_t> getWritten(const FunctionSchema &schema) {
  std::vector<size_t> written;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto *alias = schema.arguments()[i].alias_info();
    if (alias && alias->isWrite())
      written.push_back(i);
  }
  return written;
}

void Evaluator::evaluateOperator(const Node *node) {
  const FunctionSchema *schema = node->maybeSchema();
  if (!schema || !node->blocks().empty())
    throw Unsupported("nodes of this kind are not supported");
  // Gradients aren't recorded.
  if (schema->name() == "aten::set_grad_enabled")
    return;
  if (schema->name() == "aten::is_grad_enabled")
    return bind(node->output(), false);
  if (evaluateIdentity(node) || evaluateProperty(node) || tryEvaluate(node, *schema) ||
      evaluateNorm(node))
    return;
  if (getWritten(*schema).empty())
    return emitOperator(node, *schema);
  evaluateWrite(node, *schema);
}

/// What asks whether a value is None, or that it isn't.
bool Evaluator::evaluateIdentity(const Node *node) {
  if (node->kind() == aten::_unwrap_optional || node->kind() == prim::unchecked_unwrap_optional) {
    const IValue &value = get(node->input());
    const Leaf *leaf = getLeaf(value);
    if (value.isNone())
      throw Unsupported("a value is wanted, and it is None");
    if (leaf && mayBeNone(leaf->type))
      return false;
    bind(node->output(), value);
    return true;
  }
  if (node->kind() != aten::__is__ && node->kind() != aten::__isnot__)
    return false;
  const IValue *value = &get(node->input(0));
  const IValue *none = &get(node->input(1));
  if (value->isNone())
    std::swap(value, none);
  if (!none->isNone())
    return false;
  const Leaf *leaf = getLeaf(*value);
  if (leaf && mayBeNone(leaf->type))
    return false;
  bind(node->output(), value->isNone() == (node->kind() == aten::__is__));
  return true;
}

TensorFact Evaluator::getFact(const IValue &tensor) {
  if (tensor.isTensor())
    return Refinement::getFact(tensor.toTensor(), literals);
  MlirType type = mlirValueGetType(read(*getLeaf(tensor)));
  return torchMlirTypeIsATorchValueTensor(type) ? refinement.getFact(type) : TensorFact();
}

/// What asks for a tensor's sizes or dtype, as far as they are known.
bool Evaluator::evaluateProperty(const Node *node) {
  if (node->inputs().empty() || node->outputs().size() != 1 || !isTensorValue(get(node->input(0))))
    return false;
  const IValue tensor = get(node->input(0));
  auto give = [&](IValue value) {
    bind(node->output(), std::move(value));
    return true;
  };
  MlirType integer = torchMlirTorchIntTypeGet(context);
  switch (static_cast<c10::unique_t>(node->kind())) {
  case aten::dim:
  case aten::size:
  case aten::len: {
    const auto sizes = getFact(tensor).sizes;
    if (!sizes)
      return false;
    auto rank = static_cast<int64_t>(sizes->size());
    if (node->kind() == aten::dim)
      return give(rank);
    if (node->kind() == aten::size && node->inputs().size() == 1) {
      c10::impl::GenericList list(c10::IntType::get());
      for (int64_t i = 0; i < rank; ++i) {
        int64_t size = (*sizes)[static_cast<size_t>(i)];
        if (size >= 0) {
          list.push_back(size);
          continue;
        }
        MlirValue open = builder->value("torch.aten.size.int", location, integer,
                                        {materialize(tensor, c10::TensorType::get()), constant(i)});
        list.push_back(makeLeaf(open, c10::IntType::get()));
      }
      heap.noteBirth(list);
      return give(list);
    }
    int64_t dimension = 0;
    if (node->kind() == aten::size) {
      const IValue &asked = get(node->input(1));
      if (!asked.isInt())
        return false;
      dimension = asked.toInt() < 0 ? asked.toInt() + rank : asked.toInt();
    }
    if (dimension < 0 || dimension >= rank || (*sizes)[static_cast<size_t>(dimension)] < 0)
      return false;
    return give((*sizes)[static_cast<size_t>(dimension)]);
  }
  case prim::dtype:
  case aten::is_floating_point:
  case aten::is_complex: {
    const auto dtype = getFact(tensor).dtype;
    if (!dtype || node->inputs().size() != 1)
      return false;
    if (node->kind() == aten::is_floating_point)
      return give(c10::isFloatingType(*dtype));
    if (node->kind() == aten::is_complex)
      return give(c10::isComplexType(*dtype));
    return give(static_cast<int64_t>(*dtype));
  }
  default:
    break;
  }
  static const auto numel = c10::Symbol::fromQualString("aten::numel");
  const auto sizes = node->kind() == numel ? getFact(tensor).sizes : std::nullopt;
  int64_t product = 1;
  for (int64_t size : sizes.value_or(Shape{-1})) {
    if (size < 0 || __builtin_mul_overflow(product, size, &product))
      return false;
  }
  return give(product);
}

/// Normalisations write to the statistics that they are given, which their schemas don't tell.
bool Evaluator::evaluateNorm(const Node *node) {
  bool isBatch = node->kind() == aten::batch_norm;
  if ((!isBatch && node->kind() != aten::instance_norm) || node->inputs().size() < 9)
    return false;
  std::vector<IValue> inputs = getInputs(node);
  const IValue &training = inputs[5];
  if (inputs[3].isNone() || (training.isBool() && !training.toBool()))
    return false;
  if (!isBatch || !training.isBool() || !isTensorValue(inputs[3]) || !isTensorValue(inputs[4]))
    throw Unsupported("it may write to the statistics that it is given, which can't be done on "
                      "values");
  std::vector<MlirValue> operands;
  for (size_t i = 0; i < 8; ++i)
    operands.push_back(materialize(inputs[i], node->input(i)->type()));
  const char *functional = "torch.aten._native_batch_norm_legit_functional";
  std::vector<MlirType> results = refinement.refine(functional, operands, 5);
  // Statistics keep what they are.
  for (size_t i = 0; i < 2; ++i)
    results[3 + i] = mlirValueGetType(operands[3 + i]);
  MlirOperation made = emit(functional, results, operands);
  for (intptr_t i = 0; i < 2; ++i) {
    const IValue &statistic = inputs[static_cast<size_t>(3 + i)];
    Place place = placeOf(statistic);
    MlirValue value = mlirOperationGetResult(made, 3 + i);
    if (place.view)
      value = place.view->write(*builder, read(place.cell), value, refinement, location);
    write(place.cell, value, "aten::batch_norm");
  }
  bind(node->output(), makeLeaf(mlirOperationGetResult(made, 0), c10::TensorType::get()));
  return true;
}

/// Operators on elements of any type that look at the elements.
static bool looksAtElements(const std::string &name) {
  static const auto *names = new std::unordered_set<std::string>{
      "aten::sort", "aten::sorted", "aten::hash",   "aten::str",  "aten::eq",
      "aten::ne",   "aten::format", "aten::remove", "aten::index", "aten::count"};
  return names->count(name);
}

/// The elements of a list or a dict, and the letters of a text.
static int64_t getLength(const IValue &value) {
  if (value.isList())
    return static_cast<int64_t>(value.toListRef().size());
  if (value.isGenericDict())
    return static_cast<int64_t>(value.toGenericDict().size());
  return value.isString() ? static_cast<int64_t>(value.toStringRef().size()) : 0;
}

/// Lets libtorch's own operator work where it looks at nothing that isn't known.
bool Evaluator::tryEvaluate(const Node *node, const FunctionSchema &schema) {
  if (node->hasSideEffects())
    return false;
  std::vector<IValue> inputs = getInputs(node);
  const auto &arguments = schema.arguments();
  bool isAllKnown = true, isGeneric = false, isLong = false;
  int64_t length = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    length += getLength(inputs[i]);
    bool isOpen = i < arguments.size() && arguments[i].type()->hasFreeVariables();
    TypeKind kind = isOpen ? arguments[i].type()->kind() : TypeKind::AnyType;
    isGeneric |= kind == TypeKind::ListType || kind == TypeKind::DictType;
    if (isKnown(inputs[i])) {
      isLong |= inputs[i].isInt() && std::abs(inputs[i].toInt()) > maxLength;
      continue;
    }
    isAllKnown = false;
    if (!isOpen || (kind != TypeKind::VarType && (getLeaf(inputs[i]) || openCell(inputs[i]))))
      return false;
  }
  if (!isAllKnown && (!isGeneric || looksAtElements(schema.name())))
    return false;
  for (const Value *output : node->outputs()) {
    TypeKind kind = output->type()->kind();
    if (isAllKnown && kind == TypeKind::TensorType && node->kind() != aten::tensor)
      return false;
    // Lists and texts that are longer than what they are made from.
    if ((isLong || length > maxLength) && (kind == TypeKind::ListType || kind == TypeKind::StringType) &&
        getWritten(schema).empty() && node->kind() != prim::ListConstruct)
      return false;
  }
  spend(static_cast<uint64_t>(length / elementsPerStep));
  for (size_t i : getWritten(schema)) {
    if (length > maxLength)
      throw Unsupported("a write to what has more than " + std::to_string(maxLength) +
                        " elements");
    auto named = inputs.at(i).isGenericDict()
                     ? names.values.find(inputs[i].internalToPointer())
                     : names.values.end();
    if (named != names.values.end())
      throw Unsupported("it changes the module's dict '" + named->second +
                        "', which can't be done on values");
    if (heap.getFrozen(inputs.at(i)))
      throw Unsupported("a write to a list that is one of two, depending on a condition");
    if (inputs[i].isList())
      heap.willWriteList(inputs[i]);
    else if (inputs[i].isGenericDict())
      heap.willWriteDict(inputs[i]);
    else
      return false;
  }
  torch::jit::Stack stack = inputs;
  try {
    torch::jit::Operation operation = node->getOperation();
    operation(stack);
  } catch (const std::exception &) {
    // Whatever is wrong is wrong when the program runs, too.
    return false;
  }
  if (stack.size() != node->outputs().size())
    return false;
  for (size_t i = 0; i < stack.size(); ++i) {
    IValue result = stack[i];
    if (result.isTensor() && isAllKnown) {
      // A new tensor each time.
      auto leaf = c10::make_intrusive<Leaf>();
      leaf->kind = Leaf::Kind::Tensor;
      leaf->type = c10::TensorType::get();
      leaf->cell = heap.createCell(MlirValue{nullptr}, leaf->type, "constant");
      leaf->cell->literal = result.toTensor();
      result = torchscript::toIValue(leaf);
    }
    bool isGiven = std::any_of(inputs.begin(), inputs.end(),
                               [&](const IValue &input) { return input.is(result); });
    if ((result.isList() || result.isGenericDict()) && !isGiven &&
        !names.values.count(result.internalToPointer()))
      heap.noteBirth(result);
    bind(node->outputs()[i], result);
  }
  return true;
}

void Evaluator::emitOperator(const Node *node, const FunctionSchema &schema) {
  std::string own = "torch." + getName(schema);
  std::vector<IValue> inputs = getInputs(node);
  const auto &arguments = schema.arguments();
  auto getType = [&](size_t i) {
    if (i < arguments.size() && !arguments[i].type()->hasFreeVariables())
      return arguments[i].type();
    return node->input(i)->type();
  };

  // What a type says holds of the view's contents as they are.
  if (!trustTypes && View::isView(own) && isTensorValue(inputs.at(0)) && node->outputs().size() == 1) {
    std::vector<MlirValue> others;
    for (size_t i = 1; i < inputs.size(); ++i)
      others.push_back(materialize(inputs[i], getType(i)));
    auto leaf = c10::make_intrusive<Leaf>();
    leaf->kind = Leaf::Kind::Tensor;
    leaf->type = c10::TensorType::get();
    Place of = placeOf(inputs[0]);
    leaf->cell = of.cell;
    read(leaf->cell);
    leaf->view = std::make_shared<View>(of.view, own, std::move(others));
    return bind(node->output(), torchscript::toIValue(leaf));
  }

  std::vector<MlirValue> operands;
  for (size_t i = 0; i < inputs.size(); ++i)
    operands.push_back(materialize(inputs[i], getType(i)));
  std::vector<MlirType> results;
  for (const Value *output : node->outputs())
    results.push_back(types.get(output->type()));
  bool isComplete = trustTypes;
  for (size_t i = 0; trustTypes && i < results.size(); ++i) {
    auto tensor = node->outputs()[i]->type()->cast<c10::TensorType>();
    if (tensor && tensor->scalarType())
      results[i] = types.getComplete(tensor);
    else
      isComplete &= !tensor;
  }
  if (!isComplete) {
    std::vector<MlirType> refined = refinement.refine(schema, operands, results);
    for (size_t i = 0; i < results.size(); ++i) {
      auto tensor = node->outputs()[i]->type()->cast<c10::TensorType>();
      if (!trustTypes || !tensor || !tensor->scalarType())
        results[i] = refined[i];
    }
  }
  if (Unrefined *open = refinement.note(schema, operands, results); open && open->count == 1)
    open->frames = getStack(lastPlaced);
  MlirOperation made{nullptr};
  made = createOperation(*builder, location, schema, results, operands,
                         [&](const c10::Argument &argument) {
                           return materialize(*argument.default_value(), argument.type());
                         });
  if (mlirOperationIsNull(made) && trustTypes)
    throw Unsupported("the dialect has no operation that takes these operands");
  if (mlirOperationIsNull(made))
    made = emit("torch.operator", results, operands, {{"name", builder->string(own)}});

  std::optional<std::vector<MlirType>> parts;
  if (node->outputs().size() == 1 && *node->output()->type() == *c10::ListType::ofTensors())
    parts = refinement.refineList(schema, operands);

  // What results may share memory with.
  std::set<Cell *> shared;
  for (size_t i = 0; i < inputs.size() && i < arguments.size(); ++i) {
    const auto &list = arguments[i].type();
    // An element of a list is the element, whatever the schema says.
    if (arguments[i].alias_info() || list->hasFreeVariables())
      collectCells(inputs[i], shared);
  }
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    const Value *output = node->outputs()[i];
    MlirValue result = mlirOperationGetResult(made, static_cast<intptr_t>(i));
    IValue leaf;
    if (parts) {
      // A list that is known in parts.
      MlirOperation unpacked = emit("torch.prim.ListUnpack", *parts, {result});
      c10::impl::GenericList list(c10::TensorType::get());
      for (size_t j = 0; j < parts->size(); ++j)
        list.push_back(makeLeaf(mlirOperationGetResult(unpacked, static_cast<intptr_t>(j)),
                                c10::TensorType::get()));
      heap.noteBirth(list);
      leaf = list;
    } else {
      leaf = makeLeaf(result, output->type());
    }
    bool isShared = schema.is_varret() || i >= schema.returns().size() ||
                    schema.returns()[i].alias_info() ||
                    schema.returns()[i].type()->hasFreeVariables();
    std::set<Cell *> cells;
    if (isShared)
      collectCells(leaf, cells);
    for (Cell *cell : cells) {
      for (Cell *other : shared)
        relate(cell, other);
    }
    bind(output, leaf);
  }
}

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

void Evaluator::evaluateWrite(const Node *node, const FunctionSchema &schema) {
  std::vector<size_t> written = getWritten(schema);
  const IValue &target = get(node->input(written.front()));
  TypeKind kind = withoutNone(node->input(written.front())->type())->kind();
  if (written.size() > 1)
    throw Unsupported("it writes to several operands");
  if (kind == TypeKind::ListType && written.front() == 0 && !isTensorValue(target)) {
    if (schema.arguments()[0].type()->kind() == TypeKind::ListType)
      return evaluateListWrite(node, schema);
  }
  if (isTensorValue(target))
    return evaluateTensorWrite(node, schema, written.front());
  throw Unsupported("it writes to a value of type " +
                    node->input(written.front())->type()->repr_str() +
                    " that isn't known, which can't be done on values");
}

namespace {

/// How a write to a tensor is computed without one.
struct Functional {
  std::string name;
  /// The result has the dtype that the operands promote to, the tensor keeps its own.
  bool promotes;
};

/// The operator for `aten::add_`, whose overloads are those of `aten::add`.
Functional getFunctional(const FunctionSchema &schema) {
  static const auto *keeping = new std::unordered_set<std::string>{
      "copy",       "fill",         "index_put", "_index_put_impl", "masked_fill",
      "scatter",    "scatter_add",  "zero",      "masked_scatter",  "scatter_reduce",
      "index_copy", "index_add",    "put",       "index_fill",      "index_reduce",
      "clamp",      "clamp_min",    "clamp_max", "addmm",           "baddbmm"};
  static const auto *comparing = new std::unordered_set<std::string>{
      "eq", "ne", "lt", "le", "gt", "ge", "logical_not"};
  std::string base = schema.name().substr(schema.name().find("::") + 2);
  if (base.compare(0, 3, "__i") == 0 && base.size() > 5 && base.compare(base.size() - 2, 2, "__") == 0)
    base = "__" + base.substr(3);
  else if (!base.empty() && base.back() == '_')
    base.pop_back();
  else
    throw Unsupported("it writes to its argument '" +
                      schema.arguments()[getWritten(schema).front()].name() +
                      "', and has no form without that");
  size_t tensors = 0;
  for (const auto &argument : schema.arguments())
    tensors += withoutNone(argument.type())->kind() == TypeKind::TensorType;
  bool promotes = comparing->count(base) || (tensors > 1 && !keeping->count(base));
  std::string name = "aten." + base;
  if (!schema.overload_name().empty())
    name += "." + schema.overload_name();
  return {name, promotes};
}

} // namespace

void Evaluator::evaluateTensorWrite(const Node *node, const FunctionSchema &schema, size_t self) {
  std::vector<IValue> inputs = getInputs(node);
  const IValue &target = inputs[self];
  auto finish = [&] {
    for (const Value *output : node->outputs())
      bind(output, target);
  };
  const std::string &written = schema.name();
  if (written == "aten::requires_grad_" || written == "aten::detach_")
    return finish();

  Place place = placeOf(target);
  MlirValue before = materialize(target, c10::TensorType::get());
  // What is written to keeps its sizes and its dtype.
  MlirType tensor = mlirValueGetType(before);
  std::vector<MlirValue> operands;
  for (size_t i = 0; i < inputs.size(); ++i)
    operands.push_back(i == self ? before
                                 : materialize(inputs[i], schema.arguments().at(i).type()));
  Functional functional;
  if (written == "aten::copy_") {
    // TorchScript's own overloads take a number, or leave an argument out.
    bool isTensor = isTensorValue(inputs.at(1));
    functional = {isTensor ? "aten.copy" : "aten.fill.Scalar", false};
    operands.resize(2);
    if (isTensor)
      operands.push_back(inputs.size() > 2 ? materialize(inputs[2], c10::BoolType::get())
                                           : constant(false));
  } else {
    functional = getFunctional(schema);
  }
  std::string own = "torch." + functional.name;
  if (View::isView(own))
    throw Unsupported("it changes a tensor's shape in place, which can't be done on values");
  if (!mlirContextIsRegisteredOperation(context, wrap(own)))
    own = "torch.valsem." + functional.name;
  if (!mlirContextIsRegisteredOperation(context, wrap(own)))
    throw Unsupported("it writes to its operand, and has no form without that");
  MlirType computed = tensor;
  if (functional.promotes)
    computed = refinement.refine("torch." + functional.name, operands);
  MlirOperation made = emit(own, {computed}, operands);
  if (!mlirOperationVerify(made)) {
    mlirOperationDestroy(made);
    throw Unsupported("it writes to its operand, and '" + own + "' doesn't take the same operands");
  }
  MlirValue value = mlirOperationGetResult(made, 0);
  if (functional.promotes)
    value = builder->value("torch.aten.type_as", location, tensor, {value, before});
  if (place.view)
    value = place.view->write(*builder, read(place.cell), value, refinement, location);
  write(place.cell, value, written);
  finish();
}

void Evaluator::evaluateListWrite(const Node *node, const FunctionSchema &schema) {
  std::vector<IValue> inputs = getInputs(node);
  const IValue &list = inputs[0];
  const std::string name = schema.name();
  TypePtr type = getLeaf(list) ? withoutNone(getLeaf(list)->type) : list.type();
  auto element = type->expectRef<c10::ListType>().getElementType();
  if (!getLeaf(list) && heap.getFrozen(list))
    throw Unsupported("a write to a list that is one of two, depending on a condition");
  Cell *cell = openCell(list);
  if (!cell) {
    cell = heap.createCell(materializeAs(list, type), type);
    std::set<Cell *> cells;
    collectCells(list, cells);
    for (Cell *other : cells)
      relate(cell, other);
    heap.setDynamic(list, cell);
  }
  MlirType integer = torchMlirTorchIntTypeGet(context);
  MlirType listType = types.get(type);
  MlirValue before = read(cell);
  MlirValue none = constant(IValue());
  MlirValue one = constant(int64_t(1));
  auto operation = [&](const char *operation, MlirType result,
                       const std::vector<MlirValue> &operands) {
    return builder->value(operation, location, result, operands);
  };
  auto join = [&](MlirValue left, MlirValue right) {
    return operation("torch.aten.add.t", listType, {left, right});
  };
  auto slice = [&](MlirValue from, MlirValue to) {
    return operation("torch.aten.slice.t", listType, {before, from, to, one});
  };
  auto single = [&](const IValue &value) {
    std::set<Cell *> cells;
    collectCells(value, cells);
    MlirValue made =
        operation("torch.prim.ListConstruct", listType, {materializeAs(value, element)});
    for (Cell *other : cells)
      relate(cell, other);
    return made;
  };
  // An index counted from the list's beginning.
  auto place = [&](const IValue &index) {
    MlirValue own = materializeAs(index, c10::IntType::get());
    if (index.isInt() && index.toInt() >= 0)
      return own;
    MlirValue length = operation("torch.aten.len.t", integer, {before});
    return operation("torch.aten.remainder.int", integer, {own, length});
  };
  auto after = [&](MlirValue index) {
    return slice(operation("torch.aten.add.int", integer, {index, one}), none);
  };
  MlirValue value{nullptr};
  if (name == "aten::append") {
    value = join(before, single(inputs[1]));
  } else if (name == "aten::extend" || name == "aten::add_") {
    std::set<Cell *> cells;
    collectCells(inputs[1], cells);
    value = join(before, materializeAs(inputs[1], type));
    for (Cell *other : cells)
      relate(cell, other);
  } else if (name == "aten::insert") {
    MlirValue index = materializeAs(inputs[1], c10::IntType::get());
    value = join(join(slice(none, index), single(inputs[2])), slice(index, none));
  } else if (name == "aten::_set_item") {
    MlirValue index = place(inputs[1]);
    value = join(join(slice(none, index), single(inputs[2])), after(index));
  } else if (name == "aten::pop" || name == "aten::Delete") {
    MlirValue index = place(inputs[1]);
    if (!node->outputs().empty()) {
      IValue taken = makeLeaf(
          operation("torch.aten.__getitem__.t", types.get(element), {before, index}), element);
      std::set<Cell *> cells;
      collectCells(taken, cells);
      for (Cell *other : cells)
        relate(cell, other);
      bind(node->output(), taken);
    }
    value = join(slice(none, index), after(index));
  } else if (name == "aten::clear") {
    value = operation("torch.prim.ListConstruct", listType, {});
  } else {
    throw Unsupported("it writes to a list whose elements aren't known, which can't be done on "
                      "values");
  }
  heap.willWrite(cell);
  cell->value = value;
  // Operators that give the list they write to.
  if (!node->outputs().empty() && name != "aten::pop")
    bind(node->output(), list);
}

} // namespace torch_mlir::torchscript
