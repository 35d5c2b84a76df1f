// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Archive.h"

#include "miniz.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_set>
#include <utility>

namespace torch_mlir::torchscript {
namespace {

// APPNOTE.TXT: sections 4.3.7 (local header), 4.3.12 (central header), 4.3.14 to 4.3.16 (ends of
// the directory), 4.4 (fields), 4.5.3 (zip64's extra field).
constexpr std::size_t localHeaderSize = 30;
constexpr std::size_t centralHeaderSize = 46;
constexpr std::size_t endSize = 22;
constexpr std::size_t end64Size = 56;
constexpr std::size_t locator64Size = 20;
constexpr std::size_t longestComment = 0xffff;
constexpr std::uint32_t in64 = 0xffffffff;
constexpr std::uint16_t zip64Field = 0x0001;

constexpr std::uint16_t encryptedFlag = 1 << 0;
constexpr std::uint16_t descriptorFlag = 1 << 3;
constexpr std::uint16_t patchFlag = 1 << 5;
constexpr std::uint16_t strongEncryptionFlag = 1 << 6;
constexpr std::uint16_t maskedHeadersFlag = 1 << 13;

/// No deflate stream grows by more: a match of 258 bytes takes at least two bits.
constexpr std::uint64_t largestDeflateRatio = 1032;

/// What a storage's elements may ask for: complex128 is two doubles.
constexpr std::size_t storageAlignment = 16;
/// What PyTorch's own allocator gives.
constexpr std::size_t copyAlignment = 64;

template <typename T>
T read(const char *at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<unsigned char>(at[i])) << (8 * i);
  return value;
}

bool startsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// The size of the UTF-8 character that `text` starts with, or zero if it starts with none.
std::size_t sizeOfCharacter(std::string_view text) {
  auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80)
    return 1;
  std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length)
    return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((static_cast<unsigned char>(text[k]) & 0xc0) != 0x80)
      return 0;
  // Forms longer than need be, surrogates, and what lies beyond the last code point.
  auto second = static_cast<unsigned char>(text[1]);
  bool isBad = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
               (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return isBad ? 0 : length;
}

/// Text of an archive's as a message may show it: without what isn't UTF-8, and without what a
/// terminal would obey.
std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    std::size_t size = sizeOfCharacter(text);
    auto byte = static_cast<unsigned char>(text[0]);
    if (size == 0 || byte < 0x20 || byte == 0x7f) {
      constexpr const char *digits = "0123456789abcdef";
      shown += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      size = 1;
    } else {
      shown += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return shown;
}

/// A name, and no more of it than a message has room for.
std::string shown(std::string_view name) {
  constexpr std::size_t longest = 120;
  return printable(name.substr(0, longest)) + (name.size() > longest ? "..." : "");
}

/// What is wrong with the name of a record, or null.
const char *faultOfName(std::string_view name) {
  if (name.empty())
    return "a record has no name";
  if (!isUtf8(name))
    return "the name isn't UTF-8";
  if (name.front() == '/' || (name.size() > 1 && name[1] == ':'))
    return "the name is an absolute path";
  for (char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return "the name holds a control character";
    if (c == '\\')
      return "the name holds a backslash";
  }
  // A folder's own entry ends with a slash.
  std::string_view rest = name.back() == '/' ? name.substr(0, name.size() - 1) : name;
  for (;;) {
    std::size_t slash = rest.find('/');
    std::string_view part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == "..")
      return "the name leads out of the archive's folder";
    if (slash == std::string_view::npos)
      return nullptr;
    rest.remove_prefix(slash + 1);
  }
}

std::string nameOfMethod(std::uint16_t method) {
  switch (method) {
  case 1:
    return "shrink";
  case 6:
    return "implode";
  case 9:
    return "deflate64";
  case 12:
    return "bzip2";
  case 14:
    return "LZMA";
  case 93:
    return "zstd";
  case 95:
    return "xz";
  case 99:
    return "AES encryption";
  default:
    return "method " + std::to_string(method);
  }
}

