// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tokens are those of torch/csrc/jit/frontend/lexer.h. No tree is built: for each bracket
// that is open, the height of the expression so far is kept, as if every operator took all that
// stands before it.

#include "Sources.h"

#include <torch/csrc/jit/frontend/parse_string_literal.h>
#include <torch/csrc/jit/frontend/strtod.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <pthread.h>

namespace torch_mlir::torchscript {
namespace {

/// Lines without code in a row. The lexer recurses over them.
constexpr std::uint32_t mostEmptyLines = 1000;
/// What a definition or method costs the stack besides its blocks and expressions, in levels.
constexpr std::uint32_t definitionLevels = 8;
/// More than the parser and the compiler use for a level in any build, and what is left to others.
constexpr std::size_t stackPerLevel = std::size_t(6) << 10;
constexpr std::size_t stackBesides = std::size_t(1) << 20;
/// Types in a NamedTuple, counting those of the NamedTuples in it. libtorch walks over them all
/// to compare two.
constexpr std::uint64_t mostFields = 1 << 20;
/// Bytes that replacing escapes in string literals moves; the parser moves the rest of a string
/// for each.
constexpr std::uint64_t mostMovedBytes = std::uint64_t(1) << 34;
constexpr std::size_t longestType = std::size_t(1) << 16;

bool isWordStart(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

bool isKeyword(std::string_view word) {
  static const std::unordered_set<std::string_view> keywords = {
      "and",  "as",  "assert", "class",  "def",    "del",    "elif",
      "else", "for", "from",   "global", "if",     "import", "in",
      "is",   "not", "or",     "raise",  "return", "while",  "with"};
  return keywords.count(word) != 0;
}

/// What the scanner has to say.
struct Listener {
  virtual ~Listener() = default;
  /// A word that doesn't follow a dot, with the words that follow it after dots.
  virtual void path(std::string_view path) { (void)path; }
  virtual void word(std::string_view word) { (void)word; }
  virtual void string(std::string_view literal) { (void)literal; }
  /// The end of a statement or of the head of one, which began at this column.
  virtual void line(std::size_t column, std::string_view text, std::uint32_t height,
                    std::uint32_t blocks) {
    (void)column, (void)text, (void)height, (void)blocks;
  }
};

class Scanner {
public:
  Scanner(const Archive &archive, const Archive::Record &record, std::string_view text,
          Listener &listener)
      : archive_(archive), record_(record), text_(text), listener_(listener) {}

  void run();
  std::uint64_t movedBytes() const { return movedBytes_; }

private:
  [[noreturn]] void fail(const std::string &message) const {
    archive_.fail(record_.name, "line " + std::to_string(line_) + ": " + message);
  }

  /// An open bracket, or the statement around them all.
  struct Level {
    char close;
    std::uint32_t height = 0;  // since the last comma
    std::uint32_t highest = 0; // before it
  };
  void link() {
    if (++levels_.back().height > archive_.limits().sourceExpressionDepth)
      tooDeep();
  }
  [[noreturn]] void tooDeep() const {
    fail("its expressions are nested more deeply than the limit of " +
         std::to_string(archive_.limits().sourceExpressionDepth));
  }
  void open(char close) {
    if (levels_.size() > archive_.limits().sourceExpressionDepth)
      tooDeep();
    levels_.push_back({close});
  }
  void close(char bracket);
  void string();
  void endPath() {
    if (!path_.empty())
      listener_.path(path_);
    path_.clear();
    afterDot_ = false;
  }
  void startStatement(std::size_t column);
  void endStatement();

  const Archive &archive_;
  const Archive::Record &record_;
  std::string_view text_;
  Listener &listener_;

  std::size_t at_ = 0;
  std::uint64_t line_ = 1;
  std::uint64_t movedBytes_ = 0;
  std::vector<Level> levels_;
  struct Block {
    std::size_t column;
    std::uint32_t chained; // elifs of the if statement that it is in
  };
  std::vector<Block> blocks_;
  bool inStatement_ = false;
  std::size_t statementAt_ = 0;
  std::size_t column_ = 0;
  std::string path_;
  bool afterDot_ = false;
  /// Whether an expression may end with this token, and with the one before it.
  bool ends_ = false;
  bool ended_ = false;
};

void Scanner::close(char bracket) {
  if (levels_.size() == 1 || levels_.back().close != bracket)
    fail(std::string("there is a '") + bracket + "' too many");
  std::uint32_t height = std::max(levels_.back().height, levels_.back().highest);
  levels_.pop_back();
  Level &outer = levels_.back();
  outer.height = std::max(outer.height, height);
  link();
}

void Scanner::string() {
  char quote = text_[at_];
  std::size_t begin = at_;
  auto quotes = [&](std::size_t at, std::size_t count) {
    if (text_.size() - at < count)
      return false;
    for (std::size_t i = 0; i < count; ++i)
      if (text_[at + i] != quote)
        return false;
    return true;
  };
  std::size_t width = quotes(at_, 3) ? 3 : 1;
  std::uint64_t escapes = 0;
  at_ += width;
  while (at_ < text_.size() && !quotes(at_, width)) {
    if (text_[at_] == '\n') {
      if (width == 1)
        fail("a string isn't terminated");
      ++line_;
    }
    if (text_[at_] == '\\') {
      ++escapes;
      if (++at_ < text_.size() && text_[at_] == '\n')
        ++line_;
    }
    ++at_;
  }
  if (at_ >= text_.size())
    fail("a string isn't terminated");
  at_ += width;
  std::string_view literal = text_.substr(begin, at_ - begin);
  movedBytes_ += escapes * literal.size();
  if (movedBytes_ > mostMovedBytes)
    fail("its strings hold too many escapes");
  listener_.string(literal);
}

void Scanner::startStatement(std::size_t column) {
  inStatement_ = true;
  statementAt_ = at_;
  column_ = column;
  while (blocks_.size() > 1 && blocks_.back().column > column)
    blocks_.pop_back();
  if (blocks_.empty() || blocks_.back().column < column)
    blocks_.push_back({column, 0});
  std::string_view rest = text_.substr(at_);
  auto starts = [&](std::string_view word) { return rest.substr(0, word.size()) == word; };
  if (starts("elif"))
    ++blocks_.back().chained;
  else if (!starts("else"))
    blocks_.back().chained = 0;
  std::uint64_t depth = 0;
  for (const Block &block : blocks_)
    depth += 1 + std::uint64_t(block.chained);
  if (depth > archive_.limits().sourceBlockDepth)
    fail("its blocks are nested more deeply than the limit of " +
         std::to_string(archive_.limits().sourceBlockDepth));
}

void Scanner::endStatement() {
  endPath();
  if (!inStatement_)
    return;
  inStatement_ = false;
  std::uint32_t height = std::max(levels_.back().height, levels_.back().highest);
  std::uint32_t depth = 0;
  for (const Block &block : blocks_)
    depth += 1 + block.chained;
  listener_.line(column_, text_.substr(statementAt_, at_ - statementAt_), height, depth);
  levels_.back() = {'\0'};
}

void Scanner::run() {
  levels_.push_back({'\0'});
  std::size_t lineStart = 0;
  std::uint32_t empty = 0;
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (isBlank(c)) {
      ++at_;
      continue;
    }
    bool newline = c == '\n';
    if (newline && levels_.size() == 1)
      endStatement();
    if (c == '#' && text_.substr(at_, 7) != "# type:") {
      at_ = std::min(text_.find('\n', at_), text_.size());
      if (++empty > mostEmptyLines)
        fail("there are more than " + std::to_string(mostEmptyLines) +
             " lines without code in a row");
      continue;
    }
    if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
      ++at_;
      newline = true;
    }
    if (newline) {
      ++at_;
      ++line_;
      lineStart = at_;
      if (++empty > mostEmptyLines)
        fail("there are more than " + std::to_string(mostEmptyLines) +
             " lines without code in a row");
      continue;
    }
    empty = 0;
    if (!inStatement_)
      startStatement(at_ - lineStart);
    ended_ = ends_;
    ends_ = false;

    if (isWordStart(c) || isDigit(c)) {
      std::size_t begin = at_;
      while (at_ < text_.size() && (isWordStart(text_[at_]) || isDigit(text_[at_])))
        ++at_;
      std::string_view word = text_.substr(begin, at_ - begin);
      listener_.word(word);
      ends_ = !isKeyword(word);
      if (!afterDot_ && isKeyword(word)) {
        endPath();
        link();
      } else if (afterDot_ && !path_.empty()) {
        path_ += '.';
        path_ += word;
      } else {
        endPath();
        path_ = word;
      }
      afterDot_ = false;
      continue;
    }
    if (c == '.') {
      ++at_;
      afterDot_ = !path_.empty();
      link();
      continue;
    }
    endPath();
    switch (c) {
    case '\'':
    case '"':
      string();
      ends_ = true;
      continue;
    case '#': // "# type:", after which come tokens
      at_ += 7;
      link();
      continue;
    case '(':
      open(')');
      break;
    case '[':
      // The compiler looks at the first index of every subscript.
      if (ended_ &&
          text_.substr(std::min(text_.find_first_not_of(" \t\r\v\f\n", at_ + 1), text_.size()),
                       1) == "]")
        fail("there is a subscript without an index");
      open(']');
      break;
    case '{':
      open('}');
      break;
    case ')':
    case ']':
    case '}':
      close(c);
      ends_ = true;
      break;
    case ',':
      levels_.back().highest = std::max(levels_.back().highest, levels_.back().height);
      levels_.back().height = 0;
      break;
    case '\0':
      fail("it holds a zero byte");
    default:
      link();
      break;
    }
    ++at_;
  }
  if (levels_.size() != 1)
    fail(std::string("a '") + levels_.back().close + "' is missing");
  endStatement();
}

//===- Definitions --------------------------------------------------------===//

struct Node {
  std::string name;
  const Archive::Record *record = nullptr;
  bool isNamedTuple = false;
  /// Levels of recursion in the definition itself.
  std::uint64_t levels = 0;
  /// What it mentions, in order, as often as it does.
  std::vector<std::string> paths;
  std::vector<std::uint32_t> needs;
};

/// Follows a file's classes and functions.
class DefinitionListener final : public Listener {
public:
  DefinitionListener(const Archive &archive, const Archive::Record &record, std::string qualifier,
                     const std::unordered_set<std::string> &roots, std::vector<Node> &nodes,
                     std::unordered_map<std::string, Sources::Definition> &definitions,
                     std::uint64_t &constantUses)
      : archive_(archive), record_(record), qualifier_(std::move(qualifier)), roots_(roots),
        nodes_(nodes), definitions_(definitions), constantUses_(constantUses) {}

