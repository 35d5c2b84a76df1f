// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules for operators' results, as Python sees them.

#include "torchscript/ResultBindings.h"

#include "torchscript/Import.h"
#include "torchscript/Schemas.h"
#include "torchscript/Shapes.h"

#include "nanobind/stl/optional.h"
#include "nanobind/stl/pair.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/tuple.h"
#include "nanobind/stl/vector.h"

#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <exception>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace torch_mlir::torchscript {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// What is known of a tensor: sizes, and the number of the dtype.
using TensorTuple = std::pair<std::optional<Shape>, std::optional<int64_t>>;

Fact getFact(const nb::handle &operand) {
  if (operand.is_none())
    return Fact::of(c10::IValue());
  if (operand.is(nb::handle(Py_Ellipsis)))
    return Fact();
  if (PyBool_Check(operand.ptr()))
    return Fact::of(c10::IValue(nb::cast<bool>(operand)));
  if (PyLong_Check(operand.ptr()))
    return Fact::of(c10::IValue(nb::cast<int64_t>(operand)));
  if (PyFloat_Check(operand.ptr()))
    return Fact::of(c10::IValue(nb::cast<double>(operand)));
  if (PyComplex_Check(operand.ptr()))
    return Fact::of(c10::IValue(c10::complex<double>(PyComplex_RealAsDouble(operand.ptr()),
                                                     PyComplex_ImagAsDouble(operand.ptr()))));
  if (PyUnicode_Check(operand.ptr()))
    return Fact::of(c10::IValue(nb::cast<std::string>(operand)));
  if (PyTuple_Check(operand.ptr())) {
    auto [sizes, dtype] = nb::cast<TensorTuple>(operand);
    TensorFact tensor{std::move(sizes), std::nullopt};
    if (dtype)
      tensor.dtype = static_cast<c10::ScalarType>(*dtype);
    return Fact::of(std::move(tensor));
  }
  if (PyList_Check(operand.ptr())) {
    std::vector<Fact> elements;
    for (nb::handle element : operand)
      elements.push_back(getFact(element));
    return Fact::of(std::move(elements));
  }
  throw nb::type_error("an operand is a tuple (a tensor), a number, a text, None, a list of "
                       "these, or ... for what isn't known");
}

std::vector<Fact> getFacts(const nb::list &operands) {
  std::vector<Fact> facts;
  for (nb::handle operand : operands)
    facts.push_back(getFact(operand));
  return facts;
}

/// Rules are tried many times on few schemas.
const c10::FunctionSchema &getSchema(const std::string &text) {
  static auto *schemas = new std::unordered_map<std::string, c10::FunctionSchema>;
  auto found = schemas->find(text);
  if (found != schemas->end())
    return found->second;
  try {
    return schemas->emplace(text, torch::jit::parseSchema(text)).first->second;
  } catch (const std::exception &problem) {
    throw std::invalid_argument(problem.what());
  }
}

std::optional<int64_t> getNumber(const std::optional<c10::ScalarType> &dtype) {
  return dtype ? std::make_optional(static_cast<int64_t>(*dtype)) : std::nullopt;
}

/// Does what libtorch is needed for, as imports do: one after the other, and without Python.
template <typename Function> auto runWithLibtorch(Function &&function) {
  nb::gil_scoped_release released;
  std::lock_guard<std::mutex> lock(getImportMutex());
  selectSchemas(schemaRows().back(), {});
  try {
    return function();
  } catch (const c10::Error &problem) {
    throw std::invalid_argument(problem.what_without_backtrace());
  }
}

} // namespace

