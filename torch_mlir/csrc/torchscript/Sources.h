// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is checked in an archive's TorchScript before libtorch's parser gets it. The parser and
// the compiler behind it recurse over expressions, over blocks, and over the classes and
// functions that need one another, and so does the destruction of what they build; nothing in
// them ends that before the stack ends.

#ifndef TORCH_MLIR_TORCHSCRIPT_SOURCES_H
#define TORCH_MLIR_TORCHSCRIPT_SOURCES_H

#include "Archive.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace torch_mlir::torchscript {

/// The definitions in an archive's `code/` folder.
class Sources {
public:
  using EnumValue = std::variant<std::int64_t, double, std::string>;

  struct Definition {
    /// What comes before the class's methods: at least one line for each attribute.
    std::uint64_t lines = 0;
    /// Whether it may be an enum, and the values of its members that could be told.
    bool isEnum = false;
    std::vector<EnumValue> enumValues;
  };

  /// Reads and checks them all; throws an ArchiveError that names record and line.
  explicit Sources(const Archive &archive);

  /// The class or function of this qualified name, or null if the archive has none.
  const Definition *find(const std::string &name) const;

  /// How often the code reads a constant.
  std::uint64_t constantUses() const { return constantUses_; }

private:
  std::unordered_map<std::string, Definition> definitions_;
  std::uint64_t constantUses_ = 0;
};

/// Throws an ArchiveError about `record` unless libtorch can parse `text` as a type.
void checkTypeExpression(const Archive &archive, const Archive::Record &record,
                         std::string_view text);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_SOURCES_H
