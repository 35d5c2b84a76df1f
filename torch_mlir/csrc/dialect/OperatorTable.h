// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators with a schema. PyTorch has thousands and they all read, print and verify alike,
// so there is no C++ class for each: one class serves them all and looks into a table.

#ifndef TORCH_MLIR_DIALECT_OPERATORTABLE_H
#define TORCH_MLIR_DIALECT_OPERATORTABLE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace torch_mlir::torch {

/// A row of the operator table.
class Operator {
public:
  /// The row of an operation, null where its operator isn't in the table.
  static const Operator *of(mlir::Operation *op);

  /// The schema as PyTorch prints it: `aten::relu(Tensor self) -> Tensor`.
  llvm::StringRef getSchema() const;
  /// What the operands and the results are, in the codes of OperatorTable.inc.
  llvm::StringRef getOperandKinds() const;
  llvm::StringRef getResultKinds() const;

  /// Whether the results are all there is to it and depend on the operands alone.
  bool isPure() const;
  /// Whether it takes more operands than it lists.
  bool isVariadic() const { return getOperandKinds().ends_with("*"); }
  /// Whether the operator writes to what its operand refers to.
  bool isWritten(unsigned operand) const;

  /// The row's number is all that a row is: see OperatorTable.cpp for the texts.
  alignas(8) uint32_t text;
  uint32_t flags;
};

/// What to say of an operator that isn't registered, after its name.
std::string describeMissingOperator(llvm::StringRef name);

} // namespace torch_mlir::torch

#endif // TORCH_MLIR_DIALECT_OPERATORTABLE_H
