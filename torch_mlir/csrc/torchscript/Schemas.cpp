// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operator registry, from the schemas of all rows (RowSchemas.inc, which a build writes with
// emit_rows_cpp.py). They are inflated when a row is chosen first, and read operator by operator
// when one is looked up: importing the extension costs nothing, and a load what it uses.

#include "torchscript/Schemas.h"

#include "torchscript/LoadingCode.h"
#include "torchscript/Quantized.h"
#include "torchscript/Versions.h"

#include <ATen/core/class_type.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <torch/csrc/jit/frontend/builtin_functions.h>
#include <torch/csrc/jit/frontend/edit_distance.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/custom_class.h>

#include <miniz.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "RowSchemas.inc"

namespace torch_mlir::torchscript {
namespace {

using c10::AliasAnalysisKind;
using c10::FunctionSchema;
using c10::Symbol;
using torch::jit::Operator;
using OperatorPtr = std::shared_ptr<Operator>;
using Operators = std::vector<OperatorPtr>;

/// One line of the data: an overload in a range of rows.
struct Overload {
  std::string_view rest;
  int first;
  int last;
  AliasAnalysisKind kind;
  /// Null until a row that has it is asked for the operator name.
  OperatorPtr op;
};

/// An operator name: its lines, read when it is first looked up.
struct Name {
  std::string_view lines;
  bool read = false;
  std::vector<Overload> overloads;
};

/// What was looked up in a row. Nodes of the maps stay where they are: references into them were
/// given away.
struct Row {
  std::unordered_map<Symbol, Operators> operators;
  std::unordered_map<const char *, OperatorPtr> literals;
};

bool sameTypes(const std::vector<c10::Argument> &left, const std::vector<c10::Argument> &right) {
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(),
      [](const c10::Argument &l, const c10::Argument &r) { return *l.type() == *r.type(); });
}

bool sameRealTypes(const std::vector<c10::Argument> &left,
                   const std::vector<c10::Argument> &right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const c10::Argument &l, const c10::Argument &r) {
                      return *l.real_type() == *r.real_type();
                    });
}

/// Equal in everything that is printed. The comparison in PyTorch takes int and SymInt for equal.
bool sameSchema(const FunctionSchema &left, const FunctionSchema &right) {
  return left == right && sameRealTypes(left.arguments(), right.arguments()) &&
         sameRealTypes(left.returns(), right.returns());
}

bool isWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == ':';
}

/// Whether an operator is one that we put into graphs (see LoadingCode.cpp).
bool isOurs(std::string_view operatorName) {
  constexpr std::string_view space = "torch_mlir::";
  return operatorName.substr(0, space.size()) == space;
}

/// Runs an operator that no code here registers with the JIT.
void runThroughDispatcher(const FunctionSchema &schema, torch::jit::Stack &stack) {
  auto handle = c10::Dispatcher::singleton().findSchema(schema.operator_name());
  // Whatever is defined has kernels (see defineKernels).
  if (handle && sameTypes(schema.arguments(), handle->schema().arguments()) &&
      sameTypes(schema.returns(), handle->schema().returns())) {
    runBounded([&](torch::jit::Stack &arguments) { handle->callBoxed(arguments); }, schema, stack);
    return;
  }
  if (makeObject(schema, stack))
    return;
  // No c10::Error: constant propagation tries calls and drops such errors, and those collect a
  // backtrace.
  throw std::runtime_error("there is no kernel for " + toString(schema.operator_name()) +
                           " in this importer, which runs no operators on tensors");
}

OperatorPtr findOverload(const Operators &operators, const c10::OperatorName &name) {
  for (const OperatorPtr &op : operators)
    if (op->schema().overload_name() == name.overload_name)
      return op;
  return nullptr;
}

/// What an operator is made of. PyTorch keeps it to itself; an explicit instantiation may name it.
auto &bodyOf(const Operator &op);
template <auto Body> struct Opened {
  friend auto &bodyOf(const Operator &op) { return op.*Body; }
};
template struct Opened<&Operator::op_>;

/// An operator's name, without reading the schema that it is still the text of: code registers
/// hundreds, and a load uses a few.
std::string nameOf(const Operator &op) {
  if (const auto *own = getSecond(bodyOf(op)))
    if (const auto *unread = getSecond(own->schema_)) {
      const std::string &text = unread->schema_string_;
      std::size_t begin = text.find_first_not_of(" \n");
      if (begin != text.npos)
        return text.substr(begin, text.find_first_of(".( \n", begin) - begin);
    }
  return op.schema().name();
}

