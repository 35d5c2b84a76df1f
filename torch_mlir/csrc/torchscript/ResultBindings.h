// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules for operators' results, as Python sees them.

#ifndef TORCH_MLIR_TORCHSCRIPT_RESULTBINDINGS_H
#define TORCH_MLIR_TORCHSCRIPT_RESULTBINDINGS_H

#include "nanobind/nanobind.h"

namespace torch_mlir::torchscript {

/// Adds what torch_mlir/operators/regenerate_results.py finds rules with, and tests.
void bindResultRules(nanobind::module_ &module);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_RESULTBINDINGS_H
