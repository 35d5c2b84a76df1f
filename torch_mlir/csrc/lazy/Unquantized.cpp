// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the importer asks of quantised tensors and packed parameters, where there are none: lazy
// graphs hold neither. (torchscript/Quantized.cpp brings kernels of its own, which would take the
// place of PyTorch's.)

#include "torchscript/Quantized.h"

#include "torchscript/Locations.h"

namespace torch_mlir::torchscript {

const Quantization *getQuantization(const at::Tensor &tensor) {
  if (tensor.is_quantized())
    throw Unsupported("a quantised tensor in a lazy graph");
  return nullptr;
}

at::Tensor getIntegers(const at::Tensor &) {
  throw Unsupported("a quantised tensor in a lazy graph");
}

at::Tensor getInARow(const at::Tensor &, int64_t, int64_t) {
  throw Unsupported("constants of a lazy graph that share memory");
}

Optional<Packing> getPacking(const c10::IValue &) { return Optional<Packing>(); }

} // namespace torch_mlir::torchscript
