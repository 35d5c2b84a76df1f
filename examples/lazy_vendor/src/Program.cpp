// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this vendor compiles a module to: a list of calls of PyTorch's own operators.

#include "Program.h"

#include "torch_mlir/capi/Resources.h"
#include "torch_mlir/capi/TorchTypes.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace lazy_vendor {

using c10::IValue;
using torch::lazy::Shape;
using Values = std::vector<IValue>;

namespace {

std::string toString(MlirStringRef text) { return {text.data, text.length}; }

/// What one of MLIR's printing functions prints of `object`.
template <typename Object>
std::string print(void (*print)(Object, MlirStringCallback, void *), Object object) {
  std::string text;
  print(
      object,
      [](MlirStringRef part, void *to) { *static_cast<std::string *>(to) += toString(part); },
      &text);
  return text;
}

std::string getName(MlirOperation operation) {
  return toString(mlirIdentifierStr(mlirOperationGetName(operation)));
}

MlirAttribute getAttribute(MlirOperation operation, const char *name) {
  return mlirOperationGetAttributeByName(operation, mlirStringRefCreateFromCString(name));
}

[[noreturn]] void refuse(const std::string &what, MlirOperation operation) {
  throw std::runtime_error(what + " (" + getName(operation) + " at " +
                           print(mlirLocationPrint, mlirOperationGetLocation(operation)) + ")");
}

c10::ScalarType getDtype(MlirType type) {
  if (mlirTypeIsAF16(type))
    return c10::kHalf;
  if (mlirTypeIsABF16(type))
    return c10::kBFloat16;
  if (mlirTypeIsAF32(type))
    return c10::kFloat;
  if (mlirTypeIsAF64(type))
    return c10::kDouble;
  if (mlirTypeIsAComplex(type))
    return c10::toComplexType(getDtype(mlirComplexTypeGetElementType(type)));
  if (mlirTypeIsAInteger(type)) {
    bool isUnsigned = mlirIntegerTypeIsUnsigned(type);
    switch (mlirIntegerTypeGetWidth(type)) {
    case 1:
      return c10::kBool;
    case 8:
      return isUnsigned ? c10::kByte : c10::kChar;
    case 16:
      return c10::kShort;
    case 32:
      return c10::kInt;
    case 64:
      return c10::kLong;
    }
  }
  throw std::runtime_error("no dtype of this vendor's: " + print(mlirTypePrint, type));
}

/// Whether `type` is that of a tensor of this shape, or of a number where PyTorch made a parameter
/// of one.
bool hasShape(MlirType type, const Shape &shape) {
  if (torchMlirTypeIsATorchInt(type) || torchMlirTypeIsATorchFloat(type) ||
      torchMlirTypeIsATorchBool(type))
    return shape.sizes().empty();
  if (!torchMlirTypeIsATorchValueTensor(type) || !torchMlirTorchTensorTypeHasSizes(type))
    return false;
  MlirType dtype = torchMlirTorchTensorTypeGetDtype(type);
  if (mlirTypeIsNull(dtype) || getDtype(dtype) != shape.scalar_type() ||
      torchMlirTorchTensorTypeGetRank(type) != static_cast<intptr_t>(shape.sizes().size()))
    return false;
  for (size_t i = 0; i < shape.sizes().size(); ++i)
    if (torchMlirTorchTensorTypeGetSize(type, static_cast<intptr_t>(i)) != shape.sizes()[i])
      return false;
  return true;
}

std::string describe(const at::Tensor &tensor) {
  return Shape(tensor.scalar_type(), tensor.sizes()).to_string();
}

bool hasShape(const at::Tensor &tensor, const Shape &shape) {
  return tensor.defined() && tensor.scalar_type() == shape.scalar_type() &&
         tensor.sizes() == shape.sizes();
}

at::Tensor makeLiteral(MlirOperation operation) {
  MlirType type = mlirValueGetType(mlirOperationGetResult(operation, 0));
  std::vector<int64_t> sizes(static_cast<size_t>(torchMlirTorchTensorTypeGetRank(type)));
  for (size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = torchMlirTorchTensorTypeGetSize(type, static_cast<intptr_t>(i));
  at::Tensor tensor = at::empty(sizes, getDtype(torchMlirTorchTensorTypeGetDtype(type)));
  MlirAttribute value = getAttribute(operation, "value");
  const void *data;
  size_t size;
  bool isSplat;
  if (!torchMlirElementsAttrGetData(value, &data, &size, &isSplat))
    refuse("the literal's elements are missing", operation);
  const auto *bytes = static_cast<const char *>(data);
  auto *to = static_cast<char *>(tensor.mutable_data_ptr());
  size_t width = tensor.element_size(), count = static_cast<size_t>(tensor.numel());
  bool isPacked = tensor.scalar_type() == c10::kBool && mlirAttributeIsADenseElements(value);
  if (size < (isSplat ? (count ? 1 : 0) : isPacked ? (count + 7) / 8 : count * width))
    refuse("the literal has too few elements", operation);
  for (size_t i = 0; i < count; ++i) {
    size_t from = isSplat ? 0 : i;
    if (isPacked)
      to[i] = static_cast<char>(bytes[from / 8] >> (from % 8) & 1);
    else
      std::copy_n(bytes + from * width, width, to + i * width);
  }
  return tensor;
}

/// A value as an operator's schema wants it: lists know what they hold, and a module has numbers
/// that Python would convert.
IValue fit(const IValue &value, const c10::TypePtr &type) {
  if (const auto optional = type->cast<c10::OptionalType>())
    return value.isNone() ? value : fit(value, optional->getElementType());
  if (const auto list = type->cast<c10::ListType>()) {
    c10::impl::GenericList fitted(list->getElementType());
    for (const IValue &each : value.toListRef())
      fitted.push_back(fit(each, list->getElementType()));
    return fitted;
  }
  if (type->kind() == c10::TypeKind::FloatType && value.isInt())
    return static_cast<double>(value.toInt());
  return value;
}

/// The operator that `torch.aten.add.Tensor` stands for: `aten::add.Tensor`.
std::shared_ptr<torch::jit::Operator> findOperator(std::string_view name) {
  name.remove_prefix(std::string_view("torch.").size());
  size_t dot = name.find('.');
  if (dot == std::string_view::npos)
    return nullptr;
  std::string_view rest = name.substr(dot + 1);
  size_t overload = rest.find('.');
  return torch::jit::findOperatorFor(
      {std::string(name.substr(0, dot)) + "::" + std::string(rest.substr(0, overload)),
       overload == std::string_view::npos ? "" : std::string(rest.substr(overload + 1))});
}

} // namespace

class Program::Compiler {
public:
  explicit Compiler(Program &program) : program(program) {}