constexpr const char *howToSave =
    "save the module with torch.jit.save(torch.jit.script(module), path) or "
    "torch.jit.save(torch.jit.trace(module, inputs), path)";

/// What a file that isn't a zip file is, with advice.
std::string describeOther(std::string_view bytes) {
  auto magic = [&](std::string_view at) { return startsWith(bytes, at); };
  if (bytes.empty())
    return "the file is empty";
  if (magic("PK\x03\x04"))
    return "the archive is incomplete: it starts as a zip file, but its directory, which stands "
           "at the end, is missing; was it downloaded or copied in full?";
  // torch.save before PyTorch 1.6: three pickles, the first of them this magic number.
  if (magic(std::string_view("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14)))
    return std::string("this is a file in torch.save's legacy format, which is a Python pickle "
                       "and holds no TorchScript; load it with torch.load in the program that "
                       "defines its classes, then ") +
           howToSave;
  if (bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 1 && bytes[1] <= 5)
    return std::string("this is a bare Python pickle and holds no TorchScript; load it with "
                       "torch.load in the program that defines its classes, then ") +
           howToSave;
  if (magic("PYTORCH1"))
    return "this is an archive of PyTorch's preview release, which nothing reads any more; "
           "save the module again with PyTorch 1.0 or later";
  if (bytes.size() > 262 && bytes.substr(257, 5) == "ustar")
    return std::string("this is a tar file, perhaps one that torch.save of PyTorch 0.1 wrote, and "
                       "holds no TorchScript; load it with torch.load, then ") +
           howToSave;
  if (bytes.size() > 8 && bytes.substr(4, 4) == "PTMF")
    return std::string("this is a lite-interpreter model in flatbuffer form (.ff), which holds "
                       "bytecode rather than TorchScript; from the module it was made of, ") +
           howToSave;
  if (magic("version https://git-lfs"))
    return "this is a Git LFS pointer, not the file it stands for; run `git lfs pull`";
  return "this isn't a TorchScript archive: it is no zip file";
}

/// What a zip file that holds no TorchScript is, with advice; null if it looks like TorchScript.
std::string describeOtherZip(const std::vector<std::string> &names) {
  auto has = [&](std::string_view path) {
    return std::any_of(names.begin(), names.end(), [&](const std::string &name) {
      return name == path ||
             (name.size() > path.size() && name[name.size() - path.size() - 1] == '/' &&
              std::string_view(name).substr(name.size() - path.size()) == path);
    });
  };
  auto hasFolder = [&](std::string_view path) {
    std::string inner = "/" + std::string(path) + "/";
    return std::any_of(names.begin(), names.end(), [&](const std::string &name) {
      return startsWith(name, std::string_view(inner).substr(1)) ||
             name.find(inner) != std::string::npos;
    });
  };
  if (has("serialized_exported_program.json") || has("models/model.json") ||
      has("archive_format") || hasFolder("data/aotinductor"))
    return "this is a program of torch.export (.pt2), not TorchScript; load it with "
           "torch.export.load and import the program itself";
  if (has("bytecode.pkl"))
    return std::string("this is an archive for the lite interpreter (.ptl), which holds bytecode; "
                       "from the module it was made of, ") +
           howToSave;
  if (has("model.json") && hasFolder("tensors"))
    return std::string("this is an archive of PyTorch 1.0 to 1.3, whose format only PyTorch itself "
                       "reads; torch.jit.load it, then ") +
           howToSave;
  if (has(".data/extern_modules"))
    return std::string("this is a torch.package, which holds Python code; load it with "
                       "torch.package.PackageImporter, then ") +
           howToSave;
  if (has("data.pkl") && !has("constants.pkl") && !hasFolder("code"))
    return std::string("this is a file of torch.save: a state_dict, tensors or a pickled Python "
                       "object, without the code of a model; load it with torch.load into the "
                       "module it belongs to, then ") +
           howToSave;
  if (has("MAR-INF/MANIFEST.json"))
    return "this is a TorchServe archive (.mar); unzip it and import the model inside";
  if (!has("data.pkl") || !has("constants.pkl"))
    return "this zip file isn't a TorchScript archive: it has no records data.pkl and "
           "constants.pkl";
  return {};
}

} // namespace

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t size = sizeOfCharacter(text);
    if (size == 0)
      return false;
    text.remove_prefix(size);
  }
  return true;
}

