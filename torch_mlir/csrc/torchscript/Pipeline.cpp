// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module's methods as functions on values: nothing is written to, no object is left.

#include "torchscript/Pipeline.h"

#include "torchscript/Builder.h"
#include "torchscript/Evaluator.h"

#include "capi/Registration.h"
#include "capi/TorchTypes.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Pass.h"

#include <ATen/core/class_type.h>
#include <torch/csrc/jit/api/function_impl.h>

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_set>
#include <utility>

namespace torch_mlir::torchscript {

using c10::IValue;
using c10::TypePtr;
using torch::jit::Function;

namespace {

/// Containers and objects inside of one another.
constexpr unsigned maxDepth = 1024;

void collectNames(const IValue &value, const std::string &path, Names &names,
                  std::unordered_set<const void *> &seen, unsigned depth) {
  if (depth > maxDepth)
    throw Unsupported("'" + path + "' lies in more than " + std::to_string(maxDepth) +
                      " containers and objects");
  auto name = [&](const void *identity) {
    if (!seen.insert(identity).second)
      return false;
    names.values.emplace(identity, path);
    names.held.emplace(identity, value);
    return true;
  };
  if (value.isTensor()) {
    name(value.toTensor().unsafeGetTensorImpl());
  } else if (value.isObject()) {
    if (!seen.insert(value.internalToPointer()).second)
      return;
    names.held.emplace(value.internalToPointer(), value);
    names.values.emplace(value.internalToPointer(), path);
    auto object = value.toObject();
    auto type = object->type();
    if (isCustomClass(*type))
      return;
    for (size_t i = 0; i < object->slots().size(); ++i) {
      std::string attribute =
          i < type->numAttributes() ? type->getAttributeName(i) : std::to_string(i);
      std::string inner = path.empty() ? attribute : path + "." + attribute;
      names.attributes.emplace(std::make_pair(value.internalToPointer(), i), inner);
      collectNames(object->getSlot(i), inner, names, seen, depth + 1);
    }
  } else if (value.isList()) {
    if (!name(value.internalToPointer()))
      return;
    // Numbers have no parts.
    size_t i = 0;
    for (const IValue &element : value.toListRef()) {
      if (element.isPtrType() || element.isTensor())
        collectNames(element, path + "." + std::to_string(i), names, seen, depth + 1);
      ++i;
    }
  } else if (value.isTuple()) {
    size_t i = 0;
    for (const IValue &element : value.toTupleRef().elements())
      collectNames(element, path + "." + std::to_string(i++), names, seen, depth + 1);
  } else if (value.isGenericDict()) {
    if (!name(value.internalToPointer()))
      return;
    size_t i = 0;
    for (const auto &entry : value.toGenericDict()) {
      std::string key = entry.key().isString() ? entry.key().toStringRef() : std::to_string(i);
      ++i;
      collectNames(entry.value(), path + "." + key, names, seen, depth + 1);
    }
  }
}

/// The last line of a function that is known.
std::vector<SourceLine> getEnd(Locations &locations, const torch::jit::Graph &graph) {
  for (const torch::jit::Node *node : graph.nodes().reverse()) {
    std::vector<SourceLine> frames = locations.getFrames(node);
    if (!frames.empty())
      return frames;
  }
  return locations.getFrames(graph.return_node());
}

class MethodImporter {
public:
  MethodImporter(MlirContext context, MlirBlock module, const torch::jit::Module &model,
                 const PipelineOptions &options, Types &types, Literals &literals,
                 Locations &locations, Report &report)
      : context(context), module(module), model(model), options(options), types(types),
        literals(literals), locations(locations), report(report), shared(model._ivalue()) {
    slots.allTensors = !options.freeze;
    std::unordered_set<const void *> seen;
    collectNames(model._ivalue(), "", names, seen, 0);
    nameMemory();
  }

