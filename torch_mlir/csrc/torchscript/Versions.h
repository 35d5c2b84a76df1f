// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the libtorch that is linked in differs from one source version to another.

#ifndef TORCH_MLIR_TORCHSCRIPT_VERSIONS_H
#define TORCH_MLIR_TORCHSCRIPT_VERSIONS_H

#include <c10/core/SymIntArrayRef.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>
#include <c10/util/Optional.h>
#include <torch/version.h>

#include <optional>
#include <string>
#include <variant>

#define TORCH_MLIR_LIBTORCH_AT_LEAST(major, minor)                                                 \
  (TORCH_VERSION_MAJOR > (major) ||                                                                \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace torch_mlir::torchscript {

// PyTorch had an optional of its own up to 2.1, and still has its name.
#if TORCH_MLIR_LIBTORCH_AT_LEAST(2, 2)
template <typename T> using Optional = std::optional<T>;
#else
template <typename T> using Optional = c10::optional<T>;
#endif

/// Sizes as the schemas of quantised tensors' factories have them.
#if TORCH_MLIR_LIBTORCH_AT_LEAST(2, 0)
using Sizes = c10::SymIntArrayRef;
#else
using Sizes = c10::IntArrayRef;
#endif

/// Drops libtorch's warnings while it lives: they are for those who run tensors.
class IgnoredWarnings {
  struct Handler : c10::WarningHandler {
#if TORCH_MLIR_LIBTORCH_AT_LEAST(2, 0)
    void process(const c10::Warning &) override {}
#else
    void process(const c10::SourceLocation &, const std::string &, const bool) override {}
#endif
  } handler;
#if TORCH_MLIR_LIBTORCH_AT_LEAST(2, 0)
  c10::WarningUtils::WarningHandlerGuard guard{&handler};
#else
  c10::Warning::WarningHandlerGuard guard{&handler};
#endif
};

/// The second of two that something is one of; null if it is the first. PyTorch had a variant of
/// its own for that.
template <typename First, typename Second>
const Second *getSecond(const std::variant<First, Second> &either) {
  return std::get_if<1>(&either);
}
template <typename Either>
auto getSecond(const Either &either) -> decltype(&either.right()) {
  return either.is_right() ? &either.right() : nullptr;
}

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_VERSIONS_H
