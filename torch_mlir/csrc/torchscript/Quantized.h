// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Quantised tensors and packed parameters, as far as reading them goes.

#ifndef TORCH_MLIR_TORCHSCRIPT_QUANTIZED_H
#define TORCH_MLIR_TORCHSCRIPT_QUANTIZED_H

#include "torchscript/Versions.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <ATen/core/stack.h>
#include <c10/core/QScheme.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

/// Lets objects of a custom C++ class, which is declared only, keep what they were saved as.
void keepState(const c10::ClassTypePtr &type);

/// Runs an operator that makes an object of a custom class, which remembers what it was made of.
/// Archives do so in `__setstate__`. Whether it is such an operator; otherwise the stack is as it
/// was.
bool makeObject(const c10::FunctionSchema &schema, torch::jit::Stack &stack);

/// Custom classes, and what the names of the operators begin with that give what their methods
/// give: `quantized::conv2d_` of `quantized::conv2d_stride`.
const std::map<std::string, std::string> &getMethodOperators();

/// Gives a class a method, which can't be run, with the results of an operator.
void declareMethod(const c10::ClassTypePtr &type, const std::string &name,
                   const c10::FunctionSchema &schema);

/// The operation that makes an object of packed parameters anew, and its operands by name.
struct Packing {
  std::string operation;
  std::vector<std::pair<std::string, c10::IValue>> operands;
};

/// How an object of one of PyTorch's quantized classes was made: parameters of linear,
/// convolution and embedding layers and of recurrent cells. Nothing for an object of another
/// class, or in a form that isn't known.
Optional<Packing> getPacking(const c10::IValue &object);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_QUANTIZED_H
