// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a lazy tensor holds once it is computed.

#ifndef TORCH_MLIR_LAZY_DATA_H
#define TORCH_MLIR_LAZY_DATA_H

#include "Export.h"

#include <torch/csrc/lazy/ts_backend/ts_backend_impl.h>

namespace torch_mlir::lazy {

/// A tensor in the host's memory, a number, or nothing yet. A vendor with memory of its own derives
/// from it. (PyTorch's nodes for parameters take for granted that data are TSData.)
class TORCH_MLIR_LAZY_API Data : public torch::lazy::TSData {
public:
  using TSData::TSData;
};

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_DATA_H