  void path(std::string_view path) override {
    std::size_t dot = path.find('.');
    if (dot == std::string_view::npos)
      return;
    std::string_view root = path.substr(0, dot);
    if (root == "CONSTANTS")
      ++constantUses_;
    if (roots_.count(std::string(root)))
      paths_.emplace_back(path);
  }

  void word(std::string_view word) override {
    // Those that matter, without a copy of a whole constant.
    if (words_.size() < 64 || word.substr(0, 9) == "__forward")
      words_.emplace_back(word);
    methods_ += word == "def";
  }

  void string(std::string_view literal) override {
    literals_.push_back(literal);
    // A type may be written as a string.
    std::size_t begin = 0;
    auto inPath = [](char c) { return isWordStart(c) || isDigit(c) || c == '.'; };
    for (std::size_t at = 0; at <= literal.size(); ++at) {
      if (at < literal.size() && inPath(literal[at]))
        continue;
      if (at > begin)
        path(literal.substr(begin, at - begin));
      begin = at + 1;
    }
  }

  void line(std::size_t column, std::string_view text, std::uint32_t height,
            std::uint32_t blocks) override {
    std::string_view first = words_.empty() ? std::string_view() : words_.front();
    bool defines = first == "class" || first == "def";
    if (defines && (!current_ || column <= column_))
      define(column, first == "class");
    if (!current_) {
      // Imports, or the version of old archives; anything else the parser refuses.
      paths_.clear();
    } else {
      Node &node = nodes_[*current_];
      node.paths.insert(node.paths.end(), std::make_move_iterator(paths_.begin()),
                        std::make_move_iterator(paths_.end()));
      paths_.clear();
      if (inMethod_ && column <= methodColumn_)
        inMethod_ = false;
      if (methods_ && !inMethod_) {
        inMethod_ = true;
        methodColumn_ = column;
        endMethod();
      }
      node.levels += methods_ * definitionLevels;
      height_ = std::max(height_, height);
      blocks_ = std::max(blocks_, blocks);
      Sources::Definition &definition = definitions_[node.name];
      if (inMethod_ && first == "def" && column == methodColumn_ && words_.size() > 1) {
        // A name in both lists stands for a hook before the method.
        if (!preHooks_.erase(words_[1]))
          hooks_.erase(words_[1]);
        if (isClass_)
          checkSelf(text);
      }
      if (!inMethod_) {
        ++definition.lines;
        for (const std::string &word : words_) {
          if (word == "__forward_pre_hooks__")
            readHooks(word, text, preHooks_);
          else if (word == "__forward_hooks__")
            readHooks(word, text, hooks_);
        }
        if (definition.isEnum && !defines)
          enumMember(definition, text);
      }
    }
    words_.clear();
    literals_.clear();
    methods_ = 0;
  }

