// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types of the torch dialect and what they have to do with each other.

#ifndef TORCH_MLIR_DIALECT_TORCHTYPES_H
#define TORCH_MLIR_DIALECT_TORCHTYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Types.h"

#include <optional>

#define GET_TYPEDEF_CLASSES
#include "dialect/TorchTypes.h.inc"

namespace torch_mlir::torch {

/// Whether the type belongs to this dialect.
bool isTorchType(mlir::Type type);

/// What the two tensor types have in common.
struct TensorParameters {
  std::optional<llvm::ArrayRef<int64_t>> sizes;
  mlir::Type dtype;
  mlir::Attribute sparsity;
};

/// The parameters of a tensor type, nullopt of any other type.
std::optional<TensorParameters> getTensorParameters(mlir::Type type);

/// The same tensor type as a value, and in memory.
ValueTensorType withValueSemantics(mlir::Type tensor);
NonValueTensorType withoutValueSemantics(mlir::Type tensor);

/// Whether a tensor may have this dtype.
bool isValidDtype(mlir::Type dtype);

/// The tensor type that a literal with this attribute has, null where it's none.
/// Signless integers are PyTorch's signed ones.
ValueTensorType getLiteralType(mlir::TypedAttr attribute);

/// Whether a value of type `sub` may stand where `super` is asked for (PEP 483).
bool isSubtype(mlir::Type sub, mlir::Type super);

/// Whether one tensor can have both types: shapes and dtypes don't contradict.
bool areTensorTypesCompatible(mlir::Type a, mlir::Type b);

/// Whether a value of this type is a reference to something that can be written to: a
/// `!torch.tensor`, a container, an object.
bool isReferenceType(mlir::Type type);

} // namespace torch_mlir::torch

#endif // TORCH_MLIR_DIALECT_TORCHTYPES_H
