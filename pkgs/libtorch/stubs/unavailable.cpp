// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that files of PyTorch's refer to and reading a model never calls, or that have
// one answer where nothing is run.

#include "stubs.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ExpandUtils.h>
#include <ATen/Generator.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <caffe2/serialize/inline_container.h>
#include <miniz.h>
#include <torch/csrc/jit/codegen/fuser/interface.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/utils/cpp_stacktraces.h>

#include <functional>
#include <ostream>

using torch_mlir::leftOut;
using torch_mlir::Optional;

namespace at {

namespace native {
bool is_nonzero(const Tensor &) { leftOut("aten::is_nonzero"); }
Tensor scalar_tensor(const Scalar &, Optional<ScalarType>, Optional<Layout>, Optional<Device>,
                     Optional<bool>) {
  leftOut("aten::scalar_tensor");
}
enum class CPUCapability;
CPUCapability get_cpu_capability() { return static_cast<CPUCapability>(0); }
} // namespace native

namespace detail {
const Generator &getDefaultCPUGenerator() { leftOut("the default generator"); }
Generator createCPUGenerator(uint64_t) { leftOut("a generator"); }
} // namespace detail

namespace autocast {
#if TORCH_MLIR_SOURCE_AT_LEAST(2, 4)
bool is_autocast_enabled(DeviceType) { return false; }
ScalarType get_autocast_dtype(DeviceType) { return kFloat; }
void set_autocast_dtype(DeviceType, ScalarType) {}
#else
bool is_enabled() { return false; }
bool is_cpu_enabled() { return false; }
#endif
} // namespace autocast

namespace functionalization::impl {
bool getFunctionalizationReapplyViewsTLS() { return false; }
void setFunctionalizationReapplyViewsTLS(bool) {}
} // namespace functionalization::impl

/// In messages: what a tensor is; its elements may be many.
std::ostream &print(std::ostream &stream, const Tensor &tensor, int64_t) {
  if (!tensor.defined())
    return stream << "[undefined tensor]";
  return stream << "[tensor " << tensor.dtype().name() << " " << tensor.sizes() << "]";
}

std::vector<int64_t> infer_size(IntArrayRef, IntArrayRef) { leftOut("at::infer_size"); }

void launch(std::function<void()> task) { task(); }

} // namespace at

namespace torch {

bool get_cpp_stacktraces_enabled() { return false; }

namespace jit {
int64_t registerFusion(const Node *) { leftOut("fusion"); }
void runFusion(const int64_t, Stack &) { leftOut("fusion"); }
void writeArchiveAndTensors(const std::string &, const char *, size_t,
                            const std::vector<at::Tensor> &,
                            caffe2::serialize::PyTorchStreamWriter &) {
  leftOut("writing an archive");
}
} // namespace jit

} // namespace torch

// Of inline_container.cc, for whose reader csrc/torchscript/StreamReader.cpp stands in.
namespace caffe2::serialize {
#if TORCH_MLIR_SOURCE_AT_LEAST(2, 5)
PyTorchStreamWriter::PyTorchStreamWriter(std::function<size_t(const void *, size_t)>, bool) {
#elif TORCH_MLIR_SOURCE_AT_LEAST(2, 0)
PyTorchStreamWriter::PyTorchStreamWriter(const std::function<size_t(const void *, size_t)>) {
#else
PyTorchStreamWriter::PyTorchStreamWriter(
    const std::function<size_t(const void *, size_t)> &) {
#endif
  leftOut("writing an archive");
}
PyTorchStreamWriter::~PyTorchStreamWriter() = default;
} // namespace caffe2::serialize
