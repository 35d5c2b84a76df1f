// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The opcodes and what they need: torch/csrc/jit/serialization/unpickler.cpp. What a pickle that
// libtorch's Pickler wrote never does is refused even where the unpickler would get through it.

#include "Pickles.h"

#include "Dtypes.h"

#include <ATen/core/jit_type_base.h>
#include <c10/core/ScalarType.h>
#include <c10/util/complex.h>
#include <c10/util/hash.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <torch/csrc/jit/serialization/source_range_serialization.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torch_mlir::torchscript {
namespace {

using torch::jit::PickleOpCode;

/// PyTorch's own operators take no more.
constexpr std::size_t mostDimensions = 64;
constexpr std::uint64_t mostSteps = std::uint64_t(1) << 31;

enum class Kind : std::uint8_t {
  None,
  Bool,
  Int,
  Float,
  Complex,
  String,
  Device,
  Global,
  Storage,
  Tensor,
  Tuple,
  List,
  Dict,
  Object,
  EnumMember,
};

const char *nameOf(Kind kind) {
  switch (kind) {
  case Kind::None:
    return "None";
  case Kind::Bool:
    return "a bool";
  case Kind::Int:
    return "an int";
  case Kind::Float:
    return "a float";
  case Kind::Complex:
    return "a complex number";
  case Kind::String:
    return "a string";
  case Kind::Device:
    return "a device";
  case Kind::Global:
    return "a class or function";
  case Kind::Storage:
    return "a storage";
  case Kind::Tensor:
    return "a tensor";
  case Kind::Tuple:
    return "a tuple";
  case Kind::List:
    return "a list";
  case Kind::Dict:
    return "a dictionary";
  case Kind::Object:
    return "an object";
  case Kind::EnumMember:
    return "a member of an enum";
  }
  return "a value";
}

struct Value {
  Kind kind = Kind::None;
  /// The index of a container, storage or global; the size of a string.
  std::uint32_t index = 0;
  /// An int or bool, the bits of a float, where a string starts, the hash of a complex number.
  std::int64_t bits = 0;
};

bool isContainer(Kind kind) { return kind >= Kind::Tuple; }

/// What a global stands for. Those that push an index of libtorch's table of functions come
/// first.
enum class Callee : std::uint8_t {
  RebuildTensor,
  RebuildQuantizedTensor,
  Complex,
  OrderedDict,
  Device,
  RestoreTypeTag,
  BuildList,
  IntList,
  Class,
  StorageType,
  QScheme,
};

struct Global {
  Callee callee;
  std::size_t itemSize = 0; // of a StorageType
  int dtype = -1;           // of one that libtorch lacks
  std::string name;
};

struct Storage {
  std::int64_t elements;
  std::size_t itemSize;
};

/// The values of a tuple, list or dictionary (keys and values by turns), or what an object was
/// built from, in the runs in which they were appended.
struct Container {
  std::uint32_t firstRun = 0; // one more than its index, so zero is none
  std::uint32_t lastRun = 0;
  Kind kind;
  bool tagged = false; // whether a list is typed as ints
};

struct Run {
  std::size_t begin;
  std::uint32_t count;
  std::uint32_t next = 0; // one more than its index
};

class Pickle {
public:
  enum class Use { Module, DebugInfo };

  Pickle(const Archive &archive, const Archive::Record &record, std::string_view bytes,
         const Sources *sources, Use use)
      : archive_(archive), record_(record), bytes_(bytes), sources_(sources), use_(use) {
    if (use == Use::Module)
      folder_ = record.name.substr(0, record.name.size() - std::strlen(".pkl")) + "/";
  }

  Value run();
  /// The bytes with names of storages that libtorch has.
  std::string getReadable() const;
  void checkNesting();
  void checkDictionaries();
  void checkConstants(const Value &constants);

  /// The values of a tuple.
  const Value *elements(const Value &tuple, std::size_t &count) const;
  std::string_view text(const Value &string) const {
    return bytes_.substr(static_cast<std::size_t>(string.bits), string.index);
  }
  /// Calls `visit` with each of a container's values.
  template <typename Visit>
  void forEach(const Value &container, Visit visit) const {
    for (std::uint32_t run = containers_[container.index].firstRun; run; run = runs_[run - 1].next)
      for (std::uint32_t i = 0; i < runs_[run - 1].count; ++i)
        visit(values_[runs_[run - 1].begin + i]);
  }
  bool isIntList(const Value &value) const {
    return value.kind == Kind::List && containers_[value.index].tagged;
  }

  [[noreturn]] void fail(const std::string &message) const { archive_.fail(record_.name, message); }

private:
  void refuseInDebugInfo() const {
    if (use_ == Use::DebugInfo)
      broken("there is a value of a kind that source ranges don't have");
  }
  [[noreturn]] void broken(const std::string &message) const {
    fail("the pickle is broken at byte " + std::to_string(opcodeAt_) + ": " + message);
  }
  std::string path() const;
  [[noreturn]] void badTensor(const std::string &message) const {
    std::string where = path();
    fail((where.empty() ? "tensor: " : "tensor '" + where + "': ") + message);
  }