  void compile(MlirModule module) {
    MlirOperation main = findMain(module);
    MlirType type = mlirTypeAttrGetValue(getAttribute(main, "function_type"));
    checkSignature(main, "argument", mlirFunctionTypeGetNumInputs(type), mlirFunctionTypeGetInput,
                   type, program.parameters);
    checkSignature(main, "result", mlirFunctionTypeGetNumResults(type), mlirFunctionTypeGetResult,
                   type, program.results);
    MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(main, 0));
    if (mlirBlockIsNull(block) || !mlirBlockIsNull(mlirBlockGetNextInRegion(block)))
      refuse("this vendor compiles functions of one block", main);
    for (intptr_t i = 0; i < mlirBlockGetNumArguments(block); ++i)
      define(mlirBlockGetArgument(block, i));
    for (MlirOperation each = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(each);
         each = mlirOperationGetNextInBlock(each))
      add(each);
    findLastUses();
  }

private:
  static MlirOperation findMain(MlirModule module) {
    MlirOperation found{nullptr};
    for (MlirOperation each = mlirBlockGetFirstOperation(mlirModuleGetBody(module));
         !mlirOperationIsNull(each); each = mlirOperationGetNextInBlock(each)) {
      MlirAttribute name = getAttribute(each, "sym_name");
      if (getName(each) == "func.func" && mlirAttributeIsAString(name) &&
          toString(mlirStringAttrGetValue(name)) == "main")
        found = each;
    }
    if (mlirOperationIsNull(found))
      throw std::runtime_error("the module has no function 'main'");
    return found;
  }