//===- Opening ------------------------------------------------------------===//

class Archive::File {
public:
  explicit File(int descriptor) : descriptor(descriptor) {}
  ~File() { ::close(descriptor); }
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  const int descriptor;
  struct stat opened;
};

Archive::~Archive() = default;

std::shared_ptr<Archive> Archive::open(const std::string &path, const Limits &limits) {
  auto fail = [&](const char *what) {
    throw ArchiveError(shown(path) + ": " + what + ": " + std::strerror(errno));
  };
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    fail("can't open the archive");
  auto owned = std::make_unique<File>(file);
  struct stat &status = owned->opened;
  if (::fstat(file, &status) != 0)
    fail("can't open the archive");
  if (!S_ISREG(status.st_mode))
    throw ArchiveError(shown(path) + ": not a regular file, so it can't be mapped; pass its "
                                     "bytes instead");
  auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0)
    throw ArchiveError(shown(path) + ": " + describeOther({}));
  void *mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (mapping == MAP_FAILED)
    fail("can't map the archive");
  std::shared_ptr<const void> owner(
      mapping, [size](const void *at) { ::munmap(const_cast<void *>(at), size); });
  auto bytes = static_cast<const char *>(mapping);
  return std::shared_ptr<Archive>(new Archive(std::move(owner), bytes, size, limits, path, std::move(owned)));
}

std::shared_ptr<Archive> Archive::fromMemory(const void *data, std::size_t size,
                                             std::function<void()> release, const Limits &limits,
                                             std::string name) {
  std::shared_ptr<const void> owner(data, [release = std::move(release)](const void *) {
    if (release)
      release();
  });
  auto bytes = static_cast<const char *>(data);
  return std::shared_ptr<Archive>(
      new Archive(std::move(owner), bytes, size, limits, std::move(name), nullptr));
}

Archive::Archive(std::shared_ptr<const void> owner, const char *bytes, std::size_t size,
                 Limits limits, std::string name, std::unique_ptr<File> file)
    : owner_(std::move(owner)), bytes_(bytes), size_(size), limits_(limits),
      name_(std::move(name)), file_(std::move(file)) {
  readDirectory();
}

void Archive::fail(std::string_view record, const std::string &message) const {
  std::string where = shown(name_) + ": ";
  if (!record.empty())
    where += "record '" + shown(record) + "': ";
  throw ArchiveError(where + printable(message));
}

//===- The directory ------------------------------------------------------===//

