// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a vendor's library finds in ours.

#ifndef TORCH_MLIR_LAZY_EXPORT_H
#define TORCH_MLIR_LAZY_EXPORT_H

/// Marks what vendors derive from or call. cmake/lazy.map names the same classes and functions.
#define TORCH_MLIR_LAZY_API __attribute__((visibility("default")))

#endif // TORCH_MLIR_LAZY_EXPORT_H
