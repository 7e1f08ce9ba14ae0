// Writing files so that a reader, a crash or a full disk sees the old content or the new one, never
// a mixture: bytes go to "<path>.tmp" in the same folder, which is synced and renamed at the end.
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
// previous file stays as it was. The temporary is locked: a second writer of the same path is
// refused. A temporary left by a process that died is overwritten. If `path` is a symbolic link,
// the link itself is replaced. Not for several threads at once.
//
//   THIMBLE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
//   THIMBLE_TRY(file.Write(bytes));
//   THIMBLE_TRY(file.Commit());
class AtomicFile {
 public:
  // Opens the temporary. `path` must name nothing yet or a regular file.
  static Result<AtomicFile> Create(const std::string& path);

  AtomicFile(AtomicFile&&) noexcept;
  // Without Commit, removes the temporary.
  ~AtomicFile();

  // Appends. After an error the temporary is gone and every further call fails.
  Result<void> Write(std::span<const std::byte> bytes);

  // Replaces bytes that were written before, from `offset` on. Requires that all of them were.
  Result<void> Overwrite(int64_t offset, std::span<const std::byte> bytes);

  // Syncs, renames, syncs the folder. The last call; afterwards the object holds no file.
  Result<void> Commit();

 private:
  struct OpenFile;
  AtomicFile(std::string path, std::unique_ptr<OpenFile> file);

  std::string path_;
  std::unique_ptr<OpenFile> file_;  // null after Commit or a failed call
};

// Create, Write and Commit in one.
Result<void> WriteFileAtomically(const std::string& path, std::string_view content);

// Gives the file another name in the same folder, in place of what has that name; lasting.
Result<void> RenameFile(const std::string& from, const std::string& to);

// Puts the complete file `next` in place of `path` and keeps what was there as `previous`, in the
// same folder. Whenever the program dies, `path` is the old file or the new one. On a file system
// without hard links nothing is kept as `previous`.
Result<void> ReplaceFile(const std::string& next, const std::string& path,
                         const std::string& previous);

// Makes the folder and its parents where they are missing. kBadInput, with path and reason, where
// that is impossible or files could not be created in it.
Result<void> MakeFolder(const std::string& path);

}  // namespace thimble