void Archive::readDirectory() {
  // The end of the directory is the file's end; only its comment may follow.
  if (size_ < endSize)
    fail({}, describeOther(bytes()));
  std::uint64_t end = size_;
  for (std::size_t comment = 0; comment <= std::min(longestComment, size_ - endSize); ++comment) {
    std::uint64_t at = size_ - endSize - comment;
    if (std::memcmp(bytes_ + at, "PK\x05\x06", 4) == 0 &&
        read<std::uint16_t>(bytes_ + at + 20) == comment) {
      end = at;
      break;
    }
  }
  if (end == size_)
    fail({}, describeOther(bytes()));

  const char *fields = bytes_ + end;
  auto disk = read<std::uint16_t>(fields + 4);
  auto directoryDisk = read<std::uint16_t>(fields + 6);
  std::uint64_t countHere = read<std::uint16_t>(fields + 8);
  std::uint64_t count = read<std::uint16_t>(fields + 10);
  std::uint64_t directorySize = read<std::uint32_t>(fields + 12);
  std::uint64_t directory = read<std::uint32_t>(fields + 16);
  std::uint64_t directoryEnd = end;
  if ((disk != 0 && disk != 0xffff) || (directoryDisk != 0 && directoryDisk != 0xffff))
    fail({}, "the archive is split over several files");

  if (end >= locator64Size && std::memcmp(bytes_ + end - locator64Size, "PK\x06\x07", 4) == 0) {
    const char *locator = bytes_ + end - locator64Size;
    auto end64 = read<std::uint64_t>(locator + 8);
    if (end < locator64Size + end64Size || end64 > end - locator64Size - end64Size ||
        std::memcmp(bytes_ + end64, "PK\x06\x06", 4) != 0 ||
        read<std::uint64_t>(bytes_ + end64 + 4) != end - locator64Size - end64 - 12)
      fail({}, "the directory's zip64 end isn't where the archive says");
    const char *wide = bytes_ + end64;
    auto agree = [](std::uint64_t narrow, std::uint64_t value, std::uint64_t absent) {
      return narrow == absent || narrow == value;
    };
    if (!agree(countHere, read<std::uint64_t>(wide + 24), 0xffff) ||
        !agree(count, read<std::uint64_t>(wide + 32), 0xffff) ||
        !agree(directorySize, read<std::uint64_t>(wide + 40), in64) ||
        !agree(directory, read<std::uint64_t>(wide + 48), in64))
      fail({}, "the directory's two ends contradict each other");
    if (read<std::uint32_t>(wide + 16) != 0 || read<std::uint32_t>(wide + 20) != 0)
      fail({}, "the archive is split over several files");
    countHere = read<std::uint64_t>(wide + 24);
    count = read<std::uint64_t>(wide + 32);
    directorySize = read<std::uint64_t>(wide + 40);
    directory = read<std::uint64_t>(wide + 48);
    directoryEnd = end64;
  }
  if (count != countHere)
    fail({}, "the archive is split over several files");
  if (directory > directoryEnd || directorySize != directoryEnd - directory)
    fail({}, "the directory isn't where the archive says: something was cut out of the file, or "
             "put in");
  if (count > limits_.records)
    fail({}, "the archive claims " + std::to_string(count) + " records, more than the limit of " +
                 std::to_string(limits_.records));
  if (count > directorySize / centralHeaderSize)
    fail({}, "the directory is too small for the " + std::to_string(count) +
                 " records it claims to list");
  if (count == 0)
    fail({}, "the archive holds no records");

  struct Entry {
    std::string name;
    Record record;
    std::uint64_t header;
    std::uint16_t flags;
  };
  std::vector<Entry> entries;
  std::vector<std::string> names;
  std::unordered_set<std::string_view> seen;
  entries.reserve(count);
  names.reserve(count);
  std::uint64_t inflated = 0;
  std::uint64_t at = directory;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (directoryEnd - at < centralHeaderSize || std::memcmp(bytes_ + at, "PK\x01\x02", 4) != 0)
      fail({}, "the directory is broken at its entry " + std::to_string(i));
    const char *header = bytes_ + at;
    std::size_t nameSize = read<std::uint16_t>(header + 28);
    std::size_t extraSize = read<std::uint16_t>(header + 30);
    std::size_t commentSize = read<std::uint16_t>(header + 32);
    at += centralHeaderSize;
    if (directoryEnd - at < nameSize + extraSize + commentSize)
      fail({}, "the directory is broken at its entry " + std::to_string(i));

    Entry entry;
    entry.name.assign(bytes_ + at, nameSize);
    if (const char *fault = faultOfName(entry.name))
      fail(entry.name, fault);
    entry.flags = read<std::uint16_t>(header + 8);
    auto method = read<std::uint16_t>(header + 10);
    Record &record = entry.record;
    record.crc32 = read<std::uint32_t>(header + 16);
    record.storedSize = read<std::uint32_t>(header + 20);
    record.size = read<std::uint32_t>(header + 24);
    entry.header = read<std::uint32_t>(header + 42);

    bool wide = record.size == in64 || record.storedSize == in64 || entry.header == in64;
    const char *extra = bytes_ + at + nameSize;
    const char *extraEnd = extra + extraSize;
    while (extraEnd - extra >= 4) {
      auto id = read<std::uint16_t>(extra);
      std::size_t size = read<std::uint16_t>(extra + 2);
      extra += 4;
      if (static_cast<std::size_t>(extraEnd - extra) < size)
        fail(entry.name, "its extra field is broken");
      const char *field = extra;
      extra += size;
      if (id != zip64Field || !wide)
        continue;
      for (std::uint64_t *value : {&record.size, &record.storedSize, &entry.header}) {
        if (*value != in64)
          continue;
        if (extra - field < 8)
          fail(entry.name, "its zip64 field is broken");
        *value = read<std::uint64_t>(field);
        field += 8;
      }
      wide = false;
    }
    at += nameSize + extraSize + commentSize;

    if (entry.flags & (encryptedFlag | strongEncryptionFlag | maskedHeadersFlag))
      fail(entry.name, "it is encrypted");
    if (entry.flags & patchFlag)
      fail(entry.name, "it is a patch to another file");
    if (method != 0 && method != 8)
      fail(entry.name, "it is compressed by " + nameOfMethod(method) +
                           "; only stored and deflated records are read");
    record.deflated = method == 8;
    if (!record.deflated && record.storedSize != record.size)
      fail(entry.name, "it is stored, but has two sizes, " + std::to_string(record.storedSize) +
                           " and " + std::to_string(record.size));
    if (entry.header >= directory || record.storedSize > directory)
      fail(entry.name, "it lies beyond the archive's end");
    if (record.deflated && record.size / largestDeflateRatio > record.storedSize)
      fail(entry.name, "it claims to be " + std::to_string(record.size) + " bytes, more than its " +
                           std::to_string(record.storedSize) + " compressed ones can give");
    if (record.deflated) {
      if (record.size > limits_.inflatedRecordBytes)
        fail(entry.name, "it inflates to " + std::to_string(record.size) +
                             " bytes, more than the limit of " +
                             std::to_string(limits_.inflatedRecordBytes));
      // No overflow: each is at most 1,032 times the file's size.
      inflated += record.size;
      if (inflated > limits_.inflatedBytes)
        fail(entry.name, "with it, the archive inflates to more than the limit of " +
                             std::to_string(limits_.inflatedBytes) + " bytes");
    }
    if (!seen.insert(names.emplace_back(entry.name)).second)
      fail(entry.name, "the archive has two records of this name");
    entries.push_back(std::move(entry));
  }
  if (at != directoryEnd)
    fail({}, "the directory lists " + std::to_string(count) + " records and goes on after them");

  if (std::string other = describeOtherZip(names); !other.empty())
    fail({}, other);
  folder_ = names.front().substr(0, names.front().find('/'));
  for (const std::string &name : names)
    if (name.size() <= folder_.size() || !startsWith(name, folder_) || name[folder_.size()] != '/')
      fail(name, "it lies outside of the archive's folder '" + shown(folder_) + "'");

  // Headers and bytes, in the order in which they lie in the file.
  std::vector<Entry *> placed;
  placed.reserve(entries.size());
  for (Entry &entry : entries) {
    readLocalHeader(entry.name, entry.header, directory, entry.flags, entry.record);
    placed.push_back(&entry);
  }
  std::sort(placed.begin(), placed.end(),
            [](const Entry *a, const Entry *b) { return a->header < b->header; });
  for (std::size_t i = 1; i < placed.size(); ++i)
    if (placed[i]->header < placed[i - 1]->record.offset + placed[i - 1]->record.storedSize)
      fail(placed[i]->name, "it overlaps record '" + shown(placed[i - 1]->name) + "'");

  records_.reserve(entries.size());
  for (Entry &entry : entries) {
    if (entry.name.back() == '/') {
      if (entry.record.size != 0)
        fail(entry.name, "it is a folder, yet has bytes");
      continue;
    }
    entry.record.name = entry.name.substr(folder_.size() + 1);
    records_.push_back(std::move(entry.record));
  }
  for (std::size_t i = 0; i < records_.size(); ++i)
    index_.emplace(records_[i].name, i);
}

