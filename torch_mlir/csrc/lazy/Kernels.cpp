// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels for the operators that PyTorch has no lazy ones for.

#include "lazy/Kernels.h"

#include "lazy/OperatorNode.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/lazy/backend/backend_device.h>
#include <torch/csrc/lazy/core/ir_builder.h>
#include <torch/csrc/lazy/core/metrics.h>
#include <torch/csrc/lazy/core/tensor.h>
#include <torch/csrc/lazy/core/tensor_impl.h>
#include <torch/library.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace torch_mlir::lazy {

using c10::FunctionSchema;
using c10::IValue;
using c10::TypeKind;
using torch::lazy::BackendDevice;
using torch::lazy::LazyTensor;
using torch::lazy::LazyTensorPtr;
using torch::lazy::LTCTensorImpl;
using torch::jit::Stack;

namespace {

void countFallback(const FunctionSchema &schema) {
  static std::mutex mutex;
  static auto &counters = *new std::map<std::string, std::unique_ptr<torch::lazy::Counter>>();
  std::string name = toString(schema.operator_name());
  std::lock_guard<std::mutex> lock(mutex);
  auto &counter = counters[name];
  if (!counter)
    counter = std::make_unique<torch::lazy::Counter>(name);
  counter->AddValue(1);
}

bool isTensor(const c10::TypePtr &type) {
  return type->kind() == TypeKind::TensorType ||
         (type->kind() == TypeKind::OptionalType &&
          type->expectRef<c10::OptionalType>().getElementType()->kind() == TypeKind::TensorType);
}

bool isTensorList(const c10::TypePtr &type) {
  return type->kind() == TypeKind::ListType &&
         isTensor(type->expectRef<c10::ListType>().getElementType());
}

/// Calls `change` with each tensor that a value is or holds, and gives the value with what that
/// gives.
template <typename Change> IValue mapTensors(const IValue &value, const Change &change) {
  if (value.isTensor())
    return value.toTensor().defined() ? IValue(change(value.toTensor())) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> changed;
    for (const at::Tensor &each : value.toTensorVector())
      changed.push_back(each.defined() ? change(each) : each);
    return changed;
  }
  if (value.isList() &&
      value.toList().elementType()->kind() == TypeKind::OptionalType) {
    c10::impl::GenericList changed(value.toList().elementType());
    for (const IValue &each : value.toListRef())
      changed.push_back(mapTensors(each, change));
    return changed;
  }
  return value;
}

/// The device of the first lazy tensor, or the one that is asked for.
std::optional<BackendDevice> findDevice(at::ArrayRef<IValue> arguments) {
  std::optional<BackendDevice> device;
  for (const IValue &argument : arguments) {
    mapTensors(argument, [&](const at::Tensor &tensor) {
      if (LazyTensorPtr lazy = device ? LazyTensorPtr() : torch::lazy::TryGetLtcTensor(tensor))
        device = lazy->GetDevice();
      return tensor;
    });
    if (device)
      return device;
  }
  for (const IValue &argument : arguments)
    if (argument.isDevice() && argument.toDevice().is_lazy())
      return torch::lazy::atenDeviceToBackendDevice(argument.toDevice());
  return device;
}

/// Runs an operator on the CPU.
void fallBack(const c10::OperatorHandle &op, Stack *stack, const BackendDevice &device) {
  const FunctionSchema &schema = op.schema();
  countFallback(schema);
  size_t count = schema.arguments().size();
  Stack moved;
  for (const IValue &argument : torch::jit::last(*stack, count)) {
    if (argument.isDevice() && argument.toDevice().is_lazy()) {
      moved.emplace_back(c10::Device(c10::kCPU));
      continue;
    }
    moved.push_back(mapTensors(argument, [](const at::Tensor &tensor) {
      LazyTensorPtr lazy = torch::lazy::TryGetLtcTensor(tensor);
      return lazy ? lazy->ToTensor(/*detached=*/false) : tensor;
    }));
  }
  op.callBoxed(&moved);
  torch::jit::drop(*stack, count);
  c10::Device target = torch::lazy::backendDeviceToAtenDevice(device);
  for (const IValue &result : moved)
    stack->push_back(mapTensors(result, [&](const at::Tensor &tensor) {
      return torch::lazy::to_lazy_tensor(tensor, tensor.options(), target, /*non_blocking=*/false,
                                         /*functionalize_output=*/false);
    }));
}

