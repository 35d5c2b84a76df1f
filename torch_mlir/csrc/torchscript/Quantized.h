// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Quantised tensors and packed parameters, as far as reading them goes.

#ifndef TORCH_MLIR_TORCHSCRIPT_QUANTIZED_H
#define TORCH_MLIR_TORCHSCRIPT_QUANTIZED_H

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/QScheme.h>

#include <cstdint>

namespace torch_mlir::torchscript {

/// What a quantised tensor's integers stand for.
struct Quantization {
  c10::QScheme scheme = c10::kPerTensorAffine;
  double scale = 1;
  int64_t zeroPoint = 0;
  /// By channel, along `axis`.
  at::Tensor scales;
  at::Tensor zeroPoints;
  int64_t axis = 0;
};

/// Null for a tensor that isn't quantised.
const Quantization *getQuantization(const at::Tensor &tensor);

/// The integers of a quantised tensor, in the same memory.
at::Tensor getIntegers(const at::Tensor &tensor);

/// The storage of a tensor as `count` of its elements from `offset` on, in a row. It's quantised
/// if the tensor is.
at::Tensor getInARow(const at::Tensor &tensor, int64_t offset, int64_t count);

/// What PyTorch saves of an object of one of its quantized classes (packed parameters of linear
/// and convolution layers), null for an object of another class.
const c10::IValue *getPackedState(const c10::IValue &object);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_QUANTIZED_H
