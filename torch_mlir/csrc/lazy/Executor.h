// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When lazy tensors are computed, and what is left of them if that fails.

#ifndef TORCH_MLIR_LAZY_EXECUTOR_H
#define TORCH_MLIR_LAZY_EXECUTOR_H

namespace torch_mlir::lazy {

/// Takes the place of the executor that PyTorch's lazy tensors have. Tensors are computed together:
///
///   - Who asks for one tensor's values gets those of all that the same thread has made and that
///     wait for theirs. They are there the next time, where PyTorch's own executor would begin at
///     the first operator again, and draw other random numbers.
///   - A tensor that holds values, and has been read since, is no result of a computation.
///   - Tensors whose computation fails are what they were before, so that it is tried again when
///     somebody asks again, and the failure is told once.
///
/// Backends that aren't ours are left to what they know. Once is enough.
void registerExecutor();

} // namespace torch_mlir::lazy

#endif // TORCH_MLIR_LAZY_EXECUTOR_H
