// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MLIR's own bindings hand each token, and each tensor's contents as a whole, to the file's
// write(), let what that raises unwind through the library behind the C interface, and end the
// process where a file that is given by its name can't be written. Here a file gets pieces of at
// most a megabyte, and its errors wait until MLIR has returned.

#include "bindings/Writing.h"

#include "mlir/Bindings/Python/IRCore.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/string.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace nb = nanobind;
using namespace nb::literals;
using mlir::python::MLIR_BINDINGS_PYTHON_DOMAIN::PyAsmState;
using mlir::python::MLIR_BINDINGS_PYTHON_DOMAIN::PyModule;
using mlir::python::MLIR_BINDINGS_PYTHON_DOMAIN::PyOperationBase;

namespace {

constexpr size_t pieceSize = size_t{1} << 20;

/// The file that a user gave: an object with write(), or a path.
class File {
public:
  explicit File(const nb::object &file) : file(file), opened(!nb::hasattr(file, "write")) {
    if (opened)
      this->file = nb::module_::import_("io").attr("open")(file, "wb");
    write = this->file.attr("write");
  }

  bool isOpened() const { return opened; }
  void operator()(const nb::object &piece, size_t size) const {
    if (PyErr_CheckSignals())
      throw nb::python_error();
    nb::object taken = write(piece);
    // Files without a buffer may take a part only.
    for (size_t count = 0; PyBytes_Check(piece.ptr()) && PyLong_Check(taken.ptr());) {
      size_t more = nb::cast<size_t>(taken);
      count += more;
      if (count >= size)
        return;
      if (more == 0) {
        PyErr_SetString(PyExc_BlockingIOError, "the file takes no more data");
        throw nb::python_error();
      }
      taken = write(nb::bytes(PyBytes_AS_STRING(piece.ptr()) + count, size - count));
    }
  }
  void close() const {
    if (opened)
      file.attr("close")();
  }

private:
  nb::object file;
  nb::object write;
  bool opened;
};

/// The number of bytes at the end of UTF-8 text that begin a character and don't end it.
size_t unfinished(const char *data, size_t size) {
  for (size_t back = 1; back <= std::min<size_t>(size, 3); ++back) {
    unsigned char byte = data[size - back];
    if ((byte & 0xC0) == 0x80)
      continue;
    size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

/// Gathers what MLIR prints into pieces for a file.
class Pieces {
public:
  Pieces(const File &file, bool binary) : file(file), binary(binary || file.isOpened()) {}

  /// Runs `print(callback, userData)`, then throws what the file raised first.
  template <typename Print>
  void run(Print print) {
    print(
        +[](MlirStringRef part, void *self) {
          static_cast<Pieces *>(self)->add(part.data, part.length);
        },
        static_cast<void *>(this));
    if (!problem)
      attempt([&] { give(buffer.data(), buffer.size(), /*last=*/true); });
    if (problem) {
      attemptClose();
      std::rethrow_exception(problem);
    }
    file.close();
  }

private:
  void add(const char *data, size_t size) {
    if (problem)
      return;
    attempt([&] {
      if (buffer.size() + size < pieceSize) {
        buffer.append(data, size);
        return;
      }
      // The buffer is filled up first: a character may begin there and end here.
      while (size) {
        size_t count = std::min(size, pieceSize - buffer.size());
        buffer.append(data, count);
        data += count;
        size -= count;
        if (buffer.size() == pieceSize) {
          size_t given = give(buffer.data(), buffer.size(), /*last=*/false);
          buffer.erase(0, given);
        }
      }
    });
  }

  /// Writes text, except for the beginning of a character that isn't complete yet.
  size_t give(const char *data, size_t size, bool last) const {
    if (!binary && !last)
      size -= unfinished(data, size);
    if (size == 0)
      return 0;
    if (binary)
      file(nb::bytes(data, size), size);
    else
      file(nb::str(data, size), size);
    return size;
  }

  template <typename Act>
  void attempt(Act act) {
    try {
      act();
    } catch (...) {
      problem = std::current_exception();
    }
  }

  void attemptClose() const {
    try {
      file.close();
    } catch (nb::python_error &) {
      // It can't be written: what that raised first is told.
    }
  }

  const File &file;
  bool binary;
  std::string buffer;
  std::exception_ptr problem;
};

nb::object orStandardOutput(const nb::object &file) {
  return file.is_none() ? nb::module_::import_("sys").attr("stdout") : file;
}

void writeBytecode(PyOperationBase &self, const nb::object &target,
                   std::optional<int64_t> version) {
  MlirOperation operation = self.getOperation().get();
  File file(target);
  MlirBytecodeWriterConfig config = mlirBytecodeWriterConfigCreate();
  if (version)
    mlirBytecodeWriterConfigDesiredEmitVersion(config, *version);
  MlirLogicalResult written = mlirLogicalResultSuccess();
  Pieces pieces(file, /*binary=*/true);
  auto write = [&](MlirStringCallback callback, void *userData) {
    written = mlirOperationWriteBytecodeWithConfig(operation, config, callback, userData);
    mlirBytecodeWriterConfigDestroy(config);
  };
  pieces.run(write);
  if (mlirLogicalResultIsFailure(written))
    throw nb::value_error(
        ("Unable to honor desired bytecode version " + std::to_string(version.value_or(-1)))
            .c_str());
}

void printWithState(PyOperationBase &self, PyAsmState &state, const nb::object &target,
                    bool binary) {
  MlirOperation operation = self.getOperation().get();
  File file(orStandardOutput(target));
  Pieces(file, binary).run([&](MlirStringCallback callback, void *userData) {
    mlirOperationPrintWithState(operation, state.get(), callback, userData);
  });
}

void print(PyOperationBase &self, std::optional<int64_t> largeElementsLimit,
           std::optional<int64_t> largeResourceLimit, bool enableDebugInfo, bool prettyDebugInfo,
           bool printGenericOpForm, bool useLocalScope, bool useNameLocAsPrefix,
           bool assumeVerified, const nb::object &target, bool binary, bool skipRegions) {
  MlirOperation operation = self.getOperation().get();
  File file(orStandardOutput(target));
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  if (largeElementsLimit)
    mlirOpPrintingFlagsElideLargeElementsAttrs(flags, *largeElementsLimit);
  if (largeResourceLimit)
    mlirOpPrintingFlagsElideLargeResourceString(flags, *largeResourceLimit);
  if (enableDebugInfo)
    mlirOpPrintingFlagsEnableDebugInfo(flags, /*enable=*/true, prettyDebugInfo);
  if (printGenericOpForm)
    mlirOpPrintingFlagsPrintGenericOpForm(flags);
  if (useLocalScope)
    mlirOpPrintingFlagsUseLocalScope(flags);
  if (assumeVerified)
    mlirOpPrintingFlagsAssumeVerified(flags);
  if (skipRegions)
    mlirOpPrintingFlagsSkipRegions(flags);
  if (useNameLocAsPrefix)
    mlirOpPrintingFlagsPrintNameLocAsPrefix(flags);
  Pieces(file, binary).run([&](MlirStringCallback callback, void *userData) {
    mlirOperationPrintWithFlags(operation, flags, callback, userData);
    mlirOpPrintingFlagsDestroy(flags);
  });
}

} // namespace

void torch_mlir::bindWriting(nb::module_ &module) {
  module.def(
      "bind_writing",
      [] {
        nb::module_ ir = nb::module_::import_(MAKE_MLIR_PYTHON_QUALNAME("_mlir_libs._mlir.ir"));
        nb::object base = ir.attr("_OperationBase");
        // A function of the same name would become an overload of MLIR's.
        nb::delattr(base, "print");
        nb::delattr(base, "write_bytecode");
        nb::cpp_function_def(printWithState, nb::scope(base), nb::name("print"), nb::is_method(),
                             "state"_a, "file"_a = nb::none(), "binary"_a = false);
        nb::cpp_function_def(
            print, nb::scope(base), nb::name("print"), nb::is_method(),
            "large_elements_limit"_a = nb::none(), "large_resource_limit"_a = nb::none(),
            "enable_debug_info"_a = false, "pretty_debug_info"_a = false,
            "print_generic_op_form"_a = false, "use_local_scope"_a = false,
            "use_name_loc_as_prefix"_a = false, "assume_verified"_a = false, "file"_a = nb::none(),
            "binary"_a = false, "skip_regions"_a = false,
            "Prints the operation to a file, an object with write() or a path; standard output by "
            "default. An object gets str, or bytes where `binary` is set. Limits elide attributes "
            "of more elements or characters; `assume_verified` leaves the verification out that "
            "decides about the form.");
        nb::cpp_function_def(writeBytecode, nb::scope(base), nb::name("write_bytecode"),
                             nb::is_method(), "file"_a, "desired_version"_a = nb::none(),
                             "Writes the operation as bytecode to a file: an object whose write() "
                             "takes bytes, or a path. Raises ValueError where MLIR doesn't write "
                             "the version.");
        auto printed = [](MlirOperation operation) {
          std::string text;
          mlirOperationPrint(
              operation,
              +[](MlirStringRef part, void *text) {
                static_cast<std::string *>(text)->append(part.data, part.length);
              },
              &text);
          return nb::str(text.data(), text.size());
        };
        nb::delattr(base, "__str__");
        nb::cpp_function_def(
            [printed](PyOperationBase &self) { return printed(self.getOperation().get()); },
            nb::scope(base), nb::name("__str__"), nb::is_method(),
            "The operation's text, with the default flags.");
        nb::object moduleClass = ir.attr("Module");
        nb::delattr(moduleClass, "__str__");
        nb::cpp_function_def(
            [printed](PyModule &self) { return printed(mlirModuleGetOperation(self.get())); },
            nb::scope(moduleClass), nb::name("__str__"), nb::is_method(),
            "The module's text, with the default flags.");
      },
      "Gives MLIR's operations and modules this package's `print`, `write_bytecode` and `str()`, "
      "which hand over pieces of a megabyte. torch_mlir._mlir_libs does it.");
}