class Registry {
public:
  /// Never destroyed: what is destroyed at exit may hold graphs, and nodes point to operators.
  static Registry &get() {
    static Registry *registry = new Registry;
    return *registry;
  }

  void add(Operator &&op) {
    std::lock_guard<std::mutex> guard(mutex);
    unsorted.push_back(std::make_shared<Operator>(std::move(op)));
  }

  void select(const std::string &row, const std::vector<std::string> &schemas) {
    const std::vector<std::string> &names = schemaRows();
    auto found = std::find(names.begin(), names.end(), row);
    if (found == names.end()) {
      std::ostringstream message;
      message << "no row '" << row << "': there are schemas of";
      for (const std::string &name : names)
        message << " " << name;
      throw std::invalid_argument(message.str());
    }
    prepare();
    std::lock_guard<std::mutex> guard(mutex);
    latest = chosen = static_cast<int>(found - names.begin());
    further.clear();
    for (const std::string &schema : schemas)
      addFurther(schema);
  }

  void withOwn(const std::function<void()> &work) {
    struct Back {
      int row = std::exchange(chosen, sourceRow);
      std::unordered_map<Symbol, Operators> operators = std::exchange(further, {});
      ~Back() {
        chosen = row;
        further = std::move(operators);
      }
    } back;
    work();
  }

  const Operators &operatorsFor(Symbol symbol) {
    std::lock_guard<std::mutex> guard(mutex);
    auto found = further.find(symbol);
    return found == further.end() ? find(current(), symbol) : found->second;
  }

  std::vector<const FunctionSchema *> later(const FunctionSchema &schema) {
    std::lock_guard<std::mutex> guard(mutex);
    Symbol symbol = Symbol::fromQualString(schema.name());
    std::vector<const FunctionSchema *> found;
    for (int row = static_cast<int>(rows.size()) - 1; row > current(); --row) {
      OperatorPtr op = findOverload(find(row, symbol), schema.operator_name());
      if (!op || sameSchema(op->schema(), schema))
        continue;
      // Rows whose schemas are equal share them.
      if (found.empty() || found.back() != &op->schema())
        found.push_back(&op->schema());
    }
    return found;
  }

  Operators all() {
    std::lock_guard<std::mutex> guard(mutex);
    int row = current();
    Operators found;
    for (auto &[name, lines] : names) {
      const Operators &operators = find(row, Symbol::fromQualString(std::string(name)));
      found.insert(found.end(), operators.begin(), operators.end());
    }
    return found;
  }

  /// The names that are alike, most alike first.
  std::vector<Symbol> similar(Symbol symbol) {
    constexpr std::size_t furthest = 2;
    std::lock_guard<std::mutex> guard(mutex);
    int row = current();
    std::multimap<std::size_t, Symbol> found;
    for (auto &[name, lines] : names) {
      std::string other(name);
      std::size_t distance =
          torch::jit::ComputeEditDistance(symbol.toQualString(), other.c_str(), furthest);
      if (distance <= furthest && !find(row, Symbol::fromQualString(other)).empty())
        found.emplace(distance, Symbol::fromQualString(other));
    }
    std::vector<Symbol> symbols;
    for (auto &[distance, other] : found)
      symbols.push_back(other);
    return symbols;
  }

  /// The operator with the types of a signature in libtorch's own code, which wants to know whether
  /// a node is that operator. None ever is where the row has no such operator.
  OperatorPtr forLiteral(const char *signature) {
    std::lock_guard<std::mutex> guard(mutex);
    int row = current();
    OperatorPtr &found = rows[row].literals[signature];
    if (found)
      return found;
    FunctionSchema schema = torch::jit::parseSchema(signature);
    Symbol symbol = Symbol::fromQualString(schema.name());
    std::string canonical = torch::jit::canonicalSchemaString(schema);
    const Operators *ofRow = &find(row, symbol), *ofCode = &sorted[symbol];
    for (const Operators *candidates : {ofRow, ofCode})
      for (const OperatorPtr &candidate : *candidates)
        if (!found && torch::jit::canonicalSchemaString(candidate->schema()) == canonical)
          found = candidate;
    if (!found)
      found = makeOperator(signature, kindFor(symbol, AliasAnalysisKind::FROM_SCHEMA));
    return found;
  }

private:
  Registry() = default;

