// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers every lazy graph in turns, by PyTorch's TorchScript backend and by ours, and tells how
// long each took. The graph is run as PyTorch's backend lowered it.

#include "torch_mlir/capi/Registration.h"
#include "torch_mlir/lazy/Backend.h"

#include <torch/csrc/lazy/ts_backend/ts_backend_impl.h>
#include <torch/library.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using torch::lazy::BackendDataPtr;
using torch::lazy::BackendDevice;
using torch::lazy::ComputationPtr;
using torch::lazy::Node;
using Nodes = std::vector<const Node *>;
using EmissionMap = torch::lazy::Util::EmissionMap;

const torch::lazy::BackendImplInterface &torchScript() { return *torch::lazy::GetTSBackendImpl(); }

/// The clock that Python's time.monotonic_ns reads.
int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// What is told of the last graph; whoever reads it has waited for that one.
struct Report {
  int64_t rounds = 1;
  bool oursFirst = true;
  int64_t nodes = 0;
  int64_t operations = 0;
  /// When the first lowering was done.
  int64_t built = 0;
  std::vector<int64_t> torchScript, ours, contexts;
} report;

class Clock;
const Clock &getClock();

class Lowering : public torch::lazy::LoweringContext {
public:
  Lowering(std::string name, BackendDevice device, Nodes nodes, EmissionMap emitted)
      : LoweringContext(name, device), name(std::move(name)), nodes(std::move(nodes)),
        emitted(std::move(emitted)) {}

  size_t AddResult(const torch::lazy::Output &output) override {
    outputs.push_back(output);
    return outputs.size() - 1;
  }
  void AddParameter(const torch::lazy::Output &, size_t, const torch::lazy::Shape &,
                    const std::string &) override {
    throw std::runtime_error("operators aren't run one by one");
  }
  ComputationPtr Build() override;

private:
  /// The whole of a lowering, from nodes to a computation, as PyTorch's executor asks for it.
  std::pair<int64_t, ComputationPtr> time(const torch::lazy::BackendImplInterface &backend,
                                          bool keep) {
    EmissionMap map = emitted;
    int64_t start = now();
    auto context = backend.CreateLoweringContext(name, device_, nodes, std::move(map));
    for (const torch::lazy::Output &each : outputs)
      context->AddResult(each);
    ComputationPtr computation = context->Build();
    int64_t end = now(), taken = end - start;
    if (!report.built)
      report.built = end;
    if (keep)
      parameters_ = context->GetParametersData();
    return {taken, computation};
  }

  std::string name;
  Nodes nodes;
  EmissionMap emitted;
  std::vector<torch::lazy::Output> outputs;
};

class Clock : public torch_mlir::lazy::Backend {
public:
  std::unique_ptr<torch::lazy::LoweringContext>
  CreateLoweringContext(const std::string &name, BackendDevice device,
                        c10::ArrayRef<const Node *> nodes, EmissionMap emitted) const override {
    return std::make_unique<Lowering>(name, std::move(device), nodes.vec(), std::move(emitted));
  }
  std::vector<ComputationPtr> Compile(std::vector<ComputationPtr> computations) const override {
    return torchScript().Compile(std::move(computations));
  }
  std::vector<BackendDataPtr> ExecuteComputation(ComputationPtr computation,
                                                 c10::ArrayRef<BackendDataPtr> arguments,
                                                 const BackendDevice &device) const override {
    return torchScript().ExecuteComputation(std::move(computation), arguments, device);
  }
};

/// Our lowering as it is, with the contexts it makes by itself.
class Ours : public Clock {
public:
  std::unique_ptr<torch::lazy::LoweringContext>
  CreateLoweringContext(const std::string &name, BackendDevice device,
                        c10::ArrayRef<const Node *> nodes, EmissionMap emitted) const override {
    return Backend::CreateLoweringContext(name, std::move(device), nodes, std::move(emitted));
  }
};

const Clock &getClock() {
  static const auto *clock = new Clock;
  return *clock;
}

int64_t countOperations(MlirModule module) {
  int64_t count = 0;
  mlirOperationWalk(
      mlirModuleGetOperation(module),
      [](MlirOperation, void *to) {
        ++*static_cast<int64_t *>(to);
        return MlirWalkResultAdvance;
      },
      &count, MlirWalkPreOrder);
  return count;
}

/// What our backend does for every so many computations.
int64_t timeContext() {
  int64_t start = now();
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  torchMlirRegisterAllDialects(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, /*threadingEnabled=*/true);
  mlirDialectRegistryDestroy(registry);
  mlirContextLoadAllAvailableDialects(context);
  int64_t taken = now() - start;
  mlirContextDestroy(context);
  return taken;
}

ComputationPtr Lowering::Build() {
  static const auto *ours = new Ours;
  report.torchScript.clear();
  report.ours.clear();
  report.contexts.clear();
  report.built = 0;
  report.nodes = static_cast<int64_t>(nodes.size());
  ComputationPtr run;
  auto lowerOurs = [&] {
    auto [taken, computation] = time(*ours, /*keep=*/false);
    report.ours.push_back(taken);
    report.operations =
        countOperations(static_cast<torch_mlir::lazy::Computation &>(*computation).module());
  };
  auto lowerTorchScript = [&] {
    auto [taken, computation] = time(torchScript(), /*keep=*/true);
    report.torchScript.push_back(taken);
    run = computation;
  };
  for (int64_t round = 0; round < report.rounds; ++round) {
    for (bool isOurs : {report.oursFirst, !report.oursFirst}) {
      if (isOurs)
        lowerOurs();
      else
        lowerTorchScript();
    }
    report.contexts.push_back(timeContext());
  }
  return run;
}

TORCH_LIBRARY(lazy_lowering, library) {
  library.def("register", [] { torch_mlir::lazy::registerBackend(&getClock()); });
  library.def("set", [](int64_t rounds, bool oursFirst) {
    report.rounds = rounds;
    report.oursFirst = oursFirst;
  });
  library.def("nodes", [] { return report.nodes; });
  library.def("operations", [] { return report.operations; });
  library.def("built", [] { return report.built; });
  library.def("torchscript", [] { return report.torchScript; });
  library.def("ours", [] { return report.ours; });
  library.def("contexts", [] { return report.contexts; });
}

} // namespace
