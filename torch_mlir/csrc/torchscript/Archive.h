// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The container of a TorchScript archive: a zip file (APPNOTE.TXT 6.3.10, zip64 included) whose
// records lie in one folder. Archives come from strangers, so nothing in one is believed before
// it is checked, and what one may cost is bounded.

#ifndef TORCH_MLIR_TORCHSCRIPT_ARCHIVE_H
#define TORCH_MLIR_TORCHSCRIPT_ARCHIVE_H

#include <c10/core/Allocator.h>
#include <caffe2/serialize/read_adapter_interface.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace torch_mlir::torchscript {

/// What an archive may cost. Stored records need no limit, they lie in the file. The defaults
/// are far above what any model that PyTorch wrote comes near.
struct Limits {
  /// Records in an archive.
  std::uint64_t records = std::uint64_t(1) << 20;
  /// Bytes of one compressed record, and of all of them, once they are inflated.
  std::uint64_t inflatedRecordBytes = std::uint64_t(2) << 30;
  std::uint64_t inflatedBytes = std::uint64_t(4) << 30;
  /// Whether the checksums of tensors' bytes are compared too, which reads the whole file.
  bool checksumTensors = false;

  /// Values in one pickle; lists, tuples, dictionaries and objects inside of one another; and
  /// values where each counts as often as it is reached: types are made, and constants copied,
  /// by walks that don't see that a value is shared.
  std::uint64_t pickleValues = std::uint64_t(32) << 20;
  std::uint32_t pickleDepth = 256;
  std::uint64_t pickleUnsharedValues = std::uint64_t(64) << 20;
  /// Bytes of all tensors that aren't laid out without gaps and overlaps, once they are, beyond
  /// the size of the file: an expanded tensor of a few bytes may stand for terabytes.
  std::uint64_t expandedTensorBytes = std::uint64_t(2) << 30;

  /// Bytes of TorchScript in all of an archive; expressions inside of one another, counting the
  /// links of chains such as `a + b + c`; and blocks inside of one another.
  std::uint64_t sourceBytes = std::uint64_t(512) << 20;
  std::uint32_t sourceExpressionDepth = 256;
  std::uint32_t sourceBlockDepth = 128;
  /// How deep the compiler may get: a module's class needs those of its submodules, and so on,
  /// and each method on the way counts the depth of its blocks and expressions, and 8. The
  /// stack that a thread has left is a limit, too; see DeepStack.h.
  std::uint32_t sourceRecursion = std::uint32_t(1) << 13;

  /// What code that runs while the archive is loaded (`__setstate__` methods, default arguments,
  /// operators on constants) may do in all: calls, turns of loops, values looked at, and
  /// microseconds that operators take beyond that.
  std::uint64_t loadingSteps = std::uint64_t(1) << 24;
  /// Bytes that loading may allocate in pieces of 4 KiB and more, beyond 64 for each byte of the
  /// archive's pickles and TorchScript. Given back or not, all pieces count.
  std::uint64_t loadingBytes = std::uint64_t(1) << 30;
};

/// An archive that is broken, isn't TorchScript, or exceeds a limit. The message names the file
/// and, where there is one, the record.
class ArchiveError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A read-only archive. Threads may share one. Bytes handed out keep alive what they lie in, not
/// the archive itself.
class Archive {
public:
  struct Record {
    /// Without the archive's folder, e.g. `data.pkl`.
    std::string name;
    /// Where the record's bytes lie in the file, and how many of them there are.
    std::uint64_t offset;
    std::uint64_t storedSize;
    /// How many bytes it is once inflated; the same unless `deflated`.
    std::uint64_t size;
    /// Zero if the writer left it out.
    std::uint32_t crc32;
    bool deflated;
  };

  /// Maps the file at `path`. What is parsed is copied out of the file by reading it; tensors stay
  /// in the mapping, and whoever shortens a file kills those that touch what was there with
  /// SIGBUS. `checkUnchanged` tells of what happened before they do.
  static std::shared_ptr<Archive> open(const std::string &path, const Limits &limits = {});

