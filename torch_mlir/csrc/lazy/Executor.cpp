// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When lazy tensors are computed, and what is left of them if that fails.

#include "lazy/Executor.h"

#include "lazy/Backend.h"
#include "lazy/OperatorNode.h"
#include "lazy/PythonBackend.h"

#include <torch/csrc/lazy/backend/backend_interface.h>
#include <torch/csrc/lazy/core/config.h>
#include <torch/csrc/lazy/core/lazy_graph_executor.h>
#include <torch/csrc/lazy/core/tensor.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torch_mlir::lazy {

using torch::lazy::BackendDataPtr;
using torch::lazy::BackendDevice;
using torch::lazy::LazyGraphExecutor;
using torch::lazy::LazyTensor;
using torch::lazy::LazyTensorPtr;

namespace {

/// Which thread made a tensor: those of other threads may change while this one computes.
class Makers {
public:
  void add(int64_t tensor) {
    std::lock_guard<std::mutex> lock(mutex);
    threads[tensor] = std::this_thread::get_id();
  }
  void remove(int64_t tensor) {
    std::lock_guard<std::mutex> lock(mutex);
    threads.erase(tensor);
  }
  bool isOwn(int64_t tensor) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = threads.find(tensor);
    return found != threads.end() && found->second == std::this_thread::get_id();
  }

private:
  std::mutex mutex;
  std::unordered_map<int64_t, std::thread::id> threads;
};

/// While this thread computes tensors, nobody asks for others.
thread_local bool isComputing = false;

struct Computing {
  Computing() { isComputing = true; }
  ~Computing() { isComputing = false; }
};

class Executor : public LazyGraphExecutor {
public:
  void RegisterTensor(std::shared_ptr<LazyTensor::Data> data) override {
    makers.add(data->unique_id);
    LazyGraphExecutor::RegisterTensor(std::move(data));
  }

  void UnregisterTensor(LazyTensor::Data *data) override {
    makers.remove(data->unique_id);
    LazyGraphExecutor::UnregisterTensor(data);
  }

  /// `mark_step`
  void SyncLiveTensorsGraph(const BackendDevice *device, c10::ArrayRef<std::string> devices,
                            bool wait) override {
    if (!isOurs() || FLAGS_torch_lazy_use_thread_pool) {
      Computing computing;
      return LazyGraphExecutor::SyncLiveTensorsGraph(device, devices, wait);
    }
    compute(GetLiveTensors(device), devices);
    Draw::restart();
  }

  // PyTorch asks it of each tensor before it computes them, and has had it with two types: one of
  // these overrides it. Where a single tensor is asked for, all are computed here, and nothing is
  // left to do. (That one alone is held by nobody but who asks.)
  bool ShouldSyncTensor(const LazyTensorPtr &tensor) const {
    return tensor.use_count() > 1 || isLeft(tensor);
  }
  bool ShouldSyncTensor(const LazyTensorPtr tensor) const {
    return tensor.use_count() > 2 || isLeft(tensor);
  }

private:
  static bool isOurs() {
    return torch::lazy::hasBackend() &&
           dynamic_cast<const Backend *>(torch::lazy::getBackend()) != nullptr;
  }

  bool isLeft(const LazyTensorPtr &tensor) const;
  /// Computes those that wait for values.
  void compute(std::vector<LazyTensorPtr> tensors, c10::ArrayRef<std::string> devices);

  Makers makers;
};

bool Executor::isLeft(const LazyTensorPtr &tensor) const {
  if (isComputing || !isOurs() || FLAGS_torch_lazy_use_thread_pool)
    return true;
  auto *self = const_cast<Executor *>(this);
  std::vector<LazyTensorPtr> all;
  for (LazyTensorPtr &each : self->GetLiveTensors(&tensor->GetDevice()))
    if (each->GetUniqueId() != tensor->GetUniqueId() && self->makers.isOwn(each->GetUniqueId()))
      all.push_back(std::move(each));
  bool isAlone = all.empty();
  if (!isAlone) {
    all.push_back(tensor);
    try {
      self->compute(std::move(all), {});
      Draw::restart();
      return false;
    } catch (const std::exception &problem) {
      // It may be another one that can't be computed. If it isn't, it fails again.
      if (isInterruption(problem))
        throw;
    }
  }
  self->compute({tensor}, {});
  if (isAlone)
    Draw::restart();
  return false;
}

void Executor::compute(std::vector<LazyTensorPtr> tensors, c10::ArrayRef<std::string> devices) {
  // Their order is that of the results.
  std::sort(tensors.begin(), tensors.end(), [](const auto &left, const auto &right) {
    return left->GetUniqueId() < right->GetUniqueId();
  });
  std::vector<LazyTensorPtr> waiting;
  std::vector<size_t> generations;
  // Those that have the same value share it, as PyTorch's views do with what they are views of.
  struct Twin {
    LazyTensorPtr tensor;
    size_t generation, first;
  };
  std::vector<Twin> twins;
  std::map<std::pair<const torch::lazy::Node *, size_t>, size_t> found;
  for (LazyTensorPtr &tensor : tensors) {
    torch::lazy::Value value = tensor->CurrentIrValue();
    if (tensor->CurrentDataHandle() || !value)
      continue;
    BackendDataPtr data = torch::lazy::getBackend()->GetComputationDataFromNode(value.node.get());
    if (data) {
      tensor->data()->handle = data; // it holds values that have become an operand
      continue;
    }
    size_t generation = tensor->generation();
    auto [entry, isNew] = found.emplace(std::make_pair(value.node.get(), value.index),
                                        waiting.size());
    if (!isNew) {
      twins.push_back({std::move(tensor), generation, entry->second});
      continue;
    }
    waiting.push_back(std::move(tensor));
    generations.push_back(generation);
  }
  if (waiting.empty())
    return;
  auto isUnchanged = [&](size_t i) { return waiting[i]->generation() == generations[i]; };
  try {
    Computing computing;
    // The nodes are kept until there are values.
    SyncTensorsGraph(&waiting, devices, /*wait=*/true, /*sync_ltc_data=*/false);
  } catch (...) {
    for (size_t i = 0; i < waiting.size(); ++i)
      if (isUnchanged(i))
        waiting[i]->data()->handle = nullptr;
    // It would be told again to whoever is next.
    try {
      DeviceBarrier(waiting.front()->GetDevice());
    } catch (const std::exception &) {
      // The one that is thrown.
    }
    throw;
  }
  std::vector<BackendDataPtr> handles;
  for (size_t i = 0; i < waiting.size(); ++i) {
    handles.push_back(waiting[i]->CurrentDataHandle());
    if (isUnchanged(i) && handles[i])
      waiting[i]->SetDataHandle(handles[i]);
    else
      handles[i] = nullptr;
  }
  for (const Twin &twin : twins) {
    if (!handles[twin.first] || twin.tensor->generation() != twin.generation)
      continue;
    twin.tensor->SetDataHandle(handles[twin.first]);
    // As operands, they are one as well.
    twin.tensor->data()->ir_value = waiting[twin.first]->GetIrValue();
  }
}

} // namespace

void registerExecutor() {
  // PyTorch's tensors may outlive everything.
  static auto *executor = new Executor();
  LazyGraphExecutor::Register(executor);
}

} // namespace torch_mlir::lazy