  static void checkSignature(MlirOperation main, const std::string &what, intptr_t count,
                             MlirType (*get)(MlirType, intptr_t), MlirType type,
                             const Shapes &shapes) {
    if (count != static_cast<intptr_t>(shapes.size()))
      refuse("'main' has " + std::to_string(count) + " " + what + "s for " +
                 std::to_string(shapes.size()) + " tensors",
             main);
    for (size_t i = 0; i < shapes.size(); ++i) {
      MlirType each = get(type, static_cast<intptr_t>(i));
      if (!hasShape(each, shapes[i]))
        refuse(what + " " + std::to_string(i) + " is " + print(mlirTypePrint, each) + " for " +
                   shapes[i].to_string(),
               main);
    }
  }

  void define(MlirValue value) { numbers[value.ptr] = program.numValues++; }

  size_t use(MlirValue value) const { return numbers.at(value.ptr); }

  void add(MlirOperation operation) {
    std::string name = getName(operation);
    if (mlirOperationGetNumRegions(operation))
      refuse("this vendor compiles no control flow", operation);
    std::vector<size_t> operands;
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(operation); ++i)
      operands.push_back(use(mlirOperationGetOperand(operation, i)));
    if (name == "func.return") {
      program.returned = std::move(operands);
      return;
    }
    // The same value with another type.
    if (name == "torch.derefine" || name == "torch.tensor_static_info_cast") {
      numbers[mlirOperationGetResult(operation, 0).ptr] = operands.at(0);
      return;
    }
    Step step;
    step.compute = makeComputation(name, operation);
    step.operands = std::move(operands);
    for (intptr_t i = 0; i < mlirOperationGetNumResults(operation); ++i) {
      step.results.push_back(program.numValues);
      define(mlirOperationGetResult(operation, i));
    }
    step.text = name + " at " + print(mlirLocationPrint, mlirOperationGetLocation(operation));
    program.steps.push_back(std::move(step));
  }

  std::function<Values(Values)> makeComputation(const std::string &name, MlirOperation operation) {
    if (name.rfind("torch.constant.", 0) == 0 || name == "torch.vtensor.literal")
      return
          [constant = makeConstant(name, operation)](const Values &) { return Values{constant}; };
    if (name == "torch.prim.ListConstruct")
      return [](const Values &values) {
        c10::impl::GenericList list(c10::AnyType::get());
        for (const IValue &each : values)
          list.push_back(each);
        return Values{list};
      };
    if (name == "torch.prim.ListUnpack")
      return [](const Values &values) { return values.at(0).toListRef().vec(); };

    if (name == "torch.operator")
      refuse("an operator that the torch dialect doesn't have", operation);
    std::shared_ptr<torch::jit::Operator> called =
        name.rfind("torch.", 0) == 0 ? findOperator(name) : nullptr;
    if (!called)
      refuse("no operator of PyTorch's", operation);
    const c10::FunctionSchema &schema = called->schema();
    if (schema.arguments().size() != static_cast<size_t>(mlirOperationGetNumOperands(operation)) ||
        schema.returns().size() != static_cast<size_t>(mlirOperationGetNumResults(operation)))
      refuse("the operation has not as many operands and results as " + toString(schema),
             operation);
    program.called.push_back(c10::toString(schema.operator_name()));
    return [called](const Values &values) {
      torch::jit::Stack stack;
      for (size_t i = 0; i < values.size(); ++i)
        stack.push_back(fit(values[i], called->schema().arguments()[i].type()));
      called->getOperation()(stack);
      return stack;
    };
  }

  static IValue makeConstant(const std::string &name, MlirOperation operation) {
    if (name == "torch.vtensor.literal")
      return makeLiteral(operation);
    if (name == "torch.constant.none")
      return {};
    MlirAttribute value = getAttribute(operation, "value");
    if (name == "torch.constant.int")
      return mlirIntegerAttrGetValueInt(value);
    if (name == "torch.constant.float")
      return mlirFloatAttrGetValueDouble(value);
    if (name == "torch.constant.bool")
      return mlirAttributeIsABool(value) ? mlirBoolAttrGetValue(value)
                                         : mlirIntegerAttrGetValueInt(value) != 0;
    if (name == "torch.constant.str")
      return toString(mlirStringAttrGetValue(value));
    refuse("no constant of this vendor's", operation);
  }

  static std::string toString(const c10::FunctionSchema &schema) { return c10::str(schema); }
  static std::string toString(MlirStringRef text) { return lazy_vendor::toString(text); }

  /// Tensors are let go of as soon as nobody needs them.
  void findLastUses() {
    std::vector<bool> used(program.numValues);
    for (size_t each : program.returned)
      used[each] = true;
    for (auto step = program.steps.rbegin(); step != program.steps.rend(); ++step)
      for (const auto *numbers : {&step->operands, &step->results})
        for (size_t each : *numbers)
          if (!used[each]) {
            used[each] = true;
            step->dead.push_back(each);
          }
  }

  Program &program;
  std::unordered_map<const void *, size_t> numbers;
};

