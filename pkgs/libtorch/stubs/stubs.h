// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the stand-ins share: differences between the source versions, and the error of
// those that are only there to be linked with.

#ifndef TORCH_MLIR_LIBTORCH_STUBS_H
#define TORCH_MLIR_LIBTORCH_STUBS_H

#include <c10/util/Exception.h>
#include <c10/util/Optional.h>
#include <torch/version.h>

#include <optional>

#define TORCH_MLIR_SOURCE_AT_LEAST(major, minor)                                                   \
  (TORCH_VERSION_MAJOR > (major) ||                                                                \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace torch_mlir {
#if TORCH_MLIR_SOURCE_AT_LEAST(2, 1)
template <typename T>
using Optional = std::optional<T>;
#else
template <typename T>
using Optional = c10::optional<T>;
#endif

/// Throws: the importer's libtorch reads models, it doesn't run them.
[[noreturn]] inline void leftOut(const char *function) {
  TORCH_CHECK(false, function, " is left out of this importer's libtorch, which runs no models");
}
} // namespace torch_mlir

#endif // TORCH_MLIR_LIBTORCH_STUBS_H
