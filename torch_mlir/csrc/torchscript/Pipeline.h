// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module's methods as functions on values: nothing is written to, no object is left.

#ifndef TORCH_MLIR_TORCHSCRIPT_PIPELINE_H
#define TORCH_MLIR_TORCHSCRIPT_PIPELINE_H

#include "torchscript/Locations.h"
#include "torchscript/Types.h"
#include "torchscript/Values.h"

#include "mlir-c/IR.h"

#include "torchscript/Locations.h"

#include <c10/core/ScalarType.h>
#include <torch/csrc/jit/api/module.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace torch_mlir::torchscript {

/// What is known of a tensor argument. A size of -1 is open; no sizes at all, any rank.
struct TensorArgument {
  std::optional<std::vector<int64_t>> sizes;
  /// How MLIR spells the element type; empty where it's open.
  std::string dtype;
};

struct PipelineOptions {
  /// The methods to import. None means the public ones, whose names don't begin with an
  /// underscore: archives don't tell which are exported. One other than forward that can't be
  /// imported is left out with a warning.
  std::vector<std::string> methods;
  /// By method, what is known of its arguments, in order. An argument beyond them that has a
  /// default gets that. A method that isn't here has all its arguments, of any shape and dtype.
  std::map<std::string, std::vector<std::optional<TensorArgument>>> arguments;
  /// Tensors of the module that nothing writes to become literals. Otherwise they are global
  /// slots.
  bool freeze = true;
};

/// An operator of whose results the rank or the dtype isn't known, though those of its operands
/// are: how often, and where first.
struct UnrefinedOperator {
  std::string name;
  unsigned count;
  std::optional<SourceLine> line;
};

/// What there is to tell of an import.
struct Report {
  std::vector<std::string> warnings;
  std::vector<UnrefinedOperator> unrefined;
};

/// Appends a public function to `module` for each method. Calls are inlined, branches and loops
/// that depend on what is known are taken, containers that are known in parts vanish. State that
/// a method changes becomes global slots.
///
/// Results are those of the method, tuples taken apart and None left out. Writes to an argument
/// aren't seen by the caller: the report warns of them.
///
/// Throws ImportError, which names the line, for what can't be done on values.
void importMethods(MlirContext context, MlirBlock module, const torch::jit::Module &model,
                   const PipelineOptions &options, Types &types, Literals &literals,
                   Locations &locations, Report &report);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_PIPELINE_H
