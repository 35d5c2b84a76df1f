// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes operations to Python's files, as text and as bytecode.

#ifndef TORCH_MLIR_BINDINGS_WRITING_H
#define TORCH_MLIR_BINDINGS_WRITING_H

#include <nanobind/nanobind.h>

namespace torch_mlir {

/// Adds `bind_writing` to `module`, which gives ir.Operation our methods for writing.
void bindWriting(nanobind::module_ &module);

} // namespace torch_mlir

#endif // TORCH_MLIR_BINDINGS_WRITING_H
