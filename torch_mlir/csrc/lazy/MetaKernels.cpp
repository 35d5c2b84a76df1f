// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What operators give, without values: of PyTorch's Meta kernels.

#include <torch/csrc/Exceptions.h> // has CPython's headers, which come first

#include "lazy/MetaKernels.h"

#include <exception>

namespace torch_mlir::lazy {

bool runMetaKernel(const c10::OperatorHandle &op, torch::jit::Stack &stack) {
  try {
    op.callBoxed(&stack);
    return true;
  } catch (python_error &error) {
    // Some are written in Python, and leave what they raise for the interpreter to find.
    error.persist();
  } catch (const std::exception &) {
    // The reason is a kernel's own, and PyTorch has no type for a kernel that isn't there. What is
    // wrong with the arguments, the CPU's tells.
  }
  return false;
}

} // namespace torch_mlir::lazy
