// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory for the small things that an import makes by the million and drops at its end: tokens,
// trees, graphs, names. There is one pool, of whoever holds the import mutex, so that taking and
// giving back are a few instructions without a lock.

#ifndef TORCH_MLIR_TORCHSCRIPT_POOL_H
#define TORCH_MLIR_TORCHSCRIPT_POOL_H

#include <cstddef>

namespace torch_mlir::torchscript {

/// While it lives, its thread's small pieces come from the pool. One at a time in the process.
class PoolScope {
public:
  PoolScope();
  /// Gives the system the pages that nothing is left on, but for a few that the next one takes.
  ~PoolScope();
  PoolScope(const PoolScope &) = delete;
  PoolScope &operator=(const PoolScope &) = delete;
};

/// Memory aligned for any type; null where the pool isn't the thread's, or has none of the size.
void *takeFromPool(std::size_t size) noexcept;

/// Gives back a piece, in any thread, at any time. False if it isn't the pool's.
bool giveToPool(void *piece) noexcept;

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_POOL_H
