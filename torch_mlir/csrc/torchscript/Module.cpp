// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The extension module `torch_mlir._mlir_libs._jit_ir_importer`: the TorchScript importer, with
// a libtorch of its own that nobody else sees. MLIR's objects come and go in the capsules of
// MLIR's Python bindings.

#include "torchscript/Archive.h"
#include "torchscript/Import.h"
#include "torchscript/Locations.h"

#include "nanobind/nanobind.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/string.h"

#include "mlir-c/Bindings/Python/Interop.h"

#include <memory>
#include <optional>
#include <string>

namespace nb = nanobind;
using namespace nb::literals;
using namespace torch_mlir::torchscript;

namespace {

/// The class of the exception that is raised; it lives as long as the process.
PyObject *importErrorClass = nullptr;

/// Raises an ImportError of Python's for one of ours: the message, and where in the user's source
/// as (file, line, function).
void raiseImportError(const ImportError &problem) {
  nb::object error = nb::steal(PyObject_CallFunction(importErrorClass, "s", problem.what()));
  if (!error.is_valid())
    return;
  nb::object location = nb::none();
  if (const auto &line = problem.getLine())
    location = nb::make_tuple(line->file, line->line, line->function);
  error.attr("location") = location;
  PyErr_SetObject(importErrorClass, error.ptr());
}

/// A buffer of Python's, which lives as long as bytes of it are in use.
struct HeldBuffer {
  Py_buffer view;
  explicit HeldBuffer(const nb::handle &object) {
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE))
      throw nb::python_error();
  }
  /// The last of the bytes may be let go of by any thread, and after Python's end.
  static void release(HeldBuffer *buffer) {
    if (!Py_IsInitialized())
      return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(&buffer->view);
    delete buffer;
    PyGILState_Release(state);
  }
};

std::shared_ptr<Archive> openArchive(const nb::object &source, const std::string &name,
                                     const Limits &limits) {
  if (PyObject_CheckBuffer(source.ptr())) {
    auto *buffer = new HeldBuffer(source);
    return Archive::fromMemory(
        buffer->view.buf, static_cast<size_t>(buffer->view.len),
        [buffer] { HeldBuffer::release(buffer); }, limits, name);
  }
  nb::object path = nb::steal(PyOS_FSPath(source.ptr()));
  if (!path.is_valid())
    throw nb::python_error();
  nb::object encoded = nb::steal(PyUnicode_Check(path.ptr()) ? PyUnicode_EncodeFSDefault(path.ptr())
                                                            : path.inc_ref().ptr());
  if (!encoded.is_valid())
    throw nb::python_error();
  return Archive::open(PyBytes_AsString(encoded.ptr()), limits);
}

nb::object importFrom(const nb::object &context, const nb::object &source,
                      const std::optional<std::string> &name, const std::string &mode) {
  if (mode != "raw")
    throw nb::value_error(("no mode is called '" + mode + "': there is raw").c_str());
  nb::object capsule = context.attr(MLIR_PYTHON_CAPI_PTR_ATTR);
  MlirContext mlirContext = mlirPythonCapsuleToContext(capsule.ptr());
  if (mlirContextIsNull(mlirContext))
    throw nb::python_error();
  bool isMemory = PyObject_CheckBuffer(source.ptr());
  std::string own = name       ? *name
                    : isMemory ? "<bytes>"
                               : nb::cast<std::string>(nb::str(source));
  std::shared_ptr<Archive> archive = openArchive(source, own, Limits());
  MlirModule module = importArchive(mlirContext, archive, own, Options());
  nb::object made = nb::steal(mlirPythonModuleToCapsule(module));
  return nb::module_::import_(MAKE_MLIR_PYTHON_QUALNAME("ir"))
      .attr("Module")
      .attr(MLIR_PYTHON_CAPI_FACTORY_ATTR)(made);
}

} // namespace

NB_MODULE(_jit_ir_importer, module) {
  module.doc() = "Imports TorchScript archives, without a PyTorch.";

  importErrorClass = PyErr_NewExceptionWithDoc(
      MAKE_MLIR_PYTHON_QUALNAME("_mlir_libs._jit_ir_importer.ImportError"),
      "An archive, or something in one, that can't be imported.\n\n"
      "Attributes:\n"
      "  location: (file, line, function) of the model's source, or None.",
      nullptr, nullptr);
  if (!importErrorClass)
    throw nb::python_error();
  nb::handle(importErrorClass).attr("location") = nb::none();
  module.attr("ImportError") = nb::borrow(importErrorClass);
  nb::register_exception_translator([](const std::exception_ptr &thrown, void *) {
    try {
      std::rethrow_exception(thrown);
    } catch (const ImportError &problem) {
      raiseImportError(problem);
    } catch (const ArchiveError &problem) {
      raiseImportError(ImportError(problem.what()));
    }
  });

  module.def("import_archive", importFrom, "context"_a, "source"_a, nb::kw_only(),
             "name"_a = nb::none(), "mode"_a = "raw",
             "Imports a TorchScript archive as an `ir.Module` of the context.\n\n"
             "`source` is a path, or a bytes-like object, which has to stay as it is as long as "
             "the context lives: contents of tensors stay where they are. `name` is what "
             "messages call the archive.\n\n"
             "Raises ImportError.");
}
