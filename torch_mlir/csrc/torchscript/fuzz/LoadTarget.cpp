// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What libFuzzer runs: an archive is loaded, and all that an import looks at is looked at.
// Exceptions are what should come of bad archives; anything else ends the process.

#include "../Archive.h"
#include "../DeepStack.h"
#include "../Load.h"
#include "../Schemas.h"
#include "../Versions.h"
#include "Mutator.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <unordered_set>
#include <vector>

using namespace torch_mlir::torchscript;

namespace {

/// What the archives of the seeds need many times over, and a fuzzer's machine has.
Limits fuzzLimits() {
  Limits limits;
  limits.records = 1 << 12;
  limits.inflatedRecordBytes = limits.inflatedBytes = 64 << 20;
  limits.pickleValues = 1 << 18;
  limits.pickleUnsharedValues = 1 << 20;
  limits.expandedTensorBytes = 64 << 20;
  limits.sourceBytes = 4 << 20;
  limits.loadingSteps = 1 << 16;
  limits.loadingBytes = 64 << 20;
  return limits;
}

/// Keeps reads from being dropped.
volatile unsigned sink;

void look(const at::Tensor &tensor) {
  if (!tensor.defined() || tensor.numel() == 0)
    return;
  // The first and the last element lie in the storage, or this crashes.
  std::int64_t last = tensor.storage_offset();
  for (std::int64_t i = 0; i < tensor.dim(); ++i)
    last += (tensor.size(i) - 1) * tensor.stride(i);
  auto size = static_cast<std::int64_t>(tensor.itemsize());
  auto *bytes = static_cast<const unsigned char *>(tensor.storage().data());
  if ((last + 1) * size > static_cast<std::int64_t>(tensor.storage().nbytes()))
    std::abort();
  sink = bytes[tensor.storage_offset() * size] + bytes[last * size + size - 1];
}

void look(const c10::IValue &value, std::unordered_set<const void *> &seen) {
  std::vector<c10::IValue> rest{value};
  while (!rest.empty()) {
    c10::IValue next = std::move(rest.back());
    rest.pop_back();
    if (next.isTensor()) {
      look(next.toTensor());
      continue;
    }
    if (next.isPtrType() && !seen.insert(next.internalToPointer()).second)
      continue;
    if (next.isObject())
      rest.insert(rest.end(), next.toObjectRef().slots().begin(), next.toObjectRef().slots().end());
    else if (next.isTuple())
      for (const auto &element : next.toTupleRef().elements())
        rest.push_back(element);
    else if (next.isList())
      for (const c10::IValue &element : next.toListRef())
        rest.push_back(element);
    else if (next.isGenericDict())
      for (const auto &item : next.toGenericDict()) {
        rest.push_back(item.key());
        rest.push_back(item.value());
      }
  }
}

void look(const torch::jit::Block *block, std::size_t &size) {
  for (const torch::jit::Node *node : block->nodes()) {
    size += node->sourceRange().str().size();
    for (torch::jit::Symbol name : node->attributeNames())
      if (node->kindOf(name) == torch::jit::AttributeKind::t)
        look(node->t(name));
    for (const torch::jit::Block *inner : node->blocks())
      look(inner, size);
  }
}

} // namespace

namespace {

void loadAndLook(const std::uint8_t *data, std::size_t size) {
  try {
    selectSchemas(schemaRows().back());
    auto archive = Archive::fromMemory(data, size, {}, fuzzLimits());
    torch::jit::Module module = loadArchive(archive);
    archive.reset();
    std::unordered_set<const void *> seen;
    look(module._ivalue(), seen);
    std::size_t text = 0;
    for (const torch::jit::Module &inner : module.modules()) {
      text += inner.type()->repr_str().size();
      for (const torch::jit::Method &method : inner.get_methods()) {
        text += method.function().getSchema().name().size();
        auto graph = method.graph();
        text += graph->toString(/*print_source_locations=*/false).size();
        look(graph->block(), text);
      }
    }
    sink = static_cast<unsigned>(text);
  } catch (const std::exception &error) {
    // Errors are looked at, too.
    sink = static_cast<unsigned>(error.what()[0]);
  }
}

} // namespace

/// In a thread as an import's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  static IgnoredWarnings *ignored = new IgnoredWarnings;
  (void)ignored;
  onDeepStack([&] { loadAndLook(data, size); });
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t *data, std::size_t size, std::size_t largest);

/// libFuzzer's own changes, which know what the code compares with, are made to records.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *data, std::size_t size,
                                               std::size_t largest, unsigned seed) {
  // What was mutated lately, to take pieces from.
  static std::vector<std::string> pool;
  constexpr std::size_t pooled = 64;
  fuzz::Random random(seed);
  std::string given(reinterpret_cast<const char *>(data), size);
  if (pool.size() < pooled)
    pool.push_back(given);
  else if (random() % 16 == 0)
    pool[random() % pooled] = given;
  std::string changed = fuzz::mutate(given, pool, random, [](std::string &bytes) {
    std::size_t old = bytes.size();
    bytes.resize(old + 64);
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t *>(bytes.data()), old,
                                  bytes.size()));
  });
  // A part of an archive is none.
  if (changed.size() > largest)
    return size;
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
