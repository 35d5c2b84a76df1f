// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a node came from in the user's source, by the archive's debug records.

#ifndef TORCH_MLIR_TORCHSCRIPT_LOCATIONS_H
#define TORCH_MLIR_TORCHSCRIPT_LOCATIONS_H

#include "mlir-c/IR.h"

#include <torch/csrc/jit/frontend/source_range.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torch_mlir::torchscript {

/// A line of the user's source. `function` is empty where the archive doesn't tell it.
struct SourceLine {
  std::string file;
  uint64_t line = 0;
  uint64_t column = 0;
  std::string function;
  /// The text of the line, without the space around it; empty where the archive doesn't hold it.
  std::string text;
};

/// An archive that can't be imported: what of it, why, and the line that it came from.
class ImportError : public std::runtime_error {
public:
  explicit ImportError(const std::string &message, std::optional<SourceLine> line = std::nullopt)
      : std::runtime_error(message), line(std::move(line)) {}
  const std::optional<SourceLine> &getLine() const { return line; }

private:
  std::optional<SourceLine> line;
};

/// Something that has no translation. Whoever knows the place makes an ImportError of it.
class Unsupported : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The innermost frame that isn't of PyTorch's own source, or else the innermost.
std::optional<SourceLine> getUserLine(const std::vector<SourceLine> &frames);

/// `unsupported` at a place: "file:line, in function: text" follows the message.
ImportError errorAt(const std::string &message, const std::vector<SourceLine> &frames);

/// MLIR locations: `"function"("file":line:column)`, and call sites around them. Nodes of one
/// range share theirs.
class Locations {
public:
  explicit Locations(MlirContext context);

  /// The frames of a node, innermost first.
  ///
  /// A traced node has its Python stack, a scripted one its line; where functions were inlined,
  /// the lines that called them follow.
  std::vector<SourceLine> getFrames(const torch::jit::Node *node);
  std::vector<SourceLine> getFrames(const torch::jit::SourceRange &range);

  MlirLocation get(const torch::jit::Node *node);
  MlirLocation get(const torch::jit::SourceRange &range);
  /// Whether the node tells who called its function, as traced ones do.
  bool hasStack(const torch::jit::Node *node);
  /// The first node of a block that PyTorch gave a line; null where there is none.
  const torch::jit::Node *findPlaced(const torch::jit::Block &block);
  MlirLocation unknown() const { return unknownLocation; }

private:
  MlirLocation get(const std::vector<SourceLine> &frames);
  void appendFrames(const torch::jit::SourceRange &given, std::vector<SourceLine> &frames);

  MlirContext context;
  MlirLocation unknownLocation;
  struct Place {
    MlirLocation location;
    bool hasStack;
  };
  const Place &getPlace(const torch::jit::SourceRange &range);
  std::map<std::pair<const torch::jit::Source *, size_t>, Place> byRange;
  /// A source's text in one piece, and where its functions begin, in order, with their names.
  /// Each node asks for a line, and libtorch's texts are lists of lines.
  struct Text {
    std::string text;
    std::vector<std::pair<size_t, std::string>> functions;
  };
  const Text &getText(const std::shared_ptr<torch::jit::Source> &source);
  std::unordered_map<const torch::jit::Source *, Text> texts;
  // A source's address means nothing once the source is gone.
  std::vector<std::shared_ptr<torch::jit::Source>> sources;
};

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_LOCATIONS_H
