// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels for the operators that PyTorch has no lazy ones for.

#include "lazy/Kernels.h"

#include "lazy/Computation.h"
#include "lazy/Functional.h"
#include "lazy/MetaKernels.h"
#include "lazy/OperatorNode.h"
#include "torchscript/Builder.h"
#include "torchscript/Schemas.h"
#include "torchscript/Versions.h"

#include <ATen/ATen.h>
#include <ATen/NativeFunctions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/native/Resize.h>
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
#include <utility>
#include <vector>

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

/// For each argument whether an operator writes to it though its schema doesn't tell, as a later
/// release's does.
std::vector<bool> findHiddenWrites(const FunctionSchema &schema) {
  const auto &arguments = schema.arguments();
  std::vector<bool> isWritten(arguments.size());
  for (const FunctionSchema *later : torchscript::laterSchemas(schema))
    for (size_t i = 0; i < arguments.size() && arguments.size() == later->arguments().size(); ++i)
      if (const auto *alias = later->arguments()[i].alias_info(); alias && alias->isWrite())
        isWritten[i] = isWritten[i] || !arguments[i].alias_info();
  return isWritten;
}

bool hasHiddenWrites(const FunctionSchema &schema) {
  std::vector<bool> isWritten = findHiddenWrites(schema);
  return std::find(isWritten.begin(), isWritten.end(), true) != isWritten.end();
}

