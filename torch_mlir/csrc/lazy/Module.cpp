// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The extension module `torch_mlir._mlir_libs._lazy_backend`, for the PyTorch that it was compiled
// with.

#include "lazy/Kernels.h"
#include "lazy/PythonBackend.h"

#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"

#include <torch/csrc/lazy/core/config.h>
#include <torch/version.h>

#include <utility>

namespace nb = nanobind;
using namespace nb::literals;
using namespace torch_mlir::lazy;

namespace {

/// Python looks for it in the file where PyTorch's loader refuses to load it.
constexpr const char *builtFor = "torch_mlir lazy backend for PyTorch " TORCH_VERSION;

} // namespace

NB_MODULE(_lazy_backend, m) {
  m.attr("torch_version") = TORCH_VERSION;
  m.attr("built_for") = builtFor;
  nb::class_<torch::lazy::BackendImplInterface>(m, "BackendInterface");
  // Computations may hold on to a backend as long as the process lives.
  m.def(
      "make_backend",
      [](nb::object vendor) -> torch::lazy::BackendImplInterface * {
        return PythonBackend::make(std::move(vendor));
      },
      "vendor"_a, nb::rv_policy::reference);
  m.def(
      "register_backend",
      [](const torch::lazy::BackendImplInterface *backend) { return registerBackend(backend); },
      "backend"_a.none(), nb::rv_policy::reference, nb::call_guard<nb::gil_scoped_release>());
  m.def("kernels", &getKernelNames);
  m.def(
      "set_ir_debug",
      [](bool enabled) { return std::exchange(FLAGS_torch_lazy_ir_debug, enabled); }, "enabled"_a);
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function(&PythonBackend::releaseAll, nb::call_guard<nb::gil_scoped_release>()));
}