  void import() {
    Bodies bodies = evaluateAll(findMethods());
    if (options.methods.empty())
      addPublicMethods(bodies);
    importSlots();
    for (Evaluated &each : bodies)
      importMethod(each);
    removeDead();
  }

private:
  /// A block that no region owns yet.
  class OwnedBlock {
  public:
    explicit OwnedBlock(MlirBlock block = {nullptr}) : block(block) {}
    OwnedBlock(OwnedBlock &&other) noexcept : block(other.release()) {}
    OwnedBlock &operator=(OwnedBlock &&other) noexcept {
      std::swap(block, other.block);
      return *this;
    }
    ~OwnedBlock() {
      if (!mlirBlockIsNull(block))
        mlirBlockDestroy(block);
    }
    MlirBlock get() const { return block; }
    MlirBlock release() { return std::exchange(block, MlirBlock{nullptr}); }

  private:
    MlirBlock block;
  };

  /// A method's body, what it takes and gives, and what is told of it.
  struct Evaluated {
    Function *method;
    OwnedBlock block;
    std::vector<MlirType> inputs;
    std::vector<MlirType> results;
    Report report;
  };
  using Bodies = std::vector<Evaluated>;

  /// Memory that is none of the tensors that share it has the name of one of them.
  void nameMemory() {
    std::map<const void *, std::string> first;
    for (const auto &[identity, held] : names.held) {
      at::Tensor memory = held.isTensor() ? shared.findMemory(held.toTensor()) : at::Tensor();
      if (!memory.defined() || names.values.count(memory.unsafeGetTensorImpl()))
        continue;
      const std::string &name = names.values.at(identity);
      auto [entry, isNew] = first.emplace(memory.unsafeGetTensorImpl(), name);
      entry->second = std::min(entry->second, name);
    }
    for (const auto &[memory, name] : first)
      names.values.emplace(memory, name + ".memory");
  }

  /// What one method changes the others have to read, so that all are evaluated until none finds
  /// a slot that wasn't known to the first of them.
  Bodies evaluateAll(const std::vector<Function *> &methods) {
    for (;;) {
      size_t known = slots.size();
      bool isComplete = true;
      Bodies bodies;
      for (Function *method : methods)
        isComplete &= evaluateInto(bodies, *method);
      if (isComplete && known == slots.size())
        return bodies;
    }
  }

  /// Adds the model's public methods, save for those that have no form on values.
  void addPublicMethods(Bodies &bodies) {
    std::string problems;
    for (Function *method : model.type()->methods()) {
      bool isThere = std::any_of(bodies.begin(), bodies.end(), [&](const Evaluated &each) {
        return each.method == method;
      });
      if (isThere || method->name()[0] == '_')
        continue;
      Slots before = slots;
      try {
        Bodies added;
        // The others don't see it if it changes nothing.
        if (evaluateInto(added, *method) && slots.size() == before.size()) {
          bodies.push_back(std::move(added.front()));
          continue;
        }
        std::vector<Function *> methods;
        for (const Evaluated &each : bodies)
          methods.push_back(each.method);
        methods.push_back(method);
        bodies = evaluateAll(methods);
      } catch (const ImportError &problem) {
        slots = std::move(before);
        problems += (problems.empty() ? "" : "; ") + std::string(problem.what());
        report.warnings.push_back("the method '" + method->name() + "' is left out: " + problem.what());
      }
    }
    if (bodies.empty())
      throw ImportError("the model has no method 'forward', and " +
                        (problems.empty() ? "none that is public" : problems));
  }

  std::vector<Function *> findMethods() {
    std::vector<std::string> wanted = options.methods;
    if (wanted.empty() && model.type()->findMethod("forward"))
      wanted.push_back("forward");
    std::vector<Function *> methods;
    for (const std::string &name : wanted) {
      Function *method = model.type()->findMethod(name);
      if (method) {
        methods.push_back(method);
        continue;
      }
      std::string others;
      for (const Function *other : model.type()->methods())
        others += (others.empty() ? "" : ", ") + other->name();
      throw ImportError("the model has no method '" + name + "': there are " +
                        (others.empty() ? "none" : others));
    }
    return methods;
  }

