// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs TorchScript with what is known, and makes operations of the rest.

#ifndef TORCH_MLIR_TORCHSCRIPT_EVALUATOR_H
#define TORCH_MLIR_TORCHSCRIPT_EVALUATOR_H

#include "torchscript/Builder.h"
#include "torchscript/Heap.h"
#include "torchscript/Locations.h"
#include "torchscript/Memory.h"
#include "torchscript/Refinement.h"
#include "torchscript/Types.h"
#include "torchscript/Values.h"

#include <ATen/core/function.h>
#include <ATen/core/function_schema.h>
#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace torch_mlir::torchscript {

/// What in an archive's module has a name: tensors, lists and dicts by identity, attributes by
/// their object and number.
struct Names {
  std::map<std::pair<const void *, size_t>, std::string> attributes;
  std::unordered_map<const void *, std::string> values;
  std::unordered_map<const void *, c10::IValue> held;
};

/// State of the module that some method changes, and that the functions share therefore. Grows
/// until no evaluation finds more.
struct Slots {
  /// Tensors and lists, by identity.
  std::map<const void *, c10::IValue> values;
  /// Attributes, by the object's identity and number.
  std::map<std::pair<const void *, size_t>, c10::IValue> attributes;
  /// Memory that tensors of the module share, and that is written to: what a SharedMemory calls
  /// so. Their contents are what is seen of it.
  std::set<const void *> writtenMemory;
  /// Whether tensors that nothing writes to are slots too.
  bool allTensors = false;

  size_t size() const { return values.size() + attributes.size(); }
};

/// What an evaluation took for granted turned out to be otherwise. What it found is in the slots:
/// another one knows it from the beginning.
struct Restart {};

/// Evaluates one method.
class Evaluator {
public:
  /// Constants go to the beginning of `block`, which is the function's. With `trustTypes`, tensors
  /// are what the graph's types say of them.
  Evaluator(MlirContext context, MlirBlock block, Types &types, Literals &literals,
            Locations &locations, const Names &names, const SharedMemory &shared, Slots &slots,
            bool trustTypes = false);

  /// What a function's argument is.
  c10::IValue makeArgument(MlirValue value, const c10::TypePtr &type, const std::string &name);
  c10::IValue call(torch::jit::Function &function, const std::vector<c10::IValue> &arguments);
  /// The results as values, tuples taken apart and None left out.
  void flatten(const c10::IValue &result, const c10::TypePtr &type,
               std::vector<MlirValue> &results);
  /// Takes over what slots hold, and gives back what they hold at the end. `finish` adds to the
  /// slots what was written to, and leaves the module as it was.
  void start();
  void finish();
  /// Leaves the module as it was, after an exception.
  void abandon() { heap.undoAll(); }
  Builder &getBuilder() { return *builder; }
  MlirLocation getLocation() const { return location; }
  const std::vector<std::string> &getWarnings() const { return warnings; }
  /// The operators of whose results too little is known.
  const std::map<std::string, Unrefined> &getUnrefined() const {
    return refinement.getUnrefined();
  }

private:
  using IValue = c10::IValue;
  using Node = torch::jit::Node;
  using Block = torch::jit::Block;
  using Frame = std::unordered_map<const torch::jit::Value *, IValue>;

  /// Throws where the program, or what is made of it, has no end.
  void spend(uint64_t count);

  // Blocks and nodes.
  void evaluateBlock(const Block &block);
  void evaluate(const Node *node);
  void evaluateConstant(const Node *node);
  void evaluateIf(const Node *node);
  void evaluateBranches(const Node *node, MlirValue condition);
  bool evaluateAssertion(const Node *node, MlirValue condition);
  void evaluateLoop(const Node *node);
  void evaluateOpenLoop(const Node *node, int64_t done, const IValue &condition,
                        std::vector<IValue> carried);
  void evaluateIsInstance(const Node *node);
  void evaluateCast(const Node *node);
  void evaluateUnpack(const Node *node);
  void evaluateSlice(const Node *node);
  void evaluateModuleIndex(const Node *node);
  void evaluateOperator(const Node *node);
  bool tryEvaluate(const Node *node, const c10::FunctionSchema &schema);
  bool evaluateIdentity(const Node *node);
  bool evaluateProperty(const Node *node);
  TensorFact getFact(const IValue &tensor);
  bool evaluateNorm(const Node *node);
  void evaluateWrite(const Node *node, const c10::FunctionSchema &schema);
  void evaluateTensorWrite(const Node *node, const c10::FunctionSchema &schema, size_t self);
  void evaluateListWrite(const Node *node, const c10::FunctionSchema &schema);
  void emitOperator(const Node *node, const c10::FunctionSchema &schema);
  IValue callMethod(const IValue &object, const std::string &name, std::vector<IValue> arguments);

