// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where tensors lie in memory, and which of them lie in the same.

#include "torchscript/Memory.h"

#include "torchscript/Locations.h"
#include "torchscript/Quantized.h"
#include "torchscript/Types.h"

#include "capi/TorchTypes.h"

#include "mlir-c/BuiltinAttributes.h"

#include <c10/core/DispatchKeySet.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <unordered_set>

namespace torch_mlir::torchscript {

using c10::IValue;

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

Layout getLayout(const at::Tensor &tensor) {
  Layout layout;
  layout.sizes = tensor.sizes().vec();
  layout.strides = tensor.strides().vec();
  uint64_t last = 0;
  bool overflows = tensor.storage_offset() < 0;
  auto grow = [&overflows](uint64_t &value, uint64_t more, bool multiplies) {
    overflows |= multiplies ? __builtin_mul_overflow(value, more, &value)
                            : __builtin_add_overflow(value, more, &value);
  };
  for (int64_t size : layout.sizes) {
    overflows |= size < 0;
    // Counted without the zeros, so that what is empty can't be absurd.
    if (size > 0)
      grow(layout.count, static_cast<uint64_t>(size), true);
  }
  uint64_t itemSize = tensor.itemsize();
  uint64_t bytes = layout.count;
  grow(bytes, itemSize, true);
  bool isEmpty = false;
  for (size_t i = 0; i < layout.sizes.size(); ++i) {
    isEmpty |= layout.sizes[i] == 0;
    if (layout.sizes[i] <= 1)
      continue;
    overflows |= layout.strides[i] < 0;
    uint64_t step = static_cast<uint64_t>(layout.strides[i]);
    grow(step, static_cast<uint64_t>(layout.sizes[i] - 1), true);
    grow(last, step, false);
  }
  overflows |= bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (overflows)
    throw Unsupported("a tensor whose sizes or strides no tensor can have");
  if (isEmpty) {
    layout.count = 0;
    return layout;
  }
  grow(last, static_cast<uint64_t>(tensor.storage_offset()), false);
  grow(last, 1, false);
  grow(last, itemSize, true);
  if (overflows || last > tensor.storage().nbytes())
    throw Unsupported("a tensor that reaches beyond its storage");
  layout.begin = static_cast<uint64_t>(tensor.storage_offset()) * itemSize;
  layout.end = last;
  layout.data = static_cast<const char *>(tensor.storage().data()) + layout.begin;
  return layout;
}

bool isContiguous(const Layout &layout) {
  int64_t expected = 1;
  for (size_t i = layout.sizes.size(); i-- > 0;) {
    if (layout.sizes[i] == 1)
      continue;
    if (layout.strides[i] != expected)
      return false;
    expected *= layout.sizes[i];
  }
  return true;
}

bool isConjugate(const at::Tensor &tensor) {
  return tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Conjugate);
}

bool isNegative(const at::Tensor &tensor) {
  return tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Negative);
}

bool overlap(const at::Tensor &left, const at::Tensor &right) {
  if (!left.has_storage() || !right.has_storage() ||
      left.storage().unsafeGetStorageImpl() != right.storage().unsafeGetStorageImpl())
    return false;
  Layout one = getLayout(left), other = getLayout(right);
  return one.begin < other.end && other.begin < one.end;
}

