// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A backend whose vendor writes Python.

#include "lazy/PythonBackend.h"

#include "mlir-c/Bindings/Python/Interop.h"

#include "nanobind/stl/string.h"
#include "nanobind/stl/tuple.h"
#include "nanobind/stl/vector.h"

#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/tensor_dtypes.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace nb = nanobind;

namespace torch_mlir::lazy {

using torch::lazy::BackendDataPtr;
using torch::lazy::ComputationPtr;

namespace {

/// An object of Python's that any thread may let go of, also after Python's end.
std::shared_ptr<PyObject> share(nb::object object) {
  return {object.release().ptr(), [](PyObject *held) {
            if (!Py_IsInitialized())
              return;
            nb::gil_scoped_acquire gil;
            Py_DECREF(held);
          }};
}

class PythonContext : public Context {
public:
  explicit PythonContext(nb::object context)
      : context(
            mlirPythonCapsuleToContext(nb::object(context.attr(MLIR_PYTHON_CAPI_PTR_ATTR)).ptr())),
        held(share(std::move(context))) {
    if (mlirContextIsNull(this->context))
      throw nb::python_error();
  }
  MlirContext get() const override { return context; }

private:
  MlirContext context;
  std::shared_ptr<PyObject> held;
};

/// Runs what calls Python, with its lock; its exceptions become PyTorch's, which its bindings know.
template <typename Function>
auto withPython(const Function &function) {
  nb::gil_scoped_acquire gil;
  try {
    return function();
  } catch (nb::python_error &error) {
    error.restore();
    python_error raised;
    raised.persist();
    throw raised;
  } catch (const nb::cast_error &) {
    throw std::runtime_error("a lazy backend in Python gave something else than was asked for");
  }
}

/// All there are, behind Python's lock.
std::vector<PythonBackend *> &backends() {
  static auto *all = new std::vector<PythonBackend *>();
  return *all;
}

nb::list describe(const Computation::Shapes &shapes) {
  nb::list described;
  for (const torch::lazy::Shape &shape : shapes) {
    nb::list sizes;
    for (int64_t size : shape.sizes())
      sizes.append(size);
    auto *dtype = reinterpret_cast<PyObject *>(torch::getTHPDtype(shape.scalar_type()));
    described.append(nb::make_tuple(nb::tuple(sizes), nb::borrow(dtype)));
  }
  return described;
}

nb::object toPython(const at::Tensor &tensor) { return nb::steal(THPVariable_Wrap(tensor)); }

nb::object toPython(const c10::Scalar &scalar) {
  if (scalar.isBoolean())
    return nb::bool_(scalar.toBool());
  if (scalar.isIntegral(/*includeBool=*/false))
    return nb::int_(scalar.toLong());
  if (scalar.isFloatingPoint())
    return nb::float_(scalar.toDouble());
  auto number = scalar.toComplexDouble();
  return nb::steal(PyComplex_FromDoubles(number.real(), number.imag()));
}

} // namespace

PythonBackend::PythonBackend(nb::object vendor) : vendor(share(std::move(vendor))) {}

PythonBackend *PythonBackend::make(nb::object vendor) {
  backends().push_back(new PythonBackend(std::move(vendor)));
  return backends().back();
}

void PythonBackend::releaseAll() {
  if (torch::lazy::hasBackend() &&
      dynamic_cast<const PythonBackend *>(torch::lazy::getBackend()) != nullptr)
    registerBackend(nullptr);
  nb::gil_scoped_acquire gil;
  for (PythonBackend *backend : backends())
    backend->vendor.reset();
}

nb::object PythonBackend::getVendor() const {
  if (!vendor)
    throw std::runtime_error("the lazy backend has ended, as Python is about to");
  return nb::borrow(vendor.get());
}

std::shared_ptr<Context> PythonBackend::createContext() const {
  return withPython([&]() -> std::shared_ptr<Context> {
    return std::make_shared<PythonContext>(getVendor().attr("_context")());
  });
}

std::vector<ComputationPtr> PythonBackend::Compile(std::vector<ComputationPtr> computations) const {
  for (const ComputationPtr &each : computations) {
    auto &computation = static_cast<Computation &>(*each);
    withPython([&] {
      nb::object capsule = nb::steal(mlirPythonModuleToCapsule(computation.releaseModule()));
      nb::object module = nb::module_::import_("torch_mlir.ir")
                              .attr("Module")
                              .attr(MLIR_PYTHON_CAPI_FACTORY_ATTR)(capsule);
      nb::object executable = getVendor().attr("_compile")(module, computation.name(),
                                                           describe(computation.parameter_shapes()),
                                                           describe(computation.result_shapes()));
      computation.executable = share(std::move(executable));
    });
  }
  return computations;
}

std::vector<BackendDataPtr>
PythonBackend::ExecuteComputation(ComputationPtr given, c10::ArrayRef<BackendDataPtr> arguments,
                                  const torch::lazy::BackendDevice &device) const {
  auto &computation = static_cast<Computation &>(*given);
  std::vector<at::Tensor> results;
  withPython([&] {
    nb::list values;
    for (const BackendDataPtr &argument : arguments) {
      auto &data = static_cast<Data &>(*argument);
      values.append(data.scalar ? toPython(*data.scalar) : toPython(data.data()));
    }
    auto *executable = static_cast<PyObject *>(computation.executable.get());
    nb::object made = getVendor().attr("_execute")(nb::borrow(executable), values);
    for (nb::handle each : made) {
      if (!THPVariable_Check(each.ptr()))
        throw std::runtime_error("the lazy backend gave something that is no tensor");
      results.push_back(THPVariable_Unpack(each.ptr()));
    }
  });
  if (results.size() != computation.result_shapes().size())
    throw std::runtime_error("the lazy backend gave " + std::to_string(results.size()) +
                             " results, not " + std::to_string(computation.result_shapes().size()));
  std::vector<BackendDataPtr> held;
  for (size_t i = 0; i < results.size(); ++i)
    held.push_back(std::make_shared<Data>(results[i], computation.result_shapes()[i], device));
  return held;
}

bool isInterruption(const std::exception &problem) {
  const auto *raised = dynamic_cast<const python_error *>(&problem);
  if (raised == nullptr || raised->type == nullptr)
    return false;
  nb::gil_scoped_acquire gil;
  return !PyErr_GivenExceptionMatches(raised->type, PyExc_Exception);
}

} // namespace torch_mlir::lazy
