// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of a backend of PyTorch's lazy tensors that is the same for all hardware.

#include "lazy/Backend.h"

#include "lazy/Executor.h"
#include "lazy/Kernels.h"
#include "lazy/LoweringContext.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <torch/csrc/lazy/core/lazy_graph_executor.h>
#include <torch/csrc/lazy/ts_backend/ts_backend_impl.h>

#include <exception>
#include <mutex>
#include <stdexcept>

namespace torch_mlir::lazy {

using torch::lazy::BackendDataPtr;
using torch::lazy::BackendDevice;
using torch::lazy::Shape;

namespace {

struct HostDevice : torch::lazy::BackendDeviceType {
  HostDevice() : BackendDeviceType(static_cast<int8_t>(at::kCPU)) {}
  std::string toString() const override { return "CPU"; }
};

} // namespace

void Backend::SetRngSeed(size_t seed) const {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

const torch::lazy::IrBuilder *Backend::GetIrBuilder() const {
  return torch::lazy::GetTSBackendImpl()->GetIrBuilder();
}

BackendDataPtr Backend::MakeComputationDataFromTensor(const at::Tensor &tensor, const Shape &shape,
                                                      const BackendDevice &device) const {
  return std::make_shared<Data>(tensor.detach(), shape, device);
}

BackendDataPtr Backend::MakeComputationDataFromScalar(const at::Scalar &scalar,
                                                      const BackendDevice &device) const {
  return std::make_shared<Data>(scalar, device);
}

BackendDataPtr Backend::CreateDataPlaceholder(const BackendDevice &device,
                                              const Shape &shape) const {
  return std::make_shared<Data>(shape, device);
}

BackendDataPtr Backend::GetComputationDataFromNode(const torch::lazy::Node *node) const {
  // The class of such nodes has no header in PyTorch's packages before 2.8.
  return torch::lazy::GetTSBackendImpl()->GetComputationDataFromNode(node);
}

at::Tensor Backend::MakeTensorFromComputationData(const BackendDataPtr data,
                                                  c10::optional<at::ScalarType>) const {
  return static_cast<Data &>(*data).data();
}

std::unique_ptr<torch::lazy::LoweringContext>
Backend::CreateLoweringContext(const std::string &name, BackendDevice device,
                               c10::ArrayRef<const torch::lazy::Node *> postOrder,
                               torch::lazy::Util::EmissionMap emitted) const {
  return std::make_unique<LoweringContext>(*this, name, std::move(device), postOrder,
                                           std::move(emitted));
}

std::unique_ptr<torch::lazy::LoweringContext>
Backend::CreateLoweringContext(const std::string &name, BackendDevice device) const {
  return std::make_unique<LoweringContext>(*this, name, std::move(device));
}

std::vector<std::string> Backend::GetCompilationDevices(const std::string &,
                                                        c10::ArrayRef<std::string> devices) const {
  return devices.vec();
}

std::shared_ptr<torch::lazy::BackendDeviceType> Backend::GetDefaultDeviceType() const {
  static const auto type = std::make_shared<HostDevice>();
  return type;
}

void Backend::SetDefaultDeviceType(int8_t type) {
  if (type != static_cast<int8_t>(at::kCPU))
    throw std::runtime_error("tensors of this lazy backend live on the CPU alone");
}

void Backend::SetDefaultDeviceOrdinal(int64_t ordinal) {
  if (ordinal)
    throw std::runtime_error("this lazy backend has one device");
}

std::vector<BackendDevice> Backend::GetBackendDevices() const {
  return {GetBackendDevice(c10::Device(c10::kLazy, 0))};
}

BackendDevice Backend::GetBackendDevice(c10::Device) const {
  return BackendDevice(GetDefaultDeviceType(), 0);
}

std::string
Backend::GetComputationBackendText(const torch::lazy::ComputationPtr computation) const {
  return computation->to_string();
}

const torch::lazy::BackendImplInterface *
registerBackend(const torch::lazy::BackendImplInterface *backend) {
  const auto *before = torch::lazy::hasBackend() ? torch::lazy::getBackend() : nullptr;
  static std::once_flag once;
  // The kernels of lazy tensors, which may be there already, and the executor.
  std::call_once(once, [before] {
    if (before == nullptr)
      torch::lazy::InitTorchScriptBackend();
    registerKernels();
    registerExecutor();
  });
  auto *executor = torch::lazy::LazyGraphExecutor::Get();
  try {
    executor->WaitDeviceOps({});
  } catch (const std::exception &) {
    // It tells again of a failure that was thrown where the computation had been asked for.
  }
  // What one backend compiled, no other can run.
  executor->GetComputationCache()->Clear();
  torch::lazy::BackendRegistrar registrar(backend);
  return before;
}

} // namespace torch_mlir::lazy
