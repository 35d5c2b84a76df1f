// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types of operations' results, from what is known of their operands.

#ifndef TORCH_MLIR_TORCHSCRIPT_REFINEMENT_H
#define TORCH_MLIR_TORCHSCRIPT_REFINEMENT_H

#include "torchscript/Facts.h"
#include "torchscript/Locations.h"
#include "torchscript/Shapes.h"
#include "torchscript/Types.h"
#include "torchscript/Values.h"

#include "mlir-c/IR.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch_mlir::torchscript {

/// An operator of whose results too little is known.
struct Unrefined {
  unsigned count = 0;
  /// Where it's called first.
  std::vector<SourceLine> frames;
};

class Refinement {
public:
  explicit Refinement(Types &types) : types(types) {}

  /// `results`, with what is known of the tensors among them.
  std::vector<MlirType> refine(const c10::FunctionSchema &schema,
                               const std::vector<MlirValue> &operands,
                               std::vector<MlirType> results);
  /// The types of the results, all tensors, of `operation` (torch.aten.select.int).
  std::vector<MlirType> refine(const std::string &operation,
                               const std::vector<MlirValue> &operands, size_t count);
  MlirType refine(const std::string &operation, const std::vector<MlirValue> &operands) {
    return refine(operation, operands, 1)[0];
  }

  /// The types of the tensors in the list that an operator gives; empty where not even their
  /// number is known.
  std::optional<std::vector<MlirType>> refineList(const c10::FunctionSchema &schema,
                                                  const std::vector<MlirValue> &operands);

  /// Notes an operator that gave results of which neither rank nor dtype may be missing, though
  /// those of its operands aren't. Gives null where there's none to note.
  Unrefined *note(const c10::FunctionSchema &schema, const std::vector<MlirValue> &operands,
                  const std::vector<MlirType> &results);
  /// By the operator's name.
  const std::map<std::string, Unrefined> &getUnrefined() const { return unrefined; }

  /// What is known of a tensor by its type, and by itself.
  TensorFact getFact(MlirType tensor);
  static TensorFact getFact(const at::Tensor &tensor, const Literals &literals);
  /// What holds for tensors of both types; `general` where they aren't both tensors.
  MlirType join(MlirType left, MlirType right, MlirType general);

private:
  Fact getFact(MlirValue value, unsigned depth);
  MlirType getType(const TensorFact &fact);

  Types &types;
  Shapes shapes;
  /// By the operation's name: null where no operator is called so.
  std::unordered_map<std::string, const c10::FunctionSchema *> schemas;
  std::map<std::string, Unrefined> unrefined;
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_REFINEMENT_H
