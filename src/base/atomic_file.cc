#include "thimble/base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace thimble {
namespace {

// Large enough that system calls do not matter, small against any arena.
constexpr size_t kBufferBytes = 64 * 1024;

// An attempt fails only if another writer finishes at the same moment.
constexpr int kOpenAttempts = 16;

std::string Reason(int error_number) { return std::generic_category().message(error_number); }

Error CannotWrite(const std::string& path, std::string_view action, int error_number) {
  return Failed(fmt::format("{}: cannot {}: {}", path, action, Reason(error_number)));
}

// A rename must never replace a device or folder.
Result<void> CheckReplaceable(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return {};
  return Failed(path + ": cannot write: exists and is not a regular file");
}

bool SameFile(int fd, const std::string& path) {
  struct stat opened = {};
  struct stat named = {};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Folders that cannot be synced (some network file systems) return EINVAL; the rename is still
// valid.
Result<void> SyncFolderOf(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? std::string(".") : parent.string();
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return CannotWrite(folder, "open the folder to sync it", errno);
  const int code = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (code != 0 && code != EINVAL && code != ENOTSUP) return CannotWrite(folder, "sync", code);
  return {};
}

}  // namespace

// The locked temporary file and the bytes not yet written to it. Removes the file unless it was
// renamed.
struct AtomicFile::OpenFile {
  int fd = -1;
  std::string temporary_path;
  bool renamed = false;
  size_t buffered = 0;
  std::array<std::byte, kBufferBytes> buffer;

  ~OpenFile() {
    if (fd < 0) return;
    if (!renamed) ::unlink(temporary_path.c_str());
    ::close(fd);  // releases the lock, so it comes last
  }

  // Opens and locks the temporary file, then truncates it.
  Result<void> Open() {
    // Another writer may have renamed the file just opened. It must then not be truncated; the next
    // attempt opens a new one.
    for (int attempt = 0; attempt < kOpenAttempts && fd < 0; ++attempt) THIMBLE_TRY(TryOpen());
    if (fd < 0)
      return Failed(temporary_path + ": cannot write: another program keeps replacing it");
    if (::ftruncate(fd, 0) != 0) return CannotWrite(temporary_path, "empty", errno);
    return {};
  }

  // Leaves fd < 0 if the opened file was renamed in the meantime.
  Result<void> TryOpen() {
    const int opened = ::open(temporary_path.c_str(),
                              O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (opened < 0) return CannotWrite(temporary_path, "create", errno);
    // File systems without locks return another error: then the file is written without a lock.
    if (::flock(opened, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(opened);
      return Failed(temporary_path + ": cannot write: another run is writing this file");
    }
    if (SameFile(opened, temporary_path)) {
      fd = opened;
    } else {
      ::close(opened);
    }
    return {};
  }

  // Returns the errno value, 0 on success.
  int WriteThrough(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno;
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return 0;
  }

  int WriteAt(int64_t offset, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), offset);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno;
      bytes = bytes.subspan(static_cast<size_t>(written));
      offset += written;
    }
    return 0;
  }

  int Flush() { return WriteThrough({buffer.data(), std::exchange(buffered, 0)}); }

  int Append(std::span<const std::byte> bytes) {
    if (bytes.size() > buffer.size() - buffered) {
      if (const int code = Flush(); code != 0) return code;
      if (bytes.size() >= buffer.size()) return WriteThrough(bytes);
    }
    if (!bytes.empty()) std::memcpy(buffer.data() + buffered, bytes.data(), bytes.size());
    buffered += bytes.size();
    return 0;
  }
};

AtomicFile::AtomicFile(std::string path, std::unique_ptr<OpenFile> file)
    : path_(std::move(path)), file_(std::move(file)) {}
AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;
AtomicFile::~AtomicFile() = default;

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  THIMBLE_TRY(CheckReplaceable(path));
  std::unique_ptr<OpenFile> file(new OpenFile);  // make_unique would zero the buffer
  file->temporary_path = path + ".tmp";
  THIMBLE_TRY(file->Open());
  return AtomicFile(path, std::move(file));
}

Result<void> AtomicFile::Write(std::span<const std::byte> bytes) {
  if (!file_)
    return Failed(path_ + ": cannot write: already committed, or an earlier write failed");
  if (const int code = file_->Append(bytes); code != 0) {
    file_.reset();
    return CannotWrite(path_, "write", code);
  }
  return {};
}

Result<void> AtomicFile::Overwrite(int64_t offset, std::span<const std::byte> bytes) {
  if (!file_)
    return Failed(path_ + ": cannot write: already committed, or an earlier write failed");
  int code = file_->Flush();
  if (code == 0) code = file_->WriteAt(offset, bytes);
  if (code == 0) return {};
  file_.reset();
  return CannotWrite(path_, "write", code);
}

Result<void> AtomicFile::Commit() {
  if (!file_)
    return Failed(path_ + ": cannot commit: already committed, or an earlier write failed");
  const std::unique_ptr<OpenFile> file = std::move(file_);
  if (const int code = file->Flush(); code != 0) return CannotWrite(path_, "write", code);
  if (::fsync(file->fd) != 0) return CannotWrite(path_, "sync", errno);
  if (::rename(file->temporary_path.c_str(), path_.c_str()) != 0) {
    return CannotWrite(path_, "replace", errno);
  }
  file->renamed = true;
  return SyncFolderOf(path_);
}

Result<void> WriteFileAtomically(const std::string& path, std::string_view content) {
  THIMBLE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  THIMBLE_TRY(file.Write(std::as_bytes(std::span(content))));
  return file.Commit();
}

Result<void> RenameFile(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return CannotWrite(to, "replace", errno);
  return SyncFolderOf(to);
}

Result<void> ReplaceFile(const std::string& next, const std::string& path,
                         const std::string& previous) {
  // Link the old file to a second name, then atomically rename that link to `previous`.
  const std::string link = previous + ".tmp";
  ::unlink(link.c_str());
  if (::link(path.c_str(), link.c_str()) == 0 && ::rename(link.c_str(), previous.c_str()) != 0) {
    return CannotWrite(previous, "replace", errno);
  }
  return RenameFile(next, path);
}

Result<void> MakeFolder(const std::string& path) {
  const auto wrong = [&](const std::string& reason) {
    return BadInput(fmt::format("folder '{}': cannot be used: {}", path, reason));
  };
  if (path.empty()) return wrong("the name is empty");
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) return wrong(code.message());
  if (!std::filesystem::is_directory(path, code)) return wrong(Reason(ENOTDIR));
  if (::access(path.c_str(), W_OK | X_OK) != 0) return wrong(Reason(errno));
  return {};
}

}  // namespace thimble
