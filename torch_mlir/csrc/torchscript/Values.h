// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an archive holds as values: tensors, containers and objects with their attributes.

#ifndef TORCH_MLIR_TORCHSCRIPT_VALUES_H
#define TORCH_MLIR_TORCHSCRIPT_VALUES_H

#include "torchscript/Builder.h"
#include "torchscript/Memory.h"
#include "torchscript/Types.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torch_mlir::torchscript {

struct Quantization;

/// The contents of tensors, in the forms that torch_mlir.importers.literals gives them too.
///
/// Contents that lie in memory as they read are not copied: the attribute's blob keeps the
/// storage alive. Tensors that share their contents share the blob.
class Literals {
public:
  /// `maxCopied` bounds the bytes of all copies that have to be made. `archive` is what the
  /// tensors come from: what it tells of the dtypes that libtorch stands others in for (see
  /// Archive::getDtype), -1 for the others.
  using StoredDtype = std::function<int(const void *)>;
  Literals(Types &types, uint64_t maxCopied, StoredDtype archive = nullptr);

  /// A tensor's dtype, which may be one that libtorch lacks.
  c10::ScalarType getDtype(const at::Tensor &tensor) const;

  /// A literal of `tensor`; `name` is what its blob is called in the text. Throws Unsupported
  /// where the tensor holds no data, or data that MLIR has no elements for.
  MlirValue create(Builder &builder, const at::Tensor &tensor, const std::string &name,
                   MlirLocation location);

private:
  MlirValue createQuantized(Builder &builder, const at::Tensor &tensor,
                            const Quantization &quantization, const std::string &name,
                            MlirLocation location);
  struct Contents {
    MlirAttribute elements;
    /// Bools are stored as bytes, and have to be converted back.
    bool areWidenedBools;
  };
  Contents getContents(const at::Tensor &tensor, const std::string &name);
  MlirAttribute getBlob(const void *data, size_t size, size_t alignment, MlirType type,
                        c10::ScalarType dtype, const std::string &name, void *owner,
                        void (*release)(void *, const void *, size_t, size_t));

  Types &types;
  uint64_t maxCopied;
  StoredDtype archive;
  uint64_t copied = 0;
  std::map<std::tuple<const void *, size_t, c10::ScalarType>, MlirAttribute> blobs;
  std::unordered_map<std::string, unsigned> names;
};

/// Turns values into operations of one block. A value that is reached twice, by way of two
/// attributes say, is made once.
class Values {
public:
  /// Objects are made in modules only (`objects`). Tensors that are in `shared` are views of one
  /// literal.
  Values(Builder &builder, Types &types, Literals &literals, bool objects,
         const SharedMemory *shared = nullptr);

  /// `value` with a type that may stand where `type` is asked for; `path` is how messages and
  /// blobs call it. Throws Unsupported.
  MlirValue get(const c10::IValue &value, const c10::TypePtr &type, const std::string &path,
                MlirLocation location);

private:
  MlirValue make(const c10::IValue &value, const c10::TypePtr &type, const std::string &path,
                 MlirLocation location);
  MlirValue makeTensor(const at::Tensor &tensor, const std::string &path, MlirLocation location);
  MlirValue makeObject(const c10::IValue &value, const std::string &path, MlirLocation location);
  MlirValue makeEnum(const c10::IValue &value, const std::string &path, MlirLocation location);
  MlirValue makeModule(MlirType type, const std::vector<std::pair<std::string, MlirValue>> &slots,
                       MlirLocation location);
  MlirValue fit(MlirValue value, MlirType type, MlirLocation location);

  Builder &builder;
  Types &types;
  Literals &literals;
  bool objects;
  const SharedMemory *shared;
  unsigned depth = 0;
  // Tensors, containers and objects by identity; null while one is being made. Values of
  // enums by class and name.
  std::unordered_map<const void *, MlirValue> made;
  std::vector<c10::IValue> kept;
  std::map<std::pair<std::string, std::string>, MlirValue> enums;
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_VALUES_H
