// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lazy graph as a module of the Torch dialect, and what a vendor made of it.

#include "lazy/Computation.h"

#include "capi/Registration.h"
#include "torchscript/Builder.h"

#include <mutex>

namespace torch_mlir::lazy {

namespace {

/// Makes no thread unless a vendor runs passes on it, and locks what threads share.
class OwnContext : public Context {
public:
  OwnContext() {
    MlirDialectRegistry registry = mlirDialectRegistryCreate();
    torchMlirRegisterAllDialects(registry);
    context = mlirContextCreateWithRegistry(registry, /*threadingEnabled=*/true);
    mlirDialectRegistryDestroy(registry);
    mlirContextLoadAllAvailableDialects(context);
  }
  ~OwnContext() override { mlirContextDestroy(context); }
  MlirContext get() const override { return context; }

private:
  MlirContext context;
};

} // namespace

std::shared_ptr<Context> createContext() {
  // It takes as long to make one as to lower a thousand operators. But a context never forgets a
  // type, a location or a constant.
  constexpr int maxUses = 64;
  static std::mutex mutex;
  // Not destroyed when the process ends: threads of PyTorch's may be at work then.
  static auto &shared = *new std::shared_ptr<Context>;
  static int uses = 0;
  std::lock_guard<std::mutex> lock(mutex);
  if (!shared || uses == maxUses) {
    shared = std::make_shared<OwnContext>();
    uses = 0;
  }
  ++uses;
  return shared;
}

Computation::Computation(std::string name, std::shared_ptr<Context> context, MlirModule module,
                         Shapes parameters, std::vector<std::string> parameterNames, Shapes results)
    : called(std::move(name)), held(std::move(context)), owned(module),
      parameters(std::move(parameters)), parameterNames(std::move(parameterNames)),
      results(std::move(results)) {}

Computation::~Computation() {
  if (!mlirModuleIsNull(owned))
    mlirModuleDestroy(owned);
}

const torch::lazy::Shape &Computation::result_shape() const {
  static const torch::lazy::Shape none;
  return results.empty() ? none : results.front();
}

const std::string Computation::to_string() const {
  if (mlirModuleIsNull(owned))
    return called;
  return torchscript::toString(mlirOperationPrint, mlirModuleGetOperation(owned));
}

} // namespace torch_mlir::lazy
