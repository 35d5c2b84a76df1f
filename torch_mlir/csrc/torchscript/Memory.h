// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where tensors lie in memory, and which of them lie in the same.

#ifndef TORCH_MLIR_TORCHSCRIPT_MEMORY_H
#define TORCH_MLIR_TORCHSCRIPT_MEMORY_H

#include "torchscript/Builder.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torch_mlir::torchscript {

/// Where the elements of a tensor lie. Everything in it has been held against the storage.
struct Layout {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  uint64_t count = 1;
  const char *data = nullptr;
  /// The bytes of the storage that the elements lie in; none where there are no elements.
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// Throws Unsupported where the tensor's elements aren't all in its storage: sizes and strides
/// come from the archive as they are.
Layout getLayout(const at::Tensor &tensor);

/// Whether the elements lie as they read.
bool isContiguous(const Layout &layout);

/// Whether two tensors have bytes in common; those between their elements count as theirs.
bool overlap(const at::Tensor &left, const at::Tensor &right);

bool isConjugate(const at::Tensor &tensor);
bool isNegative(const at::Tensor &tensor);

/// A tensor that shares its memory with others, as a view of what they are all part of.
struct Alias {
  /// An operator that gives a view, and its arguments.
  using Step = std::pair<std::string, std::vector<MlirValue>>;

  /// What they are all part of: one of them, if it has all of the bytes in their order.
  at::Tensor memory;
  /// Counted in elements.
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  bool isConjugate = false;
  bool isNegative = false;
  /// Whether elements may lie in one another.
  bool overlapsItself = false;
  /// Why there is no such view; empty where there is one.
  std::string problem;

  /// From the memory to the tensor. Throws Unsupported.
  std::vector<Step> getSteps(Builder &builder, MlirLocation location) const;
};

/// The tensors of an object graph of which another one has some of the bytes.
///
/// Bytes between the first and the last element count as the tensor's. Packed parameters aren't
/// looked at: nothing writes to what is in them.
class SharedMemory {
public:
  SharedMemory() = default;
  explicit SharedMemory(const c10::IValue &root);

  /// Null for a tensor that is alone with its memory, or is all of it.
  const Alias *find(const at::Tensor &tensor) const;
  /// What tensors are part of; an undefined tensor where they are alone.
  at::Tensor findMemory(const at::Tensor &tensor) const;

private:
  struct Member {
    at::Tensor tensor;
    Layout layout;
  };
  void add(const std::vector<const Member *> &members);

  std::unordered_map<const at::TensorImpl *, Alias> aliases;
  std::unordered_map<const at::TensorImpl *, at::Tensor> memories;
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_MEMORY_H