  void prepare() {
    std::lock_guard<std::mutex> preparing(preparation);
    if (prepared)
      return;
    {
      std::lock_guard<std::mutex> guard(mutex);
      inflate();
    }
    // Those are compiled when one is looked up.
    withOwn([] { torch::jit::getAllBuiltinFunctionsFor(c10::aten::len); });
    prepared = true;
  }

  // Everything below wants the mutex to be held.

  int current() const {
    int row = chosen >= 0 ? chosen : latest;
    if (row < 0)
      throw std::logic_error("operators are looked up before selectSchemas chose a row");
    return row;
  }

  /// Adds an operator for this thread, unless the row has one of its name.
  void addFurther(const std::string &text) {
    std::string own(text, 0, text.find('('));
    size_t colons = own.find("::");
    size_t dot = colons == own.npos ? colons : own.find('.', colons);
    if (colons == own.npos || colons == 0 || own.size() == text.size())
      throw std::runtime_error("the schema '" + text + "' can't be read: it should be as in "
                               "'name::operator.overload(Tensor x, int by=1) -> Tensor'");
    c10::OperatorName name(own.substr(0, dot), dot == own.npos ? "" : own.substr(dot + 1));
    Symbol symbol = Symbol::fromQualString(name.name);
    auto entry = further.try_emplace(symbol, find(current(), symbol)).first;
    if (findOverload(entry->second, name))
      return;
    // Nodes point to it.
    OperatorPtr &op = given[text];
    if (!op)
      op = makeOperator(text, kindFor(symbol, AliasAnalysisKind::FROM_SCHEMA));
    entry->second.push_back(op);
  }

  /// Starts anew after an attempt that failed.
  void inflate() {
    names.clear();
    unknownTypes.clear();
    rows = std::vector<Row>(std::size(rowNames));
    inflated.resize(inflatedRowsSize);
    std::size_t size =
        tinfl_decompress_mem_to_mem(inflated.data(), inflated.size(), deflatedRows,
                                    sizeof(deflatedRows), TINFL_FLAG_PARSE_ZLIB_HEADER);
    if (size != inflated.size())
      throw std::runtime_error("the rows' schemas don't inflate");
    index();
    declareClasses();
    sortLinked();
    declareMethods();
    defineKernels();
  }

  /// Finds the operator names, and the types to write otherwise.
  void index() {
    std::string_view text = inflated;
    std::string_view *lines = nullptr;
    while (!text.empty()) {
      std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      if (line[0] == '=') {
        std::size_t space = line.find(' ');
        if (!isKnownType(line.substr(1, space - 1)))
          unknownTypes.emplace_back(line.substr(1, space - 1), line.substr(space + 1));
      } else if (line[0] == '@') {
        lines = &names.emplace_hint(names.end(), line.substr(1), Name())->second.lines;
        *lines = text.substr(end + 1, 0);
      } else {
        *lines = std::string_view(lines->data(), lines->size() + end + 1);
      }
      text.remove_prefix(end + 1);
    }
  }

  /// Declares the classes that schemas name: the parser wants to know them.
  void declareClasses() {
    static constexpr std::string_view prefix = "__torch__.torch.classes.";
    std::string_view text = inflated;
    for (std::size_t at = text.find(prefix); at != text.npos; at = text.find(prefix, at + 1)) {
      std::size_t end = at;
      while (isWordCharacter(text[end]))
        ++end;
      std::string name(text.substr(at, end - at));
      if (torch::getCustomClass(name))
        continue;
      auto type = c10::ClassType::create(c10::QualifiedName(name),
                                         std::weak_ptr<torch::jit::CompilationUnit>());
      // As torch::class_ does.
      type->addAttribute("capsule", c10::CapsuleType::get());
      keepState(type);
      torch::registerCustomClass(type);
    }
  }

  /// Gives classes the methods that operators stand for: TorchScript's text calls them.
  void declareMethods() {
    for (const auto &[className, prefix] : getMethodOperators()) {
      c10::ClassTypePtr type = torch::getCustomClass(className);
      for (auto name = names.lower_bound(prefix); type && name != names.end(); ++name) {
        std::string qualified(name->first);
        if (qualified.compare(0, prefix.size(), prefix) != 0)
          break;
        for (const OperatorPtr &op : find(sourceRow, Symbol::fromQualString(qualified))) {
          const auto &arguments = op->schema().arguments();
          if (arguments.size() == 1 && *arguments[0].type() == *type)
            declareMethod(type, qualified.substr(prefix.size()), op->schema());
        }
      }
    }
  }

