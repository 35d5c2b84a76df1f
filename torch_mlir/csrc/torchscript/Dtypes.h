// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's dtypes, those included that the libtorch in here lacks.

#ifndef TORCH_MLIR_TORCHSCRIPT_DTYPES_H
#define TORCH_MLIR_TORCHSCRIPT_DTYPES_H

#include <cstddef>
#include <string_view>

namespace torch_mlir::torchscript {

struct Dtype {
  /// As c10::ScalarType has it.
  const char *name;
  /// How MLIR spells an element; null where the dialect has no such type.
  const char *element;
  /// Of an element; 0 for the parts of bytes, which no storage is of.
  std::size_t bytes;
};

/// By the numbers of c10::ScalarType, which are part of the file format. Null beyond the last.
const Dtype *getDtype(std::size_t number);

/// The number of a dtype that storages may be of; -1 where there is none of the name.
int findDtype(std::string_view name);

/// A dtype that every libtorch has, of elements of as many bytes.
const char *getStandIn(std::size_t bytes);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_DTYPES_H
