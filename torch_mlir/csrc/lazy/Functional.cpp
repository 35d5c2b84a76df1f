// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that write to tensors they are given, and those that give what the others write.

#include "lazy/Functional.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch_mlir::lazy {

using c10::FunctionSchema;

size_t countOutputs(const FunctionSchema &schema) {
  size_t count = 0;
  for (const c10::Argument &argument : schema.arguments()) {
    if (!argument.alias_info())
      continue;
    if (!argument.is_out() || argument.type()->kind() != c10::TypeKind::TensorType)
      return 0;
    ++count;
  }
  return count == schema.returns().size() ? count : 0;
}

static bool isOption(const c10::Argument &argument) {
  const std::string &name = argument.name();
  return argument.kwarg_only() && argument.default_value() &&
         (name == "dtype" || name == "layout" || name == "device" || name == "pin_memory");
}

/// All that have a name. PyTorch's own operators are there before this library is.
static const std::vector<c10::OperatorName> &findOverloads(const std::string &name) {
  static const auto &overloads = *[] {
    auto *all = new std::unordered_map<std::string, std::vector<c10::OperatorName>>();
    for (const c10::OperatorName &each : c10::Dispatcher::singleton().getAllOpNames())
      (*all)[each.name].push_back(each);
    return all;
  }();
  static const std::vector<c10::OperatorName> none;
  auto found = overloads.find(name);
  return found == overloads.end() ? none : found->second;
}

std::optional<c10::OperatorHandle> findFunctional(const FunctionSchema &schema,
                                                  bool mayTakeOptions) {
  size_t count = schema.arguments().size() - countOutputs(schema);
  auto fits = [&](const FunctionSchema &other) {
    const auto &own = schema.arguments();
    const auto &theirs = other.arguments();
    if (other.is_mutable() || theirs.size() < count ||
        other.returns().size() != schema.returns().size() ||
        (theirs.size() > count && !mayTakeOptions))
      return false;
    return std::equal(theirs.begin(), theirs.begin() + static_cast<std::ptrdiff_t>(count),
                      own.begin(),
                      [](const c10::Argument &left, const c10::Argument &right) {
                        return left.name() == right.name() && *left.type() == *right.type();
                      }) &&
           std::all_of(theirs.begin() + static_cast<std::ptrdiff_t>(count), theirs.end(), isOption);
  };
  for (const c10::OperatorName &name : findOverloads(schema.name())) {
    auto op = c10::Dispatcher::singleton().findSchema(name);
    if (op && fits(op->schema()))
      return *op; // it's an optional of PyTorch's own in old releases
  }
  return std::nullopt;
}

} // namespace torch_mlir::lazy