  /// The archive in `size` bytes from `data`, which stay as they are until `release` (which may
  /// be empty) is called, by whichever thread lets go of the last of them. `release` is called
  /// if this throws, too. `name` is what errors call the archive.
  static std::shared_ptr<Archive> fromMemory(const void *data, std::size_t size,
                                             std::function<void()> release,
                                             const Limits &limits = {},
                                             std::string name = "<bytes>");

  Archive(const Archive &) = delete;
  Archive &operator=(const Archive &) = delete;
  ~Archive();

  const std::string &name() const { return name_; }
  /// The folder that holds the records.
  const std::string &folder() const { return folder_; }
  const Limits &limits() const { return limits_; }
  /// In the order of the directory.
  const std::vector<Record> &records() const { return records_; }

  /// Null if there is none of this name.
  const Record *find(std::string_view name) const;
  /// Throws if there is none.
  const Record &get(std::string_view name) const;

  /// The file's bytes.
  std::string_view bytes() const { return {bytes_, size_}; }

  /// A record's bytes: in the mapping, without a copy, if it is stored there at an address that
  /// any element type may have; otherwise in memory that all who ask for the record share.
  /// Whoever writes to them fails.
  at::DataPtr share(const Record &record) const;

  /// The elements of a record are of a dtype that libtorch lacks, by its number.
  void noteDtype(const Record &record, int dtype) const;
  /// The dtype of the record whose shared bytes are at `data`; -1 where none was noted.
  int getDtype(const void *data) const;

  /// A record's bytes once more, for whoever wants to own them, with their checksum compared.
  std::string copy(const Record &record) const;

  /// Throws if the file has another size or time of modification than when it was opened.
  void checkUnchanged() const;

  /// Throws an ArchiveError about the record of this name, or about the archive if it is empty.
  [[noreturn]] void fail(std::string_view record, const std::string &message) const;

private:
  class File;

  Archive(std::shared_ptr<const void> owner, const char *bytes, std::size_t size, Limits limits,
          std::string name, std::unique_ptr<File> file);

  void readDirectory();
  void readLocalHeader(const std::string &fullName, std::uint64_t header, std::uint64_t directory,
                       std::uint16_t flags, Record &record) const;
  void inflate(const Record &record, char *to) const;
  void compareChecksum(const Record &record, const void *data) const;
  /// Copies a record's bytes as they are stored.
  void readStored(const Record &record, char *to) const;

  std::shared_ptr<const void> owner_;
  const char *bytes_;
  std::size_t size_;
  Limits limits_;
  std::string name_;
  /// Null for what is in memory.
  std::unique_ptr<File> file_;
  std::string folder_;
  std::vector<Record> records_;
  std::unordered_map<std::string_view, std::size_t> index_;
  mutable std::mutex mutex_;
  /// What `share` had to copy, for as long as somebody holds it.
  mutable std::unordered_map<const Record *, std::weak_ptr<char>> copies_;
  mutable std::map<const Record *, int> dtypes_;
};

/// What `torch::jit::load` takes an archive as. Our PyTorchStreamReader reads from the archive
/// itself, not through this interface.
class ArchiveAdapter final : public caffe2::serialize::ReadAdapterInterface {
public:
  explicit ArchiveAdapter(std::shared_ptr<Archive> archive) : archive_(std::move(archive)) {}

  const std::shared_ptr<Archive> &archive() const { return archive_; }
  std::size_t size() const override { return archive_->bytes().size(); }
  std::size_t read(std::uint64_t pos, void *buf, std::size_t n,
                   const char *what = "") const override;

private:
  std::shared_ptr<Archive> archive_;
};

/// Whether `text` is well-formed UTF-8.
bool isUtf8(std::string_view text);

std::shared_ptr<caffe2::serialize::ReadAdapterInterface> adapter(std::shared_ptr<Archive> archive);

} // namespace torch_mlir::torchscript

#endif // TORCH_MLIR_TORCHSCRIPT_ARCHIVE_H
