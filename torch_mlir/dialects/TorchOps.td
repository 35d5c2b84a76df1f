// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the Python classes of the structural operators are generated from.

#ifndef TORCH_MLIR_DIALECTS_TORCHOPS_TD
#define TORCH_MLIR_DIALECTS_TORCHOPS_TD

include "dialect/TorchOps.td"

#endif // TORCH_MLIR_DIALECTS_TORCHOPS_TD
