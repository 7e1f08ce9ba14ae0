#include "thimble/train/weights/safetensors_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "thimble/base/crc64.h"
#include "thimble/base/quote_name.h"
#include "thimble/base/sealed_text.h"

namespace thimble {
namespace {

// The header's length, checked against the size of the file.
Result<int64_t> ReadHeaderLength(const FileReader& file) {
  const int64_t after_prefix = file.size_bytes() - kSafetensorsPrefixBytes;
  if (after_prefix < 0) {
    return BadInput(fmt::format("byte 0: expected the header's length in {} bytes, the file has {}",
                                kSafetensorsPrefixBytes, file.size_bytes()));
  }
  uint64_t length = 0;
  THIMBLE_TRY(file.ReadAt(0, std::as_writable_bytes(std::span(&length, 1))));
  // The shortest JSON object has two bytes.
  const int64_t limit = std::min(after_prefix, kSafetensorsMaxHeaderBytes);
  if (length < 2 || length > static_cast<uint64_t>(limit)) {
    return BadInput(
        fmt::format("byte 0: expected a header length from 2 to {}, found {}: damaged, or "
                    "not a safetensors file",
                    limit, length));
  }
  return static_cast<int64_t>(length);
}

// The checksum of the whole file, with its seal, at byte `seal`, replaced by zeros. `beginning`
// contains the file up to the end of its header.
Result<uint64_t> ChecksumOf(const FileReader& file, std::string_view beginning, size_t seal) {
  // Large enough to make the cost of system calls negligible, small compared to any arena.
  constexpr int64_t kPieceBytes = 64 << 10;
  Crc64 checksum;
  checksum.Append(beginning.substr(0, seal));
  checksum.Append(kOpenSeal);
  checksum.Append(beginning.substr(seal + kOpenSeal.size()));
  std::vector<std::byte> buffer(kPieceBytes);
  for (auto at = static_cast<int64_t>(beginning.size()); at < file.size_bytes();) {
    const auto piece = std::min(kPieceBytes, file.size_bytes() - at);
    const auto bytes = std::span(buffer).first(static_cast<size_t>(piece));
    THIMBLE_TRY(file.ReadAt(at, bytes));
    checksum.Append(bytes);
    at += piece;
  }
  return checksum.value();
}

// Compares the checksum of the file with `said`, the one in its metadata.
Result<void> CheckChecksum(const FileReader& file, std::string_view beginning,
                           std::string_view said) {
  const size_t seal = FindSafetensorsSeal(beginning);
  const bool there = seal != beginning.npos && beginning.substr(seal).starts_with(said) &&
                     said.size() == kOpenSeal.size();
  THIMBLE_ASSIGN_OR_RETURN(const uint64_t checksum,
                           there ? ChecksumOf(file, beginning, seal) : Result(uint64_t{0}));
  if (there && said == FormatSeal(checksum)) return {};
  return BadInput(fmt::format(
      "{}: is damaged, or another program changed it: its checksum is {}, it records {}",
      file.path(), there ? FormatSeal(checksum) : "not where it should be",
      QuoteName(std::string(said))));
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::string path, FileReader file, int64_t data_start,
                                     SafetensorsHeader header)
    : path_(std::move(path)),
      file_(std::move(file)),
      data_start_(data_start),
      header_(std::move(header)),
      by_name_(header_.tensors.size()) {
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::ranges::sort(by_name_, {},
                    [&](size_t i) -> const std::string& { return tensors()[i].name; });
}

Result<SafetensorsReader> SafetensorsReader::Open(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  const Result<int64_t> length = ReadHeaderLength(file);
  if (!length.ok()) return WithContext(path, length.error());
  const int64_t data_start = kSafetensorsPrefixBytes + *length;
  std::string beginning(static_cast<size_t>(data_start), '\0');
  THIMBLE_TRY(file.ReadAt(0, std::as_writable_bytes(std::span(beginning))));
  Result<SafetensorsHeader> header = ParseSafetensorsHeader(
      std::string_view(beginning).substr(kSafetensorsPrefixBytes), file.size_bytes() - data_start);
  if (!header.ok()) return WithContext(path, header.error());
  if (const auto said = header->metadata.find(std::string(kChecksumKey));
      said != header->metadata.end()) {
    THIMBLE_TRY(CheckChecksum(file, beginning, said->second));
    header->metadata.erase(said);
  }
  return SafetensorsReader(path, std::move(file), data_start, std::move(header).value());
}

const TensorEntry* SafetensorsReader::Find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(
      by_name_, name, {}, [&](size_t i) -> std::string_view { return tensors()[i].name; });
  if (found == by_name_.end() || tensors()[*found].name != name) return nullptr;
  return &tensors()[*found];
}

Result<void> SafetensorsReader::Read(const TensorEntry& entry, std::span<std::byte> out) const {
  THIMBLE_CHECK(static_cast<int64_t>(out.size()) == entry.end - entry.begin,
                "{} bytes requested from tensor {}, which has {}", out.size(), entry.name,
                entry.end - entry.begin);
  return Read(entry, 0, out);
}

Result<void> SafetensorsReader::Read(const TensorEntry& entry, int64_t byte_offset,
                                     std::span<std::byte> out) const {
  const int64_t size_bytes = entry.end - entry.begin;
  THIMBLE_CHECK(byte_offset >= 0 && byte_offset <= size_bytes &&
                    static_cast<int64_t>(out.size()) <= size_bytes - byte_offset,
                "at offset {}, {} bytes requested from tensor {}, which has {}", byte_offset,
                out.size(), entry.name, size_bytes);
  const int64_t place = data_start_ + entry.begin + byte_offset;
  if (!entry.dtype) {
    return BadInput(
        fmt::format("{}: byte {}: tensor {} has type {}; expected F32, F16, BF16, U8 or I32", path_,
                    place, QuoteName(entry.name), QuoteName(entry.dtype_name)));
  }
  if (out.empty()) return {};
  return file_.ReadAt(place, out);
}

}  // namespace thimble
