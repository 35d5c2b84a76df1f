// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an archive to libtorch's module.

#ifndef TORCH_MLIR_TORCHSCRIPT_LOAD_H
#define TORCH_MLIR_TORCHSCRIPT_LOAD_H

#include "Archive.h"

#include <torch/csrc/jit/api/module.h>

#include <memory>

namespace torch_mlir::torchscript {

/// Loads the module within the archive's limits, on the CPU and with its debug records, and
/// checks that every attribute holds what its class declares. What the archive's code prints
/// meanwhile is dropped.
///
/// Throws an ArchiveError, or what libtorch throws.
torch::jit::Module loadArchive(const std::shared_ptr<Archive> &archive);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_LOAD_H