  // Reading bytes.
  template <typename T>
  T read() {
    need(sizeof(T));
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value = static_cast<T>(
          value |
          static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes_[at_ + i])) << (8 * i)));
    at_ += sizeof(T);
    return value;
  }
  void need(std::uint64_t count) const {
    if (bytes_.size() - at_ < count)
      broken("it ends in the middle of a value");
  }
  Value readString(std::uint64_t size);
  std::string readLine();

  // The stack. Values below the last mark can't be reached.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void push(Value value) {
    countValues(1);
    stack_.push_back(value);
  }
  void countValues(std::uint64_t more) {
    count_ += more;
    if (count_ > archive_.limits().pickleValues)
      fail("it holds more values than the limit of " +
           std::to_string(archive_.limits().pickleValues));
  }
  /// Bounds what is done again for each of many uses of one long thing.
  void spend(std::uint64_t steps) {
    steps_ += steps;
    if (steps_ > mostSteps)
      fail("it uses long types or names too often");
  }
  Value pop() {
    if (stack_.size() <= floor())
      broken("an opcode takes more values than there are");
    Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value top() const {
    if (stack_.size() <= floor())
      broken("an opcode takes more values than there are");
    return stack_.back();
  }
  std::size_t popMark() {
    if (marks_.empty())
      broken("an opcode takes values down to a mark that isn't there");
    std::size_t mark = marks_.back();
    marks_.pop_back();
    return mark;
  }
  Value expect(const Value &value, Kind kind) const {
    if (value.kind != kind)
      broken(std::string("there is ") + nameOf(value.kind) + " in place of " + nameOf(kind));
    return value;
  }

  // Containers.
  Value makeContainer(Kind kind) {
    Container container;
    container.kind = kind;
    containers_.push_back(container);
    return {kind, static_cast<std::uint32_t>(containers_.size() - 1), 0};
  }
  void append(const Value &container, std::size_t begin);
  void appendOne(const Value &container, const Value &value) {
    stack_.push_back(value);
    append(container, stack_.size() - 1);
  }

  void tagInts(const Value &list) {
    expect(list, Kind::List);
    forEach(list, [&](const Value &value) { expect(value, Kind::Int); });
    containers_[list.index].tagged = true;
  }

  // Opcodes.
  void step(PickleOpCode opcode);
  void putMemo(std::uint32_t id);
  void getMemo(std::uint32_t id);
  void makeTuple(std::size_t begin) {
    Value tuple = makeContainer(Kind::Tuple);
    append(tuple, begin);
    push(tuple);
  }
  void readGlobal();
  void call();
  void makeStorage();
  Value rebuildTensor(const Value &arguments, bool quantized);

  const Archive &archive_;
  const Archive::Record &record_;
  std::string_view bytes_;
  const Sources *sources_;
  Use use_;
  /// Where the tensors lie.
  std::string folder_;

  std::size_t at_ = 0;
  std::size_t opcodeAt_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t laidOutBytes_ = 0;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Value> memo_;
  std::vector<Global> globals_;
  std::vector<Storage> storages_;
  /// Of each record, the dtype that libtorch lacks, or -1.
  std::unordered_map<const Archive::Record *, int> dtypes_;
  /// Where names stand that libtorch lacks, their lengths, and others for them.
  std::vector<std::tuple<std::size_t, std::size_t, std::string>> replaced_;
  std::vector<Container> containers_;
  std::vector<Run> runs_;
  std::vector<Value> values_;
  /// Of each container, counting shared ones as often as they are reached.
  std::vector<std::uint64_t> sizes_;
};

std::string Pickle::getReadable() const {
  std::string readable;
  std::size_t done = 0;
  for (const auto &[at, size, other] : replaced_) {
    readable.append(bytes_, done, at - done).append(other);
    done = at + size;
  }
  return readable.append(bytes_, done);
}

const Value *Pickle::elements(const Value &tuple, std::size_t &count) const {
  const Container &container = containers_[tuple.index];
  if (!container.firstRun) {
    count = 0;
    return nullptr;
  }
  const Run &run = runs_[container.firstRun - 1];
  count = run.count;
  return values_.data() + run.begin;
}

/// The attributes on the way to what is being built, e.g. `layers.0.weight`.
std::string Pickle::path() const {
  std::string path;
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    std::size_t begin = marks_[i];
    std::size_t end = i + 1 < marks_.size() ? marks_[i + 1] : stack_.size();
    if (begin == 0 || stack_[begin - 1].kind != Kind::Dict)
      continue;
    // Keys and values by turns, and then, after the last key, what its value is made of.
    std::optional<Value> key;
    for (std::size_t at = begin; at < end; at += 2) {
      if (stack_[at].kind != Kind::String)
        continue;
      key = stack_[at];
      if (at + 1 < end && stack_[at + 1].kind == Kind::Global)
        break;
    }
    if (key)
      path += (path.empty() ? "" : ".") + std::string(text(*key).substr(0, 64));
  }
  return path;
}

//===- Reading ------------------------------------------------------------===//

Value Pickle::readString(std::uint64_t size) {
  need(size);
  if (size > std::numeric_limits<std::uint32_t>::max())
    broken("a string of more than 4 GiB");
  if (!isUtf8(bytes_.substr(at_, size)))
    broken("a string isn't UTF-8");
  Value value{Kind::String, static_cast<std::uint32_t>(size), static_cast<std::int64_t>(at_)};
  at_ += size;
  return value;
}

