// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What operators are in other releases of PyTorch: the dialect's table is of the newest.

#include "torchscript/Schemas.h"

#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "SchemaVersions.inc"

namespace torch_mlir::torchscript {

using c10::FunctionSchema;

// Whatever differs is given: who asks takes those that add arguments with defaults, which earlier
// ones don't.
std::vector<const FunctionSchema *> laterSchemas(const FunctionSchema &schema) {
  static std::mutex mutex;
  // Never destroyed: schemas are given away.
  static auto &read = *new std::map<std::string, std::vector<std::unique_ptr<FunctionSchema>>>();
  std::string name = toString(schema.operator_name());
  std::lock_guard<std::mutex> lock(mutex);
  auto [entry, isNew] = read.try_emplace(name);
  if (isNew) {
    auto found = std::equal_range(std::begin(schemaVersions), std::end(schemaVersions),
                                  SchemaVersion{name, {}},
                                  [](const SchemaVersion &left, const SchemaVersion &right) {
                                    return left.name < right.name;
                                  });
    for (const SchemaVersion *each = found.first; each != found.second; ++each) {
      try {
        entry->second.push_back(std::make_unique<FunctionSchema>(
            torch::jit::parseSchema(name + std::string(each->rest))));
      } catch (const std::exception &) {
        // It names types that this PyTorch lacks, so nothing here can be an operand.
      }
    }
  }
  std::vector<const FunctionSchema *> all;
  for (const auto &each : entry->second)
    all.push_back(each.get());
  return all;
}

} // namespace torch_mlir::torchscript
