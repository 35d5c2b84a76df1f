// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors that are parts of others, or show them differently.

#ifndef TORCH_MLIR_TORCHSCRIPT_VIEWS_H
#define TORCH_MLIR_TORCHSCRIPT_VIEWS_H

#include "torchscript/Builder.h"
#include "torchscript/Refinement.h"

#include <memory>
#include <string>
#include <vector>

namespace torch_mlir::torchscript {

/// A view of a tensor, or of another view: the operator that gives it, with its arguments.
class View {
public:
  /// Whether an operator, by its name in MLIR, always gives a view, that can be taken anew of
  /// other contents. (aten::reshape may copy.)
  static bool isView(const std::string &operation);

  /// `overlapsItself`: elements may lie in one another.
  View(std::shared_ptr<const View> parent, std::string operation,
       std::vector<MlirValue> arguments, bool overlapsItself = false)
      : parent(std::move(parent)), operation(std::move(operation)),
        arguments(std::move(arguments)), overlapsItself(overlapsItself) {}

  /// The view of a tensor with contents `base`.
  MlirValue read(Builder &builder, MlirValue base, Refinement &refinement,
                 MlirLocation location) const;
  /// The contents `base` after `value` was written through the view. Throws Unsupported for a
  /// view that can't be written through without memory.
  MlirValue write(Builder &builder, MlirValue base, MlirValue value, Refinement &refinement,
                  MlirLocation location) const;

private:
  MlirValue invert(Builder &builder, MlirValue before, MlirValue value,
                   MlirLocation location) const;

  std::shared_ptr<const View> parent;
  std::string operation;
  std::vector<MlirValue> arguments;
  bool overlapsItself;
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_VIEWS_H
