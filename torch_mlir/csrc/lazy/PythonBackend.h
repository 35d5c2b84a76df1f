// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A backend whose vendor writes Python.

#ifndef TORCH_MLIR_LAZY_PYTHON_BACKEND_H
#define TORCH_MLIR_LAZY_PYTHON_BACKEND_H

#include "lazy/Backend.h"

#include "nanobind/nanobind.h"

#include <exception>

namespace torch_mlir::lazy {

/// Hands computations and tensors to an object of Python's with three methods:
///
///   _context() -> torch_mlir.ir.Context
///   _compile(module: torch_mlir.ir.Module, name, parameters, results) -> executable
///   _execute(executable, arguments) -> results
///
/// `parameters` and `results` are lists of (sizes, dtype), arguments and results lists of tensors.
/// What Python raises arrives as it is at who asked for a value from Python, and as a RuntimeError
/// with its text at who asked in C++ or through those of PyTorch's bindings that know no other.
class PythonBackend : public Backend {
public:
  /// It is never deleted, since PyTorch may hold on to it.
  static PythonBackend *make(nanobind::object vendor);
  /// Lets go of every vendor, and of what they compiled, before Python ends. Lazy tensors have no
  /// backend then, unless it is one of C++.
  static void releaseAll();

  std::shared_ptr<Context> createContext() const override;
  std::vector<torch::lazy::ComputationPtr>
  Compile(std::vector<torch::lazy::ComputationPtr> computations) const override;
  std::vector<torch::lazy::BackendDataPtr>
  ExecuteComputation(torch::lazy::ComputationPtr computation,
                     c10::ArrayRef<torch::lazy::BackendDataPtr> arguments,
                     const torch::lazy::BackendDevice &device) const override;

private:
  explicit PythonBackend(nanobind::object vendor);

  nanobind::object getVendor() const;

  std::shared_ptr<PyObject> vendor;
};

/// Whether it is an exception of Python's that no program is expected to handle, as
/// KeyboardInterrupt is.
bool isInterruption(const std::exception &problem);

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_PYTHON_BACKEND_H
