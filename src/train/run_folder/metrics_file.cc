#include "thimble/train/run_folder/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "thimble/base/file_reader.h"

namespace thimble {
namespace {

// The checksum of the file's first `size_bytes` bytes. Requires that it has that many.
Result<Crc64> ChecksumOf(const FileReader& file, int64_t size_bytes) {
  std::array<std::byte, 16 << 10> buffer;
  Crc64 checksum;
  for (int64_t at = 0; at < size_bytes;) {
    const auto piece = std::min(std::ssize(buffer), size_bytes - at);
    const auto bytes = std::span(buffer).first(static_cast<size_t>(piece));
    THIMBLE_TRY(file.ReadAt(at, bytes));
    checksum.Append(bytes);
    at += piece;
  }
  return checksum;
}

Result<Crc64> CheckLines(const std::string& path, int64_t size_bytes, uint64_t checksum) {
  constexpr const char* kAdvice = "; to continue without these lines, move the file away";
  THIMBLE_ASSIGN_OR_RETURN(const FileReader file, FileReader::Open(path));
  if (file.size_bytes() < size_bytes) {
    return BadInput(fmt::format("{}: is damaged: has {} bytes, the checkpoint records {}{}", path,
                                file.size_bytes(), size_bytes, kAdvice));
  }
  THIMBLE_ASSIGN_OR_RETURN(const Crc64 found, ChecksumOf(file, size_bytes));
  if (found.value() == checksum) return found;
  return BadInput(fmt::format(
      "{}: is damaged or was edited: the checksum of its first {} bytes is not the one that the "
      "checkpoint records{}",
      path, size_bytes, kAdvice));
}

}  // namespace

Result<MetricsFile> MetricsFile::Open(const std::string& path, int64_t size_bytes,
                                      uint64_t checksum) {
  const bool there = access(path.c_str(), F_OK) == 0;
  Crc64 kept;
  if (there && size_bytes > 0) {
    THIMBLE_ASSIGN_OR_RETURN(kept, CheckLines(path, size_bytes, checksum));
  }
  MetricsFile file(path, open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (file.descriptor_ < 0) return file.Failure();
  file.size_bytes_ = there ? size_bytes : 0;
  file.checksum_ = kept;
  if (ftruncate(file.descriptor_, file.size_bytes_) != 0) return file.Failure();
  if (lseek(file.descriptor_, file.size_bytes_, SEEK_SET) < 0) return file.Failure();
  return file;
}

MetricsFile::MetricsFile(MetricsFile&& other) noexcept { *this = std::move(other); }

MetricsFile& MetricsFile::operator=(MetricsFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(checksum_, other.checksum_);
  return *this;
}

MetricsFile::~MetricsFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Error MetricsFile::Failure() const {
  return Failed(fmt::format("{}: {}", path_, std::strerror(errno)));
}

Result<void> MetricsFile::Append(std::string line) {
  line += '\n';
  const char* next = line.data();
  size_t left = line.size();
  while (left > 0) {
    const ssize_t written = write(descriptor_, next, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failure();
    next += written;
    left -= static_cast<size_t>(written);
  }
  size_bytes_ += static_cast<int64_t>(line.size());
  checksum_.Append(line);
  return {};
}

Result<void> MetricsFile::Sync() const {
  // Some special files and file systems do not support fsync: that is not an error.
  if (fsync(descriptor_) == 0 || errno == EINVAL || errno == ENOTSUP) return {};
  return Failure();
}

}  // namespace thimble