void bindResultRules(nb::module_ &module) {
  module.def(
      "infer_results",
      [](const std::string &schema, const nb::list &operands) {
        std::vector<Fact> facts = getFacts(operands);
        return runWithLibtorch([&] {
          std::vector<TensorTuple> results;
          for (TensorFact &result : Shapes().infer(getSchema(schema), facts))
            results.push_back({std::move(result.sizes), getNumber(result.dtype)});
          return results;
        });
      },
      "schema"_a, "operands"_a,
      "What the importer knows of the results of an operator: `(sizes, dtype)` of each, as "
      "operands are given too: a tensor is such a tuple, where None stands for what isn't known, "
      "-1 for a size, and a dtype is its number in PyTorch; a value is itself, a list a list, "
      "and `...` what isn't known at all. Raises ValueError where the schema can't be read.");
  module.def(
      "check_rule",
      [](const std::string &text, const std::string &kind, size_t which,
         const std::string &schema, const std::vector<nb::list> &observed,
         const nb::list &expected) {
        ResultRule rule = ResultRule::parse(text);
        if (kind != "dtype" && kind != "sizes" && kind != "parts")
          throw nb::value_error("rules are for a dtype, for sizes or for parts");
        std::vector<std::vector<Fact>> facts;
        for (const nb::list &operands : observed)
          facts.push_back(getFacts(operands));
        std::vector<int64_t> dtypes;
        std::vector<Shape> sizesOfAll;
        std::vector<std::vector<Shape>> partsOfAll;
        for (nb::handle each : expected) {
          if (kind == "dtype")
            dtypes.push_back(nb::cast<int64_t>(each));
          else if (kind == "sizes")
            sizesOfAll.push_back(nb::cast<Shape>(each));
          else
            partsOfAll.push_back(nb::cast<std::vector<Shape>>(each));
        }
        if (nb::len(expected) != facts.size())
          throw nb::value_error("what is expected is told of each call");
        return runWithLibtorch([&] {
          // A rule may say nothing, but nothing wrong.
          Shapes shapes;
          size_t told = 0, complete = 0;
          for (size_t i = 0; i < facts.size(); ++i) {
            if (kind == "dtype") {
              auto dtype = shapes.inferDtype(rule, getSchema(schema), facts[i]);
              if (dtype && *getNumber(dtype) != dtypes[i])
                return std::make_tuple(false, i, i);
              told += dtype.has_value();
              complete += dtype.has_value();
              continue;
            }
            if (kind == "parts") {
              auto parts = Shapes::inferParts(rule, getSchema(schema), facts[i]);
              if (!parts)
                continue;
              ++told;
              const std::vector<Shape> &real = partsOfAll[i];
              bool isAll = true;
              bool isRight = real.size() == parts->size();
              for (size_t j = 0; isRight && j < real.size(); ++j) {
                for (int64_t &size : (*parts)[j])
                  isAll &= size >= 0;
                isRight = (*parts)[j].size() == real[j].size();
                for (size_t k = 0; isRight && k < real[j].size(); ++k)
                  isRight = (*parts)[j][k] < 0 || (*parts)[j][k] == real[j][k];
              }
              if (!isRight)
                return std::make_tuple(false, i, i);
              complete += isAll;
              continue;
            }
            auto sizes = shapes.inferSizes(rule, which, getSchema(schema), facts[i]);
            if (!sizes)
              continue;
            ++told;
            const Shape &real = sizesOfAll[i];
            bool isRight = real.size() == sizes->size();
            bool isComplete = true;
            for (size_t j = 0; isRight && j < real.size(); ++j) {
              isRight = (*sizes)[j] < 0 || (*sizes)[j] == real[j];
              isComplete &= (*sizes)[j] >= 0;
            }
            if (!isRight)
              return std::make_tuple(false, i, i);
            complete += isComplete;
          }
          return std::make_tuple(true, told, complete);
        });
      },
      "rule"_a, "kind"_a, "which"_a, "schema"_a, "observed"_a, "expected"_a,
      "Whether a rule (for the `dtype` or the `sizes` of the result `which`, or the sizes of the "
      "`parts`, if it is a list of tensors) is never wrong on what was "
      "observed: `(True, how often it told something, how often all)` or `(False, i, i)`, where "
      "call i is the first that refutes it.");
  module.def(
      "shape_functions",
      [] {
        return runWithLibtorch([] {
          std::vector<std::pair<std::string, std::vector<std::string>>> functions;
          for (const std::string &name : ShapeFunctions::getNames())
            functions.push_back({name, ShapeFunctions::getParameters(name)});
          return functions;
        });
      },
      "PyTorch's shape functions, and their parameters.");
}

} // namespace torch_mlir::torchscript
