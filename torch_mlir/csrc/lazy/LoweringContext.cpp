// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers PyTorch's lazy nodes, one after the other, to a computation.

#include "lazy/LoweringContext.h"

#include "lazy/Lowering.h"
#include "lazy/Numbers.h"
#include "lazy/OperatorNode.h"

#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/frontend/source_range.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <unordered_set>
#include <utility>
#include <vector>

namespace torch_mlir::lazy {

using torch::lazy::Node;
using torch::lazy::Output;

namespace {

/// The Python lines that made a node, as PyTorch writes those of traced ones: one a line, the
/// innermost first. There are none unless PyTorch was told to record them.
std::string getStack(const Node *node) {
  std::string text;
  for (const torch::lazy::SourceLocation &frame : node->metadata().frame_info)
    text += frame.file + "(" + std::to_string(frame.line) + "): " + frame.function + "\n";
  return text;
}

std::string getPlace(const Node *node) {
  const auto &frames = node->metadata().frame_info;
  if (frames.empty())
    return "";
  return " (at " + frames[0].file + ":" + std::to_string(frames[0].line) + ", in " +
         frames[0].function + ")";
}

/// Gives a value the type of what a lazy node gives.
void annotate(torch::jit::Value *value, const torch::lazy::Shape &shape) {
  if (!value->type()->cast<c10::TensorType>())
    return; // a number that is a parameter
  value->setType(c10::TensorType::createContiguous(shape.scalar_type(), c10::Device(c10::kCPU),
                                                   shape.sizes()));
}

/// Backward operators give nothing for what their mask leaves out, and PyTorch's nodes have shapes
/// for it nevertheless.
void clearMasked(torch::jit::Node *node) {
  const c10::FunctionSchema *schema = node->maybeSchema();
  if (!schema)
    return;
  auto at = schema->argumentIndexWithName("output_mask");
  if (!at || static_cast<size_t>(*at) >= node->inputs().size())
    return;
  auto mask = torch::jit::toIValue(node->input(static_cast<size_t>(*at)));
  if (!mask || !mask->isBoolList())
    return;
  c10::List<bool> given = mask->toBoolList();
  for (size_t i = 0; i < std::min(given.size(), node->outputs().size()); ++i)
    if (!given[i])
      node->outputs()[i]->setType(c10::NoneType::get());
}

/// The shape of what a lazy node gives as `value`. Batch norm saves no statistics where it isn't
/// trained, and PyTorch's node has shapes for them nevertheless.
torch::lazy::Shape getShape(torch::jit::Value *value, const torch::lazy::Shape &shape) {
  static const c10::Symbol kinds[] = {
      c10::Symbol::fromQualString("aten::native_batch_norm"),
      c10::Symbol::fromQualString("aten::_native_batch_norm_legit_functional")};
  const torch::jit::Node *node = value->node();
  bool isNorm = std::find(std::begin(kinds), std::end(kinds), node->kind()) != std::end(kinds);
  if (!isNorm || value->offset() == 0 || value->offset() > 2)
    return shape;
  const c10::FunctionSchema *schema = node->maybeSchema();
  if (!schema)
    return shape;
  auto at = schema->argumentIndexWithName("training");
  if (!at)
    return shape;
  auto training = torch::jit::toIValue(node->input(static_cast<size_t>(*at)));
  if (!training || !training->isBool() || training->toBool())
    return shape;
  return torch::lazy::Shape(shape.scalar_type(), at::ArrayRef<int64_t>{0});
}

/// Those that draw random numbers come in the order in which they were called, as they do in eager
/// mode; each node after those that it takes. Parameters keep their order.
std::vector<const Node *> orderDraws(const Backend &backend,
                                     c10::ArrayRef<const Node *> postOrder) {
  std::vector<const OperatorNode *> draws;
  for (const Node *node : postOrder)
    if (const auto *each = dynamic_cast<const OperatorNode *>(node); each && each->draw().inProcess)
      draws.push_back(each);
  if (draws.size() < 2)
    return postOrder.vec();
  std::sort(draws.begin(), draws.end(), [](const OperatorNode *left, const OperatorNode *right) {
    return left->draw().inProcess < right->draw().inProcess;
  });

  std::vector<const Node *> order;
  std::unordered_set<const Node *> added;
  auto add = [&](const Node *root) {
    // With the operand that is next.
    std::vector<std::pair<const Node *, size_t>> path = {{root, 0}};
    while (!path.empty()) {
      auto &[node, next] = path.back();
      if (!added.count(node) && next < node->operands().size()) {
        path.emplace_back(node->operands()[next++].node, 0);
        continue;
      }
      if (added.insert(node).second)
        order.push_back(node);
      path.pop_back();
    }
  };
  for (const Node *node : postOrder)
    if (backend.GetComputationDataFromNode(node))
      add(node);
  for (const OperatorNode *draw : draws)
    add(draw);
  for (const Node *node : postOrder)
    add(node);
  return order;
}

} // namespace

LoweringContext::LoweringContext(const Backend &backend, const std::string &name,
                                 torch::lazy::BackendDevice device)
    : TSLoweringContext(name, std::move(device)), backend(backend), name(name) {}

LoweringContext::LoweringContext(const Backend &backend, const std::string &name,
                                 torch::lazy::BackendDevice device,
                                 c10::ArrayRef<const Node *> postOrder,
                                 torch::lazy::Util::EmissionMap emitted)
    : TSLoweringContext(name, std::move(device)), backend(backend), name(name) {
  emit_status_ = std::move(emitted);
  for (const Node *node : orderDraws(backend, postOrder))
    lower(node);
}

void LoweringContext::lower(const Node *node) {
  torch::jit::Node *end = graph()->return_node();
  torch::jit::Node *last = end->prev();
  try {
    Lower(node);
  } catch (const c10::Error &problem) {
    throw std::runtime_error("can't lower the operator " + node->op().ToString() +
                             getPlace(node) + ": " + problem.what_without_backtrace());
  } catch (const std::exception &problem) {
    throw std::runtime_error("can't lower the operator " + node->op().ToString() +
                             getPlace(node) + ": " + problem.what());
  }
  std::string stack = getStack(node);
  if (!stack.empty()) {
    torch::jit::SourceRange range(std::make_shared<torch::jit::Source>(stack), 0, stack.size());
    for (torch::jit::Node *made = last->next(); made != end; made = made->next())
      made->setSourceRange(range);
  }
  for (torch::jit::Node *made = last->next(); made != end; made = made->next())
    clearMasked(made);
  // A list of tensors has no shape.
  for (size_t i = 0; i < node->num_outputs() && i < node->shapes().size(); ++i) {
    torch::jit::Value *value = GetOutputOp(Output(node, i));
    shapes.emplace_back(value, getShape(value, node->shape(i)));
  }
}

size_t LoweringContext::AddResult(const Output &output) {
  for (const Node *node : torch::lazy::Util::ComputePostOrder(output.node, &emit_status_))
    lower(node);
  torch::jit::Value *result = GetOutputOp(output);
  if (result->type()->kind() == c10::TypeKind::NoneType)
    throw std::runtime_error("the operator " + output.node->op().ToString() +
                             getPlace(output.node) + " gives no result " +
                             std::to_string(output.index) + ", which its mask leaves out");
  results.push_back(result);
  resultShapes.push_back(getShape(result, output.shape()));
  return results.size() - 1;
}

void LoweringContext::AddParameter(const Output &, size_t, const torch::lazy::Shape &,
                                   const std::string &name) {
  throw std::runtime_error("operators aren't run one by one, which the parameter " + name +
                           " would be for");
}

torch::lazy::ComputationPtr LoweringContext::Build() {
  torch::jit::Node *tuple = graph()->insertNode(graph()->createTuple(results));
  graph()->registerOutput(tuple->output());
  for (const auto &[value, shape] : shapes)
    annotate(value, shape);
  specializeNumbers(*graph());
  Computation::Shapes parameterShapes;
  std::vector<std::string> parameterNames;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameterShapes.push_back(parameters_[i]->shape());
    parameterNames.push_back(graph()->inputs()[i]->debugName());
  }
  std::shared_ptr<Context> context = backend.createContext();
  MlirModule module = lowerGraph(context->get(), graph(), "main");
  return std::make_shared<Computation>(name, std::move(context), module,
                                       std::move(parameterShapes), std::move(parameterNames),
                                       std::move(resultShapes));
}

} // namespace torch_mlir::lazy
