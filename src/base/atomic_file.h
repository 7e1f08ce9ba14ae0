// Writes files so that after a crash or a full disk, and for any reader, the file has its old or
// its new content, never a mixture: bytes go to "<path>.tmp" in the same folder, which is synced
// and renamed at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "thimble/base/result.h"

namespace thimble {

// One file being written. Errors are kFailed and name the path and the system's reason; the
// previous file stays as it was. The temporary file is locked: a second writer of the same path
// fails. A temporary file left by a dead process is overwritten. If `path` is a symbolic link, the
// link itself is replaced. Not thread-safe.
//
//   THIMBLE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
//   THIMBLE_TRY(file.Write(bytes));
//   THIMBLE_TRY(file.Commit());
class AtomicFile {
 public:
  // Opens the temporary file. `path` must not exist, or must be a regular file.
  static Result<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&&) noexcept;
  // Removes the temporary file unless Commit was called.
  ~AtomicFile();

  // Appends. After an error the temporary file is removed and every further call fails.
  Result<void> Write(std::span<const std::byte> bytes);

  // Replaces bytes starting at `offset`. All of them must have been written before.
  Result<void> Overwrite(int64_t offset, std::span<const std::byte> bytes);

  // Syncs, renames, syncs the folder. Must be the last call; afterwards the object holds no file.
  Result<void> Commit();

 private:
  struct OpenFile;
  AtomicFile(std::string path, std::unique_ptr<OpenFile> file);

  std::string path_;
  std::unique_ptr<OpenFile> file_;  // null after Commit or a failed call
};

// Create, Write and Commit in one call.
Result<void> WriteFileAtomically(const std::string& path, std::string_view content);

// Renames a file within its folder, replacing any file of that name, and syncs the folder.
Result<void> RenameFile(const std::string& from, const std::string& to);

// Replaces `path` by the complete file `next` and keeps the old file as `previous`, all in one
// folder. If the program dies at any point, `path` is the old file or the new one. On a file system
// without hard links, no `previous` is kept.
Result<void> ReplaceFile(const std::string& next, const std::string& path,
                         const std::string& previous);

// Creates the folder and its parents if missing. kBadInput, with path and reason, if that fails or
// the folder is not writable.
Result<void> MakeFolder(const std::string& path);

}  // namespace thimble
