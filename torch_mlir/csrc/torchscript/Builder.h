// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Making operations through MLIR's C interface.

#ifndef TORCH_MLIR_TORCHSCRIPT_BUILDER_H
#define TORCH_MLIR_TORCHSCRIPT_BUILDER_H

#include "mlir-c/IR.h"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace torch_mlir::torchscript {

inline MlirStringRef wrap(const std::string &text) {
  return mlirStringRefCreate(text.data(), text.size());
}

/// The text that one of MLIR's print functions writes.
template <typename Printed>
std::string toString(void (*print)(Printed, MlirStringCallback, void *), Printed printed) {
  std::string text;
  print(
      printed,
      [](MlirStringRef part, void *text) {
        static_cast<std::string *>(text)->append(part.data, part.length);
      },
      &text);
  return text;
}

using Attribute = std::pair<const char *, MlirAttribute>;

/// Puts operations into a block.
class Builder {
public:
  /// They go to the block's end or, with `inFront`, to its beginning, one after the other.
  Builder(MlirContext context, MlirBlock block, bool inFront = false)
      : context(context), block(block), inFront(inFront) {}

  /// Makes an operation; it owns `regions`.
  MlirOperation create(const std::string &name, MlirLocation location,
                       const std::vector<MlirType> &results,
                       const std::vector<MlirValue> &operands,
                       const std::vector<Attribute> &attributes = {},
                       const std::vector<MlirRegion> &regions = {});
  /// An operation with one result, and that result.
  MlirValue value(const std::string &name, MlirLocation location, MlirType result,
                  const std::vector<MlirValue> &operands = {},
                  const std::vector<Attribute> &attributes = {});

  /// `value` as one of another type: what is known of it is forgotten or added. Types that
  /// aren't related, as those of an object and of its interface, go by way of !torch.any.
  MlirValue convert(MlirValue value, MlirType type, MlirLocation location);

  MlirAttribute string(const std::string &text) const;
  MlirAttribute i64(int64_t number) const;
  MlirAttribute type(MlirType type) const;
  MlirAttribute symbol(const std::string &name) const;
  MlirAttribute unit() const;

  MlirContext getContext() const { return context; }
  MlirBlock getBlock() const { return block; }

private:
  MlirContext context;
  MlirBlock block;
  bool inFront;
  MlirOperation last{nullptr};
};

/// An operation that stands nowhere yet.
MlirOperation createDetached(MlirContext context, const std::string &name, MlirLocation location,
                             const std::vector<MlirType> &results,
                             const std::vector<MlirValue> &operands,
                             const std::vector<Attribute> &attributes,
                             const std::vector<MlirRegion> &regions);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_BUILDER_H