  /// After the last line.
  void end() {
    endMethod();
    endHooks();
  }

private:
  void endMethod() {
    if (current_)
      nodes_[*current_].levels += std::uint64_t(height_) + blocks_;
    height_ = blocks_ = 0;
  }

  /// libtorch skips the first parameter of methods without looking whether there is one.
  void checkSelf(std::string_view text) const {
    std::size_t at = text.find('(');
    if (at != std::string_view::npos)
      at = text.find_first_not_of(" \t\r\v\f\n", at + 1);
    if (at == std::string_view::npos || !isWordStart(text[at]))
      archive_.fail(record_.name, "method '" + words_[1] + "' of '" + nodes_[*current_].name +
                                      "' has no parameter 'self'");
  }

  /// Keeps the names in `NAME = ["a", "b"]`.
  void readHooks(const std::string &list, std::string_view text,
                 std::unordered_set<std::string> &names) const {
    auto fail = [&] { archive_.fail(record_.name, "'" + list + "' isn't a list of names"); };
    auto take = [&](std::string_view token) {
      std::size_t begin = text.find_first_not_of(" \t\n");
      if (begin == std::string_view::npos || text.substr(begin, token.size()) != token)
        return false;
      text.remove_prefix(begin + token.size());
      return true;
    };
    if (!take(list) || !take("=") || !take("["))
      fail();
    for (std::string_view literal : literals_) {
      if (!take(literal) || (!take(",") && literal.data() != literals_.back().data()))
        fail();
      try {
        names.insert(
            torch::jit::parseStringLiteral(torch::jit::SourceRange(), std::string(literal)));
      } catch (const std::exception &) {
        fail();
      }
    }
    if (!take("]") || text.find_first_not_of(" \t\n") != std::string_view::npos)
      fail();
  }

