// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an archive to a module.

#ifndef TORCH_MLIR_TORCHSCRIPT_IMPORT_H
#define TORCH_MLIR_TORCHSCRIPT_IMPORT_H

#include "torchscript/Archive.h"

#include "mlir-c/IR.h"

#include <memory>
#include <string>

namespace torch_mlir::torchscript {

enum class Mode {
  /// The whole object graph and every method, as they are.
  Raw,
};

struct Options {
  Mode mode = Mode::Raw;
  /// Bytes of tensors that have to be copied, since they don't lie in the archive as they read.
  uint64_t maxCopiedBytes = uint64_t(4) << 30;
};

/// The archive's module in `context`, whose owner is the caller. `name` is what messages call
/// the archive.
///
/// Throws ImportError for what can't be imported, ArchiveError for what is no archive. Imports
/// in a process run one after the other.
MlirModule importArchive(MlirContext context, const std::shared_ptr<Archive> &archive,
                         const std::string &name, const Options &options);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_IMPORT_H