/// Whether it isn't sure that each element has a place of its own.
static bool overlapsItself(const Layout &layout) {
  std::vector<std::pair<int64_t, int64_t>> dimensions; // (stride, size)
  for (size_t i = 0; i < layout.sizes.size(); ++i) {
    if (layout.sizes[i] > 1)
      dimensions.emplace_back(layout.strides[i], layout.sizes[i]);
  }
  std::sort(dimensions.begin(), dimensions.end());
  int64_t last = 0;
  for (auto [stride, size] : dimensions) {
    if (stride <= last)
      return true;
    last += stride * (size - 1);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Tensors that share memory
//===----------------------------------------------------------------------===//

std::vector<Alias::Step> Alias::getSteps(Builder &builder, MlirLocation location) const {
  if (!problem.empty())
    throw Unsupported(problem);
  MlirType integer = torchMlirTorchIntTypeGet(builder.getContext());
  auto constant = [&](int64_t number) {
    return builder.value("torch.constant.int", location, integer, {},
                         {{"value", builder.i64(number)}});
  };
  auto list = [&](const std::vector<int64_t> &numbers) {
    std::vector<MlirValue> elements;
    for (int64_t number : numbers)
      elements.push_back(constant(number));
    return builder.value("torch.prim.ListConstruct", location,
                         torchMlirTorchListTypeGetChecked(location, integer), elements);
  };
  std::vector<Step> steps;
  steps.push_back({"torch.aten.as_strided", {list(sizes), list(strides), constant(offset)}});
  if (isConjugate)
    steps.push_back({"torch.aten._conj", {}});
  if (isNegative)
    steps.push_back({"torch.aten._neg_view", {}});
  return steps;
}

/// The tensors that are reached from a value, each once, in the order in which they are.
static std::vector<at::Tensor> collectTensors(const IValue &root) {
  std::vector<at::Tensor> found;
  std::unordered_set<const void *> seen;
  std::vector<IValue> rest{root};
  while (!rest.empty()) {
    IValue value = std::move(rest.back());
    rest.pop_back();
    if (value.isTensor()) {
      if (seen.insert(value.toTensor().unsafeGetTensorImpl()).second)
        found.push_back(value.toTensor());
      continue;
    }
    bool isObject = value.isObject();
    if (!isObject && !value.isList() && !value.isTuple() && !value.isGenericDict())
      continue;
    if (!seen.insert(value.internalToPointer()).second)
      continue;
    size_t before = rest.size();
    // Numbers have no parts.
    auto push = [&](const IValue &part) {
      if (part.isTensor() || part.isPtrType())
        rest.push_back(part);
    };
    if (isObject && !isCustomClass(*value.type())) {
      for (const IValue &slot : value.toObject()->slots())
        push(slot);
    } else if (value.isList()) {
      for (const IValue &element : value.toListRef())
        push(element);
    } else if (value.isTuple()) {
      for (const IValue &element : value.toTupleRef().elements())
        push(element);
    } else if (value.isGenericDict()) {
      for (const auto &entry : value.toGenericDict())
        push(entry.value());
    }
    std::reverse(rest.begin() + static_cast<std::ptrdiff_t>(before), rest.end());
  }
  return found;
}

SharedMemory::SharedMemory(const IValue &root) {
  // By storage, in the order of the tensors.
  std::vector<std::vector<Member>> storages;
  std::unordered_map<const c10::StorageImpl *, size_t> numbers;
  for (const at::Tensor &tensor : collectTensors(root)) {
    if (!tensor.defined() || tensor.layout() != c10::kStrided || tensor.device().is_meta() ||
        !tensor.has_storage())
      continue;
    Member member{tensor, {}};
    try {
      member.layout = getLayout(tensor);
    } catch (const Unsupported &) {
      // Its literal is refused, with its name.
      continue;
    }
    if (member.layout.count == 0)
      continue;
    auto [entry, isNew] =
        numbers.try_emplace(tensor.storage().unsafeGetStorageImpl(), storages.size());
    if (isNew)
      storages.emplace_back();
    storages[entry->second].push_back(std::move(member));
  }
  for (const std::vector<Member> &members : storages) {
    std::vector<const Member *> sorted;
    for (const Member &member : members)
      sorted.push_back(&member);
    std::stable_sort(sorted.begin(), sorted.end(), [](const Member *left, const Member *right) {
      return left->layout.begin < right->layout.begin;
    });
    std::vector<const Member *> joined;
    uint64_t end = 0;
    for (const Member *member : sorted) {
      if (member->layout.begin >= end) {
        add(joined);
        joined.clear();
      }
      joined.push_back(member);
      end = std::max(end, member->layout.end);
    }
    add(joined);
  }
}

/// What keeps two tensors from being views of one; empty if nothing does.
static std::string findProblem(const at::Tensor &left, const at::Tensor &right) {
  // In an archive the dtype is the storage's.
  if (left.scalar_type() != right.scalar_type())
    return "a tensor that shares its memory with one of another dtype";
  const Quantization *one = getQuantization(left);
  const Quantization *other = getQuantization(right);
  if (!one && !other)
    return {};
  bool isSame = one && other && one->scheme == c10::kPerTensorAffine &&
                other->scheme == one->scheme && one->scale == other->scale &&
                one->zeroPoint == other->zeroPoint;
  return isSame ? "" : "a tensor that shares its memory with one that is quantised differently";
}

void SharedMemory::add(const std::vector<const Member *> &members) {
  if (members.size() < 2)
    return;
  const at::Tensor &first = members.front()->tensor;
  uint64_t begin = members.front()->layout.begin, end = 0;
  std::string problem;
  for (const Member *member : members) {
    end = std::max(end, member->layout.end);
    if (problem.empty())
      problem = findProblem(first, member->tensor);
  }
  const Member *whole = nullptr;
  for (const Member *member : members) {
    bool isWhole = member->layout.begin == begin && member->layout.end == end &&
                   isContiguous(member->layout) && !isConjugate(member->tensor) &&
                   !isNegative(member->tensor);
    if (isWhole && !whole)
      whole = member;
  }
  uint64_t size = first.itemsize();
  at::Tensor memory = whole ? whole->tensor
                            : getInARow(first, static_cast<int64_t>(begin / size),
                                        static_cast<int64_t>((end - begin) / size));
  for (const Member *member : members) {
    const at::Tensor &tensor = member->tensor;
    memories.emplace(tensor.unsafeGetTensorImpl(), memory);
    if (member == whole)
      continue;
    Alias alias;
    alias.memory = memory;
    alias.problem = problem;
    alias.sizes = member->layout.sizes;
    alias.strides = member->layout.strides;
    // Of one element there is no next one.
    for (size_t i = 0; i < alias.sizes.size(); ++i)
      alias.strides[i] = alias.sizes[i] == 1 ? 1 : alias.strides[i];
    alias.offset = static_cast<int64_t>((member->layout.begin - begin) / size);
    alias.overlapsItself = overlapsItself(member->layout);
    alias.isConjugate = isConjugate(tensor);
    alias.isNegative = isNegative(tensor);
    aliases.emplace(tensor.unsafeGetTensorImpl(), std::move(alias));
  }
}

const Alias *SharedMemory::find(const at::Tensor &tensor) const {
  auto found = aliases.find(tensor.unsafeGetTensorImpl());
  return found == aliases.end() ? nullptr : &found->second;
}

at::Tensor SharedMemory::findMemory(const at::Tensor &tensor) const {
  auto found = memories.find(tensor.unsafeGetTensorImpl());
  return found == memories.end() ? at::Tensor() : found->second;
}

} // namespace torch_mlir::torchscript
