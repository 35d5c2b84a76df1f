// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes of a graph as operations.

#include "torchscript/Nodes.h"

#include "torchscript/Functions.h"
#include "torchscript/Locations.h"
#include "torchscript/Operators.h"
#include "torchscript/Quantized.h"

#include "capi/TorchTypes.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <ATen/core/class_type.h>
#include <ATen/core/interned_strings.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

namespace torch_mlir::torchscript {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace attr = c10::attr;
namespace aten = c10::aten;
namespace prim = c10::prim;

NodeImporter::NodeImporter(Functions &functions, std::string symbol)
    : functions(functions), context(functions.getTypes().getContext()), symbol(std::move(symbol)),
      location(functions.getLocations().unknown()) {}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void NodeImporter::bind(const Value *value, MlirValue imported) { values[value] = imported; }

MlirValue NodeImporter::operand(const Value *value) const {
  auto found = values.find(value);
  if (found == values.end())
    throw Unsupported("its operand %" + value->debugName() + ", a " + value->type()->repr_str() +
                      ", is no value");
  return found->second;
}

std::vector<MlirValue> NodeImporter::operands(const Node *node) const {
  std::vector<MlirValue> result;
  result.reserve(node->inputs().size());
  for (const Value *input : node->inputs())
    result.push_back(operand(input));
  return result;
}

MlirType NodeImporter::type(const Value *value) const {
  return functions.getTypes().get(value->type());
}

std::vector<MlirType> NodeImporter::resultTypes(const Node *node) const {
  std::vector<MlirType> result;
  for (const Value *output : node->outputs())
    result.push_back(type(output));
  return result;
}

MlirValue NodeImporter::fit(MlirValue value, MlirType type) {
  if (torchMlirTorchTypeIsSubtype(mlirValueGetType(value), type))
    return value;
  return builder->convert(value, type, location);
}

void NodeImporter::bindResult(const Value *value, MlirValue imported) {
  bind(value, builder->convert(imported, type(value), location));
}

void NodeImporter::bindResults(const Node *node, MlirOperation operation) {
  for (size_t i = 0; i < node->outputs().size(); ++i)
    bindResult(node->outputs()[i], mlirOperationGetResult(operation, static_cast<intptr_t>(i)));
}

MlirOperation NodeImporter::emit(const Node *node, const std::string &name,
                                 const std::vector<Attribute> &attributes) {
  MlirOperation made =
      builder->create(name, location, resultTypes(node), operands(node), attributes);
  bindResults(node, made);
  return made;
}

MlirValue NodeImporter::getAttr(MlirValue object, const std::string &name, MlirType type) {
  return builder->value("torch.prim.GetAttr", location, type, {object},
                        {{"name", builder->string(name)}});
}

MlirValue NodeImporter::constantInt(int64_t number) {
  return builder->value("torch.constant.int", location, torchMlirTorchIntTypeGet(context), {},
                        {{"value", builder->i64(number)}});
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// How a user knows the node: by its operator's name, with the overload if it has one.
static std::string getNodeName(const Node *node) {
  std::string name = node->kind().toQualString();
  if (const auto *schema = node->maybeSchema(); schema && !schema->overload_name().empty())
    name += "." + schema->overload_name();
  return name;
}

std::vector<MlirValue> NodeImporter::importBlock(const Block &block, Builder &into,
                                                 const std::vector<MlirType> &types) {
  Builder *outer = builder;
  MlirLocation outerLocation = location;
  builder = &into;
  // A node that PyTorch made without saying where stands where the one before it does.
  const Node *last = lastPlaced;
  if (const Node *first = lastPlaced ? nullptr : functions.getLocations().findPlaced(block)) {
    lastPlaced = first;
    location = functions.getLocations().get(first);
  }
  for (const Node *node : block.nodes()) {
    MlirLocation own = functions.getLocations().get(node);
    if (!mlirLocationEqual(own, functions.getLocations().unknown())) {
      location = own;
      lastPlaced = node;
    }
    try {
      importNode(node);
    } catch (const Unsupported &problem) {
      throw errorAt(getNodeName(node) + ": " + problem.what(),
                    functions.getLocations().getFrames(lastPlaced ? lastPlaced : node));
    }
  }
  lastPlaced = last;
  std::vector<MlirValue> outputs;
  for (size_t i = 0; i < block.outputs().size(); ++i)
    outputs.push_back(into.convert(operand(block.outputs()[i]), types[i], location));
  builder = outer;
  location = outerLocation;
  return outputs;
}

void NodeImporter::importNode(const Node *node) {
  switch (static_cast<c10::unique_t>(node->kind())) {
  case prim::Constant:
    return importConstant(node);
  case prim::If:
    return importIf(node);
  case prim::Loop:
    return importLoop(node);
  case prim::CallFunction:
    return importCallFunction(node);
  case prim::CallMethod:
    return importCallMethod(node);
  case prim::fork:
    return importFork(node);
  case aten::wait: // The fork has run already.
    return bindResult(node->output(), operand(node->input()));
  case prim::ListConstruct:
  case prim::TupleConstruct:
    return importContainer(node);
  case prim::DictConstruct:
    return importDict(node);
  case prim::ListUnpack:
    emit(node, "torch.prim.ListUnpack");
    return;
  case prim::TupleUnpack:
    emit(node, "torch.prim.TupleUnpack");
    return;
  case prim::TupleSlice:
    return importSlice(node);
  case prim::ConstantChunk:
    return importChunk(node);
  case prim::GetAttr:
    emit(node, "torch.prim.GetAttr", {{"name", builder->string(node->s(attr::name))}});
    return;
  case prim::SetAttr:
    return importSetAttr(node);
  case prim::CreateObject:
    if (isCustomClass(*node->output()->type()))
      throw Unsupported("the custom C++ class '" + node->output()->type()->annotation_str() +
                        "' has no form in the Torch dialect");
    emit(node, "torch.prim.CreateObject");
    return;
  case prim::Uninitialized:
    emit(node, "torch.prim.Uninitialized");
    return;
  case prim::unchecked_cast:
    return bindResult(node->output(), operand(node->input()));
  case prim::isinstance:
    return importIsInstance(node);
  case prim::ModuleContainerIndex:
    return importModuleIndex(node);
  case prim::Enter:
    return importEnter(node);
  case prim::Exit:
    return importExit(node);
  case prim::EnumName:
    return bindResult(node->output(), getAttr(operand(node->input()), "name", type(node->output())));
  case prim::EnumValue:
    return bindResult(node->output(),
                      getAttr(operand(node->input()), "value", type(node->output())));
  default:
    if (!importEnumOperator(node))
      importOperator(node);
  }
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

void NodeImporter::importConstant(const Node *node) {
  const Value *output = node->output();
  // The calls of a function name it.
  if (output->type()->kind() == c10::TypeKind::FunctionType)
    return;
  auto value = torch::jit::toIValue(output);
  if (!value)
    throw Unsupported("a constant of type " + output->type()->repr_str() + " is not supported");
  Values imported(*builder, functions.getTypes(), functions.getLiterals(), /*objects=*/false);
  std::string name = symbol + ".constant";
  // Tensors are known better than their type says.
  bind(output, imported.get(*value, output->type(), name, location));
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void NodeImporter::importIf(const Node *node) {
  std::vector<MlirType> results = resultTypes(node);
  std::vector<MlirRegion> regions;
  for (size_t i = 0; i < node->blocks().size(); ++i) {
    MlirRegion region = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(region, mlirBlockCreate(0, nullptr, nullptr));
    regions.push_back(region);
  }
  MlirOperation made = builder->create("torch.prim.If", location, results,
                                       {operand(node->input())}, {}, regions);
  for (size_t i = 0; i < node->blocks().size(); ++i) {
    Builder inner(context, mlirRegionGetFirstBlock(mlirOperationGetRegion(made, i)));
    std::vector<MlirValue> yielded = importBlock(*node->blocks()[i], inner, results);
    inner.create("torch.prim.If.yield", location, {}, yielded);
  }
  bindResults(node, made);
}

void NodeImporter::importLoop(const Node *node) {
  const Block &body = *node->blocks().at(0);
  // What is carried has the type that the body takes, which may say less than what it starts
  // from.
  std::vector<MlirType> arguments, carried;
  for (const Value *input : body.inputs())
    arguments.push_back(type(input));
  carried.assign(arguments.begin() + 1, arguments.end());
  std::vector<MlirValue> initial;
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    MlirValue value = operand(node->inputs()[i]);
    initial.push_back(i < 2 ? value : builder->convert(value, carried.at(i - 2), location));
  }
  std::vector<MlirLocation> locations(arguments.size(), location);
  MlirRegion region = mlirRegionCreate();
  MlirBlock block = mlirBlockCreate(arguments.size(), arguments.data(), locations.data());
  mlirRegionAppendOwnedBlock(region, block);
  MlirOperation made =
      builder->create("torch.prim.Loop", location, carried, initial, {}, {region});
  for (size_t i = 0; i < arguments.size(); ++i)
    bind(body.inputs()[i], mlirBlockGetArgument(block, static_cast<intptr_t>(i)));
  Builder inner(context, block);
  std::vector<MlirType> outputs = carried;
  outputs.insert(outputs.begin(), torchMlirTorchBoolTypeGet(context));
  std::vector<MlirValue> next = importBlock(body, inner, outputs);
  inner.create("torch.prim.Loop.condition", location, {}, next);
  bindResults(node, made);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void NodeImporter::importCallFunction(const Node *node) {
  auto callee = node->input(0)->type()->cast<c10::FunctionType>();
  if (!callee)
    throw Unsupported("a call of a value of type " + node->input(0)->type()->repr_str());
  torch::jit::Function &function = *callee->function();
  const auto &schema = function.getSchema();
  std::vector<MlirValue> arguments;
  for (size_t i = 1; i < node->inputs().size(); ++i)
    arguments.push_back(
        builder->convert(operand(node->input(i)),
                         functions.getTypes().get(schema.arguments().at(i - 1).type()), location));
  std::vector<MlirType> results;
  for (const auto &result : schema.returns())
    results.push_back(functions.getTypes().get(result.type()));
  bindResults(node, builder->create("func.call", location, results, arguments,
                                    {{"callee", builder->symbol(functions.getSymbol(function))}}));
}

void NodeImporter::importCallMethod(const Node *node) {
  const std::string &name = node->s(attr::name);
  const c10::TypePtr &receiver = node->input(0)->type();
  const c10::FunctionSchema *schema = nullptr;
  if (auto interface = receiver->cast<c10::InterfaceType>()) {
    schema = interface->getMethod(name);
  } else if (auto object = receiver->cast<c10::ClassType>()) {
    if (isCustomClass(*object))
      return importCustomMethod(node, getName(*object), name);
    torch::jit::Function *method = object->findMethod(name);
    // Hooks of a module are called so too.
    if (!method)
      method = object->findHook(name);
    if (method)
      schema = &method->getSchema();
  }
  if (!schema)
    throw Unsupported("the type " + receiver->repr_str() + " has no method '" + name + "'");
  std::vector<MlirValue> arguments = {operand(node->input(0))};
  for (size_t i = 1; i < node->inputs().size(); ++i)
    arguments.push_back(
        builder->convert(operand(node->input(i)),
                         functions.getTypes().get(schema->arguments().at(i).type()), location));
  MlirType result = functions.getTypes().get(schema->returns().at(0).type());
  bindResults(node, builder->create("torch.prim.CallMethod", location, {result}, arguments,
                                    {{"name", builder->string(name)}}));
}

/// An operator gives the same.
void NodeImporter::importCustomMethod(const Node *node, const std::string &type,
                                      const std::string &name) {
  auto known = getMethodOperators().find(type);
  const auto *candidates =
      known == getMethodOperators().end()
          ? nullptr
          : &torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(known->second + name));
  if (!candidates || candidates->empty() || node->inputs().size() != 1)
    throw Unsupported("method '" + name + "' of the custom C++ class '" + type +
                      "' has no form in the Torch dialect");
  const c10::FunctionSchema &schema = candidates->front()->schema();
  std::vector<MlirType> results;
  for (const auto &result : schema.returns())
    results.push_back(functions.getTypes().get(result.type()));
  std::string own = "torch." + schema.name();
  own.replace(own.find("::"), 2, ".");
  MlirOperation made = builder->create(own, location, results, {operand(node->input(0))});
  if (results.size() == 1)
    return bindResults(node, made);
  std::vector<MlirValue> parts;
  for (size_t i = 0; i < results.size(); ++i)
    parts.push_back(mlirOperationGetResult(made, static_cast<intptr_t>(i)));
  bindResult(node->output(), builder->value("torch.prim.TupleConstruct", location,
                                            this->type(node->output()), parts));
}

void NodeImporter::importFork(const Node *node) {
  std::string name = functions.getSymbol(node->g(attr::Subgraph), symbol + ".fork");
  const auto &graph = *node->g(attr::Subgraph);
  std::vector<MlirValue> arguments;
  for (size_t i = 0; i < node->inputs().size(); ++i)
    arguments.push_back(
        builder->convert(operand(node->input(i)), type(graph.inputs().at(i)), location));
  std::vector<MlirType> results;
  for (const Value *output : graph.outputs())
    results.push_back(type(output));
  bindResults(node, builder->create("func.call", location, results, arguments,
                                    {{"callee", builder->symbol(name)}}));
}

//===----------------------------------------------------------------------===//
// Containers
//===----------------------------------------------------------------------===//

void NodeImporter::importContainer(const Node *node) {
  bool isList = node->kind() == prim::ListConstruct;
  MlirType result = type(node->output());
  std::vector<MlirValue> elements;
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    const c10::TypePtr &container = node->output()->type();
    // A list of optional tensors holds tensors as they are.
    auto element = isList ? container->expect<c10::ListType>()->getElementType()
                          : container->expect<c10::TupleType>()->elements().at(i);
    elements.push_back(fit(operand(node->input(i)), functions.getTypes().get(element)));
  }
  const char *name = isList ? "torch.prim.ListConstruct" : "torch.prim.TupleConstruct";
  bind(node->output(), builder->value(name, location, result, elements));
}

void NodeImporter::importDict(const Node *node) {
  auto dict = node->output()->type()->expect<c10::DictType>();
  MlirType key = functions.getTypes().get(dict->getKeyType());
  MlirType item = functions.getTypes().get(dict->getValueType());
  std::vector<MlirValue> entries, items;
  for (size_t i = 0; i + 1 < node->inputs().size(); i += 2) {
    entries.push_back(fit(operand(node->input(i)), key));
    items.push_back(fit(operand(node->input(i + 1)), item));
  }
  entries.insert(entries.end(), items.begin(), items.end());
  bind(node->output(), builder->value("torch.prim.DictConstruct", location, type(node->output()),
                                      entries));
}

void NodeImporter::importSlice(const Node *node) {
  auto tuple = node->input()->type()->expect<c10::TupleType>();
  std::vector<MlirType> elements;
  for (const auto &element : tuple->elements())
    elements.push_back(functions.getTypes().get(element));
  MlirOperation unpacked = builder->create("torch.prim.TupleUnpack", location, elements,
                                           {operand(node->input())});
  std::vector<MlirValue> taken;
  for (int64_t i = node->i(attr::beg); i < node->i(attr::end); ++i)
    taken.push_back(mlirOperationGetResult(unpacked, i));
  bind(node->output(),
       builder->value("torch.prim.TupleConstruct", location, type(node->output()), taken));
}

void NodeImporter::importChunk(const Node *node) {
  MlirType tensor = functions.getTypes().getTensor();
  MlirType list = torchMlirTorchListTypeGetChecked(location, tensor);
  MlirValue chunks = builder->value("torch.aten.chunk", location, list,
                                    {operand(node->input()), constantInt(node->i(attr::chunks)),
                                     constantInt(node->i(attr::dim))});
  bindResults(node, builder->create("torch.prim.ListUnpack", location, resultTypes(node), {chunks}));
}

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

void NodeImporter::importSetAttr(const Node *node) {
  const std::string &name = node->s(attr::name);
  auto object = node->input(0)->type()->expect<c10::ClassType>();
  MlirValue value = fit(operand(node->input(1)), functions.getTypes().get(object->getAttribute(name)));
  builder->create("torch.prim.SetAttr", location, {}, {operand(node->input(0)), value},
                  {{"name", builder->string(name)}});
}

/// `with` statements. The dialect's operation gives None; where the object's __enter__ gives
/// more, it is called.
void NodeImporter::importEnter(const Node *node) {
  MlirType none = torchMlirTorchNoneTypeGet(context);
  MlirType result = type(node->output());
  MlirValue object = operand(node->input());
  if (node->output()->uses().empty() || mlirTypeEqual(result, none)) {
    bind(node->output(), builder->value("torch.prim.Enter", location, none, {object}));
    return;
  }
  bind(node->output(), builder->value("torch.prim.CallMethod", location, result, {object},
                                      {{"name", builder->string("__enter__")}}));
}

/// The node's own type says nothing: it's that of a tensor, whatever __exit__ gives.
void NodeImporter::importExit(const Node *node) {
  MlirType result = torchMlirTorchNoneTypeGet(context);
  auto object = node->input()->type()->cast<c10::ClassType>();
  if (torch::jit::Function *exit = object ? object->findMethod("__exit__") : nullptr)
    result = functions.getTypes().get(exit->getSchema().returns().at(0).type());
  bind(node->output(),
       builder->value("torch.prim.Exit", location, result, {operand(node->input())}));
}

void NodeImporter::importIsInstance(const Node *node) {
  std::vector<MlirAttribute> types;
  for (const auto &type : node->tys(attr::types))
    types.push_back(builder->type(functions.getTypes().get(type)));
  emit(node, "torch.operator",
       {{"name", builder->string("torch.prim.isinstance")},
        {"types", mlirArrayAttrGet(context, types.size(), types.data())}});
}

/// A submodule of a list or dict of modules by an index that isn't constant: all of them have
/// the same interface.
void NodeImporter::importModuleIndex(const Node *node) {
  auto container = node->input(0)->type()->expect<c10::ClassType>();
  bool isDict = node->input(1)->type()->kind() == c10::TypeKind::StringType;
  MlirType element = type(node->output());
  std::vector<MlirValue> keys, modules;
  for (size_t i = 0; i < container->numAttributes(); ++i) {
    const c10::TypePtr &held = container->getAttribute(i);
    if (!held->is_module())
      continue;
    const std::string &name = container->getAttributeName(i);
    MlirValue found = getAttr(operand(node->input(0)), name, functions.getTypes().get(held));
    modules.push_back(builder->convert(found, element, location));
    if (isDict)
      keys.push_back(builder->value("torch.constant.str", location,
                                    torchMlirTorchStringTypeGet(context), {},
                                    {{"value", builder->string(name)}}));
  }
  MlirValue all;
  if (isDict) {
    keys.insert(keys.end(), modules.begin(), modules.end());
    MlirType type = torchMlirTorchDictTypeGetChecked(
        location, torchMlirTorchStringTypeGet(context), element);
    all = builder->value("torch.prim.DictConstruct", location, type, keys);
  } else {
    MlirType type = torchMlirTorchListTypeGetChecked(location, element);
    all = builder->value("torch.prim.ListConstruct", location, type, modules);
  }
  const char *name = isDict ? "torch.aten.__getitem__.Dict_str" : "torch.aten.__getitem__.t";
  bind(node->output(),
       builder->value(name, location, element, {all, operand(node->input(1))}));
}

/// Values of one enum are the same if their names are.
bool NodeImporter::importEnumOperator(const Node *node) {
  if (node->inputs().size() != 2 || node->input(0)->type()->kind() != c10::TypeKind::EnumType ||
      (node->kind() != aten::eq && node->kind() != aten::ne))
    return false;
  MlirType text = torchMlirTorchStringTypeGet(context);
  std::vector<MlirValue> names;
  for (const Value *input : node->inputs())
    names.push_back(getAttr(operand(input), "name", text));
  const char *name = node->kind() == aten::eq ? "torch.aten.eq.str" : "torch.aten.ne.str";
  bind(node->output(), builder->value(name, location, type(node->output()), names));
  return true;
}

//===----------------------------------------------------------------------===//
// Operators with a schema
//===----------------------------------------------------------------------===//

void NodeImporter::importOperator(const Node *node) {
  const c10::FunctionSchema *schema = node->maybeSchema();
  if (!schema || !node->blocks().empty())
    throw Unsupported("nodes of this kind are not supported");
  MlirOperation made = createOperation(
      *builder, location, *schema, resultTypes(node), operands(node),
      [&](const c10::Argument &argument) {
        Values values(*builder, functions.getTypes(), functions.getLiterals(), /*objects=*/false);
        return values.get(*argument.default_value(), argument.type(), argument.name(), location);
      });
  if (!mlirOperationIsNull(made))
    return bindResults(node, made);
  emit(node, "torch.operator", {{"name", builder->string("torch." + getName(*schema))}});
}

} // namespace torch_mlir::torchscript
