// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program has in memory while it is evaluated for its value-semantic form.
//
// Pipeline.cpp runs TorchScript with what is known: numbers, strings, containers and objects are
// libtorch's own values (c10::IValue), so that libtorch's own operators on them apply. What isn't
// known is a leaf among them: a capsule that holds an MLIR value. Tensors are leaves that name
// the cell which holds their contents; operators that write to a tensor give its cell new
// contents.

#ifndef TORCH_MLIR_TORCHSCRIPT_HEAP_H
#define TORCH_MLIR_TORCHSCRIPT_HEAP_H

#include "torchscript/Locations.h"

#include "mlir-c/IR.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace torch_mlir::torchscript {

/// Where a write took place that makes other values stale.
struct Write {
  std::vector<SourceLine> frames;
  std::string what;
};

/// Something in memory: a tensor's contents, or a container that isn't known in parts.
struct Cell {
  /// The contents, null where they are the literal's and nothing asked for them yet.
  MlirValue value{nullptr};
  at::Tensor literal;
  c10::TypePtr type;
  /// How messages, blobs and global slots call it.
  std::string name;
  /// Cells that may share memory with this one. What is written here isn't seen there, so that
  /// they can't be read any more.
  std::vector<Cell *> related;
  std::shared_ptr<const Write> stale;
  /// The archive's tensor or container that it stands for, null for what the program makes.
  const void *origin = nullptr;
  bool isArgument = false;
  /// When it was made, by the heap's clock.
  uint64_t birth = 0;
};

class View;

/// A value that isn't known.
struct Leaf : torch::CustomClassHolder {
  enum class Kind {
    /// A tensor: the cell's contents, seen through `view`.
    Tensor,
    /// Another value that is, or holds, something in memory: `cell` holds it.
    Memory,
    /// A number, a string or another value that can't be written to.
    Plain,
    /// What prim::Uninitialized gives.
    Uninitialized,
  };
  Kind kind = Kind::Plain;
  c10::TypePtr type;
  MlirValue value{nullptr};
  Cell *cell = nullptr;
  std::shared_ptr<const View> view;
};

using LeafPtr = c10::intrusive_ptr<Leaf>;

c10::IValue toIValue(LeafPtr leaf);
/// Null where the value isn't a leaf.
const Leaf *getLeaf(const c10::IValue &value);
/// Whether a value is a tuple, a list or a dict.
bool isContainer(const c10::IValue &value);

/// One thing's state. Which members say something depends on the thing.
struct State {
  MlirValue value{nullptr};
  std::shared_ptr<const Write> stale;
  std::vector<c10::IValue> elements;
  std::vector<std::pair<c10::IValue, c10::IValue>> entries;
  c10::IValue attribute;
  /// The container's elements aren't known in parts: the cell holds it.
  Cell *dynamic = nullptr;
  std::shared_ptr<const Write> frozen;
};

/// The identity of something that can be written to.
struct Thing {
  enum class Kind { Cell, List, Dict, Attribute };
  Kind kind;
  const void *address;
  size_t slot = 0;

  bool operator<(const Thing &other) const {
    return std::tie(kind, address, slot) < std::tie(other.kind, other.address, other.slot);
  }
};

/// Owns the cells, and remembers what is written to, so that it can be undone.
class Heap {
public:
  Cell *createCell(MlirValue value, c10::TypePtr type, std::string name = "");

  /// Goes on with each thing that is made.
  uint64_t getClock() const { return clock; }
  /// A container or an object that was just made. What nobody tells of is as old as the module.
  void noteBirth(const c10::IValue &value);
  uint64_t getBirth(const Thing &thing) const;

  /// A change of things from one state to another: what a branch does.
  struct Change {
    struct Item {
      c10::IValue held; // keeps containers and objects alive
      State state;
    };
    std::map<Thing, Item> items;
  };

  /// Remembers from here on what things were before they are written to.
  void begin();
  /// What was written to since `begin`, as it is now. Everything is as it was then, again.
  Change undo();
  /// Everything is as it was before the first `begin` whose change wasn't undone.
  void undoAll();
  /// Makes the states of `change` current.
  void apply(const Change &change);

  State getState(const Thing &thing, const c10::IValue &held) const;

  // To be called before the thing is written to.
  void willWrite(Cell *cell);
  void willWriteList(const c10::IValue &list);
  void willWriteDict(const c10::IValue &dict);
  void willWriteAttribute(const c10::IValue &object, size_t slot);

  /// The cell of a container whose parts aren't known; null for one whose are.
  Cell *getDynamic(const c10::IValue &container) const;
  void setDynamic(const c10::IValue &container, Cell *cell);
  /// A container that must not be written to any more.
  std::shared_ptr<const Write> getFrozen(const c10::IValue &container) const;
  void freeze(const c10::IValue &container, std::shared_ptr<const Write> reason);

private:
  void remember(const Thing &thing, const c10::IValue &held);
  void setState(const Thing &thing, const c10::IValue &held, const State &state);

  uint64_t clock = 0;
  std::vector<std::unique_ptr<Cell>> cells;
  std::map<const void *, std::pair<c10::IValue, uint64_t>> births;
  std::vector<Change> layers;
  std::map<const void *, std::pair<c10::IValue, Cell *>> dynamic;
  std::map<const void *, std::pair<c10::IValue, std::shared_ptr<const Write>>> frozen;
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_HEAP_H
