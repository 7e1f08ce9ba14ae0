#include "thimble/data/text/subwords/prepared_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <system_error>

namespace thimble {
namespace {

// Whether the file has these bytes at this offset.
Result<bool> HasBytes(const FileReader& file, int64_t offset, std::string_view bytes) {
  std::array<char, 4096> part;  // a page; most lines are shorter
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), part.size());
    if (offset + static_cast<int64_t>(size) > file.size_bytes()) return false;
    THIMBLE_TRY(file.ReadAt(offset, std::as_writable_bytes(std::span(part).first(size))));
    if (std::string_view(part.data(), size) != bytes.substr(0, size)) return false;
    bytes.remove_prefix(size);
    offset += static_cast<int64_t>(size);
  }
  return true;
}

}  // namespace

Result<PreparedFile> PreparedFile::Create(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  PreparedFile made(path, std::move(file));
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    THIMBLE_ASSIGN_OR_RETURN(FileReader earlier, FileReader::Open(path));
    made.earlier_.emplace(std::move(earlier));
  }
  return made;
}

Result<void> PreparedFile::Write(std::string_view bytes) {
  if (earlier_ && !differs_) {
    THIMBLE_ASSIGN_OR_RETURN(const bool same, HasBytes(*earlier_, written_bytes_, bytes));
    differs_ = !same;
  }
  written_bytes_ += static_cast<int64_t>(bytes.size());
  return file_.Write(std::as_bytes(std::span(bytes)));
}

EarlierFile PreparedFile::earlier() const {
  if (!earlier_) return EarlierFile::kNone;
  const bool same = !differs_ && earlier_->size_bytes() == written_bytes_;
  return same ? EarlierFile::kSame : EarlierFile::kDiffers;
}

Result<void> PreparedFile::Commit() { return file_.Commit(); }

}  // namespace thimble
