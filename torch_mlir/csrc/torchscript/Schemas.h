// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TorchScript's operator registry, which follows a row: it holds what the registry of that row's
// PyTorch holds, overloads in the same order, and not what the libtorch in here registers. An
// archive has no overload names, so that this is what makes it mean the same.
//
// Schemas.cpp takes the place of the registry in PyTorch's runtime/operator.cpp (of which
// RuntimeOperator.cpp keeps the rest), of RegisterSchema.cpp and of register_c10_ops.cpp.
// What was registered by code (register_prim_ops.cpp and others) is found by its schema, so that
// it doesn't matter when and in which order that happens.

#ifndef TORCH_MLIR_TORCHSCRIPT_SCHEMAS_H
#define TORCH_MLIR_TORCHSCRIPT_SCHEMAS_H

#include <ATen/core/function_schema.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace torch_mlir::torchscript {

/// The rows that there are schemas of, oldest first: "2_0", "2_1", …
const std::vector<std::string> &schemaRows();

/// Makes the operator registry that of a row, for the calling thread, and for threads that
/// haven't chosen one. A thread that was started by nobody who knows of rows so sees the latest
/// choice; one that imports sees its own, whatever others do. Before the first call there is no
/// registry: every lookup throws.
///
/// Operators live as long as the process, and rows whose schemas are equal share them: graphs stay
/// valid when another row is chosen. Passes over a graph look operators up by name, so they want
/// the row that the graph was made with.
///
/// An operator that code registered with the same schema runs as that; one that c10's dispatcher
/// has a kernel for runs through it if the row's schema takes and gives the same types; any other
/// throws std::runtime_error when it is run. Classes that schemas name (packed parameters) are
/// declared by the first call: objects keep what they were saved as (see Quantized.h).
///
/// Operators have no tags here: Node::isNondeterministic, which common subexpression elimination
/// asks, is false for all of them.
///
/// Throws std::invalid_argument where there is no such row, std::runtime_error (a lookup does that
/// too) where a schema can't be read.
///
/// `further` are schemas of operators that the row may lack, e.g. custom ones. The calling thread's
/// registry has them, until it chooses again, where it has no such overload.
void selectSchemas(const std::string &row, const std::vector<std::string> &further = {});

/// Does what wants the operators of the libtorch in here, in this thread, which chose a row before:
/// libtorch has TorchScript of its own, and that calls operators that later rows lack.
void withOwnSchemas(const std::function<void()> &work);

/// What the registry of the chosen row holds: operators' names in alphabetical order, schemas as
/// PyTorch prints them in the registry's order.
std::vector<std::string> registeredSchemas();

/// What the operator of a schema's name and overload is in the rows after the chosen one, where
/// that is something else; newest first. The schemas live as long as the process.
std::vector<const c10::FunctionSchema *> laterSchemas(const c10::FunctionSchema &schema);

/// The operators that the dispatcher of the libtorch in here has kernels of, each with the names of
/// the dispatch keys that it has one for, in alphabetical order. There is a kernel of what libtorch
/// itself runs while it loads an archive, and none besides.
std::map<std::string, std::vector<std::string>> linkedKernels();

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_SCHEMAS_H
