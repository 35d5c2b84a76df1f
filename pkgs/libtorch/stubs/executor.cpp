// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A GraphExecutor that interprets a graph as it is, after the passes that are registered for that
// (passes/pass_manager.h). Reading an archive evaluates default
// arguments and __setstate__ methods; PyTorch's executors profile, differentiate and fuse.

#include "stubs.h"

#include <torch/csrc/jit/passes/autocast.h>
#include <torch/csrc/jit/passes/bailout_graph.h>
#include <torch/csrc/jit/passes/concat_opt.h>
#include <torch/csrc/jit/passes/pass_manager.h>
#include <torch/csrc/jit/passes/shape_analysis.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/graph_executor_impl.h>
#include <torch/csrc/jit/runtime/profiling_record.h>

using torch_mlir::leftOut;
using torch_mlir::Optional;

C10_DEFINE_bool(torch_jit_execution_plan_reuse_code_graph, false, "");
C10_DEFINE_bool(torch_jit_disable_warning_prints, false, "");

namespace torch::jit {

namespace {
struct PlainExecutor : GraphExecutorImplBase {
  using GraphExecutorImplBase::GraphExecutorImplBase;

  const ExecutionPlan &getPlanFor(Stack &, Optional<size_t>) override {
    std::lock_guard<std::mutex> lock(compile_mutex);
    if (!plan) {
      std::shared_ptr<Graph> copy = graph->copy();
      for (const GraphPassEntry &pass : getCustomPostPasses())
        pass.first(copy);
      plan = ExecutionPlan(copy, function_name_);
    }
    return *plan;
  }
  GraphExecutorState getDebugState() override { leftOut("GraphExecutor::getDebugState"); }

  Optional<ExecutionPlan> plan;
};
} // namespace

void GraphExecutorImplBase::run(Stack &stack) {
  TORCH_CHECK(stack.size() >= num_inputs, "expected ", num_inputs, " inputs, got ", stack.size());
  InterpreterState(getPlanFor(stack, 0).code).run(stack);
}
c10::intrusive_ptr<Future> GraphExecutorImplBase::runAsync(Stack &, TaskLauncher) {
  leftOut("asynchronous execution");
}

GraphExecutor::GraphExecutor(const std::shared_ptr<Graph> &graph, std::string name)
    : pImpl(new PlainExecutor(graph, std::move(name))) {}
GraphExecutor::GraphExecutor(const std::shared_ptr<Graph> &graph, std::string name,
                             ExecutorExecutionMode)
    : pImpl(new PlainExecutor(graph, std::move(name))) {}
void GraphExecutor::run(Stack &inputs) { pImpl->run(inputs); }
c10::intrusive_ptr<Future> GraphExecutor::runAsync(Stack &, TaskLauncher) {
  leftOut("asynchronous execution");
}
const ExecutionPlan &GraphExecutor::getPlanFor(Stack &inputs, Optional<size_t> depth) {
  return pImpl->getPlanFor(inputs, depth);
}
GraphExecutorState GraphExecutor::getDebugState() { leftOut("GraphExecutor::getDebugState"); }
bool GraphExecutor::isOptimized() const { return false; }

void runOptimization(std::shared_ptr<Graph> &, bool, bool) {}
void EraseShapeInformation(const std::shared_ptr<Graph> &) {}
void Autocast(const std::shared_ptr<Graph> &) {}
bool CombineConcats(const std::shared_ptr<Graph> &) { return false; }
void PropagateInputShapes(const std::shared_ptr<Graph> &) { leftOut("PropagateInputShapes"); }
bool ShapeSymbolTable::bindSymbolicShapes(at::IntArrayRef, const c10::SymbolicShape &) {
  leftOut("ShapeSymbolTable::bindSymbolicShapes");
}
std::shared_ptr<Graph> BuildBailOutGraphFrom(int64_t, const std::shared_ptr<Graph> &,
                                             const std::shared_ptr<Graph> &) {
  leftOut("BuildBailOutGraphFrom");
}

} // namespace torch::jit