  MlirType getArgument(const std::optional<TensorArgument> &known, const TypePtr &type,
                       const std::string &name) {
    MlirType own = types.get(type);
    if (!known)
      return own;
    if (!torchMlirTypeIsATorchValueTensor(own) &&
        !(torchMlirTypeIsATorchOptional(own) &&
          torchMlirTypeIsATorchValueTensor(torchMlirTorchOptionalTypeGetContainedType(own))))
      throw ImportError("argument '" + name + "' is no tensor, but a " + type->repr_str());
    MlirType element{nullptr};
    if (!known->dtype.empty()) {
      element = mlirTypeParseGet(context, wrap(known->dtype));
      if (mlirTypeIsNull(element))
        throw ImportError("argument '" + name + "': '" + known->dtype + "' is no dtype");
    }
    intptr_t rank = known->sizes ? static_cast<intptr_t>(known->sizes->size()) : -1;
    MlirType made = torchMlirTorchValueTensorTypeGetChecked(
        mlirLocationUnknownGet(context), rank, known->sizes ? known->sizes->data() : nullptr,
        element, MlirAttribute{nullptr});
    if (mlirTypeIsNull(made))
      throw ImportError("argument '" + name + "' can't have the dtype '" + known->dtype + "'");
    return made;
  }

  Evaluated evaluate(Function &method) {
    const auto &arguments = method.getSchema().arguments();
    auto known = options.arguments.find(method.name());
    Evaluated body;
    body.method = &method;
    std::vector<IValue> values = {model._ivalue()};
    std::vector<size_t> taken;
    for (size_t i = 1; i < arguments.size(); ++i) {
      const auto &argument = arguments[i];
      bool isGiven = known == options.arguments.end() || i - 1 < known->second.size();
      if (!isGiven && !argument.default_value())
        throw ImportError("nothing is said of the argument '" + argument.name() + "' of '" +
                          method.name() + "', which has no default");
      values.push_back(isGiven ? IValue() : *argument.default_value());
      if (!isGiven)
        continue;
      taken.push_back(i);
      std::optional<TensorArgument> tensor;
      if (known != options.arguments.end())
        tensor = known->second[i - 1];
      try {
        body.inputs.push_back(getArgument(tensor, argument.type(), argument.name()));
      } catch (const Unsupported &problem) {
        throw ImportError("argument '" + argument.name() + "': " + problem.what());
      }
    }
    if (known != options.arguments.end() && known->second.size() + 1 > arguments.size())
      throw ImportError("'" + method.name() + "' takes " + std::to_string(arguments.size() - 1) +
                        " arguments, and something is said of " +
                        std::to_string(known->second.size()));
    std::vector<MlirLocation> places(body.inputs.size(), locations.unknown());
    body.block = OwnedBlock(mlirBlockCreate(static_cast<intptr_t>(body.inputs.size()),
                                            body.inputs.data(), places.data()));
    MlirBlock block = body.block.get();
    try {
      Evaluator evaluator(context, block, types, literals, locations, names, shared, slots);
      struct Undo {
        Evaluator &evaluator;
        ~Undo() { evaluator.abandon(); }
      } undo{evaluator};
      evaluator.start();
      for (size_t i = 0; i < taken.size(); ++i) {
        const auto &argument = arguments[taken[i]];
        MlirValue value = mlirBlockGetArgument(block, static_cast<intptr_t>(i));
        TypePtr type = argument.type();
        if (torchMlirTypeIsATorchValueTensor(mlirValueGetType(value)))
          type = c10::TensorType::get(); // given where it's optional
        values[taken[i]] = evaluator.makeArgument(value, type, argument.name());
      }
      IValue result = evaluator.call(method, values);
      std::vector<MlirValue> results;
      try {
        evaluator.flatten(result, method.getSchema().returns().at(0).type(), results);
        evaluator.finish();
      } catch (const Unsupported &problem) {
        throw errorAt("the result of '" + method.name() + "': " + problem.what(),
                      getEnd(locations, *torch::jit::toGraphFunction(method).graph()));
      }
      for (MlirValue each : results)
        body.results.push_back(mlirValueGetType(each));
      Builder(context, block).create("func.return", locations.unknown(), {}, results);
      body.report.warnings = evaluator.getWarnings();
      for (const auto &[name, unrefined] : evaluator.getUnrefined())
        body.report.unrefined.push_back({name, unrefined.count, getUserLine(unrefined.frames)});
    } catch (const Unsupported &problem) {
      throw ImportError("'" + method.name() + "': " + problem.what());
    }
    return body;
  }

  /// Adds a method's body, if its slots were known enough to get to its end.
  bool evaluateInto(Bodies &bodies, Function &method) {
    try {
      bodies.push_back(evaluate(method));
      return true;
    } catch (const Restart &) {
      return false;
    }
  }

