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
/// An object of a custom class is the list of what the operator took that made it. Of arguments
/// are made:
///
///   part(x, i)       an element of a list
///   size(x, dim)     a tensor's size
///   twice(n, flag)   a number, doubled where the flag is set
///
/// The rules for dtypes:
///
///   of(x)            that of a tensor, or of a list's first
///   promote(x, ...)  what tensors, lists of tensors and numbers promote to
///   default(R)       float32 where R gives integers or bools
///   wide(R)          int64 where R gives integers or bools
///   floats(R)        R where that is no integer and no bool
///   truth(R)         bool but where R gives uint8
///   real(R)          the parts' dtype where R gives complex numbers
///   complex(R)       the dtype of complex numbers with such parts
///   given(x)         the one that an argument names
///   given(x, R)      and R where it is None
///   number(x)        that of the tensor which holds a number
///   stored(R)        that of the integers which quantized numbers are
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
///   repeat(x, n)            times the numbers of a list
///   pad(x, n)               and what a list adds before and after, last dimension first
///   product(x, y, ...)      of matrices: x's rows, y's columns; the number of all broadcasts
///   last(x, n)              with the sizes in a list in the place of the last ones
///   unflatten(x, dim, n)    with those in a list in the place of one, a -1 being what is left
///   count(n, ...)           of integers up to n; from n to another; or with a step
///   pool(x, kernel, stride, padding, dilation, ceil)
///                           as pooling gives; without a stride it's the kernel's size
///   transposed(x, weight, stride, padding, output padding, groups, dilation)
///                           as transposed convolutions give
///   index(x, indices)       of elements that tensors in a list name, None naming all
///   einsum(equation, x)     as an equation tells for a list of tensors
///   columns(x, kernel, dilation, padding, stride)
///                           of an image's windows as columns
///   image(x, n, kernel)     and of the image that such columns are of
///   rank(x)                 as many as a tensor has
///   function(F, x, ...)     as PyTorch's shape function F tells
///
/// And for the sizes of each in a list of tensors:
///
///   chunk(x, n, dim)        n parts or less, equal but for the last
///   split(x, n, dim)        parts of the size n, or of the sizes in a list
///   unbind(x, dim)          all there are along a dimension, without it
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

  /// What is known of the tensors in the list that an operator gives; empty where not even their
  /// number is.
  std::optional<std::vector<TensorFact>> inferList(const c10::FunctionSchema &schema,
                                                   const std::vector<Fact> &operands);

  // What one rule says of a result; `which` is its number.
  std::optional<c10::ScalarType> inferDtype(const ResultRule &rule, const c10::FunctionSchema &schema,
                                            const std::vector<Fact> &operands);
  std::optional<Shape> inferSizes(const ResultRule &rule, size_t which,
                                  const c10::FunctionSchema &schema,
                                  const std::vector<Fact> &operands);
  static std::optional<std::vector<Shape>> inferParts(const ResultRule &rule,
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
