// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Mutator.h"

#include "../Archive.h"

#include "miniz.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

namespace torch_mlir::torchscript::fuzz {
namespace {

constexpr std::size_t largest = std::size_t(1) << 20;

struct Record {
  std::string name;
  std::string bytes;
};

std::size_t below(Random &random, std::size_t bound) {
  return bound < 2 ? 0 : static_cast<std::size_t>(random() % bound);
}
bool oneIn(Random &random, unsigned n) { return random() % n == 0; }
template <typename T>
const T &pick(Random &random, const std::vector<T> &from) {
  return from[below(random, from.size())];
}

bool unpack(const std::string &bytes, std::string &folder, std::vector<Record> &records) {
  try {
    auto archive = Archive::fromMemory(bytes.data(), bytes.size(), {});
    folder = archive->folder();
    for (const Archive::Record &record : archive->records())
      records.push_back({record.name, archive->copy(record)});
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

template <typename T>
void put(std::string &to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to += static_cast<char>(value >> (8 * i));
}

std::string pack(const std::string &folder, const std::vector<Record> &records, Random &random) {
  std::string file, directory;
  bool aligned = !oneIn(random, 4);
  for (const Record &record : records) {
    std::string name = folder + "/" + record.name;
    auto crc = static_cast<std::uint32_t>(
        mz_crc32(MZ_CRC32_INIT, reinterpret_cast<const unsigned char *>(record.bytes.data()),
                 record.bytes.size()));
    auto size = static_cast<std::uint32_t>(record.bytes.size());
    auto header = static_cast<std::uint32_t>(file.size());
    std::size_t start = file.size() + 30 + name.size() + 4;
    auto padding = static_cast<std::uint16_t>(aligned ? (64 - start % 64) % 64 : 0);
    auto common = [&](std::string &to) {
      put<std::uint16_t>(to, 0); // flags
      put<std::uint16_t>(to, 0); // stored
      put<std::uint32_t>(to, 0); // time
      put(to, crc);
      put(to, size);
      put(to, size);
      put(to, static_cast<std::uint16_t>(name.size()));
    };
    file += std::string("PK\x03\x04\x14\x00", 6);
    common(file);
    put(file, static_cast<std::uint16_t>(padding + 4));
    file += name;
    file += "FB";
    put(file, padding);
    file += std::string(padding, 'Z') + record.bytes;
    directory += std::string("PK\x01\x02\x14\x00\x14\x00", 8);
    common(directory);
    directory += std::string(12, '\0'); // extra, comment, disk, attributes
    put(directory, header);
    directory += name;
  }
  auto at = static_cast<std::uint32_t>(file.size());
  file += directory + std::string("PK\x05\x06\0\0\0\0", 8);
  put(file, static_cast<std::uint16_t>(records.size()));
  put(file, static_cast<std::uint16_t>(records.size()));
  put(file, static_cast<std::uint32_t>(directory.size()));
  put(file, at);
  put<std::uint16_t>(file, 0);
  return file;
}

/// Changes that fit any bytes.
void mutateBytes(std::string &bytes, const std::string &other, Random &random) {
  static const std::vector<std::uint64_t> numbers = {0,
                                                     1,
                                                     2,
                                                     3,
                                                     0x7f,
                                                     0x80,
                                                     0xff,
                                                     0x100,
                                                     0x7fff,
                                                     0x8000,
                                                     0xffff,
                                                     0x10000,
                                                     0x7fffffff,
                                                     0x80000000,
                                                     0xffffffff,
                                                     0xfffffffe,
                                                     UINT64_C(1) << 40,
                                                     ~UINT64_C(0),
                                                     UINT64_C(1) << 63,
                                                     (UINT64_C(1) << 63) - 1};
  std::size_t at = below(random, bytes.size());
  switch (below(random, 8)) {
  case 0:
    if (!bytes.empty())
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
    break;
  case 1:
    if (!bytes.empty())
      bytes[at] = static_cast<char>(random());
    break;
  case 2: {
    std::size_t width = std::size_t(1) << below(random, 4);
    std::uint64_t number = pick(random, numbers) + (oneIn(random, 4) ? random() % 16 : 0);
    for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
      bytes[at + i] = static_cast<char>(number >> (8 * i));
    break;
  }
  case 3:
    bytes.erase(at, 1 + below(random, oneIn(random, 4) ? 64 : 4));
    break;
  case 4:
    bytes.insert(at, bytes.substr(at, 1 + below(random, 32)));
    break;
  case 5: // from elsewhere in it
    if (!bytes.empty()) {
      std::string piece = bytes.substr(below(random, bytes.size()), 1 + below(random, 48));
      if (oneIn(random, 2))
        bytes.insert(at, piece);
      else
        bytes.replace(at, piece.size(), piece);
    }
    break;
  case 6: // from another one
    if (!other.empty())
      bytes.insert(at, other.substr(below(random, other.size()), 1 + below(random, 64)));
    break;
  case 7: // many times
    if (!bytes.empty() && oneIn(random, 4)) {
      std::string piece = bytes.substr(at, 1 + below(random, 6));
      std::string many;
      std::size_t times = std::size_t(1) << below(random, 17);
      for (std::size_t i = 0; i < times && many.size() < largest / 2; ++i)
        many += piece;
      bytes.insert(at, many);
    }
    break;
  }
}

void mutatePickle(std::string &bytes, const std::string &other, Random &random) {
  // Opcodes with operands, as libtorch knows them.
  static const std::vector<std::string> pieces = {"]",
                                                  ")",
                                                  "}",
                                                  "(",
                                                  "N",
                                                  "\x88",
                                                  "\x89",
                                                  std::string("K\0", 2),
                                                  "K\x01",
                                                  "K\xff",
                                                  std::string("M\xff\xff"),
                                                  std::string("J\xff\xff\xff\xff"),
                                                  std::string("J\0\0\0\x80", 5),
                                                  "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
                                                  std::string("\x8a\x08\0\0\0\0\0\0\0\x80", 10),
                                                  std::string("X\0\0\0\0", 5),
                                                  std::string("X\x01\0\0\0a", 6),
                                                  "G?\xf0\x01\x01\x01\x01\x01\x01",
                                                  "\x85",
                                                  "\x86",
                                                  "\x87",
                                                  "t",
                                                  "l",
                                                  "d",
                                                  "e",
                                                  "a",
                                                  "u",
                                                  "s",
                                                  std::string("q\0", 2),
                                                  "q\x01",
                                                  std::string("h\0", 2),
                                                  "h\x01",
                                                  "h\x02",
                                                  "h\x03",
                                                  "h\x04",
                                                  "h\x05",
                                                  std::string("r\0\0\0\0", 5),
                                                  std::string("j\0\0\0\0", 5),
                                                  "R",
                                                  "b",
                                                  "\x81",
                                                  "Q",
                                                  ".",
                                                  "ctorch._utils\n_rebuild_tensor_v2\n",
                                                  "ctorch._utils\n_rebuild_qtensor\n",
                                                  "ctorch._utils\n_rebuild_sparse_tensor\n",
                                                  "ctorch._tensor\n_rebuild_from_type_v2\n",
                                                  "ctorch.jit._pickle\nrestore_type_tag\n",
                                                  "ctorch.jit._pickle\nbuild_intlist\n",
                                                  "ctorch.jit._pickle\nbuild_tensorlist\n",
                                                  "ctorch.jit._pickle\nbuild_boollist\n",
                                                  "cbuiltins\ncomplex\n",
                                                  "ccollections\nOrderedDict\n",
                                                  "ctorch\ndevice\n",
                                                  "ctorch\nFloatStorage\n",
                                                  "ctorch\nComplexDoubleStorage\n",
                                                  "ctorch\nQInt8Storage\n",
                                                  "ctorch\nper_tensor_affine\n",
                                                  "c__main__\nIntList\n",
                                                  "c__torch__\nColor\n",
                                                  std::string("X\x09\0\0\0List[int]", 14),
                                                  std::string("X\x03\0\0\0cpu", 8)};
  if (oneIn(random, 3)) {
    mutateBytes(bytes, other, random);
    return;
  }
  std::string piece = pick(random, pieces);
  std::size_t at = below(random, bytes.size());
  if (oneIn(random, 2)) {
    bytes.insert(at, piece);
  } else {
    // In place of one that begins with the same byte, or of anything.
    std::size_t found = bytes.find(piece[0], at);
    bytes.replace(found == std::string::npos ? at : found, piece.size(), piece);
  }
}

void mutateText(std::string &text, const std::string &other, Random &random) {
  static const std::vector<std::string> pieces = {"(",
                                                  ")",
                                                  "[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  "()",
                                                  "[]",
                                                  "[0]",
                                                  "(x)",
                                                  ",",
                                                  ":",
                                                  ".",
                                                  "=",
                                                  "+",
                                                  "-",
                                                  "*",
                                                  "**",
                                                  "//",
                                                  "not ",
                                                  "~",
                                                  " if ",
                                                  " else ",
                                                  " for ",
                                                  " in ",
                                                  " and ",
                                                  " is ",
                                                  "elif x:\n",
                                                  "while True:\n  ",
                                                  "'",
                                                  "\"",
                                                  "'''",
                                                  "\\",
                                                  "\\\n",
                                                  "\n",
                                                  "\n  ",
                                                  "\n    ",
                                                  "#",
                                                  "# type: (int) -> int\n",
                                                  "->",
                                                  "lambda",
                                                  "0",
                                                  "1",
                                                  "-1",
                                                  "9223372036854775807",
                                                  "9223372036854775808",
                                                  "1e999",
                                                  "1j",
                                                  "0x",
                                                  "nan",
                                                  "inf",
                                                  "None",
                                                  "True",
                                                  "self",
                                                  "Tensor",
                                                  "int",
                                                  "float",
                                                  "str",
                                                  "bool",
                                                  "List",
                                                  "Dict",
                                                  "Optional",
                                                  "Tuple",
                                                  "Union",
                                                  "Future",
                                                  "Any",
                                                  "NoneType",
                                                  "torch.",
                                                  "ops.",
                                                  "CONSTANTS.c0",
                                                  "CONSTANTS.c1",
                                                  "annotate(",
                                                  "unchecked_cast(",
                                                  "uninitialized(",
                                                  "fork(",
                                                  "__torch__.",
                                                  "def f():\n    return 1\n",
                                                  "del x[0]\n",
                                                  "x[0] += 1\n",
                                                  "class A(Module):\n  ",
                                                  "class A(Enum):\n  a = 1\n",
                                                  "class A(NamedTuple):\n  x : int\n",
                                                  "class A(Interface):\n  ",
                                                  "def f(self) -> int:\n    return 1\n",
                                                  "return ",
                                                  "raise ",
                                                  "assert ",
                                                  "del ",
                                                  "pass\n",
                                                  "break\n",
                                                  "continue\n",
                                                  "global ",
                                                  "with ",
                                                  "import ",
                                                  "@",
                                                  "__parameters__",
                                                  "__buffers__",
                                                  "__annotations__",
                                                  "__forward_hooks__",
                                                  "__constants__",
                                                  "__setstate__",
                                                  "__getstate__",
                                                  "__init__",
                                                  "forward",
                                                  "getattr(",
                                                  "hasattr(",
                                                  "isinstance(",
                                                  "range(",
                                                  "zip(",
                                                  "enumerate(",
                                                  "len(",
                                                  "list(",
                                                  "tuple(",
                                                  "sorted(",
                                                  "print(",
                                                  "super(",
                                                  "torch.append(",
                                                  "torch.insert(",
                                                  "torch.sort(",
                                                  "torch.sorted(",
                                                  "torch.remainder(",
                                                  "torch.floordiv(",
                                                  "torch.factorial(",
                                                  "torch.replace(",
                                                  "torch.rsplit(",
                                                  "torch.slice(",
                                                  "torch.ljust(",
                                                  "torch.format(",
                                                  "torch.join(",
                                                  "torch.empty(",
                                                  "torch.mul(",
                                                  "torch.copy(",
                                                  "torch.pop(",
                                                  "torch.clear(",
                                                  "unchecked_cast(",
                                                  "uninitialized(",
                                                  "fork(",
                                                  "9223372036854775807",
                                                  "-1",
                                                  "while True:\n",
                                                  "for i in range(",
                                                  "self.k = state\n"};
  switch (below(random, 7)) {
  case 0:
    mutateBytes(text, other, random);
    break;
  case 1:
  case 2: {
    std::size_t at = below(random, text.size());
    if (oneIn(random, 2))
      text.insert(at, pick(random, pieces));
    else
      text.replace(at, 1 + below(random, 8), pick(random, pieces));
    break;
  }
  case 3: { // a line goes, comes again, or comes from the other
    std::size_t begin = text.rfind('\n', below(random, text.size()));
    begin = begin == std::string::npos ? 0 : begin + 1;
    std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin) + "\n";
    if (oneIn(random, 2))
      text.erase(begin, line.size());
    else
      text.insert(oneIn(random, 2)
                      ? begin
                      : std::min(text.find('\n', below(random, text.size())), text.size()),
                  line);
    break;
  }
  case 4: { // a word becomes another of its words
    auto word = [&](std::size_t at) {
      auto in = [&](std::size_t i) {
        return i < text.size() &&
               (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
      };
      while (at > 0 && in(at) && in(at - 1))
        --at;
      std::size_t end = at;
      while (in(end))
        ++end;
      return std::make_pair(at, end - at);
    };
    auto to = word(below(random, text.size())), from = word(below(random, text.size()));
    std::string piece = text.substr(from.first, from.second);
    text.replace(to.first, to.second, piece);
    break;
  }
  case 5: // many times
    if (oneIn(random, 3)) {
      std::string many, piece = pick(random, pieces);
      std::size_t times = std::size_t(1) << below(random, 15);
      for (std::size_t i = 0; i < times && many.size() < largest / 4; ++i)
        many += piece;
      text.insert(below(random, text.size()), many);
    }
    break;
  case 6:
    if (!other.empty())
      text.insert(below(random, text.size()),
                  other.substr(below(random, other.size()), 1 + below(random, 400)));
    break;
  }
}

void mutateRecords(std::vector<Record> &records, Random &random) {
  std::size_t at = below(random, records.size());
  switch (below(random, 6)) {
  case 0:
    records.erase(records.begin() + static_cast<std::ptrdiff_t>(at));
    break;
  case 1:
    records.push_back(records[at]);
    if (oneIn(random, 2))
      records.back().name += "x";
    break;
  case 2:
    mutateBytes(records[at].name, records[0].name, random);
    break;
  case 3:
    records[at].bytes.resize(below(random, records[at].bytes.size()));
    break;
  case 4:
    std::swap(records[at].bytes, records[below(random, records.size())].bytes);
    break;
  case 5:
    std::swap(records[at], records[below(random, records.size())]);
    break;
  }
}

bool endsWith(const std::string &name, std::string_view suffix) {
  return name.size() >= suffix.size() &&
         std::string_view(name).substr(name.size() - suffix.size()) == suffix;
}

} // namespace

std::string mutate(const std::string &seed, const std::vector<std::string> &others, Random &random,
                   const BytesMutator &changeBytes) {
  std::string folder, otherFolder;
  std::vector<Record> records, otherRecords;
  std::size_t times = std::size_t(1) << below(random, 4);
  if (oneIn(random, 5) || !unpack(seed, folder, records)) {
    std::string bytes = seed;
    if (oneIn(random, 8))
      bytes.resize(below(random, bytes.size()));
    for (std::size_t i = 0; i < times; ++i) {
      // Most of what matters stands at the end.
      if (oneIn(random, 2) && bytes.size() > 600) {
        std::string tail = bytes.substr(bytes.size() - 600);
        mutateBytes(tail, seed, random);
        bytes.replace(bytes.size() - 600, std::string::npos, tail);
      } else {
        mutateBytes(bytes, seed, random);
      }
    }
    return bytes.substr(0, largest);
  }
  unpack(pick(random, others), otherFolder, otherRecords);
  auto choose = [&](auto fits) -> std::pair<Record *, std::string> {
    std::vector<Record *> found;
    for (Record &record : records)
      if (fits(record.name))
        found.push_back(&record);
    std::vector<std::string> foundOther;
    for (Record &record : otherRecords)
      if (fits(record.name))
        foundOther.push_back(record.bytes);
    return {found.empty() ? nullptr : pick(random, found),
            foundOther.empty() ? std::string() : pick(random, foundOther)};
  };
  if (changeBytes && !records.empty() && oneIn(random, 3)) {
    changeBytes(records[below(random, records.size())].bytes);
    return pack(folder, records, random).substr(0, 4 * largest);
  }
  std::size_t what = below(random, 20);
  for (std::size_t i = 0; i < times && !records.empty(); ++i) {
    if (what < 7) {
      auto [record, other] = choose([](const std::string &name) { return endsWith(name, ".pkl"); });
      if (record)
        mutatePickle(record->bytes, other, random);
    } else if (what < 15) {
      auto [record, other] = choose([](const std::string &name) { return endsWith(name, ".py"); });
      if (record)
        mutateText(record->bytes, other, random);
    } else if (what < 18) {
      auto [record, other] =
          choose([](const std::string &name) { return endsWith(name, ".debug_pkl"); });
      if (record)
        mutatePickle(record->bytes, other, random);
    } else {
      mutateRecords(records, random);
    }
  }
  return pack(folder, records, random).substr(0, 4 * largest);
}

} // namespace torch_mlir::torchscript::fuzz
