// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory that an archive's code takes while it is loaded: `"x".ljust(10**12)` asks for it in
// one piece. This shared object's operator new, which nobody else sees, and its allocator of
// tensors ask the thread's budget before they give large pieces; small ones are as many as the
// steps that ask for them.

#include "LoadingCode.h"
#include "Pool.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

constexpr std::size_t large = 4096;

/// The allocator of tensors that libtorch takes by itself, within the budget. What it overrides
/// differs between releases of PyTorch: `allocate` was const, and there was no `copy_data`.
class BoundedAllocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(std::size_t size) const { return bounded(size); }
  c10::DataPtr allocate(std::size_t size) { return bounded(size); }
  c10::DeleterFnPtr raw_deleter() const override {
    return c10::GetDefaultCPUAllocator()->raw_deleter();
  }
  void copy_data(void *to, const void *from, std::size_t size) const {
    std::memcpy(to, from, size);
  }

private:
  static c10::DataPtr bounded(std::size_t size) {
    torch_mlir::torchscript::LoadingBudget::allocate(size);
    return c10::GetDefaultCPUAllocator()->allocate(size);
  }
};

/// Whichever registers itself first: this has the higher priority.
const bool isAllocator = [] {
  static BoundedAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
  return true;
}();

} // namespace

void *operator new(std::size_t size) {
  if (size >= large)
    torch_mlir::torchscript::LoadingBudget::allocate(size);
  else if (void *memory = torch_mlir::torchscript::takeFromPool(size))
    return memory;
  for (;;) {
    if (void *memory = std::malloc(size ? size : 1))
      return memory;
    std::new_handler handler = std::get_new_handler();
    if (!handler)
      throw std::bad_alloc();
    handler();
  }
}

void operator delete(void *memory) noexcept {
  if (!torch_mlir::torchscript::giveToPool(memory))
    std::free(memory);
}

void operator delete(void *memory, std::size_t) noexcept { operator delete(memory); }