/// What an operator's Meta kernel gives; empty where it has none, or none for these arguments.
std::optional<Stack> inferResults(const c10::OperatorHandle &op, at::ArrayRef<IValue> arguments) {
  Stack meta;
  for (const IValue &argument : arguments) {
    if (argument.isDevice()) {
      meta.emplace_back(c10::Device(c10::kMeta));
      continue;
    }
    meta.push_back(mapTensors(argument, [](const at::Tensor &tensor) {
      at::Tensor made = at::empty(tensor.sizes(), tensor.options().device(c10::kMeta));
      if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
        made.unsafeGetTensorImpl()->set_wrapped_number(true);
      return made;
    }));
  }
  try {
    op.callBoxed(&meta);
  } catch (const std::exception &) {
    // Whether there is no such kernel or the arguments are wrong, the CPU's tells.
    return std::nullopt;
  }
  return meta;
}

/// Makes a node of a call; whether there is one.
bool makeNode(const c10::OperatorHandle &op, Stack *stack, const BackendDevice &device) {
  const FunctionSchema &schema = op.schema();
  size_t count = schema.arguments().size();
  auto given = torch::jit::last(*stack, count);

  std::vector<OperatorArgument> arguments;
  std::vector<torch::lazy::Value> operands;
  bool isLowered = true;
  auto addOperand = [&](const IValue &value) -> int64_t {
    if (value.isNone() || !value.toTensor().defined())
      return -1;
    const at::Tensor &tensor = value.toTensor();
    if (tensor.layout() != c10::kStrided || tensor.is_quantized()) {
      isLowered = false;
      return -1;
    }
    // Tensors without dimensions may be those of the CPU, and so may what is copied.
    LazyTensorPtr lazy = tensor.dim() == 0 || schema.name() == "aten::copy"
                             ? torch::lazy::GetOrCreateLtcTensor(tensor, device)
                             : torch::lazy::GetLtcTensor(tensor);
    operands.push_back(lazy->GetIrValue());
    return static_cast<int64_t>(operands.size()) - 1;
  };
  for (size_t i = 0; i < count; ++i) {
    OperatorArgument argument;
    const c10::TypePtr &type = schema.arguments()[i].type();
    if (given[i].isGenerator())
      return false; // it's the CPU's
    if (isTensor(type) && !given[i].isNone() && given[i].toTensor().defined()) {
      argument.kind = OperatorArgument::Kind::Tensor;
      argument.operands.push_back(addOperand(given[i]));
    } else if (isTensorList(type)) {
      argument.kind = OperatorArgument::Kind::TensorList;
      for (const IValue &element : given[i].toListRef())
        argument.operands.push_back(addOperand(element));
    } else if (!isTensor(type) && !given[i].isDevice()) {
      argument.constant = given[i];
    }
    arguments.push_back(std::move(argument));
  }
  if (!isLowered)
    return false;
  std::optional<Stack> results = inferResults(op, given);
  if (!results)
    return false;

  std::vector<OperatorReturn> returns;
  std::vector<torch::lazy::Shape> shapes;
  auto addShape = [&](const at::Tensor &tensor) {
    isLowered &= tensor.defined() && tensor.layout() == c10::kStrided && !tensor.is_quantized();
    if (isLowered)
      shapes.emplace_back(tensor.scalar_type(), tensor.sizes());
  };
  for (const IValue &result : *results) {
    if (result.isTensorList()) {
      auto tensors = result.toTensorVector();
      for (const at::Tensor &each : tensors)
        addShape(each);
      returns.push_back({true, tensors.size()});
    } else {
      addShape(result.toTensor());
      returns.push_back({false, 1});
    }
  }
  if (!isLowered || shapes.empty())
    return false;
  auto node = torch::lazy::MakeNode<OperatorNode>(schema, std::move(arguments), operands, returns,
                                                  std::move(shapes));
  torch::jit::drop(*stack, count);
  size_t next = 0;
  auto take = [&] {
    return torch::lazy::CreateAtenFromLtcTensor(
        LazyTensor::Create(torch::lazy::Value(node, next++), device));
  };
  for (const OperatorReturn &each : returns) {
    if (!each.isList) {
      stack->emplace_back(take());
      continue;
    }
    c10::List<at::Tensor> tensors;
    for (size_t i = 0; i < each.count; ++i)
      tensors.push_back(take());
    stack->emplace_back(std::move(tensors));
  }
  return true;
}

void runFunctional(const c10::OperatorHandle &op, Stack *stack) {
  // What lies above the Lazy key has been done.
  at::AutoDispatchBelowADInplaceOrView below;
  c10::impl::ExcludeDispatchKeyGuard functional(c10::DispatchKey::Functionalize);
  auto device = findDevice(torch::jit::last(*stack, op.schema().arguments().size()));
  TORCH_CHECK(device, op.schema().operator_name(), ": no argument tells the lazy device");
  if (!makeNode(op, stack, *device))
    fallBack(op, stack, *device);
}