/// A part of a global's name. libtorch takes any bytes up to a newline, and looks for it beyond
/// what it has read.
std::string Pickle::readLine() {
  constexpr std::size_t longest = 4096;
  std::size_t end = bytes_.substr(0, std::min(bytes_.size(), at_ + longest)).find('\n', at_);
  if (end == std::string_view::npos)
    broken("the name of a class isn't terminated");
  std::string line(bytes_.substr(at_, end - at_));
  for (char c : line)
    if (!(c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
          (c >= 'A' && c <= 'Z')))
      broken("the name of a class isn't one");
  at_ = end + 1;
  return line;
}

Value Pickle::run() {
  opcodeAt_ = at_;
  if (read<std::uint8_t>() != static_cast<std::uint8_t>(PickleOpCode::PROTO))
    broken("it doesn't start as a pickle");
  if (auto protocol = read<std::uint8_t>(); protocol != 2)
    broken("it has protocol " + std::to_string(protocol) + "; TorchScript's have 2");
  for (;;) {
    opcodeAt_ = at_;
    auto opcode = static_cast<PickleOpCode>(read<std::uint8_t>());
    if (opcode == PickleOpCode::STOP)
      break;
    step(opcode);
  }
  if (stack_.size() != 1 || !marks_.empty())
    broken("it ends with " + std::to_string(stack_.size()) + " values rather than one");
  return stack_.front();
}

void Pickle::append(const Value &container, std::size_t begin) {
  if (containers_[container.index].tagged)
    broken("a list grows after its type is told");
  std::size_t count = stack_.size() - begin;
  if (count > 0) {
    runs_.push_back({values_.size(), static_cast<std::uint32_t>(count)});
    values_.insert(values_.end(), stack_.begin() + static_cast<std::ptrdiff_t>(begin),
                   stack_.end());
    auto run = static_cast<std::uint32_t>(runs_.size());
    Container &to = containers_[container.index];
    (to.firstRun ? runs_[to.lastRun - 1].next : to.firstRun) = run;
    to.lastRun = run;
  }
  stack_.resize(begin);
}

void Pickle::putMemo(std::uint32_t id) {
  Value value = top();
  // libtorch fills gaps, up to 64 GiB of them. Whoever writes a pickle counts.
  if (id > memo_.size())
    broken("memo " + std::to_string(id) + " follows memo " + std::to_string(memo_.size()));
  if (id == memo_.size())
    memo_.push_back(value);
  else
    memo_[id] = value;
}

void Pickle::getMemo(std::uint32_t id) {
  if (id >= memo_.size())
    broken("memo " + std::to_string(id) + " isn't there");
  push(memo_[id]);
}

void Pickle::step(PickleOpCode opcode) {
  switch (opcode) {
  case PickleOpCode::EMPTY_LIST:
    return push(makeContainer(Kind::List));
  case PickleOpCode::EMPTY_TUPLE:
    return push(makeContainer(Kind::Tuple));
  case PickleOpCode::EMPTY_DICT:
    refuseInDebugInfo();
    return push(makeContainer(Kind::Dict));
  case PickleOpCode::BINPUT:
    return putMemo(read<std::uint8_t>());
  case PickleOpCode::LONG_BINPUT:
    return putMemo(read<std::uint32_t>());
  case PickleOpCode::BINGET:
    return getMemo(read<std::uint8_t>());
  case PickleOpCode::LONG_BINGET:
    return getMemo(read<std::uint32_t>());
  case PickleOpCode::MARK:
    if (marks_.size() >= 4 * std::uint64_t(archive_.limits().pickleDepth))
      fail("its values are nested more deeply than the limit of " +
           std::to_string(archive_.limits().pickleDepth));
    marks_.push_back(stack_.size());
    return;
  case PickleOpCode::NONE:
    return push({});
  case PickleOpCode::NEWTRUE:
    return push({Kind::Bool, 0, 1});
  case PickleOpCode::NEWFALSE:
    return push({Kind::Bool, 0, 0});
  case PickleOpCode::BININT1:
    return push({Kind::Int, 0, read<std::uint8_t>()});
  case PickleOpCode::BININT2:
    return push({Kind::Int, 0, read<std::uint16_t>()});
  case PickleOpCode::BININT:
    return push({Kind::Int, 0, static_cast<std::int32_t>(read<std::uint32_t>())});
  case PickleOpCode::LONG1:
    if (auto size = read<std::uint8_t>(); size != 8)
      broken("an int of " + std::to_string(size) + " bytes; TorchScript's have 8");
    return push({Kind::Int, 0, static_cast<std::int64_t>(read<std::uint64_t>())});
  case PickleOpCode::BINFLOAT: {
    need(8);
    std::uint64_t bits = 0; // big-endian
    for (int i = 0; i < 8; ++i)
      bits = bits << 8 | read<std::uint8_t>();
    return push({Kind::Float, 0, static_cast<std::int64_t>(bits)});
  }
  case PickleOpCode::BINUNICODE:
    return push(readString(read<std::uint32_t>()));
  case PickleOpCode::BINUNICODE8:
    return push(readString(read<std::uint64_t>()));
  case PickleOpCode::TUPLE:
    return makeTuple(popMark());
  case PickleOpCode::TUPLE1:
  case PickleOpCode::TUPLE2:
  case PickleOpCode::TUPLE3: {
    std::size_t size = opcode == PickleOpCode::TUPLE1 ? 1 : opcode == PickleOpCode::TUPLE2 ? 2 : 3;
    if (stack_.size() - floor() < size)
      broken("an opcode takes more values than there are");
    return makeTuple(stack_.size() - size);
  }
  case PickleOpCode::LIST: {
    Value list = makeContainer(Kind::List);
    append(list, popMark());
    return push(list);
  }
  case PickleOpCode::APPENDS: {
    std::size_t begin = popMark();
    if (begin <= floor())
      broken("there is no list to append to");
    return append(expect(stack_[begin - 1], Kind::List), begin);
  }
  case PickleOpCode::APPEND: {
    Value value = pop();
    return appendOne(expect(top(), Kind::List), value);
  }
  case PickleOpCode::DICT: {
    std::size_t begin = popMark();
    if ((stack_.size() - begin) % 2 != 0)
      broken("a dictionary's last key has no value");
    refuseInDebugInfo();
    Value dict = makeContainer(Kind::Dict);
    append(dict, begin);
    return push(dict);
  }
  case PickleOpCode::SETITEMS: {
    std::size_t begin = popMark();
    if (begin <= floor())
      broken("there is no dictionary to set items of");
    if ((stack_.size() - begin) % 2 != 0)
      broken("a dictionary's last key has no value");
    return append(expect(stack_[begin - 1], Kind::Dict), begin);
  }
  case PickleOpCode::SETITEM:
    if (stack_.size() - floor() < 3)
      broken("there is no dictionary to set an item of");
    return append(expect(stack_[stack_.size() - 3], Kind::Dict), stack_.size() - 2);
  case PickleOpCode::GLOBAL:
    return readGlobal();
  case PickleOpCode::NEWOBJ: {
    Value arguments = expect(pop(), Kind::Tuple);
    if (containers_[arguments.index].firstRun)
      broken("an object is made with arguments");
    if (expect(top(), Kind::Global); globals_[top().index].callee != Callee::Class)
      broken("an object is made of what is no class");
    return;
  }
  case PickleOpCode::BUILD:
  case PickleOpCode::REDUCE:
    return call();
  case PickleOpCode::BINPERSID:
    return makeStorage();
  default:
    broken("opcode " + std::to_string(static_cast<unsigned char>(opcode)) +
           " isn't one of TorchScript's");
  }
}

