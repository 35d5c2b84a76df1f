// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The extension module `torch_mlir._mlir_libs._torchMlir`.

#include "bindings/TorchTypes.h"
#include "bindings/Writing.h"
#include "capi/Registration.h"
#include "capi/Resources.h"

#include "mlir/Bindings/Python/IRCore.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/tuple.h"
#include "nanobind/stl/vector.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace nb = nanobind;

NB_MODULE(_torchMlir, module) {
  module.doc() = "What torch_mlir adds to MLIR's Python bindings.";

  module.def("register_dialects", torchMlirRegisterAllDialects, nb::arg("registry"),
             "Adds the dialects of this package, and the external models that its passes rely "
             "on, to a registry.");
  module.def("register_passes", torchMlirRegisterAllPasses,
             "Registers the passes of this package for the whole process.");
  module.def(
      "dialect_names",
      [](MlirDialectRegistry registry) {
        std::vector<std::string> names;
        torchMlirForEachDialectName(
            registry,
            [](MlirStringRef name, void *names) {
              static_cast<std::vector<std::string> *>(names)->emplace_back(name.data, name.length);
            },
            &names);
        return names;
      },
      nb::arg("registry"), "Names of the dialects in a registry, sorted.");

  module.def(
      "resource_elements_as",
      [](MlirAttribute attribute, MlirType type) {
        MlirAttribute result = torchMlirDenseResourceElementsAttrGetAs(attribute, type);
        if (mlirAttributeIsNull(result))
          throw nb::value_error("not elements in a resource blob that fit the type");
        return result;
      },
      nb::arg("attribute"), nb::arg("type"),
      "The elements of a DenseResourceElementsAttr, in the same blob, with a type that differs "
      "in its shape and the sign of its integers at most. Raises ValueError where they don't fit.");

  module.def(
      "elements_data",
      [](MlirOperation operation, const std::string &name) {
        MlirAttribute attribute = mlirOperationGetAttributeByName(
            operation, mlirStringRefCreate(name.data(), name.size()));
        const void *data;
        size_t size;
        bool isSplat;
        if (mlirAttributeIsNull(attribute) ||
            !torchMlirElementsAttrGetData(attribute, &data, &size, &isSplat))
          throw nb::value_error("the attribute has no elements, or its resource blob is missing");
        return std::make_tuple(mlirAttributeGetType(attribute), reinterpret_cast<uintptr_t>(data),
                               size, isSplat);
      },
      nb::arg("operation"), nb::arg("name"),
      "Type of an operation's elements attribute (`dense<...>` or `dense_resource<...>`), address "
      "and number of the bytes that hold its elements, and whether they are one element that "
      "stands for all. They stay where they are as long as the context lives. It takes the "
      "operation since MLIR's bindings have no class for an attribute of complex numbers. Raises "
      "ValueError where there is no such attribute, and where a resource blob is missing.");

  // MLIR keeps the contexts that a thread has entered in a thread_local, which
  // outlives the interpreter: one that was never left would be freed without it.
  using Entry = mlir::python::MLIR_BINDINGS_PYTHON_DOMAIN::PyThreadContextEntry;
  module.def(
      "leave_contexts", [] { Entry::getStack().clear(); },
      "Leaves every context, location and insertion point that this thread has entered.");
  nb::module_::import_("atexit").attr("register")(module.attr("leave_contexts"));

  torch_mlir::bindTorchTypes(module);
  torch_mlir::bindWriting(module);
}