/// Runs an operator on the CPU.
void fallBack(const c10::OperatorHandle &op, Stack *stack, const BackendDevice &device) {
  const FunctionSchema &schema = op.schema();
  countFallback(schema);
  size_t count = schema.arguments().size();
  Stack moved;
  std::vector<bool> isWritten = findHiddenWrites(schema);
  std::vector<std::pair<LazyTensorPtr, at::Tensor>> written;
  for (size_t i = 0; i < count; ++i) {
    const IValue &argument = torch::jit::peek(*stack, i, count);
    if (argument.isDevice() && argument.toDevice().is_lazy()) {
      moved.emplace_back(c10::Device(c10::kCPU));
      continue;
    }
    moved.push_back(mapTensors(argument, [&](const at::Tensor &tensor) {
      LazyTensorPtr lazy = torch::lazy::TryGetLtcTensor(tensor);
      if (!lazy)
        return tensor;
      if (!isWritten[i])
        return lazy->ToTensor(/*detached=*/true);
      // Others may hold the same memory.
      written.emplace_back(lazy, lazy->ToTensor(/*detached=*/true).clone());
      return written.back().second;
    }));
  }
  op.callBoxed(&moved);
  for (const auto &[lazy, tensor] : written)
    lazy->UpdateFromTensor(tensor, /*sync=*/false);
  torch::jit::drop(*stack, count);
  c10::Device target = torch::lazy::backendDeviceToAtenDevice(device);
  for (const IValue &result : moved)
    stack->push_back(mapTensors(result, [&](const at::Tensor &tensor) {
      TORCH_CHECK(tensor.layout() == c10::kStrided, schema.operator_name(),
                  " gives a tensor that isn't dense, as lazy tensors are: ", tensor.layout());
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
  if (!runMetaKernel(op, meta))
    return std::nullopt;
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
  // To TorchScript, True is no number.
  std::map<size_t, IValue> asIntegers;
  auto addOperand = [&](const IValue &value, bool isInList) -> int64_t {
    if (value.isNone() || !value.toTensor().defined())
      return -1;
    const at::Tensor &tensor = value.toTensor();
    if (tensor.layout() != c10::kStrided || tensor.is_quantized()) {
      isLowered = false;
      return -1;
    }
    LazyTensorPtr lazy = torch::lazy::TryGetLtcTensor(tensor);
    // Tensors without dimensions may be those of the CPU, and so may what is copied and indices.
    if (!lazy && (isInList || tensor.dim() == 0 || schema.name() == "aten::copy"))
      // Others may write to its memory before the graph runs.
      lazy = torch::lazy::GetOrCreateLtcTensor(
          tensor.unsafeGetTensorImpl()->is_wrapped_number() ? tensor : tensor.detach().clone(),
          device);
    else if (!lazy)
      lazy = torch::lazy::GetLtcTensor(tensor);
    operands.push_back(lazy->GetIrValue());
    return static_cast<int64_t>(operands.size()) - 1;
  };
  for (size_t i = 0; i < count; ++i) {
    OperatorArgument argument;
    const c10::TypePtr &type = schema.arguments()[i].type();
    if (given[i].isGenerator())
      return false; // it's the CPU's
    if (schema.arguments()[i].name() == "dtype" && given[i].isInt() &&
        c10::isQIntType(static_cast<c10::ScalarType>(given[i].toInt())))
      return false;
    if (isTensor(type) && !given[i].isNone() && given[i].toTensor().defined()) {
      argument.kind = OperatorArgument::Kind::Tensor;
      argument.operands.push_back(addOperand(given[i], false));
    } else if (isTensorList(type)) {
      argument.kind = OperatorArgument::Kind::TensorList;
      for (const IValue &element : given[i].toListRef())
        argument.operands.push_back(addOperand(element, true));
    } else if (!isTensor(type) && !given[i].isDevice()) {
      bool isNumber = given[i].isBool() && type->kind() == TypeKind::NumberType;
      argument.constant = isNumber ? IValue(static_cast<int64_t>(given[i].toBool())) : given[i];
      if (isNumber)
        asIntegers[i] = argument.constant;
    }
    arguments.push_back(std::move(argument));
  }
  if (!isLowered)
    return false;
  std::optional<Stack> results = inferResults(op, given);
  if (!results)
    return false;
  if (!asIntegers.empty()) {
    Stack changed(given.begin(), given.end());
    for (const auto &[i, integer] : asIntegers)
      changed[i] = integer;
    std::optional<Stack> others = inferResults(op, changed);
    for (size_t i = 0; i < results->size(); ++i)
      if (!others || !(*results)[i].isTensor() ||
          (*results)[i].toTensor().scalar_type() != (*others)[i].toTensor().scalar_type())
        return false;
  }

  std::vector<OperatorReturn> returns;
  std::vector<torch::lazy::Shape> shapes;
  auto addShape = [&](const at::Tensor &tensor) {
    isLowered &= tensor.layout() == c10::kStrided && !tensor.is_quantized();
    if (isLowered)
      shapes.emplace_back(tensor.scalar_type(), tensor.sizes());
  };
  for (const IValue &result : *results) {
    if (result.isTensorList()) {
      auto tensors = result.toTensorVector();
      for (const at::Tensor &each : tensors) {
        isLowered &= each.defined();
        if (isLowered)
          addShape(each);
      }
      returns.push_back({true, tensors.size()});
    } else {
      // What a mask leaves out isn't defined.
      const at::Tensor &tensor = result.toTensor();
      if (tensor.defined())
        addShape(tensor);
      returns.push_back({false, tensor.defined() ? size_t(1) : size_t(0)});
    }
  }
  if (!isLowered || shapes.empty())
    return false;
  Draw draw = op.hasTag(at::Tag::nondeterministic_seeded) ? Draw::next() : Draw();
  auto node = torch::lazy::MakeNode<OperatorNode>(schema, std::move(arguments), operands, returns,
                                                  std::move(shapes), draw);
  torch::jit::drop(*stack, count);
  size_t next = 0;
  auto take = [&] {
    return torch::lazy::CreateAtenFromLtcTensor(
        LazyTensor::Create(torch::lazy::Value(node, next++), device));
  };
  for (const OperatorReturn &each : returns) {
    if (!each.isList) {
      stack->emplace_back(each.count ? take() : at::Tensor());
      continue;
    }
    c10::List<at::Tensor> tensors;
    for (size_t i = 0; i < each.count; ++i)
      tensors.push_back(take());
    stack->emplace_back(std::move(tensors));
  }
  return true;
}

/// Makes a node of a call if it may and can, and else runs it on the CPU.
template <bool mayRecord> void runBelow(const c10::OperatorHandle &op, Stack *stack) {
  // What lies above the Lazy key has been done.
  at::AutoDispatchBelowADInplaceOrView below;
  c10::impl::ExcludeDispatchKeyGuard functional(c10::DispatchKey::Functionalize);
  auto device = findDevice(torch::jit::last(*stack, op.schema().arguments().size()));
  TORCH_CHECK(device, op.schema().operator_name(), ": no argument tells the lazy device");
  if (!mayRecord || !makeNode(op, stack, *device))
    fallBack(op, stack, *device);
}

void runFunctional(const c10::OperatorHandle &op, Stack *stack) { runBelow<true>(op, stack); }

/// For operators that no node can be of.
void runOnHost(const c10::OperatorHandle &op, Stack *stack) { runBelow<false>(op, stack); }

bool isComposed(const c10::OperatorHandle &op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

/// The operator that gives what this one would write. Where PyTorch has one kernel for each device, as
/// for what makes a tensor of numbers, that operator may take the tensor's options.
std::optional<c10::OperatorHandle> findGiving(const c10::OperatorHandle &op) {
  return findFunctional(op.schema(), countOutputs(op.schema()) == 1 && !isComposed(op));
}

/// Runs the operator that gives what this one would write, with `run`, and takes what this one is to
/// write to from the stack.
template <typename Run>
std::vector<IValue> runFunctionalForm(const c10::OperatorHandle &op, Stack *stack, Run run) {
  auto functional = findGiving(op);
  TORCH_CHECK(functional, op.schema().operator_name(), " has no functional form");
  size_t count = countOutputs(op.schema());
  std::vector<IValue> outputs(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  torch::jit::drop(*stack, count);
  const auto &arguments = functional->schema().arguments();
  for (size_t i = op.schema().arguments().size() - count; i < arguments.size(); ++i) {
    const at::Tensor &output = outputs.front().toTensor();
    if (arguments[i].name() == "dtype")
      stack->emplace_back(static_cast<int64_t>(output.scalar_type()));
    else
      stack->push_back(arguments[i].name() == "device" ? IValue(output.device()) : IValue());
  }
  run(*functional);
  return outputs;
}

void runOut(const c10::OperatorHandle &op, Stack *stack) {
  auto written = runFunctionalForm(op, stack, [&](const c10::OperatorHandle &functional) {
    // One that is composed of others may be composed of this one.
    if (!isComposed(functional) ||
        functional.hasKernelForDispatchKey(c10::DispatchKey::Lazy))
      functional.callBoxed(stack);
    else
      runFunctional(functional, stack);
  });
  for (size_t i = 0; i < written.size(); ++i) {
    IValue &result = torch::jit::peek(*stack, i, written.size());
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

/// Whether an operator draws from a generator that it may be given, which PyTorch's nodes keep as a
/// constant. No module has such a one.
bool takesGenerator(const FunctionSchema &schema) {
  const auto &arguments = schema.arguments();
  return !schema.is_mutable() && std::any_of(arguments.begin(), arguments.end(), [](const auto &each) {
    auto type = each.type()->template cast<c10::OptionalType>();
    return type && type->getElementType()->kind() == TypeKind::GeneratorType;
  });
}

/// Whether an operator needs none of ours. Kernels that are composed of other operators, for all
/// backends, may use views, which lazy tensors don't have where those run.
bool hasKernel(const c10::OperatorHandle &op) {
  const auto &arguments = op.schema().arguments();
  bool takesTensor = std::any_of(arguments.begin(), arguments.end(), [](const auto &each) {
    return isTensor(each.type()) || isTensorList(each.type());
  });
  return (op.hasKernelForDispatchKey(c10::DispatchKey::Lazy) && !takesGenerator(op.schema())) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
         (!takesTensor && isComposed(op));
}

/// Whether what an operator gives beside its result is another thing on each device, and only the
/// same device's gradient can read it: its Meta kernel tells of none of ours.
bool hasByproductsOfDevice(const c10::OperatorName &name) {
  return name.name == "aten::_embedding_bag" || name.name == "aten::_embedding_bag_forward_only";
}

/// Whether the dialect has an operation of an operator, or of the view that it copies.
bool isInDialect(MlirContext context, const FunctionSchema &schema) {
  constexpr std::string_view suffix = "_copy";
  std::string name = schema.name();
  std::string overload = schema.overload_name().empty() ? "" : "." + schema.overload_name();
  name = "torch.aten." + name.substr(name.find("::") + 2);
  if (mlirContextIsRegisteredOperation(context, torchscript::wrap(name + overload)))
    return true;
  return name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix &&
         mlirContextIsRegisteredOperation(
             context, torchscript::wrap(name.substr(0, name.size() - suffix.size()) + overload));
}

/// PyTorch's own kernel makes a node that writes the running statistics while it runs, of which
/// nobody that reads them knows. Here they are results, which take their place.
void runBatchNorm(const c10::OperatorHandle &op, Stack *stack) {
  constexpr size_t count = 8, meanAt = 3, varianceAt = 4, trainingAt = 5, newMeanAt = 3;
  static const auto functional = c10::Dispatcher::singleton().findSchemaOrThrow(
      "aten::_native_batch_norm_legit_functional", "");
  auto given = torch::jit::last(*stack, count);
  auto isGiven = [&](size_t at) { return given[at].isTensor() && given[at].toTensor().defined(); };
  if (!given[trainingAt].toBool() || !isGiven(meanAt) || !isGiven(varianceAt))
    return runFunctional(op, stack);
  const at::Tensor statistics[] = {given[meanAt].toTensor(), given[varianceAt].toTensor()};
  runFunctional(functional, stack);
  for (size_t i = 0; i < 2; ++i) {
    LazyTensorPtr made =
        torch::lazy::TryGetLtcTensor(torch::jit::peek(*stack, newMeanAt + i, 5).toTensor());
    LazyTensorPtr before = torch::lazy::TryGetLtcTensor(statistics[i]);
    TORCH_CHECK(made && before, op.schema().operator_name(),
                ": the running statistics are no lazy tensors, but the input is");
    before->SetInPlaceIrValue(made->GetIrValue());
  }
  torch::jit::drop(*stack, 2);
}

/// Gives a tensor that holds what another does, as nothing writes to that. PyTorch's functionalization
/// keeps a tensor below each parameter, of which the parameter is such a copy: with one of its own,
/// each parameter would be computed and kept twice, and a first training step, before which
/// there is none, would be another graph than the steps after it.
void shareTensor(const c10::OperatorHandle &op, Stack *stack) {
  LazyTensorPtr lazy = torch::lazy::TryGetLtcTensor(torch::jit::peek(*stack, 0, 1).toTensor());
  TORCH_CHECK(lazy, op.schema().operator_name(), ": the argument is no lazy tensor");
  torch::jit::drop(*stack, 1);
  stack->emplace_back(torch::lazy::CreateAtenFromLtcTensor(std::move(lazy)));
}

/// PyTorch's zeros without memory, which gradients are made of, are zeros.
void runZeros(const c10::OperatorHandle &, Stack *stack) {
  static const auto zeros = c10::Dispatcher::singleton().findSchemaOrThrow("aten::zeros", "");
  runFunctional(zeros, stack);
}

/// Lazy tensors have no strides. PyTorch's own kernel takes those of memory that has no gaps.
void runEmptyStrided(const c10::OperatorHandle &, Stack *stack) {
  constexpr size_t count = 6, stridesAt = 1;
  static const auto empty =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::empty", "memory_format");
  stack->erase(stack->end() - (count - stridesAt));
  stack->emplace_back(); // the layout in memory
  empty.callBoxed(stack);
}

void runParts(const c10::OperatorHandle &op, Stack *stack) {
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
}

/// An operator that is composed of others has its gradient from them, and none where PyTorch has a
/// lazy kernel for it: that one is for those who ask for no gradient.
void runComposed(const c10::OperatorHandle &op, c10::DispatchKeySet keys, Stack *stack) {
  bool hasGradient = false;
  for (const IValue &argument : torch::jit::last(*stack, op.schema().arguments().size()))
    mapTensors(argument, [&](const at::Tensor &tensor) {
      hasGradient |= tensor.requires_grad();
      return tensor;
    });
  if (hasGradient && at::GradMode::is_enabled())
    runParts(op, stack);
  else
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
}

/// Whether PyTorch has a lazy kernel for an operator that is composed of others, which hides those.
bool hidesParts(const c10::OperatorHandle &op) {
  auto has = [&](c10::DispatchKey key) { return op.hasKernelForDispatchKey(key); };
  return has(c10::DispatchKey::Lazy) && has(c10::DispatchKey::CompositeImplicitAutograd) &&
         !has(c10::DispatchKey::Autograd) && !has(c10::DispatchKey::AutogradLazy);
}

/// Writes to its outputs what the operator gives that has none, where neither functionalization nor
/// what the operator is composed of does.
void runThenWrite(const c10::OperatorHandle &op, Stack *stack) {
  auto written = runFunctionalForm(
      op, stack, [&](const c10::OperatorHandle &functional) { functional.callBoxed(stack); });
  for (size_t i = 0; i < written.size(); ++i) {
    IValue &result = torch::jit::peek(*stack, i, written.size());
    const at::Tensor given = result.toTensor();
    const at::Tensor &output = written[i].toTensor();
    TORCH_CHECK(!given.requires_grad(), op.schema().operator_name(),
                " has no gradient where it writes to 'out', and an argument asks for one");
    TORCH_CHECK(c10::canCast(given.scalar_type(), output.scalar_type()),
                op.schema().operator_name(), " gives ", given.scalar_type(), ", and 'out' holds ",
                output.scalar_type());
    at::native::resize_output(output, given.sizes());
    output.copy_(given);
    result = output;
  }
}

/// Whether functionalization takes an operator that writes for one that gives, and meets what that is
/// composed of when views are gone; or whether PyTorch's own function writes nothing (matrix_rank, as
/// it takes what it functionalizes for a subclass of tensors), or by the CPU's kernel alone (nanmean
/// of old releases).
bool isWrittenByNobody(const c10::OperatorHandle &op) {
  auto has = [](const c10::OperatorHandle &each, c10::DispatchKey key) {
    return each.hasKernelForDispatchKey(key);
  };
  if (!countOutputs(op.schema()))
    return false;
  if (op.schema().name() == "aten::linalg_matrix_rank" || op.schema().name() == "aten::nanmean")
    return true;
  if (has(op, c10::DispatchKey::CompositeImplicitAutograd) ||
      has(op, c10::DispatchKey::Lazy))
    return false;
  auto functional = findGiving(op);
  return functional && has(*functional, c10::DispatchKey::CompositeImplicitAutograd) &&
         !has(*functional, c10::DispatchKey::Lazy);
}

/// Functionalization has no kernel for it.
void runPolygamma(const c10::OperatorHandle &, Stack *stack) {
  int64_t order = torch::jit::pop(*stack).toInt();
  at::Tensor target = torch::jit::pop(*stack).toTensor();
  at::Tensor given = at::polygamma(order, target);
  TORCH_CHECK(c10::canCast(given.scalar_type(), target.scalar_type()), "aten::polygamma_ gives ",
              given.scalar_type(), ", and the tensor holds ", target.scalar_type());
  stack->emplace_back(target.copy_(given));
}

/// Functionalization refuses to write to a tensor that is none of its own. What is written to one of
/// the host's is fetched here before it gets there.
void runCopyTo(const c10::OperatorHandle &op, c10::DispatchKeySet keys, Stack *stack) {
  const at::Tensor target = torch::jit::peek(*stack, 0, 3).toTensor();
  IValue &source = torch::jit::peek(*stack, 1, 3);
  if (target.device().type() == c10::kCPU && source.toTensor().device().is_lazy()) {
    source = source.toTensor().to(c10::Device(c10::kCPU));
    op.callBoxed(stack);
    return;
  }
  // The kernel of all devices' gradients, which has another key for each.
  op.redispatchBoxed(keys.remove_backend(c10::BackendComponent::LazyBit) |
                         c10::DispatchKeySet(c10::BackendComponent::CPUBit),
                     stack);
}

/// It is composed of a view by strides, which functionalization refuses to take of another view.
void runFillDiagonal(const c10::OperatorHandle &, Stack *stack) {
  bool wraps = torch::jit::pop(*stack).toBool();
  c10::Scalar value = torch::jit::pop(*stack).toScalar();
  at::Tensor target = torch::jit::pop(*stack).toTensor();
  at::Tensor filled = target.clone();
  at::native::fill_diagonal_(filled, value, wraps);
  stack->emplace_back(target.copy_(filled));
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
    static auto *above = new torch::Library(torch::Library::IMPL, "aten",
                                            c10::DispatchKey::AutogradLazy, __FILE__, __LINE__);
    auto &dispatcher = c10::Dispatcher::singleton();
    std::shared_ptr<Context> context = createContext();
    // PyTorch tells whoever replaces a kernel of another.
    torchscript::IgnoredWarnings ignored;
    for (const c10::OperatorName &name : dispatcher.getAllOpNames()) {
      if (name.name.compare(0, 6, "aten::") != 0)
        continue;
      auto op = dispatcher.findSchema(name);
      if (op && hidesParts(*op))
        above->impl(toString(name).substr(6).c_str(),
                    op->schema().is_mutable()
                        ? torch::CppFunction::makeFromBoxedFunction<&runParts>()
                        : torch::CppFunction::makeFromBoxedFunction<&runComposed>());
      if (op && isWrittenByNobody(*op))
        above->impl(toString(name).substr(6).c_str(),
                    torch::CppFunction::makeFromBoxedFunction<&runThenWrite>());
      if (!op || !gives(op->schema()) || hasKernel(*op) || hasByproductsOfDevice(name))
        continue;
      const FunctionSchema &schema = op->schema();
      bool isAlias = std::any_of(schema.returns().begin(), schema.returns().end(),
                                 [](const auto &each) { return each.alias_info(); });
      std::string own = toString(name).substr(6);
      if (!schema.is_mutable() && hasHiddenWrites(schema)) {
        library->impl(own.c_str(), torch::CppFunction::makeFromBoxedFunction<&runOnHost>());
        continue; // it runs on the CPU
      }
      if (!schema.is_mutable() && !isAlias && isInDialect(context->get(), schema))
        library->impl(own.c_str(), torch::CppFunction::makeFromBoxedFunction<&runFunctional>());
      else if (countOutputs(schema) && findGiving(*op))
        library->impl(own.c_str(), torch::CppFunction::makeFromBoxedFunction<&runOut>());
      else
        continue;
      names().push_back(toString(name));
    }
    auto replace = [&](const char *own, torch::CppFunction kernel) {
      library->impl(own, std::move(kernel));
      std::string name = std::string("aten::") + own;
      if (std::find(names().begin(), names().end(), name) == names().end())
        names().push_back(name);
    };
    replace("native_batch_norm", torch::CppFunction::makeFromBoxedFunction<&runBatchNorm>());
    replace("detach_copy", torch::CppFunction::makeFromBoxedFunction<&shareTensor>());
    replace("_efficientzerotensor", torch::CppFunction::makeFromBoxedFunction<&runZeros>());
    // PyTorch's own kernel makes a tensor of the exponent. Compilers take a constant for what it is,
    // and what they have for others is the logarithm, which negative bases have none of.
    replace("pow.Tensor_Scalar", torch::CppFunction::makeFromBoxedFunction<&runFunctional>());
    // Its node doesn't tell which draw it is.
    replace("native_dropout", torch::CppFunction::makeFromBoxedFunction<&runFunctional>());
    replace("empty_strided", torch::CppFunction::makeFromBoxedFunction<&runEmptyStrided>());
    // PyTorch's function for its shape refuses tensors without dimensions.
    replace("index_select", torch::CppFunction::makeFromBoxedFunction<&runFunctional>());
    // PyTorch calls the Meta kernel for its values, and gives memory as it was found.
    replace("pixel_shuffle", torch::CppFunction::makeFromBoxedFunction<&runFunctional>());
    std::sort(names().begin(), names().end());
    above->impl("copy_", torch::CppFunction::makeFromBoxedFunction<&runCopyTo>());
    above->impl("polygamma_", torch::CppFunction::makeFromBoxedFunction<&runPolygamma>());
    above->impl("fill_diagonal_", torch::CppFunction::makeFromBoxedFunction<&runFillDiagonal>());
  });
}

} // namespace torch_mlir::lazy