//===- Globals and calls --------------------------------------------------===//

void Pickle::readGlobal() {
  std::string module = readLine();
  std::size_t nameAt = at_;
  std::string name = readLine();
  Global global;
  global.name = module + "." + name;
  auto is = [&](const char *wantedModule, const char *wantedName) {
    return module == wantedModule && name == wantedName;
  };
  std::optional<Callee> callee;
  if (use_ == Use::DebugInfo && !is("torch.jit._pickle", "restore_type_tag") &&
      !is("torch.jit._pickle", "build_intlist"))
    broken("'" + global.name + "' isn't used by source ranges");
  if (is("torch._utils", "_rebuild_tensor_v2"))
    callee = Callee::RebuildTensor;
  else if (is("torch._utils", "_rebuild_qtensor"))
    callee = Callee::RebuildQuantizedTensor;
  else if (is("torch._utils", "_rebuild_sparse_tensor"))
    badTensor("it is sparse; sparse tensors can't be imported");
  else if (is("torch._tensor", "_rebuild_from_type_v2"))
    badTensor("it is of a Python subclass of torch.Tensor, or has Python attributes");
  else if (is("builtins", "complex"))
    callee = Callee::Complex;
  else if (is("collections", "OrderedDict"))
    callee = Callee::OrderedDict;
  else if (is("torch", "device"))
    callee = Callee::Device;
  else if (is("torch.jit._pickle", "restore_type_tag"))
    callee = Callee::RestoreTypeTag;
  else if (is("torch.jit._pickle", "build_intlist") ||
           is("torch.jit._pickle", "build_tensorlist") ||
           is("torch.jit._pickle", "build_doublelist") || is("torch.jit._pickle", "build_boollist"))
    callee = Callee::BuildList;
  else if (is("__main__", "IntList"))
    callee = Callee::IntList;
  else if (module == "torch") {
#define TORCH_MLIR_STORAGE(Type, Name)                                                             \
  if (name == #Name "Storage") {                                                                   \
    callee = Callee::StorageType;                                                                  \
    global.itemSize = c10::elementSize(c10::ScalarType::Name);                                     \
  }
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(TORCH_MLIR_STORAGE)
#undef TORCH_MLIR_STORAGE
    constexpr std::string_view suffix = "Storage";
    if (!callee && name.size() > suffix.size() &&
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0) {
      global.dtype = findDtype(std::string_view(name).substr(0, name.size() - suffix.size()));
      if (global.dtype >= 0) {
        callee = Callee::StorageType;
        global.itemSize = getDtype(static_cast<std::size_t>(global.dtype))->bytes;
        replaced_.emplace_back(nameAt, name.size(),
                               getStandIn(global.itemSize) + std::string(suffix));
      }
    }
    for (const char *scheme : {"per_tensor_affine", "per_channel_affine", "per_tensor_symmetric",
                               "per_channel_symmetric", "per_channel_affine_float_qparams"})
      if (name == scheme)
        callee = Callee::QScheme;
  } else if (module != "__main__" && module != "torch.jit._pickle" &&
             module != "torch.distributed.rpc") {
    // A class of the archive's own code, or nothing.
    checkTypeExpression(archive_, record_, global.name);
    callee = Callee::Class;
  }
  if (!callee)
    broken("'" + global.name + "' isn't known");
  global.callee = *callee;
  globals_.push_back(std::move(global));
  push({Kind::Global, static_cast<std::uint32_t>(globals_.size() - 1), 0});
}

