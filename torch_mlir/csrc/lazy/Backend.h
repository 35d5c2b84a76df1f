// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of a backend of PyTorch's lazy tensors that is the same for all hardware.

#ifndef TORCH_MLIR_LAZY_BACKEND_H
#define TORCH_MLIR_LAZY_BACKEND_H

// Vendors include it from the package's include folder, so our headers are named by where they lie
// beside this one.
#include "Computation.h"
#include "Data.h"
#include "Export.h"

#include <c10/util/Optional.h>
#include <torch/csrc/lazy/backend/backend_interface.h>

#include <memory>
#include <string>
#include <vector>

namespace torch_mlir::lazy {

/// A vendor derives from it, and writes `Compile` and `ExecuteComputation`: computations are
/// `Computation`s, data are `Data`s in the host's memory unless the vendor makes others.
class TORCH_MLIR_LAZY_API Backend : public torch::lazy::BackendImplInterface {
public:
  /// Where the modules of its computations live.
  virtual std::shared_ptr<Context> createContext() const { return lazy::createContext(); }

  void PrepareToExit() const override {}
  /// Seeds the generator that operators of the CPU use.
  void SetRngSeed(size_t seed) const override;
  const torch::lazy::IrBuilder *GetIrBuilder() const override;

  torch::lazy::BackendDataPtr
  MakeComputationDataFromTensor(const at::Tensor &tensor, const torch::lazy::Shape &shape,
                                const torch::lazy::BackendDevice &device) const override;
  torch::lazy::BackendDataPtr
  MakeComputationDataFromScalar(const at::Scalar &scalar,
                                const torch::lazy::BackendDevice &device) const override;
  torch::lazy::BackendDataPtr CreateDataPlaceholder(const torch::lazy::BackendDevice &device,
                                                    const torch::lazy::Shape &shape) const override;
  torch::lazy::BackendDataPtr GetComputationDataFromNode(const torch::lazy::Node *) const override;
  at::Tensor
  MakeTensorFromComputationData(const torch::lazy::BackendDataPtr data,
                                c10::optional<at::ScalarType> logicalType) const override;

  std::unique_ptr<torch::lazy::LoweringContext>
  CreateLoweringContext(const std::string &name, torch::lazy::BackendDevice device,
                        c10::ArrayRef<const torch::lazy::Node *> postOrder,
                        torch::lazy::Util::EmissionMap emitted) const override;
  std::unique_ptr<torch::lazy::LoweringContext>
  CreateLoweringContext(const std::string &name, torch::lazy::BackendDevice device) const override;
  std::vector<std::string> GetCompilationDevices(const std::string &device,
                                                 c10::ArrayRef<std::string> devices) const override;

  std::shared_ptr<torch::lazy::BackendDeviceType> GetDefaultDeviceType() const override;
  void SetDefaultDeviceType(int8_t type) override;
  int64_t GetDefaultDeviceOrdinal() const override { return 0; }
  void SetDefaultDeviceOrdinal(int64_t ordinal) override;
  at::DeviceType EagerFallbackDeviceType() const override { return at::kCPU; }
  std::vector<torch::lazy::BackendDevice> GetBackendDevices() const override;
  torch::lazy::BackendDevice GetBackendDevice(c10::Device device) const override;
  std::string
  GetComputationBackendText(const torch::lazy::ComputationPtr computation) const override;
};

/// From now on lazy tensors are those of this backend, which has to live as long as the process, or
/// nobody's. Computations that run are waited for, and compiled ones forgotten. Gives the backend
/// before, nullptr if there was none.
TORCH_MLIR_LAZY_API const torch::lazy::BackendImplInterface *
registerBackend(const torch::lazy::BackendImplInterface *backend);

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_BACKEND_H