  /// libtorch takes it for granted that each hook is defined after it is listed.
  void endHooks() {
    for (const auto *hooks : {&preHooks_, &hooks_})
      if (!hooks->empty())
        archive_.fail(record_.name, "'" + nodes_[*current_].name +
                                        "' has no definition of its hook '" + *hooks->begin() +
                                        "'");
  }

  void define(std::size_t column, bool isClass) {
    endMethod();
    endHooks();
    column_ = column;
    isClass_ = isClass;
    inMethod_ = false;
    Node node;
    node.name = qualifier_ + "." + (words_.size() > 1 ? words_[1] : std::string());
    node.record = &record_;
    node.levels = definitionLevels;
    auto [place, isNew] = definitions_.try_emplace(node.name);
    if (!isNew)
      archive_.fail(record_.name, "it defines '" + node.name + "' twice");
    if (isClass)
      for (const std::string &word : words_) {
        place->second.isEnum |= word == "Enum";
        node.isNamedTuple |= word == "NamedTuple";
      }
    current_ = nodes_.size();
    nodes_.push_back(std::move(node));
  }

  /// Keeps the value of `NAME = value`, as libtorch's importEnum has it, which takes it for
  /// granted that there is one.
  void enumMember(Sources::Definition &definition, std::string_view text) const {
    std::size_t end = 0;
    while (end < text.size() && (isWordStart(text[end]) || isDigit(text[end])))
      ++end;
    while (end < text.size() && isBlank(text[end]))
      ++end;
    if (end == 0 || end + 1 >= text.size() || text[end] != '=' || text[end + 1] == '=')
      archive_.fail(record_.name, "a member of enum '" + nodes_[*current_].name + "' has no value");
    text.remove_prefix(end + 1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
      text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
      text.remove_suffix(1);
    if (text.empty())
      return;
    std::string value(text);
    if (value.front() == '\'' || value.front() == '"') {
      // One literal only: the end of the first is the end of the line.
      std::size_t end = 1;
      while (end < value.size() && value[end] != value.front())
        end += value[end] == '\\' ? 2 : 1;
      if (end + 1 != value.size() || value.size() < 3)
        return;
      try {
        definition.enumValues.emplace_back(
            torch::jit::parseStringLiteral(torch::jit::SourceRange(), value));
      } catch (const std::exception &) {
        // The parser says what is wrong with it.
      }
      return;
    }
    if (value.find_first_not_of("+-.0123456789abcdefxABCDEFX") != std::string::npos)
      return;
    if (value.find_first_of(".eE") != std::string::npos &&
        value.find_first_of("xX") == std::string::npos) {
      char *end = nullptr;
      double number = torch::jit::strtod_c(value.c_str(), &end);
      if (end == value.c_str() + value.size())
        definition.enumValues.emplace_back(number);
      return;
    }
    try {
      std::size_t used = 0;
      std::int64_t number = std::stoll(value, &used, 0);
      if (used == value.size())
        definition.enumValues.emplace_back(number);
    } catch (const std::exception &) {
      // As above.
    }
  }

  const Archive &archive_;
  const Archive::Record &record_;
  std::string qualifier_;
  const std::unordered_set<std::string> &roots_;
  std::vector<Node> &nodes_;
  std::unordered_map<std::string, Sources::Definition> &definitions_;
  std::uint64_t &constantUses_;

  std::vector<std::string> words_;
  std::vector<std::string_view> literals_;
  std::unordered_set<std::string> preHooks_;
  std::unordered_set<std::string> hooks_;
  std::vector<std::string> paths_;
  std::uint64_t methods_ = 0;
  std::optional<std::size_t> current_;
  std::size_t column_ = 0;
  bool isClass_ = false;
  bool inMethod_ = false;
  std::size_t methodColumn_ = 0;
  std::uint32_t height_ = 0;
  std::uint32_t blocks_ = 0;
};

/// Levels of recursion for which this thread has stack left.
std::uint64_t levelsOfStack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0)
    return 0;
  void *end = nullptr;
  std::size_t size = 0;
  pthread_attr_getstack(&attributes, &end, &size);
  pthread_attr_destroy(&attributes);
  std::size_t left =
      static_cast<const char *>(__builtin_frame_address(0)) - static_cast<char *>(end);
  return left < stackBesides ? 0 : (left - stackBesides) / stackPerLevel;
}

