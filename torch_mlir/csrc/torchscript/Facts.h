// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of a value before the program runs.

#ifndef TORCH_MLIR_TORCHSCRIPT_FACTS_H
#define TORCH_MLIR_TORCHSCRIPT_FACTS_H

#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace torch_mlir::torchscript {

/// The sizes of a tensor: -1 is one that isn't known.
using Shape = std::vector<int64_t>;

/// What is known of a tensor: nothing where a member is empty.
struct TensorFact {
  std::optional<Shape> sizes;
  std::optional<c10::ScalarType> dtype;
};

/// What is known of an operand.
struct Fact {
  enum class Kind {
    /// Nothing, or of what type a number is.
    Unknown,
    /// `value`: a number, a text, None, ...
    Value,
    Tensor,
    /// A list of so many elements.
    List,
  };
  /// The types of numbers; Any may be no number at all.
  enum class Number { Any, Bool, Int, Float, Complex };

  Kind kind = Kind::Unknown;
  Number number = Number::Any;
  bool mayBeNone = true;
  c10::IValue value;
  TensorFact tensor;
  std::vector<Fact> elements;

  bool isNone() const { return kind == Kind::Value && value.isNone(); }
  bool isInt() const { return kind == Kind::Value && value.isInt(); }

  static Fact of(c10::IValue value) {
    Fact fact;
    fact.kind = Kind::Value;
    fact.value = std::move(value);
    return fact;
  }
  static Fact ofUnknown(Number number) {
    Fact fact;
    fact.number = number;
    fact.mayBeNone = number == Number::Any;
    return fact;
  }
  static Fact of(TensorFact tensor) {
    Fact fact;
    fact.kind = Kind::Tensor;
    fact.tensor = std::move(tensor);
    return fact;
  }
  static Fact of(std::vector<Fact> elements) {
    Fact fact;
    fact.kind = Kind::List;
    fact.elements = std::move(elements);
    return fact;
  }
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_FACTS_H