void Pickle::call() {
  Value argument = pop();
  Value function = expect(pop(), Kind::Global);
  const Global &global = globals_[function.index];
  auto element = [&](std::size_t i) -> Value {
    std::size_t count;
    const Value *all = elements(expect(argument, Kind::Tuple), count);
    if (i >= count)
      broken("'" + global.name + "' is called with " + std::to_string(count) + " arguments");
    return all[i];
  };
  switch (global.callee) {
  case Callee::RebuildTensor:
  case Callee::RebuildQuantizedTensor:
    return push(rebuildTensor(argument, global.callee == Callee::RebuildQuantizedTensor));
  case Callee::Complex: {
    Value real = expect(element(0), Kind::Float);
    Value imaginary = expect(element(1), Kind::Float);
    c10::complex<double> number;
    double parts[2];
    std::memcpy(&parts[0], &real.bits, sizeof(double));
    std::memcpy(&parts[1], &imaginary.bits, sizeof(double));
    number = {parts[0], parts[1]};
    return push(
        {Kind::Complex, 0, static_cast<std::int64_t>(c10::hash<c10::complex<double>>()(number))});
  }
  case Callee::OrderedDict:
    // Hooks of a tensor, which libtorch takes for None.
    return push({});
  case Callee::Device:
    expect(element(0), Kind::String);
    return push({Kind::Device});
  case Callee::RestoreTypeTag: {
    Value value = element(0);
    std::string_view type = text(expect(element(1), Kind::String));
    if (value.kind != Kind::List)
      expect(value, Kind::Dict);
    if (use_ == Use::DebugInfo && type != "List[int]")
      broken("there is a value of a type that source ranges don't have");
    spend(type.size());
    checkTypeExpression(archive_, record_, type);
    if (type == "List[int]")
      tagInts(value);
    return push(value);
  }
  case Callee::BuildList: {
    Value list = expect(element(0), Kind::List);
    if (global.name == "torch.jit._pickle.build_intlist")
      tagInts(list);
    return push(list);
  }
  case Callee::IntList:
    tagInts(expect(argument, Kind::List));
    return push(argument);
  case Callee::Class: {
    const Sources::Definition *definition = sources_->find(global.name);
    if (definition && definition->isEnum) {
      // If the enum has no such value, libtorch goes on without a value where one should be.
      const auto &values = definition->enumValues;
      spend(values.size());
      bool found = std::any_of(values.begin(), values.end(), [&](const auto &value) {
        if (auto *number = std::get_if<std::int64_t>(&value))
          return argument.kind == Kind::Int && argument.bits == *number;
        if (auto *number = std::get_if<double>(&value)) {
          double given;
          std::memcpy(&given, &argument.bits, sizeof given);
          return argument.kind == Kind::Float && given == *number;
        }
        return argument.kind == Kind::String && text(argument) == std::get<std::string>(value);
      });
      if (!found)
        broken("enum '" + global.name + "' has no member with the value that is asked for");
      Value member = makeContainer(Kind::EnumMember);
      return push(member);
    }
    // A slot for each attribute is there even if no state has a value for it.
    if (definition)
      countValues(definition->lines);
    Value object = makeContainer(Kind::Object);
    appendOne(object, argument);
    return push(object);
  }
  case Callee::StorageType:
  case Callee::QScheme:
    broken("'" + global.name + "' is called");
  }
}

//===- Tensors ------------------------------------------------------------===//

void Pickle::makeStorage() {
  refuseInDebugInfo();
  Value arguments = expect(pop(), Kind::Tuple);
  std::size_t count;
  const Value *element = elements(arguments, count);
  if (count < 5)
    broken("a storage has " + std::to_string(count) + " arguments");
  if (text(expect(element[0], Kind::String)) != "storage")
    broken("there is a reference to what is no storage");
  const Global &type = globals_[expect(element[1], Kind::Global).index];
  if (type.callee != Callee::StorageType)
    broken("a storage's element type is '" + type.name + "'");
  std::string key(text(expect(element[2], Kind::String)));
  spend(key.size() + expect(element[3], Kind::String).index); // the latter names a device
  std::int64_t elementCount = expect(element[4], Kind::Int).bits;
  if (elementCount < 0)
    badTensor("its storage has " + std::to_string(elementCount) + " elements");
  // libtorch reads no record for none.
  if (elementCount > 0) {
    const Archive::Record *record = archive_.find(folder_ + key);
    if (!record)
      badTensor("the archive has no record '" + folder_ + key + "', which should hold its bytes");
    std::uint64_t size;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(elementCount),
                               static_cast<std::uint64_t>(type.itemSize), &size) ||
        size > record->size)
      badTensor("record '" + folder_ + key + "' has " + std::to_string(record->size) +
                " bytes, fewer than its " + std::to_string(elementCount) + " elements of " +
                std::to_string(type.itemSize) + " bytes");
  }
  if (elementCount > 0) {
    const Archive::Record *record = archive_.find(folder_ + key);
    if (dtypes_.emplace(record, type.dtype).first->second != type.dtype)
      badTensor("record '" + record->name + "' holds elements of several dtypes");
    if (type.dtype >= 0)
      archive_.noteDtype(*record, type.dtype);
  } else if (type.dtype >= 0) {
    badTensor("it is empty, and of a dtype, '" + type.name + "', that only shows in its elements");
  }
  storages_.push_back({elementCount, type.itemSize});
  push({Kind::Storage, static_cast<std::uint32_t>(storages_.size() - 1), 0});
}