/// Refuses definitions that need one another so deeply, or NamedTuples that hold so many others,
/// that libtorch wouldn't come back from them.
void checkNeeds(const Archive &archive, std::vector<Node> &nodes) {
  std::unordered_map<std::string_view, std::uint32_t> index;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    index.emplace(nodes[i].name, i);
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    for (const std::string &path : nodes[i].paths) {
      // A path may go on with methods of the class that it names.
      std::string_view name = path;
      for (;;) {
        if (auto found = index.find(name); found != index.end()) {
          if (found->second != i)
            nodes[i].needs.push_back(found->second);
          break;
        }
        std::size_t dot = name.rfind('.');
        if (dot == std::string_view::npos)
          break;
        name = name.substr(0, dot);
      }
    }
    nodes[i].paths = {};
  }

  // Tarjan's strongly connected components, which come out after those they need. What is in a
  // cycle may be reached through all of it.
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> order(nodes.size(), none), low(nodes.size()),
      component(nodes.size(), none);
  std::vector<std::uint32_t> stack;
  std::vector<std::pair<std::uint32_t, std::size_t>> calls;
  std::vector<std::uint64_t> levels; // of each component and what it needs
  std::vector<std::uint64_t> fields(nodes.size(), 1);
  std::uint32_t next = 0;
  std::uint64_t limit = std::min<std::uint64_t>(archive.limits().sourceRecursion, levelsOfStack());
  auto finish = [&](std::uint32_t root) {
    auto id = static_cast<std::uint32_t>(levels.size());
    std::size_t begin = stack.size();
    do
      component[stack[--begin]] = id;
    while (stack[begin] != root);
    std::uint64_t own = 0, below = 0;
    for (std::size_t i = begin; i < stack.size(); ++i) {
      const Node &node = nodes[stack[i]];
      own += node.levels;
      std::uint64_t size = 1;
      for (std::uint32_t need : node.needs) {
        if (component[need] == id)
          continue;
        below = std::max(below, levels[component[need]]);
        size += nodes[need].isNamedTuple ? fields[need] : 1;
        if (node.isNamedTuple && size > mostFields)
          archive.fail(node.record->name, "NamedTuple '" + node.name + "' holds more than " +
                                              std::to_string(mostFields) + " types");
      }
      fields[stack[i]] = std::min(size, mostFields);
    }
    levels.push_back(own + below);
    if (levels.back() > limit)
      archive.fail(nodes[root].record->name,
                   "'" + nodes[root].name + "' and what it needs go deeper than the limit of " +
                       std::to_string(limit) + " levels");
    stack.resize(begin);
  };
  for (std::uint32_t start = 0; start < nodes.size(); ++start) {
    if (order[start] != none)
      continue;
    auto enter = [&](std::uint32_t node) {
      order[node] = low[node] = next++;
      stack.push_back(node);
      calls.push_back({node, 0});
    };
    enter(start);
    while (!calls.empty()) {
      auto &[node, edge] = calls.back();
      if (edge < nodes[node].needs.size()) {
        std::uint32_t to = nodes[node].needs[edge++];
        if (order[to] == none)
          enter(to);
        else if (component[to] == none)
          low[node] = std::min(low[node], order[to]);
        continue;
      }
      std::uint32_t done = node;
      calls.pop_back();
      if (!calls.empty())
        low[calls.back().first] = std::min(low[calls.back().first], low[done]);
      if (low[done] == order[done])
        finish(done);
    }
  }
}

} // namespace

