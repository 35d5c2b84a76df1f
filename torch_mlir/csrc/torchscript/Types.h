// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TorchScript's types as types of the torch dialect.

#ifndef TORCH_MLIR_TORCHSCRIPT_TYPES_H
#define TORCH_MLIR_TORCHSCRIPT_TYPES_H

#include "mlir-c/IR.h"

#include <ATen/core/jit_type.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace torch_mlir::torchscript {

/// The types of one import, and the classes that they name.
///
/// Objects, values of an enum and objects known by an interface alone are `!torch.nn.Module` of
/// the name; a future is what it will hold, since forks run where they stand; dtypes, layouts
/// and memory formats are ints, complex numbers are numbers.
class Types {
public:
  /// `valueTensors`: tensors are values, not memory.
  Types(MlirContext context, bool valueTensors);

  /// Throws Unsupported for what the dialect has no type for.
  MlirType get(const c10::TypePtr &type);
  /// The same, with the sizes and the dtype that libtorch's type of a tensor holds.
  MlirType getComplete(const c10::TypePtr &type);
  MlirType getTensor() const { return tensor; }
  /// A tensor's type with what is known of it; `dtype` may be null.
  MlirType getTensor(c10::IntArrayRef sizes, MlirType dtype) const;
  MlirType getTensor(MlirType dtype) const;
  bool hasValueTensors() const { return valueTensors; }

  /// The element type of a tensor. Throws Unsupported for what the dialect has none for.
  MlirType getElement(c10::ScalarType dtype);
  /// The dtype of an element type; empty where libtorch has none.
  std::optional<c10::ScalarType> getScalarType(MlirType element);

  /// Classes and enums in the order in which their types were asked for.
  const std::vector<c10::NamedTypePtr> &getNamed() const { return named; }

  MlirContext getContext() const { return context; }

private:
  MlirType make(const c10::TypePtr &type);
  MlirType getClass(const c10::NamedType &type);

  MlirContext context;
  bool valueTensors;
  MlirType tensor;
  unsigned depth = 0;
  std::unordered_map<const c10::Type *, MlirType> made;
  // An address means nothing once the type is gone.
  std::vector<c10::TypePtr> kept;
  std::unordered_map<c10::ScalarType, MlirType> elements;
  /// By the element type's identity; filled when one is first asked for.
  std::unordered_map<const void *, c10::ScalarType> dtypes;
  std::unordered_set<std::string> names;
  std::vector<c10::NamedTypePtr> named;
};

/// `__torch__.M`.
std::string getName(const c10::NamedType &type);

/// Whether a class is one of C++'s, registered with torch::class_, of which archives hold what
/// its __getstate__ gave.
bool isCustomClass(const c10::Type &type);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_TYPES_H
