// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoadingCode.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/pass_manager.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
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

/// Of text, how many bytes are one step, and of tensors how many elements; for what compares each
/// part of one text with each of another, how many pairs; and how long a step takes.
constexpr std::uint64_t bytesPerStep = 8;
constexpr std::uint64_t elementsPerStep = 1024;
constexpr std::uint64_t pairsPerStep = 4096;
constexpr std::uint64_t nanosecondsPerStep = 1000;

/// Bytes for each byte of what isn't a tensor's: text is copied, parsed and compiled.
constexpr std::uint64_t bytesPerByte = 64;

struct OutOfBudget : std::bad_alloc {
  const char *what() const noexcept override { return "out of memory for loading the archive"; }
};

bool endsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

/// Spends a step for each value that is reached from `value`, as often as it is reached: printing
/// and comparing don't see that values are shared. Gives the bytes of all text.
std::uint64_t spendValues(const IValue &value) {
  if (value.isInt() || value.isDouble() || value.isBool() || value.isNone()) {
    LoadingBudget::spend(1);
    return 0;
  }
  std::uint64_t text = 0;
  std::vector<IValue> rest{value};
  while (!rest.empty()) {
    IValue next = std::move(rest.back());
    rest.pop_back();
    LoadingBudget::spend(1);
    if (next.isString()) {
      text += next.toStringRef().size();
      LoadingBudget::spend(next.toStringRef().size() / bytesPerStep);
    } else if (next.isList()) {
      LoadingBudget::spend(next.toListRef().size());
      for (const IValue &element : next.toListRef())
        if (element.isPtrType() || element.isTensor())
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
      // Most operators look at its sizes alone; what copies or compares it is fast.
      auto elements = static_cast<std::uint64_t>(std::max<std::int64_t>(next.toTensor().numel(), 0));
      LoadingBudget::spend(elements / elementsPerStep);
    }
  }
  return text;
}

void spendProduct(std::uint64_t a, std::uint64_t b, std::uint64_t perStep) {
  std::uint64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    product = UINT64_MAX;
  LoadingBudget::spend(product / perStep);
}

/// Whether an operator takes a text and gives one.
bool makesText(const c10::FunctionSchema &schema) {
  auto isText = [](const c10::Argument &argument) {
    return argument.type()->kind() == c10::TypeKind::StringType;
  };
  return std::any_of(schema.returns().begin(), schema.returns().end(), isText) &&
         std::any_of(schema.arguments().begin(), schema.arguments().end(), isText);
}

/// The time that this thread was running.
std::uint64_t nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

const char *const stepName = "torch_mlir::spend_step";

torch::jit::RegisterOperators stepOperator({torch::jit::Operator(
    std::string(stepName) + "() -> ()", [](Stack &) { LoadingBudget::spend(1); },
    c10::AliasAnalysisKind::CONSERVATIVE)});

void countTurns(Graph &graph, Block *block) {
  block->prependNode(graph.create(torch::jit::Symbol::fromQualString(stepName), 0));
  for (Node *node : block->nodes()) {
    // In another thread, which nothing bounds.
    if (current && node->kind() == torch::jit::prim::fork)
      throw std::runtime_error("the archive's code forks while it is loaded");
    for (Block *inner : node->blocks())
      countTurns(graph, inner);
  }
}

/// Executors run the registered passes on their copies of the graphs that they interpret.
const torch::jit::RegisterPostPass countingPass([](std::shared_ptr<Graph> &graph) {
  countTurns(*graph, graph->block());
});

} // namespace

LoadingBudget::LoadingBudget(const Archive &archive)
    : archive_(archive), steps_(archive.limits().loadingSteps),
      bytes_(archive.limits().loadingBytes), outer_(current) {
  for (const Archive::Record &record : archive.records()) {
    if (endsWith(record.name, ".py") || endsWith(record.name, "pkl"))
      bytes_ += bytesPerByte * record.size;
    // What it is inflated from.
    if (record.deflated)
      bytes_ += record.storedSize;
  }
  current = this;
}

LoadingBudget::~LoadingBudget() { current = outer_; }

void LoadingBudget::spend(std::uint64_t steps) {
  if (!current)
    return;
  if (steps > current->steps_ || current->exceeded_) {
    current->steps_ = 0;
    if (!current->exceeded_)
      current->exceeded_ = "loading_steps";
    throw std::runtime_error("the archive's code does too much while it is loaded");
  }
  current->steps_ -= steps;
}

void LoadingBudget::allocate(std::size_t bytes) {
  if (!current)
    return;
  if (bytes > current->bytes_) {
    if (!current->exceeded_)
      current->exceeded_ = "loading_bytes";
    throw OutOfBudget();
  }
  current->bytes_ -= bytes;
}

void LoadingBudget::fail(const std::string &context) const {
  archive_.fail({}, std::string("loading it takes more than the limit '") + exceeded_ +
                        "' allows" + (context.empty() ? "" : ": ") + context);
}

void runBounded(const std::function<void(Stack &)> &operation, const c10::FunctionSchema &schema,
                Stack &stack) {
  LoadingBudget *budget = current;
  if (!budget) {
    operation(stack);
    return;
  }
  std::size_t inputs = schema.arguments().size();
  // The number of the arguments is the last of them.
  if (schema.is_vararg() && !stack.empty() && stack.back().isInt() && stack.back().toInt() >= 0)
    inputs = static_cast<std::size_t>(stack.back().toInt()) + 1;
  std::uint64_t text = 0;
  auto values = torch::jit::last(stack, std::min(inputs, stack.size()));
  for (const IValue &value : values) {
    std::uint64_t more = spendValues(value);
    // Searching takes the product.
    spendProduct(text, more, pairsPerStep);
    text += more;
  }
  // What makes a text of a text and numbers may fill it up to them.
  if (makesText(schema))
    for (const IValue &value : values)
      if (value.isInt() && value.toInt() > 0) {
        LoadingBudget::spend(static_cast<std::uint64_t>(value.toInt()) / bytesPerStep);
        spendProduct(text, static_cast<std::uint64_t>(value.toInt()), pairsPerStep);
      }
  // Time shows what sizes don't, e.g. a factorial's. It is spent if the operator throws, too.
  struct Timer {
    LoadingBudget &budget;
    std::uint64_t start = nanoseconds();
    explicit Timer(LoadingBudget &budget) : budget(budget) {}
    ~Timer() { budget.steps_ -= std::min(budget.steps_, elapsed()); }
    std::uint64_t elapsed() const { return (nanoseconds() - start) / nanosecondsPerStep; }
  } timer(*budget);
  operation(stack);
}

} // namespace torch_mlir::torchscript
