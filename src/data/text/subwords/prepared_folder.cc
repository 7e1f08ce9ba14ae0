#include "thimble/data/text/subwords/prepared_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "thimble/base/atomic_file.h"
#include "thimble/base/check.h"

namespace thimble {
namespace {

Error MustStay(const std::string& path, std::string_view what) {
  return BadInput(fmt::format("{}: {}; --overwrite replaces it", path, what));
}

Result<void> RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return Failed(
      fmt::format("{}: cannot be removed: {}", path, std::generic_category().message(errno)));
}

}  // namespace

Result<PreparedFolder> PreparedFolder::Open(const std::string& path, bool overwrite) {
  THIMBLE_TRY(MakeFolder(path));
  return PreparedFolder(path, overwrite);
}

Result<PreparedFile> PreparedFolder::Create(const std::string& name) const {
  return PreparedFile::Create(PathOf(name));
}

Result<void> PreparedFolder::Keep(PreparedFile file) {
  if (file.earlier() == EarlierFile::kDiffers && !overwrite_) {
    return MustStay(file.path(), "there is already a file with other content");
  }
  files_.push_back(std::move(file));
  return {};
}

Result<void> PreparedFolder::Add(const std::string& name, std::string_view content) {
  THIMBLE_ASSIGN_OR_RETURN(PreparedFile file, Create(name));
  THIMBLE_TRY(file.Write(content));
  return Keep(std::move(file));
}

Result<void> PreparedFolder::LeaveOut(const std::string& name) {
  std::error_code ignored;
  if (!std::filesystem::exists(PathOf(name), ignored)) return {};
  if (!overwrite_) return MustStay(PathOf(name), "does not belong to this text");
  left_out_.push_back(PathOf(name));
  return {};
}

Result<void> PreparedFolder::Commit() {
  THIMBLE_CHECK(!files_.empty());
  const bool all_there = std::all_of(files_.begin(), files_.end(), [](const PreparedFile& file) {
    return file.earlier() == EarlierFile::kSame;
  });
  if (all_there && left_out_.empty()) return {};
  THIMBLE_TRY(RemoveFile(files_.back().path()));
  for (const std::string& path : left_out_) THIMBLE_TRY(RemoveFile(path));
  for (PreparedFile& file : files_) THIMBLE_TRY(file.Commit());
  return {};
}

}  // namespace thimble
