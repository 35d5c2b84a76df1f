// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Debug records hold two kinds of text. A scripted range lies in the source of its function, or,
// in archives without records, in the archive's own code. A traced one is a whole text: PyTorch's
// tracer writes the Python stack into it, "file(line): function" for each frame, innermost first
// (torch/csrc/jit/python/python_tracer.cpp).

#include "torchscript/Locations.h"

#include "torchscript/Builder.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <tuple>

namespace torch_mlir::torchscript {

using torch::jit::Node;
using torch::jit::Source;
using torch::jit::SourceRange;

namespace {

std::string trim(const std::string &text) {
  auto isSpace = [](unsigned char c) { return std::isspace(c); };
  auto begin = std::find_if_not(text.begin(), text.end(), isSpace);
  auto end = std::find_if_not(text.rbegin(), text.rend(), isSpace).base();
  return begin < end ? std::string(begin, end) : std::string();
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// What the tracer itself and torch.nn.Module's call put on the stack.
bool isMachinery(const SourceLine &frame) {
  return endsWith(frame.file, "torch/nn/modules/module.py") &&
         (frame.function == "_slow_forward" || frame.function == "_call_impl" ||
          frame.function == "_wrapped_call_impl");
}

/// "file(line): function", one a line. What isn't of the form is left out.
std::vector<SourceLine> parseStack(const std::string &text) {
  std::vector<SourceLine> frames;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    size_t close = line.rfind("): ");
    size_t open = close == std::string::npos ? close : line.rfind('(', close);
    if (open == std::string::npos || open + 1 == close || close - open > 10)
      continue;
    SourceLine frame;
    for (size_t i = open + 1; i < close && std::isdigit(static_cast<unsigned char>(line[i])); ++i)
      frame.line = frame.line * 10 + (line[i] - '0');
    frame.file = line.substr(0, open);
    frame.function = line.substr(close + 3);
    // What follows is who called torch.jit.trace.
    if (endsWith(frame.file, "torch/jit/_trace.py"))
      break;
    if (!isMachinery(frame))
      frames.push_back(std::move(frame));
  }
  return frames;
}

/// The functions that a text defines: its lines that begin with "def" or "async def".
std::vector<std::pair<size_t, std::string>> findFunctions(const std::string &text) {
  std::vector<std::pair<size_t, std::string>> functions;
  auto isSpace = [&](size_t at) {
    return at < text.size() && text[at] != '\n' &&
           std::isspace(static_cast<unsigned char>(text[at]));
  };
  size_t end = 0;
  for (size_t begin = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    size_t at = begin;
    while (isSpace(at))
      ++at;
    if (text.compare(at, 5, "async") == 0 && isSpace(at + 5)) {
      at += 5;
      while (isSpace(at))
        ++at;
    }
    if (text.compare(at, 4, "def ") != 0)
      continue;
    size_t name = at + 4, nameEnd = name;
    while (nameEnd < end &&
           (std::isalnum(static_cast<unsigned char>(text[nameEnd])) || text[nameEnd] == '_'))
      ++nameEnd;
    if (nameEnd > name)
      functions.emplace_back(at, text.substr(name, nameEnd - name));
  }
  return functions;
}

bool isOfPyTorch(const SourceLine &frame) {
  return frame.file.find("/torch/") != std::string::npos || frame.file.compare(0, 1, "<") == 0;
}

} // namespace

std::optional<SourceLine> getUserLine(const std::vector<SourceLine> &frames) {
  if (frames.empty())
    return std::nullopt;
  auto user = std::find_if_not(frames.begin(), frames.end(), isOfPyTorch);
  return user == frames.end() ? frames.front() : *user;
}

ImportError errorAt(const std::string &message, const std::vector<SourceLine> &frames) {
  std::optional<SourceLine> line = getUserLine(frames);
  if (!line)
    return ImportError(message + " (the archive tells no source line)");
  std::string place = line->file + ":" + std::to_string(line->line);
  if (!line->function.empty())
    place += ", in " + line->function;
  if (!line->text.empty())
    place += ": " + line->text;
  return ImportError(message + " (at " + place + ")", line);
}

Locations::Locations(MlirContext context)
    : context(context), unknownLocation(mlirLocationUnknownGet(context)) {}

const Locations::Text &Locations::getText(const std::shared_ptr<Source> &source) {
  auto [entry, isNew] = texts.try_emplace(source.get());
  if (isNew) {
    sources.push_back(source);
    entry->second.text = source->text_str().str();
    entry->second.functions = findFunctions(entry->second.text);
  }
  return entry->second;
}

void Locations::appendFrames(const SourceRange &given, std::vector<SourceLine> &frames) {
  SourceRange range = given;
  if (auto original = given.findSourceRangeThatGenerated())
    range = *original;
  const auto &source = range.source();
  if (!source)
    return;
  if (range.start() == 0 && range.size() >= source->size()) {
    std::vector<SourceLine> stack = parseStack(source->text_str().str());
    if (!stack.empty()) {
      frames.insert(frames.end(), stack.begin(), stack.end());
      return;
    }
  }
  auto place = range.file_line_col();
  if (!place)
    return;
  SourceLine frame;
  std::tie(frame.file, frame.line, frame.column) = *place;
  // A range that PyTorch made without a source is written as one of an empty text.
  if (frame.file.empty())
    return;
  // PyTorch counts columns from 0, MLIR from 1.
  ++frame.column;
  const auto &[text, functions] = getText(source);
  size_t start = std::min(range.start(), text.size());
  auto after = std::upper_bound(
      functions.begin(), functions.end(), start,
      [](size_t position, const auto &function) { return position < function.first; });
  if (after != functions.begin())
    frame.function = std::prev(after)->second;
  size_t lineBegin = start == 0 ? std::string::npos : text.rfind('\n', start - 1);
  lineBegin = lineBegin == std::string::npos ? 0 : lineBegin + 1;
  frame.text = trim(text.substr(lineBegin, text.find('\n', lineBegin) - lineBegin));
  frames.push_back(std::move(frame));
}

std::vector<SourceLine> Locations::getFrames(const SourceRange &range) {
  std::vector<SourceLine> frames;
  appendFrames(range, frames);
  return frames;
}

std::vector<SourceLine> Locations::getFrames(const Node *node) {
  std::vector<SourceLine> frames = getFrames(node->sourceRange());
  if (auto callstack = node->callstack()) {
    auto calls = (*callstack)->vec(); // outermost first
    for (auto call = calls.rbegin(); call != calls.rend(); ++call)
      appendFrames(std::get<1>(*call), frames);
  }
  return frames;
}

MlirLocation Locations::get(const std::vector<SourceLine> &frames) {
  if (frames.empty())
    return unknownLocation;
  MlirLocation location;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    MlirLocation line = mlirLocationFileLineColGet(context, wrap(frame->file),
                                                   static_cast<unsigned>(frame->line),
                                                   static_cast<unsigned>(frame->column));
    if (!frame->function.empty())
      line = mlirLocationNameGet(context, wrap(frame->function), line);
    location = frame == frames.rbegin() ? line : mlirLocationCallSiteGet(line, location);
  }
  return location;
}

const Locations::Place &Locations::getPlace(const SourceRange &range) {
  const auto &source = range.source();
  auto [entry, isNew] =
      byRange.try_emplace({source.get(), range.start()}, Place{unknownLocation, false});
  if (isNew && source) {
    if (sources.empty() || sources.back() != source)
      sources.push_back(source);
    std::vector<SourceLine> frames = getFrames(range);
    entry->second = {get(frames), frames.size() > 1};
  }
  return entry->second;
}

MlirLocation Locations::get(const SourceRange &range) { return getPlace(range).location; }

MlirLocation Locations::get(const Node *node) {
  return node->callstack() ? get(getFrames(node)) : get(node->sourceRange());
}

const Node *Locations::findPlaced(const torch::jit::Block &block) {
  for (const Node *node : block.nodes()) {
    if (!mlirLocationEqual(get(node), unknownLocation))
      return node;
  }
  return nullptr;
}

bool Locations::hasStack(const Node *node) {
  return node->callstack() || getPlace(node->sourceRange()).hasStack;
}

} // namespace torch_mlir::torchscript
