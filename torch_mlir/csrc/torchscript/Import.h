// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an archive to a module.

#ifndef TORCH_MLIR_TORCHSCRIPT_IMPORT_H
#define TORCH_MLIR_TORCHSCRIPT_IMPORT_H

#include "torchscript/Archive.h"
#include "torchscript/Pipeline.h"

#include "mlir-c/IR.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace torch_mlir::torchscript {

enum class Mode {
  /// The whole object graph and every method, as they are.
  Raw,
  /// A function on values for each method that is asked for.
  Torch,
};

struct Options {
  Mode mode = Mode::Raw;
  /// The PyTorch whose operators the archive means, one of `schemaRows()`. If it is empty, the
  /// newest whose operators resolve all that the archive calls.
  std::string row;
  /// Schemas of further operators that it calls, e.g. custom ones.
  std::vector<std::string> schemas;
  /// For Mode::Torch.
  PipelineOptions pipeline;
};

/// The archive's module in `context`, whose owner is the caller. `name` is what messages call
/// the archive. `report` gets what the caller should know.
///
/// Throws ImportError for what can't be imported, ArchiveError for what is no archive. Imports
/// in a process run one after the other.
MlirModule importArchive(MlirContext context, const std::shared_ptr<Archive> &archive,
                         const std::string &name, const Options &options,
                         Report &report);

/// What `registeredSchemas` tells of a row.
std::vector<std::string> getSchemas(const std::string &row);

/// Held by who uses libtorch: its registries and compilation units are the process's. Whoever
/// forks waits for the end of an import, so that the child has them whole, and none of their locks
/// held.
std::mutex &getImportMutex();

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_IMPORT_H
