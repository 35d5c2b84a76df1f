// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What MLIR has to say.

#ifndef TORCH_MLIR_TORCHSCRIPT_DIAGNOSTICS_H
#define TORCH_MLIR_TORCHSCRIPT_DIAGNOSTICS_H

#include "torchscript/Builder.h"

#include "mlir-c/Diagnostics.h"

#include <string>
#include <thread>

namespace torch_mlir::torchscript {

/// Collects what MLIR reports to this thread while it lives, which nobody else gets to see then.
/// Other threads may work with the same context.
class Diagnostics {
public:
  explicit Diagnostics(MlirContext context)
      : context(context),
        handler(mlirContextAttachDiagnosticHandler(context, collect, this, nullptr)) {}
  ~Diagnostics() { mlirContextDetachDiagnosticHandler(context, handler); }
  Diagnostics(const Diagnostics &) = delete;
  Diagnostics &operator=(const Diagnostics &) = delete;

  void clear() { text.clear(); }
  const std::string &getText() const { return text; }

private:
  static MlirLogicalResult collect(MlirDiagnostic diagnostic, void *userData) {
    auto &diagnostics = *static_cast<Diagnostics *>(userData);
    if (diagnostics.thread != std::this_thread::get_id())
      return mlirLogicalResultFailure(); // for somebody else
    std::string &text = diagnostics.text;
    if (!text.empty())
      text += "; ";
    text += toString(mlirLocationPrint, mlirDiagnosticGetLocation(diagnostic)) + ": " +
            toString(mlirDiagnosticPrint, diagnostic);
    return mlirLogicalResultSuccess();
  }

  MlirContext context;
  std::string text;
  std::thread::id thread = std::this_thread::get_id();
  MlirDiagnosticHandlerID handler;
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_DIAGNOSTICS_H
