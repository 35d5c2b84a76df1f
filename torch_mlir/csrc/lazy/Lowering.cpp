// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a graph that PyTorch's lazy nodes are lowered to, to a module.

#include "lazy/Lowering.h"

#include "lazy/Normalization.h"
#include "torchscript/Builder.h"
#include "torchscript/Diagnostics.h"
#include "torchscript/Evaluator.h"
#include "torchscript/Locations.h"
#include "torchscript/Memory.h"
#include "torchscript/Types.h"
#include "torchscript/Values.h"

#include "mlir-c/BuiltinTypes.h"

#include <torch/csrc/jit/api/function_impl.h>

#include <stdexcept>
#include <vector>

namespace torch_mlir::lazy {

using namespace torch_mlir::torchscript;
using c10::IValue;

namespace {

/// Graphs hold small constants: what is more has been a parameter before.
constexpr uint64_t maxCopied = uint64_t(1) << 30;

/// Removes a module that isn't finished.
struct Unfinished {
  MlirModule module;
  ~Unfinished() {
    if (!mlirModuleIsNull(module))
      mlirModuleDestroy(module);
  }
};

void fill(MlirContext context, MlirBlock body, const std::shared_ptr<torch::jit::Graph> &graph,
          const std::string &name) {
  Types types(context, /*valueTensors=*/true);
  Literals literals(types, maxCopied);
  Locations locations(context);
  Names names;
  SharedMemory shared;
  Slots slots;

  std::vector<MlirType> inputs;
  for (const torch::jit::Value *input : graph->inputs())
    inputs.push_back(types.getComplete(input->type()));
  std::vector<MlirLocation> places(inputs.size(), locations.unknown());
  MlirRegion region = mlirRegionCreate();
  MlirBlock block =
      mlirBlockCreate(static_cast<intptr_t>(inputs.size()), inputs.data(), places.data());
  mlirRegionAppendOwnedBlock(region, block);

  std::vector<MlirValue> results;
  std::vector<MlirType> resultTypes;
  try {
    Evaluator evaluator(context, block, types, literals, locations, names, shared, slots,
                        /*trustTypes=*/true);
    evaluator.start();
    std::vector<IValue> arguments;
    for (size_t i = 0; i < inputs.size(); ++i)
      arguments.push_back(
          evaluator.makeArgument(mlirBlockGetArgument(block, static_cast<intptr_t>(i)),
                                 graph->inputs()[i]->type(), graph->inputs()[i]->debugName()));
    torch::jit::GraphFunction function(name, graph, nullptr);
    IValue result = evaluator.call(function, arguments);
    evaluator.flatten(result, graph->outputs().at(0)->type(), results);
    evaluator.finish();
    for (MlirValue each : results)
      resultTypes.push_back(mlirValueGetType(each));
    Builder(context, block).create("func.return", locations.unknown(), {}, results);
  } catch (...) {
    mlirRegionDestroy(region);
    throw;
  }
  Builder builder(context, body);
  MlirType type = mlirFunctionTypeGet(context, static_cast<intptr_t>(inputs.size()), inputs.data(),
                                      static_cast<intptr_t>(resultTypes.size()),
                                      resultTypes.data());
  builder.create("func.func", locations.unknown(), {}, {},
                 {{"sym_name", builder.string(name)}, {"function_type", builder.type(type)}},
                 {region});
}

} // namespace

MlirModule lowerGraph(MlirContext context, const std::shared_ptr<torch::jit::Graph> &graph,
                      const std::string &name) {
  normalize(*graph);
  Diagnostics diagnostics(context);
  Unfinished unfinished{mlirModuleCreateEmpty(mlirLocationUnknownGet(context))};
  fill(context, mlirModuleGetBody(unfinished.module), graph, name);
  diagnostics.clear();
  if (!mlirOperationVerify(mlirModuleGetOperation(unfinished.module)))
    throw std::runtime_error("the module that was made isn't valid: " + diagnostics.getText());
  return std::exchange(unfinished.module, MlirModule{nullptr});
}

} // namespace torch_mlir::lazy
