// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's quantised tensors bring its quantised kernels with them. Reading an archive takes
// less: tensors that know their scale, and objects that keep the state they were saved with.

#include "torchscript/Quantized.h"

#include "torchscript/Versions.h"

#include <c10/core/Allocator.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/TensorImpl.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <utility>

namespace torch_mlir::torchscript {

namespace {

class QuantizedTensor final : public c10::TensorImpl {
public:
  QuantizedTensor(c10::Storage storage, caffe2::TypeMeta dtype, Quantization quantization)
      : TensorImpl(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::QuantizedCPU), dtype),
        quantization(std::move(quantization)) {}

  const Quantization &getQuantization() const { return quantization; }

  c10::intrusive_ptr<TensorImpl>
  shallow_copy_and_detach(const c10::VariableVersion &version,
                          bool allowMetadataChange) const override {
    return copy(version, allowMetadataChange);
  }
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion &&version,
                                                         bool allowMetadataChange) const override {
    return copy(version, allowMetadataChange);
  }

private:
  c10::intrusive_ptr<TensorImpl> copy(const c10::VariableVersion &version,
                                      bool allowMetadataChange) const {
    auto made = c10::make_intrusive<QuantizedTensor>(c10::Storage(storage()), dtype(), quantization);
    copy_tensor_metadata(this, made.get(), version, allowMetadataChange);
    made->refresh_numel();
    made->refresh_contiguous();
    return made;
  }

  Quantization quantization;
};

at::Tensor makeEmpty(Optional<c10::ScalarType> dtype, Quantization quantization) {
  TORCH_CHECK(dtype && c10::isQIntType(*dtype), "a quantised tensor needs a quantised dtype");
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, c10::GetAllocator(c10::kCPU),
                       /*resizable=*/true);
  auto impl = c10::make_intrusive<QuantizedTensor>(
      std::move(storage), c10::scalarTypeToTypeMeta(*dtype), std::move(quantization));
  impl->set_sizes_contiguous({0});
  return at::Tensor(std::move(impl));
}

at::Tensor emptyAffine(Sizes, Optional<c10::ScalarType> dtype,
                       Optional<c10::Layout>, Optional<c10::Device>,
                       Optional<bool>, double scale, int64_t zeroPoint,
                       Optional<c10::MemoryFormat>) {
  Quantization quantization;
  quantization.scale = scale;
  quantization.zeroPoint = zeroPoint;
  return makeEmpty(dtype, std::move(quantization));
}

at::Tensor emptyByChannel(Sizes, const at::Tensor &scales,
                          const at::Tensor &zeroPoints, int64_t axis,
                          Optional<c10::ScalarType> dtype, Optional<c10::Layout>,
                          Optional<c10::Device>, Optional<bool>,
                          Optional<c10::MemoryFormat>) {
  Quantization quantization;
  quantization.scheme = c10::kPerChannelAffine;
  quantization.scales = scales;
  quantization.zeroPoints = zeroPoints;
  quantization.axis = axis;
  return makeEmpty(dtype, std::move(quantization));
}

/// The storage with no sizes of its own: who asks for it gives it sizes later.
at::Tensor &setStorage(at::Tensor &self, at::Storage source, c10::SymInt,
                       c10::SymIntArrayRef, c10::SymIntArrayRef) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  return self;
}

/// An object that keeps what it was saved as. A C++ class has one name, so there is one for each.
struct Packed : torch::CustomClassHolder {
  c10::IValue state;
};
template <int number> struct PackedAs final : Packed {};

template <int number> void declare(const char *name) {
  using Class = PackedAs<number>;
  torch::class_<Class>("quantized", name)
      .def_pickle([](const c10::intrusive_ptr<Class> &self) { return self->state; },
                  [](const c10::IValue &state) {
                    auto made = c10::make_intrusive<Class>();
                    made->state = state;
                    return made;
                  });
}

[[maybe_unused]] const bool areDeclared = [] {
  declare<0>("LinearPackedParamsBase");
  declare<1>("Conv2dPackedParamsBase");
  declare<2>("Conv3dPackedParamsBase");
  return true;
}();

} // namespace

TORCH_LIBRARY_IMPL(aten, BackendSelect, library) {
  library.impl("_empty_affine_quantized", emptyAffine);
  library.impl("_empty_per_channel_affine_quantized", emptyByChannel);
}

TORCH_LIBRARY_IMPL(aten, QuantizedCPU, library) {
  library.impl("set_.source_Storage_storage_offset", setStorage);
}

const Quantization *getQuantization(const at::Tensor &tensor) {
  auto *impl = dynamic_cast<QuantizedTensor *>(tensor.unsafeGetTensorImpl());
  return impl ? &impl->getQuantization() : nullptr;
}

at::Tensor getIntegers(const at::Tensor &tensor) {
  auto impl = c10::make_intrusive<c10::TensorImpl>(
      c10::Storage(tensor.storage()), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(c10::toUnderlying(tensor.scalar_type())));
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  impl->set_storage_offset(tensor.storage_offset());
  return at::Tensor(std::move(impl));
}

at::Tensor getInARow(const at::Tensor &tensor, int64_t offset, int64_t count) {
  c10::Storage storage(tensor.storage());
  c10::intrusive_ptr<c10::TensorImpl> impl;
  if (const Quantization *quantization = getQuantization(tensor))
    impl = c10::make_intrusive<QuantizedTensor>(std::move(storage), tensor.dtype(), *quantization);
  else
    impl = c10::make_intrusive<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  impl->set_sizes_contiguous({count});
  impl->set_storage_offset(offset);
  return at::Tensor(std::move(impl));
}

const c10::IValue *getPackedState(const c10::IValue &object) {
  const auto &slots = object.toObject()->slots();
  if (slots.empty() || !slots[0].isCapsule())
    return nullptr;
  // The object holds it.
  auto *packed = dynamic_cast<Packed *>(slots[0].toCapsule().get());
  return packed ? &packed->state : nullptr;
}

} // namespace torch_mlir::torchscript