Value Pickle::rebuildTensor(const Value &arguments, bool quantized) {
  std::size_t count;
  const Value *element = elements(expect(arguments, Kind::Tuple), count);
  if (count < (quantized ? 7u : 6u))
    badTensor("it is made from " + std::to_string(count) + " values");
  const Storage &storage = storages_[expect(element[0], Kind::Storage).index];
  std::int64_t offset = expect(element[1], Kind::Int).bits;
  std::size_t rank, strideCount;
  const Value *sizes = elements(expect(element[2], Kind::Tuple), rank);
  const Value *strides = elements(expect(element[3], Kind::Tuple), strideCount);
  if (rank != strideCount)
    badTensor("it has " + std::to_string(rank) + " sizes and " + std::to_string(strideCount) +
              " strides");
  if (rank > mostDimensions)
    badTensor("it has " + std::to_string(rank) + " dimensions, more than " +
              std::to_string(mostDimensions));

  std::int64_t last = offset; // the index of its last element in its storage
  std::int64_t elementCount = 1;
  std::int64_t bytes = 0;
  std::int64_t contiguous = 1;
  bool empty = false, overflow = false, gaps = false;
  for (std::size_t i = rank; i-- > 0;) {
    std::int64_t size = expect(sizes[i], Kind::Int).bits;
    std::int64_t stride = expect(strides[i], Kind::Int).bits;
    if (size < 0)
      badTensor("it has a negative size, " + std::to_string(size));
    if (stride < 0)
      badTensor("it has a negative stride, " + std::to_string(stride));
    empty |= size == 0;
    gaps |= size > 1 && stride != contiguous;
    // Of empty tensors, too: libtorch multiplies before it sees a zero.
    std::int64_t reach;
    overflow |=
        __builtin_mul_overflow(elementCount, std::max<std::int64_t>(size, 1), &elementCount) ||
        __builtin_mul_overflow(stride, std::max<std::int64_t>(size - 1, 0), &reach) ||
        __builtin_add_overflow(last, reach, &last);
    contiguous = elementCount;
  }
  overflow |= __builtin_mul_overflow(
      elementCount, static_cast<std::int64_t>(std::max<std::size_t>(storage.itemSize, 1)), &bytes);
  if (overflow)
    badTensor("its sizes and strides are beyond all bounds");
  if (offset < 0 || offset > storage.elements || (!empty && last >= storage.elements))
    badTensor("its elements " + std::to_string(offset) + " to " + std::to_string(last) +
              " don't lie in its storage, which has " + std::to_string(storage.elements));
  if (!empty && gaps) {
    laidOutBytes_ += static_cast<std::uint64_t>(bytes);
    std::uint64_t limit = archive_.limits().expandedTensorBytes + archive_.bytes().size();
    if (static_cast<std::uint64_t>(bytes) > limit || laidOutBytes_ > limit)
      badTensor("its " + std::to_string(elementCount) +
                " elements share few bytes; laid out, it and those before it need more than the "
                "limit of " +
                std::to_string(limit) + " bytes");
  }

  if (quantized) {
    std::size_t parameters;
    const Value *parameter = elements(expect(element[4], Kind::Tuple), parameters);
    if (parameters < 3)
      badTensor("its quantization has " + std::to_string(parameters) + " parameters");
    const Global &scheme = globals_[expect(parameter[0], Kind::Global).index];
    if (scheme.callee != Callee::QScheme)
      badTensor("its quantization scheme is '" + scheme.name + "'");
    if (scheme.name == "torch.per_tensor_affine") {
      expect(parameter[1], Kind::Float);
      expect(parameter[2], Kind::Int);
    } else if (scheme.name == "torch.per_channel_affine" ||
               scheme.name == "torch.per_channel_affine_float_qparams") {
      expect(parameter[1], Kind::Tensor);
      expect(parameter[2], Kind::Tensor);
      if (parameters < 4)
        badTensor("its quantization has no axis");
      std::int64_t axis = expect(parameter[3], Kind::Int).bits;
      if (axis < 0 || static_cast<std::size_t>(axis) >= rank)
        badTensor("its quantization is along dimension " + std::to_string(axis) + " of " +
                  std::to_string(rank));
    } else {
      badTensor("its quantization scheme is '" + scheme.name + "'");
    }
  }
  expect(element[quantized ? 5 : 4], Kind::Bool); // requires_grad
  if (!quantized && count >= 7)
    expect(element[6], Kind::Dict); // conjugate and negative bits
  return {Kind::Tensor};
}

//===- All of it ----------------------------------------------------------===//

