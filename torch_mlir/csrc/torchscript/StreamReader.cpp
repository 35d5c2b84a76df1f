// Part of torch-mlir-static, under the Apache License v2.0 with LLVM exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The members of libtorch's PyTorchStreamReader that loading a module needs, over Archive. They
// stand in for caffe2/serialize/inline_container.cc, which reads through miniz's zip functions.
// What libtorch's unpickler and parser are given is checked here, right before they get it.

#include "Archive.h"
#include "Pickles.h"
#include "Sources.h"

#include <caffe2/serialize/file_adapter.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/versions.h>

#include <charconv>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

using torch_mlir::torchscript::Archive;
using torch_mlir::torchscript::ArchiveAdapter;
using torch_mlir::torchscript::ArchiveError;
using torch_mlir::torchscript::Sources;

/// libtorch's header declares this as the state of its zip reader, and only holds a pointer.
struct mz_zip_archive {
  std::shared_ptr<Archive> archive;
  std::optional<Sources> sources;
};

namespace caffe2 {
namespace serialize {
namespace {

bool endsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

bool isDebugInfo(std::string_view name) { return endsWith(name, ".debug_pkl"); }

std::shared_ptr<Archive> archiveOf(const std::shared_ptr<ReadAdapterInterface> &in) {
  if (auto *ours = dynamic_cast<ArchiveAdapter *>(in.get()))
    return ours->archive();
  // Any other adapter gives copies only, so its bytes are read once.
  auto bytes = std::make_shared<std::string>(in->size(), '\0');
  if (in->read(0, bytes->data(), bytes->size(), "the archive") != bytes->size())
    throw ArchiveError("<stream>: the archive ends before its size");
  const char *data = bytes->data();
  std::size_t size = bytes->size();
  return Archive::fromMemory(data, size, [bytes]() mutable { bytes.reset(); });
}

at::DataPtr own(std::string text) {
  auto *held = new std::string(std::move(text));
  return at::DataPtr(
      held->data(), held, [](void *at) { delete static_cast<std::string *>(at); },
      at::Device(at::DeviceType::CPU));
}

template <typename Reader, typename = void>
constexpr bool canHideDebugInfo = false;
template <typename Reader>
constexpr bool canHideDebugInfo<
    Reader, std::void_t<decltype(std::declval<Reader &>().setShouldLoadDebugSymbol(true))>> = true;

/// The number in a `version` record.
std::int64_t parseVersion(const Archive &archive, const Archive::Record &record) {
  constexpr std::uint64_t longest = 32;
  if (record.size > longest)
    archive.fail(record.name, "it should hold a version number, but is " +
                                  std::to_string(record.size) + " bytes long");
  std::string text = archive.copy(record);
  // Some writers end the number with a newline.
  std::string_view digits = text;
  while (!digits.empty() && (digits.back() == '\n' || digits.back() == '\r'))
    digits.remove_suffix(1);
  std::int64_t version = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  if (error != std::errc() || end != digits.data() + digits.size() || version < 0)
    archive.fail(record.name, "it should hold a version number");
  auto oldest = static_cast<std::int64_t>(kMinSupportedFileFormatVersion);
  auto newest = static_cast<std::int64_t>(kMaxSupportedFileFormatVersion);
  if (version < oldest)
    archive.fail(record.name, "the archive has version " + std::to_string(version) +
                                  " of the format, older than the oldest that is read, " +
                                  std::to_string(oldest) +
                                  "; load and save it with a newer PyTorch");
  if (version > newest)
    archive.fail(record.name, "the archive has version " + std::to_string(version) +
                                  " of the format, newer than the newest that is read, " +
                                  std::to_string(newest) +
                                  "; save it with an older PyTorch, or use a newer release of "
                                  "this package");
  return version;
}

} // namespace

PyTorchStreamReader::PyTorchStreamReader(const std::string &file_name)
    : ar_(std::make_unique<mz_zip_archive>()),
      in_(torch_mlir::torchscript::adapter(Archive::open(file_name))) {
  init();
}

PyTorchStreamReader::PyTorchStreamReader(std::istream *in)
    : ar_(std::make_unique<mz_zip_archive>()), in_(std::make_shared<IStreamAdapter>(in)) {
  init();
}

PyTorchStreamReader::PyTorchStreamReader(std::shared_ptr<ReadAdapterInterface> in)
    : ar_(std::make_unique<mz_zip_archive>()), in_(std::move(in)) {
  init();
}

PyTorchStreamReader::~PyTorchStreamReader() = default;

void PyTorchStreamReader::init() {
  ar_->archive = archiveOf(in_);
  const Archive &archive = *ar_->archive;
  archive_name_ = archive.folder();
  archive_name_plus_slash_ = archive_name_ + "/";

  // The newer name takes precedence, as in PyTorch.
  const Archive::Record *version = archive.find(".data/version");
  version_ = parseVersion(archive, version ? *version : archive.get("version"));
  if (const Archive::Record *order = archive.find("byteorder"))
    if (order->size != 6 || archive.copy(*order) != "little")
      archive.fail(order->name, "the archive's tensors aren't little-endian; save it on a "
                                "little-endian machine");
  ar_->sources.emplace(archive);
}

bool PyTorchStreamReader::hasRecord(const std::string &name) {
  // PyTorch 1.13's reader has no such switch.
  auto hidden = [&](const auto &reader) {
    if constexpr (canHideDebugInfo<std::decay_t<decltype(reader)>>)
      return !reader.load_debug_symbol_ && isDebugInfo(name);
    else
      return false;
  };
  return !hidden(*this) && ar_->archive->find(name);
}

std::vector<std::string> PyTorchStreamReader::getAllRecords() {
  std::vector<std::string> names;
  for (const Archive::Record &record : ar_->archive->records())
    if (hasRecord(record.name))
      names.push_back(record.name);
  return names;
}

std::tuple<at::DataPtr, size_t> PyTorchStreamReader::getRecord(const std::string &name) {
  if (isDebugInfo(name) && !hasRecord(name))
    return {at::DataPtr(), 0};
  const Archive &archive = *ar_->archive;
  const Archive::Record &record = archive.get(name);
  // Folders of tensors are named after pickles, and tensors by number.
  if (!isDebugInfo(name) && !endsWith(name, ".pkl") && !endsWith(name, ".py"))
    return {archive.share(record), record.size};
  std::string text = archive.copy(record);
  if (isDebugInfo(name))
    torch_mlir::torchscript::checkDebugInfo(archive, record, text);
  else if (endsWith(name, ".pkl"))
    text = torch_mlir::torchscript::checkPickle(archive, record, text, *ar_->sources);
  std::size_t size = text.size();
  return {own(std::move(text)), size};
}

size_t PyTorchStreamReader::getRecordOffset(const std::string &name) {
  const Archive::Record &record = ar_->archive->get(name);
  if (record.deflated)
    ar_->archive->fail(name, "it is compressed, so its bytes lie nowhere in the file");
  return record.offset;
}

} // namespace serialize
} // namespace caffe2
