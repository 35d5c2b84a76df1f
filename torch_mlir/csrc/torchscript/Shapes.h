// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shape and dtypes of operators' results, by the rules in torch_mlir/operators/results.tsv.

#ifndef TORCH_MLIR_TORCHSCRIPT_SHAPES_H
#define TORCH_MLIR_TORCHSCRIPT_SHAPES_H

#include "torchscript/Facts.h"
#include "torchscript/ShapeFunctions.h"

#include <ATen/core/function_schema.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace torch_mlir::torchscript {

/// A rule as it is written: a name, and in parentheses what it is about.
///
/// Arguments of the operator stand by their names, numbers, True, False and None for themselves.
/// The rules for dtypes:
///
///   of(x)            that of a tensor, or of a list's first
///   promote(x, ...)  what tensors, lists of tensors and numbers promote to
///   default(R)       float32 where R gives integers or bools
///   wide(R)          int64 where R gives integers or bools
///   real(R)          the parts' dtype where R gives complex numbers
///   complex(R)       the dtype of complex numbers with such parts
///   given(x)         the one that an argument names
///   given(x, R)      and R where it is None
///   float32, ...     always this one
///
/// Those for sizes:
///
///   of(x)                   those of a tensor
///   broadcast(x, ...)       of tensors, and of tensors in lists
///   list(x)                 those in a list of ints
///   scalar                  none
///   reduce(x, dims)         without the dimensions: a number, a list, or None for all
///   reduce(x, dims, keep)   with size 1 there, where the flag is set
///   replace(x, dim, n)      with n in the place of one
///   append(x, n)            with n at the end
///   repeat(x, n)            times the numbers of a list that is as long, or longer
///   rank(x)                 as many as a tensor has
///   function(F, x, ...)     as PyTorch's shape function F tells
struct ResultRule {
  std::string name;
  std::vector<ResultRule> operands;

  /// Throws std::invalid_argument where it isn't written so.
  static ResultRule parse(std::string_view text);
};

/// What rules tell, in one import.
class Shapes {
public:
  /// What is known of each of the results, tensors or not. `operands` are those of the schema.
  std::vector<TensorFact> infer(const c10::FunctionSchema &schema,
                                const std::vector<Fact> &operands);

  // What one rule says of a result; `which` is its number.
  std::optional<c10::ScalarType> inferDtype(const ResultRule &rule, const c10::FunctionSchema &schema,
                                            const std::vector<Fact> &operands);
  std::optional<Shape> inferSizes(const ResultRule &rule, size_t which,
                                  const c10::FunctionSchema &schema,
                                  const std::vector<Fact> &operands);

private:
  /// The rules of one result; there may be none.
  struct ResultRules {
    std::optional<ResultRule> dtype, sizes;
  };
  const std::vector<ResultRules> &getRules(const c10::FunctionSchema &schema);

  ShapeFunctions functions;
  std::map<std::string, std::vector<ResultRules>> rules;
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_SHAPES_H
