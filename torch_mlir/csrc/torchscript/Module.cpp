// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The extension module `torch_mlir._mlir_libs._jit_ir_importer`: the TorchScript importer, with
// a libtorch of its own that nobody else sees. MLIR's objects come and go in the capsules of
// MLIR's Python bindings.

#include "torchscript/Archive.h"
#include "torchscript/Import.h"
#include "torchscript/Locations.h"
#include "torchscript/ResultBindings.h"
#include "torchscript/Schemas.h"

#include "nanobind/nanobind.h"
#include "nanobind/stl/map.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/tuple.h"
#include "nanobind/stl/vector.h"

#include "mlir-c/Bindings/Python/Interop.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;
using namespace torch_mlir::torchscript;

namespace {

/// The class of the exception that is raised; it lives as long as the process.
PyObject *importErrorClass = nullptr;

/// A text of ours or of an archive's, which need not be UTF-8.
nb::object toPython(const std::string &text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

/// (file, line, function), or None.
nb::object getLocation(const std::optional<SourceLine> &line) {
  if (!line)
    return nb::none();
  return nb::make_tuple(toPython(line->file), line->line, toPython(line->function));
}

/// Raises an ImportError of Python's for one of ours: the message, and where in the user's source
/// as (file, line, function).
void raiseImportError(const ImportError &problem) {
  nb::object message = toPython(problem.what());
  if (!message.is_valid())
    return;
  nb::object error = nb::steal(PyObject_CallOneArg(importErrorClass, message.ptr()));
  if (!error.is_valid())
    return;
  error.attr("location") = getLocation(problem.getLine());
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

/// Takes the limits that a user sets; those of `Limits`, by Python's names.
Limits getLimits(const nb::kwargs &given) {
  Limits limits;
  for (auto [key, value] : given) {
    std::string name = nb::cast<std::string>(key);
    auto set = [&](auto &limit) {
      try {
        limit = nb::cast<std::decay_t<decltype(limit)>>(value);
      } catch (const nb::cast_error &) {
        throw nb::value_error(("the limit '" + name + "' can't be " +
                               nb::cast<std::string>(nb::repr(value)))
                                  .c_str());
      }
    };
    if (name == "records")
      set(limits.records);
    else if (name == "inflated_record_bytes")
      set(limits.inflatedRecordBytes);
    else if (name == "inflated_bytes")
      set(limits.inflatedBytes);
    else if (name == "checksum_tensors")
      set(limits.checksumTensors);
    else if (name == "pickle_values")
      set(limits.pickleValues);
    else if (name == "pickle_depth")
      set(limits.pickleDepth);
    else if (name == "pickle_unshared_values")
      set(limits.pickleUnsharedValues);
    else if (name == "expanded_tensor_bytes")
      set(limits.expandedTensorBytes);
    else if (name == "source_bytes")
      set(limits.sourceBytes);
    else if (name == "source_expression_depth")
      set(limits.sourceExpressionDepth);
    else if (name == "source_block_depth")
      set(limits.sourceBlockDepth);
    else if (name == "source_recursion")
      set(limits.sourceRecursion);
    else if (name == "loading_steps")
      set(limits.loadingSteps);
    else if (name == "loading_bytes")
      set(limits.loadingBytes);
    else
      throw nb::value_error(("there is no limit '" + name + "'").c_str());
  }
  return limits;
}

/// What is known of a tensor argument: its sizes, -1 where one is open, None where even the rank
/// is, and how MLIR spells its element type, empty where it's open.
using Argument = std::optional<std::tuple<std::optional<std::vector<int64_t>>, std::string>>;

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
                      const std::optional<std::string> &name,
                      const std::optional<std::string> &row, const std::string &mode,
                      const std::vector<std::string> &methods,
                      const std::map<std::string, std::vector<Argument>> &arguments,
                      bool freeze, const std::vector<std::string> &schemas,
                      const nb::object &unrefined, const nb::kwargs &limits) {
  Options options;
  options.schemas = schemas;
  options.row = row.value_or("");
  if (!options.row.empty()) {
    const std::vector<std::string> &rows = schemaRows();
    if (std::find(rows.begin(), rows.end(), options.row) == rows.end())
      throw nb::value_error(("the operators of '" + options.row + "' aren't known").c_str());
  }
  if (mode == "torch")
    options.mode = Mode::Torch;
  else if (mode != "raw")
    throw nb::value_error(("no mode is called '" + mode + "': there are raw and torch").c_str());
  options.pipeline.methods = methods;
  options.pipeline.freeze = freeze;
  for (const auto &[method, known] : arguments) {
    auto &own = options.pipeline.arguments[method];
    for (const Argument &argument : known) {
      if (argument)
        own.push_back(TensorArgument{std::get<0>(*argument), std::get<1>(*argument)});
      else
        own.push_back(std::nullopt);
    }
  }
  nb::object capsule = context.attr(MLIR_PYTHON_CAPI_PTR_ATTR);
  MlirContext mlirContext = mlirPythonCapsuleToContext(capsule.ptr());
  if (mlirContextIsNull(mlirContext))
    throw nb::python_error();
  bool isMemory = PyObject_CheckBuffer(source.ptr());
  std::string own = name       ? *name
                    : isMemory ? "<bytes>"
                               : nb::cast<std::string>(nb::str(source));
  std::shared_ptr<Archive> archive = openArchive(source, own, getLimits(limits));
  Report report;
  MlirModule module{nullptr};
  {
    // Python goes on meanwhile. It has to where another thread forks: it holds the lock then, and
    // waits for the end of this.
    nb::gil_scoped_release released;
    module = importArchive(mlirContext, archive, own, options, report);
  }
  nb::object made = nb::steal(mlirPythonModuleToCapsule(module));
  nb::object result = nb::module_::import_(MAKE_MLIR_PYTHON_QUALNAME("ir"))
                          .attr("Module")
                          .attr(MLIR_PYTHON_CAPI_FACTORY_ATTR)(made);
  for (const std::string &warning : report.warnings) {
    nb::object message = toPython(own + ": " + warning);
    if (!message.is_valid() || PyErr_WarnFormat(PyExc_UserWarning, 1, "%U", message.ptr()))
      throw nb::python_error();
  }
  for (const UnrefinedOperator &each : report.unrefined) {
    if (!unrefined.is_none())
      unrefined(toPython(each.name), each.count, getLocation(each.line));
  }
  return result;
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
             "name"_a = nb::none(), "row"_a = nb::none(), "mode"_a = "raw",
             "methods"_a = std::vector<std::string>(),
             "arguments"_a = std::map<std::string, std::vector<Argument>>(), "freeze"_a = true,
             "schemas"_a = std::vector<std::string>(), "unrefined"_a = nb::none(), "limits"_a,
             "Imports a TorchScript archive as an `ir.Module` of the context.\n\n"
             "`source` is a path, or a bytes-like object, which has to stay as it is as long as "
             "the context lives: contents of tensors stay where they are. `name` is what "
             "messages call the archive. `row` is the PyTorch whose operators it means, one of "
             "`rows()`; by default the newest whose operators resolve all that it calls.\n\n"
             "`mode`: `raw` gives the object graph and every method, as they are; `torch` a public "
             "function on values for each of `methods`; by default for `forward`, and for each "
             "other method without a leading underscore that has a form on values: warnings tell "
             "of those that have none. `arguments` "
             "tells, by method, what is known of the arguments, in order: `(sizes, dtype)` of a "
             "tensor, -1 for a size that's open, None for sizes of any rank, an element type of "
             "MLIR's or an empty text; or None. Arguments beyond those get their defaults. With "
             "`freeze`, tensors that nothing writes to are literals, otherwise global slots. "
             "`schemas` are those of operators that the row lacks, for this import only. "
             "`unrefined`, if given, is called for each operator that gave tensors of unknown rank "
             "or dtype though those of its operands are known: with its name, how often, and "
             "(file, line, function) of the first, or None.\n\n"
             "What an archive from a stranger may cost is limited, with other keywords than the "
             "defaults if need be: `records`; bytes once inflated (`inflated_record_bytes`, "
             "`inflated_bytes`); what pickles hold (`pickle_values`, `pickle_depth`, "
             "`pickle_unshared_values`); bytes of tensors that have to be copied "
             "(`expanded_tensor_bytes`); TorchScript's text (`source_bytes`, "
             "`source_expression_depth`, `source_block_depth`, `source_recursion`); what code runs "
             "while the archive is loaded, in `__setstate__` methods, default arguments and on "
             "constants (`loading_steps`: calls, turns of loops, values looked at, microseconds "
             "in operators; `loading_bytes`: allocated in large pieces). "
             "`checksum_tensors` compares the checksums of tensors too.\n\n"
             "Raises ImportError; ValueError where there is no such row, mode or limit.");
  module.def(
      "rows",
      [] {
        nb::list rows;
        for (const std::string &row : schemaRows())
          rows.append(row);
        return rows;
      },
      "The PyTorch releases whose operators are known, oldest first: `2_0`, `2_1`, ...");
  module.def(
      "operators",
      [](const std::string &row) {
        nb::list schemas;
        for (const std::string &schema : getSchemas(row))
          schemas.append(schema);
        return schemas;
      },
      "row"_a,
      "The schemas of all operators that an archive may call in one of `rows()`: by name, and "
      "overloads in the order in which they are tried. Raises ValueError where there is no such "
      "row.");
  module.def(
      "kernels", &linkedKernels,
      "The operators that the importer's own libtorch has kernels of, with the dispatch keys that "
      "it has them for: what it runs itself while it loads an archive.");
  bindResultRules(module);
}