/// The number of arguments that are written to and given back, which are the last ones; 0 where
/// it isn't such an operator.
size_t countOutputs(const FunctionSchema &schema) {
  size_t count = 0;
  for (const c10::Argument &argument : schema.arguments()) {
    if (!argument.alias_info())
      continue;
    if (!argument.is_out() || !isTensor(argument.type()))
      return 0;
    ++count;
  }
  return count == schema.returns().size() ? count : 0;
}

/// The operator that gives what another writes.
std::optional<c10::OperatorHandle> findFunctional(const FunctionSchema &schema) {
  size_t count = schema.arguments().size() - countOutputs(schema);
  for (const c10::OperatorName &name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name != schema.name())
      continue;
    auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || op->schema().is_mutable() || op->schema().arguments().size() != count ||
        op->schema().returns().size() != schema.returns().size())
      continue;
    bool isSame = true;
    for (size_t i = 0; i < count; ++i) {
      const c10::Argument &left = op->schema().arguments()[i];
      const c10::Argument &right = schema.arguments()[i];
      isSame &= left.name() == right.name() && *left.type() == *right.type();
    }
    if (isSame)
      return *op;
  }
  return std::nullopt;
}

void runOut(const c10::OperatorHandle &op, Stack *stack) {
  static std::mutex mutex;
  static auto &found = *new std::map<c10::OperatorName, std::optional<c10::OperatorHandle>,
                                     bool (*)(const c10::OperatorName &, const c10::OperatorName &)>(
      [](const c10::OperatorName &left, const c10::OperatorName &right) {
        return std::tie(left.name, left.overload_name) < std::tie(right.name, right.overload_name);
      });
  std::optional<c10::OperatorHandle> functional;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto entry = found.find(op.operator_name());
    if (entry == found.end())
      entry = found.emplace(op.operator_name(), findFunctional(op.schema())).first;
    functional = entry->second;
  }
  TORCH_CHECK(functional, op.schema().operator_name(), " has no functional form");
  size_t outputs = countOutputs(op.schema());
  std::vector<IValue> written(stack->end() - static_cast<std::ptrdiff_t>(outputs), stack->end());
  torch::jit::drop(*stack, outputs);
  functional->callBoxed(stack);
  for (size_t i = 0; i < outputs; ++i) {
    IValue &result = torch::jit::peek(*stack, i, outputs);
    const at::Tensor &output = written[i].toTensor();
    LazyTensorPtr made = torch::lazy::TryGetLtcTensor(result.toTensor());
    LazyTensorPtr before = torch::lazy::TryGetLtcTensor(output);
    TORCH_CHECK(made && before, op.schema().operator_name(), ": 'out' is no lazy tensor");
    TORCH_CHECK(made->dtype() == before->dtype(), op.schema().operator_name(), " gives ",
                made->dtype(), ", and 'out' holds ", before->dtype());
    static_cast<LTCTensorImpl *>(output.unsafeGetTensorImpl())->set_tensor(made);
    result = output;
  }
}

bool gives(const FunctionSchema &schema) {
  return !schema.returns().empty() && !schema.is_varret() &&
         std::all_of(schema.returns().begin(), schema.returns().end(),
                     [](const c10::Argument &each) {
                       return each.type()->kind() == TypeKind::TensorType ||
                              isTensorList(each.type());
                     });
}

bool hasKernel(const c10::OperatorHandle &op) {
  for (c10::DispatchKey key :
       {c10::DispatchKey::Lazy, c10::DispatchKey::CompositeImplicitAutograd,
        c10::DispatchKey::CompositeExplicitAutograd})
    if (op.hasKernelForDispatchKey(key))
      return true;
  return false;
}

std::vector<std::string> &names() {
  static auto *all = new std::vector<std::string>();
  return *all;
}

} // namespace

const std::vector<std::string> &getKernelNames() { return names(); }

void registerKernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    static auto *library =
        new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Lazy, __FILE__, __LINE__);
    auto &dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName &name : dispatcher.getAllOpNames()) {
      if (name.name.compare(0, 6, "aten::") != 0)
        continue;
      auto op = dispatcher.findSchema(name);
      if (!op || !gives(op->schema()) || hasKernel(*op))
        continue;
      const FunctionSchema &schema = op->schema();
      bool isAlias = std::any_of(schema.returns().begin(), schema.returns().end(),
                                 [](const auto &each) { return each.alias_info(); });
      std::string own = toString(name).substr(6);
      if (!schema.is_mutable() && !isAlias)
        library->impl(own.c_str(), torch::CppFunction::makeFromBoxedFunction<&runFunctional>());
      else if (countOutputs(schema) && findFunctional(schema))
        library->impl(own.c_str(), torch::CppFunction::makeFromBoxedFunction<&runOut>());
      else
        continue;
      names().push_back(toString(name));
    }
    std::sort(names().begin(), names().end());
  });
}

} // namespace torch_mlir::lazy