/// Refuses values that hold themselves, that are nested too deeply, and that are shared so often
/// that they are too many without sharing.
void Pickle::checkNesting() {
  struct Count {
    std::uint64_t values = 0;
    std::uint32_t depth = 0; // zero until it is known
    bool open = false;
  };
  struct Place {
    std::uint32_t container;
    std::uint32_t run;
    std::uint32_t next;
  };
  const Limits &limits = archive_.limits();
  std::vector<Count> counts(containers_.size());
  std::vector<Place> places;
  auto enter = [&](std::uint32_t container) {
    counts[container].open = true;
    counts[container].values = 1;
    places.push_back({container, containers_[container].firstRun, 0});
  };
  for (std::uint32_t root = 0; root < containers_.size(); ++root) {
    if (counts[root].depth == 0)
      enter(root);
    while (!places.empty()) {
      Place &place = places.back();
      Count &count = counts[place.container];
      if (place.run && place.next == runs_[place.run - 1].count) {
        place.run = runs_[place.run - 1].next;
        place.next = 0;
        continue;
      }
      if (!place.run) {
        count.open = false;
        ++count.depth;
        places.pop_back();
        continue;
      }
      const Value &value = values_[runs_[place.run - 1].begin + place.next];
      if (isContainer(value.kind)) {
        Count &inner = counts[value.index];
        if (inner.open)
          fail("a value holds itself");
        if (inner.depth == 0) {
          if (places.size() >= limits.pickleDepth)
            fail("its values are nested more deeply than the limit of " +
                 std::to_string(limits.pickleDepth));
          enter(value.index);
          continue;
        }
        count.depth = std::max(count.depth, inner.depth);
        count.values += inner.values;
        if (count.depth >= limits.pickleDepth)
          fail("its values are nested more deeply than the limit of " +
               std::to_string(limits.pickleDepth));
      } else {
        ++count.values;
      }
      // libtorch makes each source once, however many ranges are in it, and walks nothing else.
      if (use_ == Use::Module && count.values > limits.pickleUnsharedValues)
        fail("its values share others so that they are more than the limit of " +
             std::to_string(limits.pickleUnsharedValues) + " without sharing");
      ++place.next;
    }
  }
  sizes_.reserve(counts.size());
  for (const Count &count : counts)
    sizes_.push_back(count.values);
}

/// Refuses constants so large, and used so often, that the copies which go into the graphs would
/// be too many. Tensors aren't copied.
void Pickle::checkConstants(const Value &constants) {
  std::uint64_t largest = 1;
  forEach(expect(constants, Kind::Tuple), [&](const Value &value) {
    std::uint64_t size = isContainer(value.kind)      ? sizes_[value.index]
                         : value.kind == Kind::String ? value.index / sizeof(Value)
                                                      : 1;
    largest = std::max(largest, size);
  });
  // No overflow: fewer than 2^32 values, and uses than bytes of source.
  if (largest > 1 && largest * sources_->constantUses() > archive_.limits().pickleUnsharedValues)
    fail("its constants are used so often that their copies exceed the limit of " +
         std::to_string(archive_.limits().pickleUnsharedValues) + " values");
}

/// Refuses keys that were chosen to collide. libtorch's dictionaries (c10's flat hash map) grow,
/// doubling, until no key is further from its place than the logarithm of their size, which may
/// never come to pass.
void Pickle::checkDictionaries() {
  std::vector<std::pair<std::uint64_t, Value>> keys;
  std::vector<std::uint64_t> places;
  for (std::uint32_t index = 0; index < containers_.size(); ++index) {
    if (containers_[index].kind != Kind::Dict)
      continue;
    keys.clear();
    bool isKey = true;
    forEach({Kind::Dict, index, 0}, [&](const Value &value) {
      if (isKey) {
        switch (value.kind) {
        case Kind::Int:
          keys.push_back({std::hash<std::int64_t>()(value.bits), value});
          break;
        case Kind::String:
          keys.push_back({std::hash<std::string_view>()(text(value)), value});
          break;
        case Kind::Float: {
          double number;
          std::memcpy(&number, &value.bits, sizeof number);
          keys.push_back({std::hash<double>()(number), value});
          break;
        }
        case Kind::Complex:
          keys.push_back({static_cast<std::uint64_t>(value.bits), value});
          break;
        default:
          // Few values, or addresses that the pickle doesn't choose; or no key, which libtorch
          // says.
          break;
        }
      }
      isKey = !isKey;
    });
    constexpr std::size_t always = 4; // so many collisions fit in any table
    if (keys.size() <= always)
      continue;
    auto less = [&](const auto &a, const auto &b) {
      if (a.first != b.first)
        return a.first < b.first;
      if (a.second.kind != b.second.kind)
        return a.second.kind < b.second.kind;
      return a.second.kind == Kind::String && text(a.second) < text(b.second);
    };
    std::sort(keys.begin(), keys.end(), less);
    // Equal keys are one, but for floats, where NaN isn't equal to itself.
    keys.erase(std::unique(keys.begin(), keys.end(),
                           [&](const auto &a, const auto &b) {
                             return !less(a, b) && !less(b, a) &&
                                    (a.second.kind == Kind::Int || a.second.kind == Kind::String);
                           }),
               keys.end());
    unsigned needed = 2;
    while ((std::size_t(1) << needed) < 2 * keys.size())
      ++needed;
    bool fits = false;
    for (unsigned log = needed; log < needed + 6 && !fits; ++log) {
      places.clear();
      for (const auto &key : keys)
        places.push_back((UINT64_C(11400714819323198485) * key.first) >> (64 - log));
      std::sort(places.begin(), places.end());
      fits = true;
      std::uint64_t free = 0;
      for (std::uint64_t place : places) {
        free = std::max(free, place);
        if (free - place + 1 >= std::max(4u, log)) {
          fits = false;
          break;
        }
        ++free;
      }
    }
    if (!fits)
      fail("a dictionary's keys were chosen to collide");
  }
}

} // namespace