Program::Program(MlirModule module, const Shapes &parameters, const Shapes &results)
    : parameters(parameters), results(results) {
  if (!mlirOperationVerify(mlirModuleGetOperation(module)))
    throw std::runtime_error("the module isn't valid");
  Compiler(*this).compile(module);
}

std::vector<at::Tensor> Program::run(Values arguments) const {
  if (arguments.size() != parameters.size())
    throw std::runtime_error(std::to_string(arguments.size()) + " arguments for " +
                             std::to_string(parameters.size()) + " parameters");
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].isTensor() && !hasShape(arguments[i].toTensor(), parameters[i]))
      throw std::runtime_error("argument " + std::to_string(i) + " is " +
                               describe(arguments[i].toTensor()) + ", not " +
                               parameters[i].to_string());
  at::NoGradGuard noGrad;
  Values values = std::move(arguments);
  values.resize(numValues);
  for (const Step &step : steps) {
    try {
      Values operands;
      for (size_t each : step.operands)
        operands.push_back(values[each]);
      Values computed = step.compute(std::move(operands));
      if (computed.size() != step.results.size())
        throw std::runtime_error("it gave " + std::to_string(computed.size()) + " values, not " +
                                 std::to_string(step.results.size()));
      for (size_t i = 0; i < computed.size(); ++i)
        values[step.results[i]] = std::move(computed[i]);
    } catch (const c10::Error &error) {
      throw std::runtime_error(step.text + ": " + error.what_without_backtrace());
    } catch (const std::exception &error) {
      throw std::runtime_error(step.text + ": " + error.what());
    }
    for (size_t each : step.dead)
      values[each] = IValue();
  }
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < returned.size(); ++i) {
    const IValue &value = values[returned[i]];
    if (!value.isTensor() || !hasShape(value.toTensor(), results[i]))
      throw std::runtime_error("result " + std::to_string(i) + " is " +
                               (value.isTensor() ? describe(value.toTensor()) : value.tagKind()) +
                               ", not " + results[i].to_string());
    tensors.push_back(value.toTensor());
  }
  return tensors;
}

} // namespace lazy_vendor
