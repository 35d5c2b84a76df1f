// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As much of autograd as a parameter's requires_grad flag needs.

#include "stubs.h"

#include <ATen/Tensor.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

using torch_mlir::leftOut;
using torch_mlir::Optional;

namespace torch::autograd {

namespace {
const at::Tensor &undefinedTensor() {
  static const at::Tensor tensor;
  return tensor;
}

struct MetaFactory : c10::impl::AutogradMetaFactory {
  std::unique_ptr<c10::AutogradMetaInterface> make() const override {
    return std::make_unique<AutogradMeta>();
  }
  const at::Tensor &undefined_tensor() const override { return undefinedTensor(); }
} factory;
c10::impl::AutogradMetaFactoryRegisterer registerer(&factory);
} // namespace

void AutogradMeta::set_fw_grad(const at::TensorBase &, const at::TensorBase &, uint64_t, bool) {
  leftOut("forward-mode differentiation");
}
const Variable &AutogradMeta::fw_grad(uint64_t, const at::TensorBase &) const {
  return undefinedTensor();
}
variable_list grad(const variable_list &, const variable_list &, const variable_list &,
                   Optional<bool>, bool, bool) {
  leftOut("torch.autograd.grad");
}
void backward(const variable_list &, const variable_list &, Optional<bool>, bool,
              const variable_list &) {
  leftOut("torch.autograd.backward");
}

} // namespace torch::autograd
