// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoadingCode.h"

#include <torch/csrc/jit/runtime/custom_operator.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

namespace torch_mlir::torchscript {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::IValue;
using torch::jit::Node;
using torch::jit::Stack;

thread_local LoadingBudget *current = nullptr;

/// Spends a step for each value that is reached from `value`, as often as it is reached: printing
/// and comparing don't see that values are shared.
void spendValues(const IValue &value) {
  std::vector<IValue> rest{value};
  while (!rest.empty()) {
    IValue next = std::move(rest.back());
    rest.pop_back();
    LoadingBudget::spend(1);
    if (next.isString()) {
      LoadingBudget::spend(next.toStringRef().size() / 8);
    } else if (next.isList()) {
      LoadingBudget::spend(next.toListRef().size());
      for (const IValue &element : next.toListRef())
        rest.push_back(element);
    } else if (next.isTuple()) {
      for (const IValue &element : next.toTupleRef().elements())
        rest.push_back(element);
    } else if (next.isGenericDict()) {
      for (const auto &item : next.toGenericDict()) {
        rest.push_back(item.key());
        rest.push_back(item.value());
      }
    } else if (next.isTensor() && next.toTensor().defined()) {
      LoadingBudget::spend(next.toTensor().storage().nbytes() / 8);
    }
  }
}

/// Spends as many steps as all sizes and numbers multiplied, e.g. for `[0] * n`.
void spendProduct(const std::vector<IValue> &values) {
  std::uint64_t product = 1;
  auto multiply = [&](std::uint64_t by) {
    if (__builtin_mul_overflow(product, std::max<std::uint64_t>(by, 1), &product))
      product = std::numeric_limits<std::uint64_t>::max();
  };
  for (const IValue &value : values) {
    if (value.isInt()) {
      multiply(static_cast<std::uint64_t>(std::max<std::int64_t>(value.toInt(), 1)));
    } else if (value.isString()) {
      multiply(value.toStringRef().size() + 1);
    } else if (value.isIntList()) {
      // A list of sizes, or one that is repeated.
      std::uint64_t length = value.toListRef().size();
      for (const IValue &size : value.toListRef())
        if (size.isInt())
          multiply(static_cast<std::uint64_t>(std::max<std::int64_t>(size.toInt(), 1)));
      multiply(length);
    } else if (value.isList()) {
      multiply(value.toListRef().size());
    }
  }
  LoadingBudget::spend(product);
}

std::vector<IValue> popAll(Stack &stack) {
  auto count = static_cast<std::size_t>(torch::jit::pop(stack).toInt());
  std::vector<IValue> values = torch::jit::pop(stack, count);
  return values;
}

const char *const stepName = "torch_mlir::spend_step";
const char *const valuesName = "torch_mlir::spend_values";
const char *const productName = "torch_mlir::spend_product";

/// The operators that `boundedCopy` puts into graphs.
void registerOperators() {
  static torch::jit::RegisterOperators operators({
      torch::jit::Operator(
          std::string(stepName) + "() -> ()", [](Stack &) { LoadingBudget::spend(1); },
          c10::AliasAnalysisKind::CONSERVATIVE),
      torch::jit::Operator(
          std::string(valuesName) + "(...) -> ()",
          [](Stack &stack) {
            for (const IValue &value : popAll(stack))
              spendValues(value);
          },
          c10::AliasAnalysisKind::CONSERVATIVE),
      torch::jit::Operator(
          std::string(productName) + "(...) -> ()",
          [](Stack &stack) { spendProduct(popAll(stack)); }, c10::AliasAnalysisKind::CONSERVATIVE),
  });
}

/// Operators that make more than they are given.
bool multiplies(std::string_view name) {
  for (std::string_view other :
       {"aten::mul", "aten::mul_", "aten::ljust", "aten::rjust", "aten::center", "aten::zfill",
        "aten::expandtabs", "aten::replace", "aten::join", "prim::rangelist", "aten::empty",
        "aten::empty_strided", "aten::new_empty", "aten::zeros", "aten::ones", "aten::full",
        "aten::pow", "aten::__lshift__"})
    if (name == other)
      return true;
  return false;
}

void bound(Graph &graph, Block *block) {
  for (Node *node : block->nodes()) {
    for (Block *inner : node->blocks())
      bound(graph, inner);
    if (node->kind() == torch::jit::prim::Loop) {
      Block *body = node->blocks().at(0);
      body->prependNode(graph.create(torch::jit::Symbol::fromQualString(stepName), 0));
      continue;
    }
    std::string name = node->kind().toQualString();
    // The rest is done by the interpreter, in no more time than the code is long.
    bool isOperator = !node->kind().is_prim() || name == "prim::rangelist" || name == "prim::Print";
    if (!isOperator || node->inputs().empty())
      continue;
    auto insert = [&](const char *operation) {
      Node *spending =
          graph.create(torch::jit::Symbol::fromQualString(operation), node->inputs(), 0);
      spending->setSourceRange(node->sourceRange());
      spending->insertBefore(node);
    };
    if (multiplies(name))
      insert(productName);
    insert(valuesName);
  }
}

} // namespace

LoadingBudget::LoadingBudget(const Limits &limits) : left_(limits.loadingSteps), outer_(current) {
  current = this;
}

LoadingBudget::~LoadingBudget() { current = outer_; }

void LoadingBudget::spend(std::uint64_t steps) {
  if (!current)
    return;
  if (steps > current->left_) {
    current->left_ = 0;
    throw ArchiveError("the archive's code does more while it is loaded than the limit of steps "
                       "allows");
  }
  current->left_ -= steps;
}

std::shared_ptr<Graph> boundedCopy(const std::shared_ptr<Graph> &graph) {
  registerOperators();
  std::shared_ptr<Graph> copy = graph->copy();
  bound(*copy, copy->block());
  return copy;
}

} // namespace torch_mlir::torchscript