  // Values.
  IValue &get(const torch::jit::Value *value);
  std::vector<IValue> getInputs(const Node *node);
  void bind(const torch::jit::Value *value, IValue result) { (*frame)[value] = std::move(result); }
  IValue makeLeaf(MlirValue value, const c10::TypePtr &type, const std::string &name = "");
  /// Containers that were looked at: one may be an element of others many times.
  using Visited = std::unordered_set<const void *>;
  bool isKnown(const IValue &value) const;
  bool isKnown(const IValue &value, Visited &visited) const;
  bool isSame(const IValue &left, const IValue &right);
  /// Where a tensor's contents are, and how they are seen.
  struct Place {
    Cell *cell;
    std::shared_ptr<const View> view;
  };
  Place placeOf(const at::Tensor &tensor);
  Place placeOf(const IValue &tensor);
  MlirValue read(const Place &place);
  Cell *cellOf(const at::Tensor &tensor);
  /// The cell of a list that isn't known in parts.
  Cell *openCell(const IValue &list);
  MlirValue read(Cell *cell);
  MlirValue read(const Leaf &leaf);
  void write(Cell *cell, MlirValue value, const std::string &what);
  /// `cell` may share memory with `other`.
  void relate(Cell *cell, Cell *other);
  /// The cells that a value's memory lies in.
  void collectCells(const IValue &value, std::set<Cell *> &cells);
  void collectCells(const IValue &value, std::set<Cell *> &cells, Visited &visited);
  MlirValue materialize(const IValue &value, const c10::TypePtr &type);
  MlirValue materializeAs(const IValue &value, const c10::TypePtr &type);
  MlirValue constant(const IValue &value);
  MlirOperation emit(const std::string &name, const std::vector<MlirType> &results,
                     const std::vector<MlirValue> &operands,
                     const std::vector<Attribute> &attributes = {});

  // Where ways join.
  struct Hole {
    IValue sides[2];
    c10::TypePtr type;
    LeafPtr leaf;
  };
  IValue merge(const IValue &left, const IValue &right, const c10::TypePtr &type,
               std::vector<Hole> &holes);
  void fill(const LeafPtr &leaf, MlirValue value);
  LeafPtr makeHole(const c10::TypePtr &type);

  [[noreturn]] void fail(const Node *node, const std::string &message);
  std::vector<SourceLine> getStack(const Node *node) const;

  MlirContext context;
  Types &types;
  Literals &literals;
  Locations &locations;
  const Names &names;
  const SharedMemory &shared;
  Slots &slots;
  bool trustTypes;
  Refinement refinement;
  Heap heap;
  Builder front;
  Builder body;
  Builder *builder;
  MlirLocation location;
  Frame *frame = nullptr;
  /// The nodes that call the function that is being evaluated, outermost first.
  std::vector<const Node *> callers;
  const Node *lastPlaced = nullptr;
  uint64_t steps = 0;

  std::map<const at::TensorImpl *, Cell *> tensors;
  std::map<const c10::StorageImpl *, std::set<const at::TensorImpl *>> storages;
  std::map<const at::TensorImpl *, std::shared_ptr<const View>> views;
  /// The tensors of each storage that are written to, by a branch not taken too.
  using WrittenTensor = std::pair<at::Tensor, std::shared_ptr<const Write>>;
  std::map<const c10::StorageImpl *, std::vector<WrittenTensor>> writtenStorages;
  std::map<std::string, MlirValue> constants;
  std::map<const void *, MlirValue> packed;
  /// The functions whose graphs have one name for operators that are the same.
  std::unordered_set<const torch::jit::Function *> normalized;
  /// What was read inside of each loop around the node.
  std::vector<std::set<Cell *>> reads;
  std::vector<std::string> warnings;
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_EVALUATOR_H