Sources::Sources(const Archive &archive) {
  constexpr std::string_view prefix = "code/", suffix = ".py";
  auto isSource = [&](std::string_view name) {
    return name.size() > prefix.size() + suffix.size() && name.substr(0, prefix.size()) == prefix &&
           name.substr(name.size() - suffix.size()) == suffix;
  };
  std::uint64_t bytes = 0;
  std::unordered_set<std::string> roots;
  for (const Archive::Record &record : archive.records()) {
    if (!isSource(record.name))
      continue;
    bytes += record.size;
    if (bytes > archive.limits().sourceBytes)
      archive.fail(record.name, "with it, the archive has more TorchScript than the limit of " +
                                    std::to_string(archive.limits().sourceBytes) + " bytes");
    std::string_view path = std::string_view(record.name).substr(prefix.size());
    roots.emplace(path.substr(0, std::min(path.find('/'), path.size() - suffix.size())));
  }
  std::vector<Node> nodes;
  for (const Archive::Record &record : archive.records()) {
    if (!isSource(record.name))
      continue;
    std::string qualifier =
        record.name.substr(prefix.size(), record.name.size() - prefix.size() - suffix.size());
    std::replace(qualifier.begin(), qualifier.end(), '/', '.');
    std::string text = archive.copy(record);
    if (!isUtf8(text))
      archive.fail(record.name, "it isn't UTF-8");
    DefinitionListener listener(archive, record, qualifier, roots, nodes, definitions_,
                                constantUses_);
    Scanner(archive, record, text, listener).run();
    listener.end();
  }
  checkNeeds(archive, nodes);
}

const Sources::Definition *Sources::find(const std::string &name) const {
  auto found = definitions_.find(name);
  return found == definitions_.end() ? nullptr : &found->second;
}

void checkTypeExpression(const Archive &archive, const Archive::Record &record,
                         std::string_view text) {
  if (text.size() > longestType)
    archive.fail(record.name,
                 "there is a type of more than " + std::to_string(longestType) + " characters");
  if (text.find('\n') != std::string_view::npos || text.find('#') != std::string_view::npos)
    archive.fail(record.name, "there is a type that isn't one");
  Listener listener;
  Scanner(archive, record, text, listener).run();
}

} // namespace torch_mlir::torchscript