void Archive::readLocalHeader(const std::string &fullName, std::uint64_t header,
                              std::uint64_t directory, std::uint16_t flags, Record &record) const {
  if (directory - header < localHeaderSize || std::memcmp(bytes_ + header, "PK\x03\x04", 4) != 0)
    fail(fullName, "its header isn't where the directory says");
  const char *local = bytes_ + header;
  std::size_t nameSize = read<std::uint16_t>(local + 26);
  std::size_t extraSize = read<std::uint16_t>(local + 28);
  if (directory - header - localHeaderSize < nameSize + extraSize)
    fail(fullName, "its header goes beyond the archive's end");
  if (std::string_view(local + localHeaderSize, nameSize) != fullName)
    fail(fullName, "its header calls it '" +
                       shown(std::string_view(local + localHeaderSize, nameSize)) + "'");
  if (read<std::uint16_t>(local + 6) != flags ||
      read<std::uint16_t>(local + 8) != (record.deflated ? 8 : 0))
    fail(fullName, "its header and the directory contradict each other about how it is stored");
  // Zero where a descriptor after the bytes has the value. PyTorch's miniz writes headers first,
  // and leaves zeros for records without bytes, too.
  bool described = (flags & descriptorFlag) || record.size == 0;
  auto agree = [&](std::uint32_t field, std::uint64_t value) {
    return field == value || field == in64 || (field == 0 && described);
  };
  if (!agree(read<std::uint32_t>(local + 14), record.crc32) ||
      !agree(read<std::uint32_t>(local + 18), record.storedSize) ||
      !agree(read<std::uint32_t>(local + 22), record.size))
    fail(fullName, "its header and the directory contradict each other about its size");
  record.offset = header + localHeaderSize + nameSize + extraSize;
  if (directory - record.offset < record.storedSize)
    fail(fullName, "it goes beyond the archive's end");
}