  /// Puts what code has registered so far under its operators' names.
  void sortLinked() {
    for (OperatorPtr &op : unsorted) {
      std::string name = nameOf(*op);
      // Those are given away as they are. Reads them, while the mutex is held.
      if (isOurs(name))
        op->schema();
      sorted[Symbol::fromQualString(name)].push_back(std::move(op));
    }
    unsorted.clear();
  }

  /// Gives the dispatcher's kernels their schemas, without which neither libtorch's C++ functions
  /// nor we can call them.
  void defineKernels() {
    auto &dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorHandle &handle : dispatcher.findDanglingImpls()) {
      const c10::OperatorName &name = handle.operator_name();
      auto op = findOverload(find(sourceRow, Symbol::fromQualString(name.name)), name);
      if (!op)
        throw std::logic_error("a kernel of " + toString(name) + ", which " + rowNames[sourceRow] +
                               " lacks");
      definitions.push_back(dispatcher.registerDef(op->schema(), "the row's schemas"));
    }
  }

  /// The lines of an operator name; null for one that no row has.
  std::vector<Overload> *read(std::string_view operatorName) {
    auto found = names.find(operatorName);
    if (found == names.end())
      return nullptr;
    Name &name = found->second;
    if (!name.read) {
      std::string_view text = name.lines;
      while (!text.empty()) {
        std::size_t end = text.find('\n');
        AliasAnalysisKind kind = text[2] == 'c'   ? AliasAnalysisKind::CONSERVATIVE
                                 : text[2] == 'p' ? AliasAnalysisKind::PURE_FUNCTION
                                                  : AliasAnalysisKind::FROM_SCHEMA;
        name.overloads.push_back(
            {text.substr(4, end - 4), text[0] - 'A', text[1] - 'A', kind, nullptr});
        text.remove_prefix(end + 1);
      }
      name.read = true;
    }
    return &name.overloads;
  }

  const Operators &find(int row, Symbol symbol) {
    static const Operators &none = *new Operators;
    auto found = rows[row].operators.find(symbol);
    if (found != rows[row].operators.end())
      return found->second;
    std::string_view operatorName = symbol.toQualString();
    std::vector<Overload> *overloads = read(operatorName);
    sortLinked();
    // Names that no row has come from archives: they aren't kept. Our own are no row's.
    if (!overloads) {
      auto ours = sorted.find(symbol);
      return ours != sorted.end() && isOurs(operatorName) ? ours->second : none;
    }
    Operators operators;
    for (Overload &overload : *overloads) {
      if (row < overload.first || row > overload.last)
        continue;
      if (!overload.op)
        overload.op = makeOperator(symbol, operatorName, overload, *overloads);
      operators.push_back(overload.op);
    }
    return rows[row].operators.emplace(symbol, std::move(operators)).first->second;
  }

  OperatorPtr makeOperator(Symbol symbol, std::string_view operatorName, const Overload &overload,
                           const std::vector<Overload> &overloads) {
    for (const Overload &other : overloads)
      if (other.op && other.rest == overload.rest && other.kind == overload.kind)
        return other.op;
    std::string text(operatorName);
    text += overload.rest;
    OperatorPtr op = makeOperator(text, kindFor(symbol, overload.kind));
    auto linked = sorted.find(symbol);
    if (linked != sorted.end())
      for (const OperatorPtr &candidate : linked->second)
        if (sameSchema(candidate->schema(), op->schema()))
          return bounded(text, candidate);
    return op;
  }

  /// An operator that code registered, within what running an archive's code may cost.
  OperatorPtr bounded(const std::string &text, const OperatorPtr &linked) {
    // What depends on a node is libtorch's own, and as large as what it is given.
    if (!linked->hasOperation())
      return linked;
    auto op = std::make_shared<Operator>(
        readable(text),
        [linked, operation = linked->getOperation()](torch::jit::Stack &stack) mutable {
          runBounded([&](torch::jit::Stack &arguments) { operation(arguments); },
                     linked->schema(), stack);
        },
        linked->aliasAnalysisKind());
    // Reads it, while the mutex is held.
    op->schema();
    return op;
  }

  /// An operator with a schema and no implementation of its own.
  OperatorPtr makeOperator(const std::string &text, AliasAnalysisKind kind) {
    auto schema = std::make_shared<const FunctionSchema *>(nullptr);
    auto op = std::make_shared<Operator>(
        readable(text),
        [schema](torch::jit::Stack &stack) { runThroughDispatcher(**schema, stack); }, kind);
    try {
      // Reads it, while the mutex is held.
      *schema = &op->schema();
    } catch (const std::exception &error) {
      throw std::runtime_error("the schema '" + text + "' can't be read: " + error.what());
    }
    return op;
  }

  static AliasAnalysisKind kindFor(Symbol symbol, AliasAnalysisKind kind) {
    return torch::jit::aliasAnalysisHasSpecialCaseFor(symbol)
               ? AliasAnalysisKind::INTERNAL_SPECIAL_CASE
               : kind;
  }

  /// The schema with types that this libtorch's parser knows.
  std::string readable(std::string text) {
    for (auto &[name, meant] : unknownTypes)
      for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
        bool startsWord = at == 0 || !isWordCharacter(text[at - 1]);
        if (startsWord && !isWordCharacter(text[at + name.size()]))
          text.replace(at, name.size(), meant);
      }
    return text;
  }

  static bool isKnownType(std::string_view name) {
    try {
      torch::jit::parseSchema("rows::probe(" + std::string(name) + " x) -> ()");
      return true;
    } catch (const std::exception &) {
      return false;
    }
  }

  /// Held by who prepares, who looks operators up meanwhile.
  std::mutex preparation;
  bool prepared = false;

  std::mutex mutex;
  /// What code registered: not yet looked at, and by operator name.
  Operators unsorted;
  std::unordered_map<Symbol, Operators> sorted;
  /// The data; what is a string_view points into it.
  std::string inflated;
  std::map<std::string_view, Name> names;
  /// Types that this libtorch's parser doesn't know, and what the JIT takes them for.
  std::vector<std::pair<std::string_view, std::string_view>> unknownTypes;
  std::vector<c10::RegistrationHandleRAII> definitions;
  std::vector<Row> rows;
  /// Indices of rows.
  int latest = -1;
  static thread_local int chosen;
  /// All operators of names that the thread has operators of its own of.
  static thread_local std::unordered_map<Symbol, Operators> further;
  /// Those that there ever were, by their schemas.
  std::map<std::string, OperatorPtr> given;
};

