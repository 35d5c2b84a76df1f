// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is checked in a pickle before libtorch's unpickler gets it. Nothing is built or run: the
// opcodes that libtorch knows are followed on values of which only the kind, and what a tensor
// needs, is kept.

#ifndef TORCH_MLIR_TORCHSCRIPT_PICKLES_H
#define TORCH_MLIR_TORCHSCRIPT_PICKLES_H

#include "Archive.h"
#include "Sources.h"

#include <string>
#include <string_view>

namespace torch_mlir::torchscript {

/// Throws an ArchiveError unless libtorch can unpickle `bytes` of `record`, which is the object
/// graph of a module or its constants: every opcode has what it needs, no value holds itself or
/// is nested too deeply, every tensor lies in the bytes of its record in the folder named after
/// the pickle, and every member of an enum exists in `sources`.
///
/// Gives what libtorch is to read instead: storages of a dtype that it lacks are of another one of
/// the same size, and `archive` knows which they are.
std::string checkPickle(const Archive &archive, const Archive::Record &record,
                        std::string_view bytes, const Sources &sources);

/// The same for a pickle of source ranges: all that libtorch's SourceRangeDeserializer indexes
/// with is in range.
void checkDebugInfo(const Archive &archive, const Archive::Record &record, std::string_view bytes);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_PICKLES_H
