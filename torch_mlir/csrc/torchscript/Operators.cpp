// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators as operations of the dialect, whose table is of one release of PyTorch.

#include "torchscript/Operators.h"

#include "torchscript/Schemas.h"

namespace torch_mlir::torchscript {

using c10::FunctionSchema;

std::string getName(const FunctionSchema &schema) {
  std::string name = schema.name();
  size_t colons = name.find("::");
  if (colons != std::string::npos)
    name.replace(colons, 2, ".");
  return schema.overload_name().empty() ? name : name + "." + schema.overload_name();
}

/// The operands of a later release's operator; none if it isn't the same with further arguments,
/// which have defaults. Those that were made are put into `made`.
static std::vector<MlirValue>
addDefaults(const FunctionSchema &schema, const FunctionSchema &later,
            const std::vector<MlirValue> &operands,
            const std::function<MlirValue(const c10::Argument &)> &constant) {
  const auto &arguments = schema.arguments();
  std::vector<const c10::Argument *> added;
  size_t next = 0;
  for (const c10::Argument &argument : later.arguments()) {
    if (next < arguments.size() && arguments[next].name() == argument.name())
      ++next;
    else if (argument.default_value())
      added.push_back(&argument);
    else
      return {};
  }
  if (next != arguments.size() || operands.size() != arguments.size() || added.empty())
    return {};
  std::vector<MlirValue> all;
  next = 0;
  auto newest = added.begin();
  for (const c10::Argument &argument : later.arguments()) {
    if (newest == added.end() || *newest != &argument) {
      all.push_back(operands[next++]);
      continue;
    }
    ++newest;
    all.push_back(constant(argument));
  }
  return all;
}

MlirOperation createOperation(Builder &builder, MlirLocation location,
                              const FunctionSchema &schema, const std::vector<MlirType> &results,
                              const std::vector<MlirValue> &operands,
                              const std::function<MlirValue(const c10::Argument &)> &constant) {
  std::string name = "torch." + getName(schema);
  if (!mlirContextIsRegisteredOperation(builder.getContext(), wrap(name)))
    return MlirOperation{nullptr};
  auto attempt = [&](const std::vector<MlirValue> &given) {
    MlirOperation operation = builder.create(name, location, results, given);
    if (mlirOperationVerify(operation))
      return operation;
    mlirOperationDestroy(operation);
    return MlirOperation{nullptr};
  };
  MlirOperation operation = attempt(operands);
  if (!mlirOperationIsNull(operation))
    return operation;
  for (const FunctionSchema *later : laterSchemas(schema)) {
    std::vector<MlirValue> all = addDefaults(schema, *later, operands, constant);
    if (all.empty())
      continue;
    operation = attempt(all);
    if (!mlirOperationIsNull(operation))
      return operation;
  }
  return operation;
}

} // namespace torch_mlir::torchscript