thread_local int Registry::chosen = -1;
thread_local std::unordered_map<Symbol, Operators> Registry::further;

} // namespace

const std::vector<std::string> &schemaRows() {
  static const std::vector<std::string> names(std::begin(rowNames), std::end(rowNames));
  return names;
}

std::vector<const c10::FunctionSchema *> laterSchemas(const c10::FunctionSchema &schema) {
  return Registry::get().later(schema);
}

void selectSchemas(const std::string &row, const std::vector<std::string> &further) {
  Registry::get().select(row, further);
}

void withOwnSchemas(const std::function<void()> &work) { Registry::get().withOwn(work); }

std::map<std::string, std::vector<std::string>> linkedKernels() {
  auto &dispatcher = c10::Dispatcher::singleton();
  std::map<std::string, std::vector<std::string>> found;
  for (const c10::OperatorName &name : dispatcher.getAllOpNames()) {
    auto handle = dispatcher.findOp(name);
    for (c10::DispatchKey key : c10::DispatchKeySet(c10::DispatchKeySet::FULL))
      if (handle->hasKernelForDispatchKey(key))
        found[toString(name)].emplace_back(c10::toString(key));
  }
  return found;
}

std::vector<std::string> registeredSchemas() {
  std::vector<std::string> found;
  for (const OperatorPtr &op : Registry::get().all())
    found.push_back(toString(op->schema()));
  return found;
}

} // namespace torch_mlir::torchscript

// What the rest of libtorch sees: see runtime/operator.h.
namespace torch::jit {

using torch_mlir::torchscript::Registry;

void registerOperator(Operator &&op) { Registry::get().add(std::move(op)); }

const std::vector<std::shared_ptr<Operator>> getAllOperators() { return Registry::get().all(); }

const std::vector<std::shared_ptr<Operator>> &getAllOperatorsFor(Symbol name) {
  return Registry::get().operatorsFor(name);
}

std::shared_ptr<Operator> findOperatorFor(const c10::OperatorName &fullName) {
  return torch_mlir::torchscript::findOverload(
      getAllOperatorsFor(Symbol::fromQualString(fullName.name)), fullName);
}

std::vector<Symbol> findSimilarOperators(Symbol name) { return Registry::get().similar(name); }

std::shared_ptr<Operator> getOperatorForLiteral(const char *signature) {
  return Registry::get().forLiteral(signature);
}

} // namespace torch::jit
