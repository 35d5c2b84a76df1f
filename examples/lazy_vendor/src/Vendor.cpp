// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A backend of lazy tensors: modules become programs, and programs are run.

#include "Program.h"

#include "torch_mlir/lazy/Backend.h"

#include <torch/library.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace lazy_vendor {

using torch::lazy::BackendDataPtr;
using torch::lazy::ComputationPtr;
using torch_mlir::lazy::Computation;
using torch_mlir::lazy::Data;

class Vendor : public torch_mlir::lazy::Backend {
public:
  std::vector<ComputationPtr> Compile(std::vector<ComputationPtr> computations) const override {
    for (const ComputationPtr &each : computations) {
      auto &computation = static_cast<Computation &>(*each);
      try {
        computation.executable = std::make_shared<Program>(
            computation.module(), computation.parameter_shapes(), computation.result_shapes());
      } catch (const std::exception &error) {
        throw std::runtime_error("lazy_vendor can't compile " + computation.name() + ": " +
                                 error.what());
      }
      std::lock_guard<std::mutex> lock(mutex);
      ++numCompiled;
    }
    return computations;
  }

  std::vector<BackendDataPtr>
  ExecuteComputation(ComputationPtr given, c10::ArrayRef<BackendDataPtr> arguments,
                     const torch::lazy::BackendDevice &device) const override {
    auto &computation = static_cast<Computation &>(*given);
    auto &program = *static_cast<const Program *>(computation.executable.get());
    std::vector<c10::IValue> values;
    for (const BackendDataPtr &each : arguments) {
      auto &data = static_cast<Data &>(*each);
      values.push_back(data.scalar ? c10::IValue(*data.scalar) : c10::IValue(data.data()));
    }
    std::vector<at::Tensor> tensors;
    try {
      tensors = program.run(std::move(values));
    } catch (const std::exception &error) {
      throw std::runtime_error("lazy_vendor can't execute " + computation.name() + ": " +
                               error.what());
    }
    std::lock_guard<std::mutex> lock(mutex);
    for (const std::string &each : program.operators())
      if (std::find(run.begin(), run.end(), each) == run.end())
        run.push_back(each);
    std::vector<BackendDataPtr> results;
    for (size_t i = 0; i < tensors.size(); ++i)
      results.push_back(std::make_shared<Data>(tensors[i], computation.result_shapes()[i], device));
    return results;
  }

  int64_t compiled() const {
    std::lock_guard<std::mutex> lock(mutex);
    return numCompiled;
  }

  std::vector<std::string> executed() const {
    std::lock_guard<std::mutex> lock(mutex);
    return run;
  }

private:
  // PyTorch compiles and runs in threads of its own, and takes backends for constant.
  mutable std::mutex mutex;
  mutable int64_t numCompiled = 0;
  mutable std::vector<std::string> run;
};

/// Lazy tensors may hold on to it as long as the process lives.
const Vendor &getVendor() {
  static const auto *vendor = new Vendor;
  return *vendor;
}

TORCH_LIBRARY(lazy_vendor, library) {
  library.def("register", [] { torch_mlir::lazy::registerBackend(&getVendor()); });
  library.def("compiled", [] { return getVendor().compiled(); });
  library.def("executed", [] { return getVendor().executed(); });
}

} // namespace lazy_vendor