std::string checkPickle(const Archive &archive, const Archive::Record &record,
                        std::string_view bytes, const Sources &sources) {
  Pickle pickle(archive, record, bytes, &sources, Pickle::Use::Module);
  Value root = pickle.run();
  pickle.checkNesting();
  pickle.checkDictionaries();
  if (record.name == "constants.pkl")
    pickle.checkConstants(root);
  return pickle.getReadable();
}

//===- Source ranges ------------------------------------------------------===//

// libtorch reads source ranges while an exception tells what it is, in a function that must not
// throw: what gets through here may not fail there.
void checkDebugInfo(const Archive &archive, const Archive::Record &record, std::string_view bytes) {
  Pickle pickle(archive, record, bytes, nullptr, Pickle::Use::DebugInfo);
  Value root = pickle.run();
  pickle.checkNesting();
  auto broken = [&] { pickle.fail("it doesn't hold source ranges"); };
  auto tuple = [&](const Value &value, std::size_t atLeast, std::size_t &count) {
    if (value.kind != Kind::Tuple)
      broken();
    const Value *elements = pickle.elements(value, count);
    if (count < atLeast)
      broken();
    return elements;
  };
  auto integer = [&](const Value &value) {
    if (value.kind != Kind::Int)
      broken();
    return value.bits;
  };

  std::size_t count, textCount = 0;
  const Value *all = tuple(root, 1, count);
  const Value *texts = nullptr;
  Value ranges = root;
  if (all[0].kind == Kind::String &&
      pickle.text(all[0]) == std::string_view(torch::jit::kFormatWithStringTable.data(),
                                              torch::jit::kFormatWithStringTable.size())) {
    if (count < 3)
      broken();
    texts = tuple(all[1], 0, textCount);
    for (std::size_t i = 0; i < textCount; ++i)
      if (texts[i].kind != Kind::String)
        broken();
    ranges = all[2];
  }

  // The size of each source's text. libtorch makes the texts once per source, so what they need
  // is bounded, too.
  std::unordered_map<std::uint32_t, std::uint64_t> sizes;
  std::uint64_t total = 0;
  auto sizeOf = [&](const Value &source) {
    auto [known, isNew] = sizes.try_emplace(source.index, 0);
    if (!isNew)
      return known->second;
    std::size_t fields;
    const Value *field = tuple(source, 3, fields);
    if (fields != 3)
      broken();
    std::uint64_t size = 0;
    if (textCount) {
      if (!pickle.isIntList(field[0]))
        broken();
      bool ended = false;
      pickle.forEach(field[0], [&](const Value &line) {
        std::int64_t index = integer(line);
        if (index < 0 || static_cast<std::uint64_t>(index) >= textCount)
          pickle.fail("a line of source text isn't there");
        // Lines have their newline; only after the last may there be nothing.
        if (ended && texts[index].index != 0)
          pickle.fail("a line of source text is missing");
        ended |= texts[index].index == 0;
        size += texts[index].index;
        // Lines that are empty take room, too.
        total += texts[index].index + sizeof(std::string_view) + sizeof(std::shared_ptr<void>);
        if (total > archive.limits().sourceBytes)
          pickle.fail("its source texts are longer than the limit of " +
                      std::to_string(archive.limits().sourceBytes) + " bytes");
      });
      std::int64_t name = integer(field[1]);
      if (name < 0 || static_cast<std::uint64_t>(name) >= textCount)
        pickle.fail("the name of a source file isn't there");
    } else {
      if (field[0].kind != Kind::String)
        broken();
      if (field[1].kind != Kind::None && field[1].kind != Kind::String)
        broken();
      size = field[0].index;
      total += size;
      if (total > archive.limits().sourceBytes)
        pickle.fail("its source texts are longer than the limit of " +
                    std::to_string(archive.limits().sourceBytes) + " bytes");
    }
    if (std::int64_t line = integer(field[2]);
        line < 0 || line > std::numeric_limits<std::int32_t>::max())
      pickle.fail("there is a source file of " + std::to_string(line) + " lines");
    known->second = size;
    return size;
  };

  std::size_t rangeCount;
  const Value *range = tuple(ranges, 0, rangeCount);
  for (std::size_t i = 0; i < rangeCount; ++i) {
    std::size_t fields;
    const Value *field = tuple(range[i], 2, fields);
    integer(field[0]);
    const Value *place = tuple(field[1], 3, fields);
    if (fields != 3)
      broken();
    if (place[0].kind != Kind::Tuple)
      broken();
    std::uint64_t size = sizeOf(place[0]);
    std::int64_t begin = integer(place[1]), end = integer(place[2]);
    // Ranges of what has no text go beyond it, as libtorch knows.
    if (begin < 0 || static_cast<std::uint64_t>(begin) > size || end < begin ||
        end > std::numeric_limits<std::int32_t>::max())
      pickle.fail("a source range, " + std::to_string(begin) + " to " + std::to_string(end) +
                  ", isn't in its text of " + std::to_string(size) + " bytes");
  }
}

} // namespace torch_mlir::torchscript
