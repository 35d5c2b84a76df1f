// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's quantised tensors bring its quantised kernels with them. Reading an archive takes
// less: tensors that know their scale, and objects that keep the state they were saved with.

#include "torchscript/Quantized.h"

#include "torchscript/Memory.h"
#include "torchscript/Types.h"
#include "torchscript/Versions.h"

#include <ATen/core/builtin_function.h>
#include <ATen/core/class_type.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/core/Allocator.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/TensorImpl.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

namespace torch_mlir::torchscript {

using c10::IValue;

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

/// An object that keeps what it was saved as, or the operator that made it and its arguments.
struct Packed final : torch::CustomClassHolder {
  IValue state;
  Optional<c10::FunctionSchema> maker;
  std::vector<IValue> arguments;
};

/// What an object of a custom C++ class keeps, null for another one.
const Packed *getPacked(const IValue &object) {
  const auto &slots = object.toObject()->slots();
  if (slots.empty() || !slots[0].isCapsule())
    return nullptr;
  // The object holds it.
  return dynamic_cast<const Packed *>(slots[0].toCapsule().get());
}

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

//===----------------------------------------------------------------------===//
// Packed parameters
//===----------------------------------------------------------------------===//

static void define(const c10::ClassTypePtr &type, const std::string &name,
                   std::vector<c10::Argument> arguments, const c10::TypePtr &result,
                   std::function<void(torch::jit::Stack &)> body) {
  arguments.insert(arguments.begin(), c10::Argument("self", type));
  auto method = std::make_unique<torch::jit::BuiltinOpFunction>(
      c10::QualifiedName(*type->name(), name),
      c10::FunctionSchema(name, "", std::move(arguments), {c10::Argument("", result)}),
      std::move(body));
  type->addMethod(method.get());
  torch::registerCustomClassMethod(std::move(method));
}

void keepState(const c10::ClassTypePtr &type) {
  define(type, "__getstate__", {}, c10::AnyType::get(), [](torch::jit::Stack &stack) {
    const Packed *packed = getPacked(stack.back());
    stack.back() = packed ? IValue(packed->state) : IValue();
  });
  define(type, "__setstate__", {c10::Argument("state", c10::AnyType::get())}, c10::NoneType::get(),
         [](torch::jit::Stack &stack) {
           auto made = c10::make_intrusive<Packed>();
           made->state = torch::jit::pop(stack);
           torch::jit::pop(stack).toObject()->setSlot(0, IValue::make_capsule(made));
           stack.emplace_back();
         });
}

bool makeObject(const c10::FunctionSchema &schema, torch::jit::Stack &stack) {
  if (schema.returns().size() != 1 || !isCustomClass(*schema.returns()[0].type()))
    return false;
  auto type = schema.returns()[0].type()->expect<c10::ClassType>();
  auto made = c10::make_intrusive<Packed>();
  made->maker = schema;
  made->arguments = torch::jit::pop(stack, schema.arguments().size());
  auto object = c10::ivalue::Object::create(
      c10::StrongTypePtr(std::shared_ptr<torch::jit::CompilationUnit>(), type), 1);
  object->setSlot(0, IValue::make_capsule(made));
  stack.emplace_back(std::move(object));
  return true;
}

static const std::string classPrefix = "__torch__.torch.classes.";

const std::map<std::string, std::string> &getMethodOperators() {
  static const auto *operators = new std::map<std::string, std::string>{
      {classPrefix + "quantized.LinearPackedParamsBase", "quantized::linear_"},
      {classPrefix + "quantized.Conv2dPackedParamsBase", "quantized::conv2d_"},
      {classPrefix + "quantized.Conv3dPackedParamsBase", "quantized::conv3d_"},
      {classPrefix + "quantized.EmbeddingPackedParamsBase", "quantized::embedding_bag_"},
  };
  return *operators;
}

void declareMethod(const c10::ClassTypePtr &type, const std::string &name,
                   const c10::FunctionSchema &schema) {
  if (type->findMethod(name))
    return;
  std::vector<c10::TypePtr> results;
  for (const c10::Argument &result : schema.returns())
    results.push_back(result.type());
  c10::TypePtr result = results.size() == 1 ? results[0] : c10::TupleType::create(results);
  define(type, name, {}, result, [](torch::jit::Stack &) {
    throw std::runtime_error("this importer runs no methods of packed parameters");
  });
}

namespace {

using Operands = std::vector<std::pair<std::string, IValue>>;

/// The elements of a tensor of 16-bit integers.
Optional<std::vector<int64_t>> getNumbers(const IValue &value) {
  if (!value.isTensor() || !value.toTensor().defined() ||
      value.toTensor().scalar_type() != c10::ScalarType::Short || value.toTensor().dim() != 1)
    return {};
  Layout layout = getLayout(value.toTensor());
  std::vector<int64_t> numbers;
  for (uint64_t i = 0; i < layout.count; ++i) {
    int16_t number;
    std::memcpy(&number, layout.data + i * static_cast<uint64_t>(layout.strides[0]) * sizeof number,
                sizeof number);
    numbers.push_back(number);
  }
  return numbers;
}

bool isTensorOrNone(const IValue &value) { return value.isTensor() || value.isNone(); }

/// See conv_serialization.h of ATen's: of three versions, one has everything as tensors, the next
/// the numbers in one tensor, and the last in a list.
Optional<Packing> getConvolution(const std::vector<IValue> &state, int64_t rank) {
  IValue weight, bias;
  std::vector<int64_t> numbers;
  if (state.size() == 6 && state[0].isTensor()) {
    weight = state[0];
    bias = state[1];
    numbers.push_back(rank);
    for (size_t i = 2; i < 6; ++i) {
      // There is no output padding, and the convolution isn't transposed.
      if (i == 5)
        numbers.insert(numbers.end(), static_cast<size_t>(rank), 0);
      std::vector<IValue> parts{state[i]};
      if (i < 5 && state[i].isList())
        parts.assign(state[i].toListRef().begin(), state[i].toListRef().end());
      for (const IValue &part : parts) {
        auto number = getNumbers(part);
        if (!number || number->empty())
          return {};
        numbers.push_back(number->front());
      }
    }
    numbers.push_back(0);
  } else if (state.size() == 3 && state[1].isList() && state[2].isList()) {
    auto first = state[1].toListRef(), second = state[2].toListRef();
    if (state[0].isString() && state[0].toStringRef() == "2" && first.size() == 2) {
      auto given = getNumbers(first[0]);
      if (!given)
        return {};
      numbers = *given;
      weight = first[1];
      bias = second.empty() ? IValue() : second[0];
    } else if (state[0].isInt() && state[0].toInt() == 3 && second.size() == 3) {
      for (const IValue &number : first) {
        if (!number.isInt())
          return {};
        numbers.push_back(number.toInt());
      }
      weight = second[1];
      bias = second[2];
    }
  }
  auto count = static_cast<size_t>(rank);
  if (!weight.isTensor() || !isTensorOrNone(bias) || numbers.size() != 4 * count + 3 ||
      numbers[0] != rank || (numbers.back() != 0 && numbers.back() != 1))
    return {};
  auto list = [&](size_t number) {
    auto first = numbers.begin() + static_cast<std::ptrdiff_t>(1 + number * count);
    return IValue(std::vector<int64_t>(first, first + rank));
  };
  bool isTransposed = numbers.back() == 1;
  Packing packing;
  packing.operation = std::string("torch.quantized.conv") + (isTransposed ? "_transpose" : "") +
                      std::to_string(rank) + "d_prepack";
  packing.operands = {
      {"weight", weight}, {"bias", bias}, {"stride", list(0)}, {"padding", list(1)}};
  if (isTransposed)
    packing.operands.emplace_back("output_padding", list(3));
  packing.operands.emplace_back("dilation", list(2));
  packing.operands.emplace_back("groups", numbers[numbers.size() - 2]);
  return packing;
}

/// See register_embedding_params of ATen's: version, tensors, floats, ints.
Optional<Packing> getEmbedding(const std::vector<IValue> &state) {
  if (state.size() != 4 || !state[0].isInt() || state[0].toInt() != 1 || !state[1].isList() ||
      state[1].toListRef().size() != 1 || !state[1].toListRef()[0].isTensor())
    return {};
  return Packing{"torch.quantized.embedding_bag_prepack", {{"weight", state[1].toListRef()[0]}}};
}

/// See CellParamsSerializationType in ATen's RNN.cpp: kind, tensors, floats, ints, parameters of
/// linear layers.
Optional<Packing> getCell(const std::vector<IValue> &state) {
  if (state.size() != 5 || !state[0].isString() || !state[1].isList() || !state[3].isList() ||
      !state[4].isList())
    return {};
  const std::string &kind = state[0].toStringRef();
  auto tensors = state[1].toListRef(), numbers = state[3].toListRef();
  auto linear = state[4].toListRef();
  auto isTensor = [](const IValue &value) { return value.isTensor(); };
  auto isObject = [](const IValue &value) { return value.isObject(); };
  if (!std::all_of(tensors.begin(), tensors.end(), isTensor) ||
      !std::all_of(linear.begin(), linear.end(), isObject))
    return {};
  if (kind == "quantized" && tensors.size() == 6)
    return Packing{"torch.quantized.make_quantized_cell_params",
                   {{"w_ih", tensors[0]}, {"w_hh", tensors[1]}, {"b_ih", tensors[2]},
                    {"b_hh", tensors[3]}}};
  if (linear.size() != 2)
    return {};
  Operands operands = {{"w_ih", linear[0]}, {"w_hh", linear[1]}};
  if (kind == "quantized_fp16")
    return Packing{"torch.quantized.make_quantized_cell_params_fp16", operands};
  if (kind != "quantized_dynamic" || tensors.size() != 2)
    return {};
  bool reducesRange = !numbers.empty() && numbers[0].isInt() && numbers[0].toInt() != 0;
  operands.insert(operands.end(), {{"b_ih", tensors[0]}, {"b_hh", tensors[1]},
                                   {"reduce_range", IValue(reducesRange)}});
  return Packing{"torch.quantized.make_quantized_cell_params_dynamic", operands};
}

Optional<Packing> getLinear(const std::vector<IValue> &state) {
  if (state.size() != 2 || !state[0].isTensor() || !isTensorOrNone(state[1]))
    return {};
  Packing packing{"torch.linear_params.create", {{"weight", state[0]}}};
  if (state[1].isTensor())
    packing.operands.emplace_back("bias", state[1]);
  return packing;
}

/// The call that made an object.
Packing getMaking(const Packed &packed) {
  const c10::FunctionSchema &schema = *packed.maker;
  Packing packing;
  packing.operation = "torch." + schema.name();
  packing.operation.replace(packing.operation.find("::"), 2, ".");
  if (!schema.overload_name().empty())
    packing.operation += "." + schema.overload_name();
  for (size_t i = 0; i < packed.arguments.size(); ++i)
    packing.operands.emplace_back(schema.arguments()[i].name(), packed.arguments[i]);
  return packing;
}

} // namespace

Optional<Packing> getPacking(const IValue &object) {
  const Packed *packed = getPacked(object);
  if (packed && packed->maker)
    return getMaking(*packed);
  if (!packed || !packed->state.isTuple())
    return {};
  const auto &elements = packed->state.toTupleRef().elements();
  std::vector<IValue> state(elements.begin(), elements.end());
  std::string name = getName(*object.toObject()->type()).substr(classPrefix.size());
  if (name == "quantized.LinearPackedParamsBase")
    return getLinear(state);
  if (name == "quantized.Conv2dPackedParamsBase")
    return getConvolution(state, 2);
  if (name == "quantized.Conv3dPackedParamsBase")
    return getConvolution(state, 3);
  if (name == "quantized.EmbeddingPackedParamsBase")
    return getEmbedding(state);
  if (name == "rnn.CellParamsBase")
    return getCell(state);
  return {};
}

} // namespace torch_mlir::torchscript
