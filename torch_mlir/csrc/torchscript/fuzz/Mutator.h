// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Changes to archives that get beyond their checksums: records are taken out, changed as what
// they are (pickles, TorchScript, tensors, names), and put into a sound zip file again. Some
// changes are made to the bytes of the zip file itself.

#ifndef TORCH_MLIR_TORCHSCRIPT_FUZZ_MUTATOR_H
#define TORCH_MLIR_TORCHSCRIPT_FUZZ_MUTATOR_H

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace torch_mlir::torchscript::fuzz {

using Random = std::mt19937_64;

/// Changes some bytes, whatever they are.
using BytesMutator = std::function<void(std::string &)>;

/// A changed copy of `seed`. `others` is where pieces come from. `mutateBytes`, which may be empty,
/// is another way to change a record than those here.
std::string mutate(const std::string &seed, const std::vector<std::string> &others, Random &random,
                   const BytesMutator &mutateBytes = {});

} // namespace torch_mlir::torchscript::fuzz

#endif // TORCH_MLIR_TORCHSCRIPT_FUZZ_MUTATOR_H
