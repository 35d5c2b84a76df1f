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

namespace nb = nanobind;
using namespace nb::literals;
using namespace torch_mlir::lazy;

NB_MODULE(_lazy_backend, m) {
  m.attr("torch_version") = TORCH_VERSION;
  nb::class_<torch::lazy::BackendImplInterface>(m, "BackendInterface");
  // Lazy tensors may hold on to a backend as long as the process lives.
  m.def(
      "make_backend",
      [](nb::object vendor) -> torch::lazy::BackendImplInterface * {
        return new PythonBackend(std::move(vendor));
      },
      "vendor"_a, nb::rv_policy::reference);
  m.def(
      "register_backend",
      [](const torch::lazy::BackendImplInterface &backend) {
        const auto *ours = dynamic_cast<const Backend *>(&backend);
        if (ours)
          return registerBackend(*ours);
        const auto *before = torch::lazy::getBackend();
        torch::lazy::BackendRegistrar registrar(&backend);
        return before;
      },
      "backend"_a, nb::rv_policy::reference, nb::call_guard<nb::gil_scoped_release>());
  m.def("kernels", &getKernelNames);
  m.def("set_ir_debug", [](bool enabled) { FLAGS_torch_lazy_ir_debug = enabled; }, "enabled"_a);
}
