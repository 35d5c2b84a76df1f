// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels that reading an archive and freezing a module take, for tensors in the CPU's
// memory. PyTorch's own would bring its whole operator library.

#include "stubs.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Tensor.h>
#include <torch/library.h>

#include <cstring>

namespace torch_mlir::kernels {
namespace {

#if TORCH_MLIR_SOURCE_AT_LEAST(2, 0)
at::IntArrayRef asInts(c10::SymIntArrayRef sizes) { return C10_AS_INTARRAYREF_SLOW(sizes); }
int64_t asInt(const c10::SymInt &value) { return value.guard_int(__FILE__, __LINE__); }
#else
at::IntArrayRef asInts(c10::SymIntArrayRef sizes) { return c10::asIntArrayRefSlow(sizes); }
int64_t asInt(const c10::SymInt &value) { return value.expect_int(); }
#endif

at::Tensor empty(c10::SymIntArrayRef size, Optional<at::ScalarType> dtype,
                 Optional<at::Layout> layout, Optional<at::Device> device, Optional<bool> pinned,
                 Optional<at::MemoryFormat> format) {
  return at::detail::empty_cpu(asInts(size), dtype, layout, device, pinned, format);
}

at::Tensor emptyStrided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                        Optional<at::ScalarType> dtype, Optional<at::Layout> layout,
                        Optional<at::Device> device, Optional<bool> pinned) {
  return at::detail::empty_strided_cpu(asInts(size), asInts(stride), dtype, layout, device, pinned);
}

at::Tensor &setStorageAt(at::Tensor &self, at::Storage source, c10::SymInt offset,
                         c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  at::TensorImpl *impl = self.unsafeGetTensorImpl();
  const at::IntArrayRef sizes = asInts(size), strides = asInts(stride);
  impl->set_storage_keep_dtype(std::move(source));
  if (strides.empty() && !sizes.empty())
    impl->set_sizes_contiguous(sizes);
  else
    impl->set_sizes_and_strides(sizes, strides);
  impl->set_storage_offset(asInt(offset));
  return self;
}

at::Tensor &setStorage(at::Tensor &self, at::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.itemsize());
  at::TensorImpl *impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_sizes_contiguous({elements});
  impl->set_storage_offset(0);
  return self;
}

at::Tensor detach(const at::Tensor &self) {
  at::TensorImpl *impl = self.unsafeGetTensorImpl();
  return at::Tensor(impl->shallow_copy_and_detach(impl->version_counter(),
                                                  /*allow_tensor_metadata_change=*/true));
}

at::Tensor to(const at::Tensor &self, at::Device device, at::ScalarType dtype, bool, bool,
              Optional<at::MemoryFormat>) {
  if (dtype != self.scalar_type() || device != self.device())
    leftOut("a conversion to another dtype or device");
  return self;
}

/// Calls `visit` with the place of each element of `a`, and of `b` in the same order.
template <typename Visit>
void forEachElement(const at::Tensor &a, const at::Tensor &b, Visit visit) {
  const auto rank = static_cast<size_t>(a.dim());
  const size_t width = a.itemsize();
  std::vector<int64_t> at(rank, 0);
  const auto *left = static_cast<const char *>(a.storage().data()) + a.storage_offset() * width;
  const auto *right = static_cast<const char *>(b.storage().data()) + b.storage_offset() * width;
  for (int64_t left_over = a.numel(); left_over > 0; --left_over) {
    if (!visit(left, right))
      return;
    for (size_t axis = rank; axis-- > 0;) {
      left += a.stride(axis) * width;
      right += b.stride(axis) * width;
      if (++at[axis] < a.size(axis))
        break;
      left -= a.stride(axis) * a.size(axis) * width;
      right -= b.stride(axis) * b.size(axis) * width;
      at[axis] = 0;
    }
  }
}

at::Tensor clone(const at::Tensor &self, Optional<at::MemoryFormat>) {
  auto copy = at::Tensor(
      at::detail::empty_strided_cpu(self.sizes(), self.strides(), self.scalar_type()));
  forEachElement(self, copy, [&](const char *from, const char *to) {
    std::memcpy(const_cast<char *>(to), from, self.itemsize());
    return true;
  });
  return copy;
}

bool equal(const at::Tensor &self, const at::Tensor &other) {
  if (self.scalar_type() != other.scalar_type() || self.sizes() != other.sizes())
    return false;
  // Bits, where PyTorch compares numbers: what differs in them alone isn't made one.
  bool same = true;
  forEachElement(self, other, [&](const char *left, const char *right) {
    return same = std::memcmp(left, right, self.itemsize()) == 0;
  });
  return same;
}

} // namespace
} // namespace torch_mlir::kernels

TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("empty.memory_format", torch_mlir::kernels::empty);
  library.impl("empty_strided", torch_mlir::kernels::emptyStrided);
  library.impl("set_.source_Storage_storage_offset", torch_mlir::kernels::setStorageAt);
  library.impl("set_.source_Storage", torch_mlir::kernels::setStorage);
  library.impl("detach", torch_mlir::kernels::detach);
  library.impl("to.device", torch_mlir::kernels::to);
  library.impl("clone", torch_mlir::kernels::clone);
  library.impl("equal", torch_mlir::kernels::equal);
}

// Without PyTorch's choice among backends, which asks for a device: there is one.
TORCH_LIBRARY_IMPL(aten, BackendSelect, library) {
  library.impl("empty.memory_format", torch_mlir::kernels::empty);
  library.impl("empty_strided", torch_mlir::kernels::emptyStrided);
}

// Nothing is differentiated.
TORCH_LIBRARY_IMPL(_, AutogradCPU, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(_, AutogradOther, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(_, ADInplaceOrView, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}
