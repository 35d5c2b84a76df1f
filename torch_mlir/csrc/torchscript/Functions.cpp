// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions and classes of an archive as functions and `torch.class_type`s of a module.

#include "torchscript/Functions.h"

#include "torchscript/Nodes.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "capi/TorchTypes.h"

#include <ATen/core/enum_type.h>
#include <ATen/core/function_schema.h>
#include <torch/csrc/jit/api/function_impl.h>

namespace torch_mlir::torchscript {

using torch::jit::Function;
using torch::jit::Graph;

Functions::Functions(MlirContext context, MlirBlock module, Types &types, Literals &literals,
                     Locations &locations)
    : context(context), module(module), types(types), literals(literals), locations(locations) {}

std::string Functions::unique(const std::string &name) {
  std::string symbol = name;
  for (unsigned i = 0; !taken.insert(symbol).second; ++i)
    symbol = name + "_" + std::to_string(i);
  return symbol;
}

std::string Functions::getSymbol(Function &function) {
  auto found = symbols.find(&function);
  if (found != symbols.end())
    return found->second;
  std::string name = function.qualname().qualifiedName();
  if (!function.isGraphFunction())
    throw Unsupported("the function '" + name + "' isn't written in TorchScript");
  std::string symbol = unique(name);
  symbols.emplace(&function, symbol);
  pending.push_back({symbol, &function, nullptr});
  return symbol;
}

std::string Functions::getSymbol(std::shared_ptr<Graph> graph, const std::string &name) {
  std::string symbol = unique(name);
  pending.push_back({symbol, nullptr, std::move(graph)});
  return symbol;
}

void Functions::importAll() {
  // Classes first: their methods are what most functions are.
  while (imported < pending.size() || importedNamed < types.getNamed().size()) {
    if (importedNamed < types.getNamed().size()) {
      c10::NamedTypePtr type = types.getNamed()[importedNamed++];
      if (auto enumeration = type->cast<c10::EnumType>())
        importEnum(*enumeration);
      else
        importClass(*type->expect<c10::ClassType>());
      continue;
    }
    Pending next = pending[imported++];
    importFunction(next);
  }
}

MlirOperation Functions::createClass(const std::string &name, MlirRegion region) {
  Builder builder(context, mlirRegionGetFirstBlock(region));
  builder.create("torch.class_type_terminator", locations.unknown(), {}, {});
  taken.insert(name);
  MlirOperation made = createDetached(context, "torch.class_type", locations.unknown(), {}, {},
                                      {{"sym_name", builder.string(name)}}, {region});
  mlirBlockInsertOwnedOperationAfter(module, lastClass, made);
  if (mlirOperationIsNull(lastFunction))
    lastFunction = made;
  return lastClass = made;
}

static MlirRegion createRegion() {
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, mlirBlockCreate(0, nullptr, nullptr));
  return region;
}

void Functions::importClass(const c10::ClassType &type) {
  std::string name = getName(type);
  // Held by the class from here on, so that an error doesn't leak it.
  MlirRegion region = createRegion();
  Builder builder(context, mlirRegionGetFirstBlock(region));
  MlirLocation location = locations.unknown();
  // The operations are made first and the class around them last: a null class is what tells
  // that it isn't there yet.
  try {
    for (size_t i = 0; i < type.numAttributes(); ++i) {
      MlirType attribute;
      try {
        attribute = types.get(type.getAttribute(i));
      } catch (const Unsupported &problem) {
        throw ImportError("attribute '" + type.getAttributeName(i) + "' of class '" + name +
                          "': " + problem.what());
      }
      builder.create("torch.attr", location, {}, {},
                     {{"name", builder.string(type.getAttributeName(i))},
                      {"type", builder.type(attribute)}});
    }
    auto addMethods = [&](const std::vector<Function *> &methods) {
      for (Function *method : methods)
        builder.create("torch.method", location, {}, {},
                       {{"name", builder.string(method->name())},
                        {"function", builder.symbol(getSymbol(*method))}});
    };
    addMethods(type.methods());
    if (type.is_module()) {
      addMethods(type.getForwardPreHooks());
      addMethods(type.getForwardHooks());
    }
  } catch (...) {
    mlirRegionDestroy(region);
    throw;
  }
  createClass(name, region);
}

void Functions::importEnum(const c10::EnumType &type) {
  MlirRegion region = createRegion();
  Builder builder(context, mlirRegionGetFirstBlock(region));
  MlirLocation location = locations.unknown();
  MlirType held = types.get(type.getValueType());
  MlirType text = torchMlirTorchStringTypeGet(context);
  builder.create("torch.attr", location, {}, {},
                 {{"name", builder.string("name")}, {"type", builder.type(text)}});
  builder.create("torch.attr", location, {}, {},
                 {{"name", builder.string("value")}, {"type", builder.type(held)}});
  createClass(getName(type), region);
}

void Functions::importFunction(const Pending &pending) {
  std::shared_ptr<Graph> graph =
      pending.function ? torch::jit::toGraphFunction(*pending.function).graph() : pending.graph;
  std::vector<MlirType> inputs, results;
  auto getType = [&](const c10::TypePtr &type, const std::string &what) {
    try {
      return types.get(type);
    } catch (const Unsupported &problem) {
      throw ImportError(what + " of '" + pending.symbol + "': " + problem.what());
    }
  };
  for (const auto *input : graph->inputs())
    inputs.push_back(getType(input->type(), "argument '" + input->debugName() + "'"));
  if (pending.function) {
    // What callers know of the result is what the schema says.
    for (const auto &result : pending.function->getSchema().returns())
      results.push_back(getType(result.type(), "the result"));
  } else {
    for (const auto *output : graph->outputs())
      results.push_back(getType(output->type(), "the result"));
  }

  auto nodes = graph->nodes();
  MlirLocation location = nodes.begin() != nodes.end() ? locations.get(*nodes.begin())
                                                       : locations.unknown();
  MlirRegion region = mlirRegionCreate();
  std::vector<MlirLocation> argumentLocations(inputs.size(), location);
  MlirBlock block = mlirBlockCreate(inputs.size(), inputs.data(), argumentLocations.data());
  mlirRegionAppendOwnedBlock(region, block);
  Builder builder(context, block);
  MlirType type = mlirFunctionTypeGet(context, inputs.size(), inputs.data(), results.size(),
                                      results.data());
  MlirOperation function = createDetached(context, "func.func", location, {}, {},
                                          {{"sym_name", builder.string(pending.symbol)},
                                           {"function_type", builder.type(type)},
                                           {"sym_visibility", builder.string("private")}},
                                          {region});
  mlirBlockInsertOwnedOperationAfter(module, lastFunction, function);
  lastFunction = function;

  NodeImporter importer(*this, pending.symbol);
  for (size_t i = 0; i < inputs.size(); ++i)
    importer.bind(graph->inputs()[i], mlirBlockGetArgument(block, static_cast<intptr_t>(i)));
  std::vector<MlirValue> outputs = importer.importBlock(*graph->block(), builder, results);
  builder.create("func.return", location, {}, outputs);
}

} // namespace torch_mlir::torchscript
