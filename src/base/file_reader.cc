#include "thimble/base/file_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace thimble {
namespace {

// The system's message for an errno value.
std::string SystemReason(int error_number) { return std::generic_category().message(error_number); }

int64_t ModifiedNs(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

Result<FileReader> FileReader::Open(std::string path) {
  // Without O_NONBLOCK the open itself would hang on a pipe without a writer; regular files ignore
  // the flag.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return BadInput(fmt::format("{}: cannot open: {}", path, SystemReason(errno)));
  }
  FileReader reader(std::move(path), descriptor);
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) {
    return Failed(fmt::format("{}: cannot get the size: {}", reader.path_, SystemReason(errno)));
  }
  if (S_ISDIR(status.st_mode)) {
    return BadInput(fmt::format("{}: is a folder, expected a file", reader.path_));
  }
  if (!S_ISREG(status.st_mode)) {
    return BadInput(fmt::format("{}: is not a regular file", reader.path_));
  }
  reader.size_bytes_ = status.st_size;
  reader.modified_ns_ = ModifiedNs(status);
  return reader;
}

FileReader::FileReader(FileReader&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      modified_ns_(std::exchange(other.modified_ns_, 0)) {}

FileReader& FileReader::operator=(FileReader&& other) noexcept {
  if (this == &other) return *this;
  Close();
  path_ = std::move(other.path_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  modified_ns_ = std::exchange(other.modified_ns_, 0);
  return *this;
}

FileReader::~FileReader() { Close(); }

void FileReader::Close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Result<void> FileReader::ReadAt(int64_t offset, std::span<std::byte> bytes) const {
  const auto expected = static_cast<int64_t>(bytes.size());
  if (offset < 0) {
    return BadInput(fmt::format("{}: cannot read {} bytes at offset {}", path_, expected, offset));
  }
  // Checked against the size, so that a bad offset costs no read; the subtraction cannot overflow.
  if (offset > size_bytes_ || expected > size_bytes_ - offset) {
    return ShortFile(offset, bytes.size(), std::max<int64_t>(size_bytes_ - offset, 0));
  }
  for (size_t got = 0; got < bytes.size();) {
    const ssize_t part = ::pread(descriptor_, bytes.data() + got, bytes.size() - got,
                                 static_cast<off_t>(offset + static_cast<int64_t>(got)));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) {
      return Failed(fmt::format("{}: cannot read {} bytes at offset {}: {}", path_, expected,
                                offset, SystemReason(errno)));
    }
    // The file has become shorter since it was opened.
    if (part == 0) return ShortFile(offset, bytes.size(), static_cast<int64_t>(got));
    got += static_cast<size_t>(part);
  }
  return {};
}

Result<void> FileReader::CheckUnchanged() const {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) {
    return Failed(fmt::format("{}: cannot get the size: {}", path_, SystemReason(errno)));
  }
  if (status.st_size != size_bytes_) {
    return BadInput(fmt::format("{}: has changed since it was opened: it has {} bytes, had {}",
                                path_, int64_t{status.st_size}, size_bytes_));
  }
  if (ModifiedNs(status) != modified_ns_) {
    return BadInput(fmt::format("{}: was written to after it was opened", path_));
  }
  return {};
}

Error FileReader::ShortFile(int64_t offset, size_t expected, int64_t got) const {
  return BadInput(fmt::format("{}: file ends early: expected {} bytes at offset {}, got {}", path_,
                              expected, offset, got));
}

Result<std::string> ReadWholeFile(const std::string& path, int64_t max_bytes) {
  THIMBLE_ASSIGN_OR_RETURN(const FileReader reader, FileReader::Open(path));
  if (reader.size_bytes() > max_bytes) {
    return BadInput(
        fmt::format("{}: has {} bytes, expected at most {}", path, reader.size_bytes(), max_bytes));
  }
  std::string content(static_cast<size_t>(reader.size_bytes()), '\0');
  THIMBLE_TRY(reader.ReadAt(0, std::as_writable_bytes(std::span(content))));
  return content;
}

}  // namespace thimble
