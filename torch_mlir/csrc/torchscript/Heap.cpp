// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program has in memory while it is evaluated for its value-semantic form.

#include "torchscript/Heap.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>

namespace torch_mlir::torchscript {

using c10::IValue;

IValue toIValue(LeafPtr leaf) {
  return IValue::make_capsule(c10::static_intrusive_pointer_cast<torch::CustomClassHolder>(leaf));
}

const Leaf *getLeaf(const IValue &value) {
  if (!value.isCapsule())
    return nullptr;
  return dynamic_cast<const Leaf *>(value.toCapsule().get());
}

bool isContainer(const IValue &value) {
  return value.isTuple() || value.isList() || value.isGenericDict();
}

Cell *Heap::createCell(MlirValue value, c10::TypePtr type, std::string name) {
  cells.push_back(std::make_unique<Cell>());
  cells.back()->type = std::move(type);
  cells.back()->birth = ++clock;
  cells.back()->value = value;
  cells.back()->name = std::move(name);
  return cells.back().get();
}

void Heap::noteBirth(const IValue &value) {
  births.try_emplace(value.internalToPointer(), value, ++clock);
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

static Cell *getCell(const Thing &thing) {
  return const_cast<Cell *>(static_cast<const Cell *>(thing.address));
}

uint64_t Heap::getBirth(const Thing &thing) const {
  if (thing.kind == Thing::Kind::Cell)
    return getCell(thing)->birth;
  auto found = births.find(thing.address);
  return found == births.end() ? 0 : found->second.second;
}

State Heap::getState(const Thing &thing, const IValue &held) const {
  State state;
  switch (thing.kind) {
  case Thing::Kind::Cell:
    state.value = getCell(thing)->value;
    state.stale = getCell(thing)->stale;
    break;
  case Thing::Kind::List:
    for (const IValue &element : held.toListRef())
      state.elements.push_back(element);
    break;
  case Thing::Kind::Dict:
    for (const auto &entry : held.toGenericDict())
      state.entries.emplace_back(entry.key(), entry.value());
    break;
  case Thing::Kind::Attribute:
    state.attribute = held.toObject()->getSlot(thing.slot);
    break;
  }
  if (thing.kind == Thing::Kind::List || thing.kind == Thing::Kind::Dict) {
    state.dynamic = getDynamic(held);
    state.frozen = getFrozen(held);
  }
  return state;
}

void Heap::setState(const Thing &thing, const IValue &held, const State &state) {
  switch (thing.kind) {
  case Thing::Kind::Cell: {
    Cell *cell = getCell(thing);
    cell->value = state.value;
    cell->stale = state.stale;
    return;
  }
  case Thing::Kind::List: {
    c10::impl::GenericList list = held.toList();
    list.clear();
    for (const IValue &element : state.elements)
      list.push_back(element);
    break;
  }
  case Thing::Kind::Dict: {
    c10::impl::GenericDict dict = held.toGenericDict();
    dict.clear();
    for (const auto &[key, value] : state.entries)
      dict.insert(key, value);
    break;
  }
  case Thing::Kind::Attribute:
    held.toObject()->setSlot(thing.slot, state.attribute);
    return;
  }
  if (state.dynamic)
    dynamic[thing.address] = {held, state.dynamic};
  else
    dynamic.erase(thing.address);
  if (state.frozen)
    frozen[thing.address] = {held, state.frozen};
  else
    frozen.erase(thing.address);
}

void Heap::remember(const Thing &thing, const IValue &held) {
  if (layers.empty() || layers.back().items.count(thing))
    return;
  layers.back().items.emplace(thing, Change::Item{held, getState(thing, held)});
}

void Heap::begin() { layers.emplace_back(); }

Heap::Change Heap::undo() {
  Change before = std::move(layers.back());
  layers.pop_back();
  Change after;
  for (const auto &[thing, item] : before.items)
    after.items.emplace(thing, Change::Item{item.held, getState(thing, item.held)});
  for (const auto &[thing, item] : before.items)
    setState(thing, item.held, item.state);
  return after;
}

void Heap::undoAll() {
  while (!layers.empty())
    undo();
}

void Heap::apply(const Change &change) {
  for (const auto &[thing, item] : change.items) {
    remember(thing, item.held);
    setState(thing, item.held, item.state);
  }
}

//===----------------------------------------------------------------------===//
// Things
//===----------------------------------------------------------------------===//

static Thing thingOf(const IValue &container) {
  return {container.isList() ? Thing::Kind::List : Thing::Kind::Dict,
          container.internalToPointer()};
}

void Heap::willWrite(Cell *cell) { remember({Thing::Kind::Cell, cell}, IValue()); }

void Heap::willWriteList(const IValue &list) { remember(thingOf(list), list); }

void Heap::willWriteDict(const IValue &dict) { remember(thingOf(dict), dict); }

void Heap::willWriteAttribute(const IValue &object, size_t slot) {
  remember({Thing::Kind::Attribute, object.internalToPointer(), slot}, object);
}

Cell *Heap::getDynamic(const IValue &container) const {
  auto found = dynamic.find(container.internalToPointer());
  return found == dynamic.end() ? nullptr : found->second.second;
}

void Heap::setDynamic(const IValue &container, Cell *cell) {
  remember(thingOf(container), container);
  dynamic[container.internalToPointer()] = {container, cell};
}

std::shared_ptr<const Write> Heap::getFrozen(const IValue &container) const {
  auto found = frozen.find(container.internalToPointer());
  return found == frozen.end() ? nullptr : found->second.second;
}

void Heap::freeze(const IValue &container, std::shared_ptr<const Write> reason) {
  remember(thingOf(container), container);
  frozen[container.internalToPointer()] = {container, std::move(reason)};
}

} // namespace torch_mlir::torchscript