  void importMethod(Evaluated &body) {
    report.warnings.insert(report.warnings.end(), body.report.warnings.begin(),
                           body.report.warnings.end());
    report.unrefined.insert(report.unrefined.end(), body.report.unrefined.begin(),
                            body.report.unrefined.end());
    Builder builder(context, module);
    MlirRegion region = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(region, body.block.release());
    MlirType type =
        mlirFunctionTypeGet(context, static_cast<intptr_t>(body.inputs.size()), body.inputs.data(),
                            static_cast<intptr_t>(body.results.size()), body.results.data());
    builder.create("func.func", locations.unknown(), {}, {},
                   {{"sym_name", builder.string(body.method->name())},
                    {"function_type", builder.type(type)}},
                   {region});
  }

  void importSlots() {
    // By name: (first value, type).
    std::map<std::string, std::pair<IValue, TypePtr>> held;
    for (const auto &[identity, value] : slots.values)
      held[nameOf(identity)] = {value, value.isTensor() ? TypePtr(c10::TensorType::get())
                                                        : value.type()};
    for (const auto &[key, object] : slots.attributes)
      held[names.attributes.at(key)] = {object.toObject()->getSlot(key.second),
                                        object.toObject()->type()->getAttribute(key.second)};
    if (held.empty())
      return;
    Builder builder(context, module);
    MlirLocation location = locations.unknown();
    std::vector<MlirAttribute> symbols;
    for (const auto &[name, entry] : held) {
      builder.create("torch.global_slot", location, {}, {},
                     {{"sym_name", builder.string(name)},
                      {"sym_visibility", builder.string("private")},
                      {"typeBound", builder.type(types.get(entry.second))}});
      symbols.push_back(builder.symbol(name));
    }
    MlirRegion region = mlirRegionCreate();
    MlirBlock block = mlirBlockCreate(0, nullptr, nullptr);
    mlirRegionAppendOwnedBlock(region, block);
    builder.create("torch.global_slot.module_initializer", location, {}, {}, {}, {region});
    Builder inner(context, block);
    Values values(inner, types, literals, /*objects=*/false);
    std::vector<MlirValue> first;
    for (const auto &[name, entry] : held)
      first.push_back(values.get(entry.first, entry.second, name, location));
    inner.create("torch.initialize.global_slots", location, {}, first,
                 {{"slotSymNames", mlirArrayAttrGet(context, static_cast<intptr_t>(symbols.size()),
                                                    symbols.data())}});
  }

  std::string nameOf(const void *identity) const {
    auto found = names.values.find(identity);
    if (found == names.values.end())
      throw Unsupported("a constant tensor of the program is written to, and would have to keep "
                        "what is written");
    return found->second;
  }

  /// Operations without a use, and those that are there twice.
  void removeDead() {
    torchMlirRegisterAllPasses();
    MlirPassManager manager = mlirPassManagerCreate(context);
    std::string problem;
    MlirLogicalResult done = mlirParsePassPipeline(
        mlirPassManagerGetAsOpPassManager(manager),
        mlirStringRefCreateFromCString("builtin.module(func.func(cse))"),
        [](MlirStringRef part, void *text) {
          static_cast<std::string *>(text)->append(part.data, part.length);
        },
        &problem);
    if (mlirLogicalResultIsSuccess(done))
      done = mlirPassManagerRunOnOp(manager, mlirBlockGetParentOperation(module));
    mlirPassManagerDestroy(manager);
    if (mlirLogicalResultIsFailure(done))
      throw ImportError("the functions that were made can't be simplified: " + problem);
  }

  MlirContext context;
  MlirBlock module;
  const torch::jit::Module &model;
  const PipelineOptions &options;
  Types &types;
  Literals &literals;
  Locations &locations;
  Report &report;
  Names names;
  SharedMemory shared;
  Slots slots;
};

} // namespace

void importMethods(MlirContext context, MlirBlock module, const torch::jit::Module &model,
                   const PipelineOptions &options, Types &types, Literals &literals,
                   Locations &locations, Report &report) {
  MethodImporter(context, module, model, options, types, literals, locations, report).import();
}

} // namespace torch_mlir::torchscript