//===- Records ------------------------------------------------------------===//

const Archive::Record *Archive::find(std::string_view name) const {
  auto found = index_.find(name);
  return found == index_.end() ? nullptr : &records_[found->second];
}

const Archive::Record &Archive::get(std::string_view name) const {
  const Record *record = find(name);
  if (!record)
    fail(name, "the archive has no such record");
  return *record;
}

void Archive::checkUnchanged() const {
  if (!file_)
    return;
  struct stat now;
  const struct stat &then = file_->opened;
  if (::fstat(file_->descriptor, &now) != 0 || now.st_size != then.st_size ||
      now.st_mtim.tv_sec != then.st_mtim.tv_sec || now.st_mtim.tv_nsec != then.st_mtim.tv_nsec)
    fail({}, "the file was changed while it was read");
}

void Archive::readStored(const Record &record, char *to) const {
  if (!file_) {
    std::memcpy(to, bytes_ + record.offset, record.storedSize);
    return;
  }
  for (std::uint64_t done = 0; done < record.storedSize;) {
    ssize_t count = ::pread(file_->descriptor, to + done, record.storedSize - done,
                            static_cast<off_t>(record.offset + done));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      fail(record.name, std::string("it can't be read: ") + std::strerror(errno));
    if (count == 0)
      fail(record.name, "the file was shortened while it was read");
    done += static_cast<std::uint64_t>(count);
  }
}

void Archive::inflate(const Record &record, char *to) const {
  // A copy: what may be shortened is read, not mapped.
  std::string stored(record.storedSize, '\0');
  readStored(record, stored.data());
  tinfl_decompressor state;
  tinfl_init(&state);
  std::size_t taken = record.storedSize;
  std::size_t given = record.size;
  auto out = reinterpret_cast<mz_uint8 *>(to);
  tinfl_status status =
      tinfl_decompress(&state, reinterpret_cast<const mz_uint8 *>(stored.data()), &taken, out, out,
                       &given, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF);
  if (status == TINFL_STATUS_HAS_MORE_OUTPUT)
    fail(record.name, "it inflates to more than the " + std::to_string(record.size) +
                          " bytes that the directory says");
  if (status != TINFL_STATUS_DONE)
    fail(record.name, "its compressed bytes are broken");
  if (given != record.size)
    fail(record.name, "it inflates to " + std::to_string(given) + " bytes, not the " +
                          std::to_string(record.size) + " that the directory says");
}

