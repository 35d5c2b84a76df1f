// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The torch dialect: class, types, structural operators.

#ifndef TORCH_MLIR_DIALECT_TORCHDIALECT_H
#define TORCH_MLIR_DIALECT_TORCHDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/TorchDialect.h.inc"
#include "dialect/TorchTypes.h"

namespace torch_mlir::torch {

/// The effects of an operator that writes to nothing. It reads what its operands refer to,
/// and each result that is a reference may be to something new, so that two calls with the
/// same operands may not become one. A list or dict that nothing ever writes to counts as a
/// value.
void getReadingEffects(
    mlir::Operation *op,
    llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>> &effects);

} // namespace torch_mlir::torch

#define GET_OP_CLASSES
#include "dialect/TorchOps.h.inc"

#endif // TORCH_MLIR_DIALECT_TORCHDIALECT_H