void Archive::compareChecksum(const Record &record, const void *data) const {
  // Writers may leave checksums out (torch.serialization.set_crc32_options).
  if (record.crc32 == 0)
    return;
  if (mz_crc32(MZ_CRC32_INIT, static_cast<const unsigned char *>(data), record.size) !=
      record.crc32)
    fail(record.name, "its bytes don't have the checksum that the directory says; the archive "
                      "is damaged");
}

void Archive::noteDtype(const Record &record, int dtype) const {
  std::lock_guard<std::mutex> guard(mutex_);
  dtypes_[&record] = dtype;
}

int Archive::getDtype(const void *data) const {
  std::lock_guard<std::mutex> guard(mutex_);
  for (const auto &[record, dtype] : dtypes_) {
    auto copied = copies_.find(record);
    std::shared_ptr<char> copy = copied == copies_.end() ? nullptr : copied->second.lock();
    if (data == (copy ? copy.get() : bytes_ + record->offset))
      return dtype;
  }
  return -1;
}

at::DataPtr Archive::share(const Record &record) const {
  using Owner = std::shared_ptr<const void>;
  auto give = [](const void *data, Owner owner) {
    return at::DataPtr(
        const_cast<void *>(data), new Owner(std::move(owner)),
        [](void *held) { delete static_cast<Owner *>(held); }, at::Device(at::DeviceType::CPU));
  };
  const char *stored = bytes_ + record.offset;
  bool aligned = reinterpret_cast<std::uintptr_t>(stored) % storageAlignment == 0;
  if (!record.deflated && (aligned || record.size == 0)) {
    if (limits_.checksumTensors)
      compareChecksum(record, stored);
    return give(stored, owner_);
  }

  std::lock_guard<std::mutex> guard(mutex_);
  std::weak_ptr<char> &known = copies_[&record];
  std::shared_ptr<char> copy = known.lock();
  if (!copy) {
    void *memory = ::operator new(std::max<std::size_t>(record.size, 1),
                                  std::align_val_t(copyAlignment), std::nothrow);
    if (!memory)
      fail(record.name, "there is no memory for its " + std::to_string(record.size) + " bytes");
    copy.reset(static_cast<char *>(memory),
               [](char *at) { ::operator delete(at, std::align_val_t(copyAlignment)); });
    if (record.deflated) {
      inflate(record, copy.get());
      compareChecksum(record, copy.get());
    } else {
      readStored(record, copy.get());
      if (limits_.checksumTensors)
        compareChecksum(record, copy.get());
    }
    known = copy;
  }
  return give(copy.get(), copy);
}

std::string Archive::copy(const Record &record) const {
  std::string text;
  try {
    text.resize(record.size);
  } catch (const std::exception &) {
    fail(record.name, "there is no memory for its " + std::to_string(record.size) + " bytes");
  }
  if (record.deflated)
    inflate(record, text.data());
  else
    readStored(record, text.data());
  compareChecksum(record, text.data());
  return text;
}

//===- The adapter --------------------------------------------------------===//

std::size_t ArchiveAdapter::read(std::uint64_t pos, void *buf, std::size_t n,
                                 const char *what) const {
  std::string_view bytes = archive_->bytes();
  if (pos > bytes.size() || n > bytes.size() - pos)
    archive_->fail({}, std::string("the file ends before what is read next (") + what + ")");
  std::memcpy(buf, bytes.data() + pos, n);
  return n;
}

std::shared_ptr<caffe2::serialize::ReadAdapterInterface> adapter(std::shared_ptr<Archive> archive) {
  return std::make_shared<ArchiveAdapter>(std::move(archive));
}

} // namespace torch_mlir::torchscript
