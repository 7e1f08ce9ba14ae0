#include "thimble/train/run_folder/checkpoint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "thimble/base/atomic_file.h"
#include "thimble/base/quote_name.h"
#include "thimble/train/options/command_text.h"

namespace thimble {
namespace {

constexpr const char* kVersionKey = "thimble.checkpoint_version";
constexpr const char* kModelKey = "thimble.model";
constexpr const char* kStepKey = "thimble.step";
constexpr const char* kSimdKey = "thimble.simd_target";
constexpr const char* kSettingsKey = "thimble.settings";
constexpr const char* kProgressKey = "thimble.progress";

TensorMetadata ToMetadata(const CheckpointInfo& info) {
  return {{kVersionKey, std::to_string(kCheckpointVersion)},
          {kModelKey, info.model},
          {kStepKey, std::to_string(info.step)},
          {kSimdKey, info.simd_target},
          {kSettingsKey, info.settings_json},
          {kProgressKey, info.progress_json}};
}

Result<std::string> TextOf(const SafetensorsReader& file, const char* key) {
  const auto found = file.metadata().find(key);
  if (found != file.metadata().end()) return found->second;
  return BadInput(fmt::format("{}: not a checkpoint of Thimble: expected metadata '{}', found none",
                              file.path(), key));
}

Result<int64_t> NumberOf(const SafetensorsReader& file, const char* key) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string text, TextOf(file, key));
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [parsed_end, code] = std::from_chars(text.data(), end, number);
  if (code == std::errc() && parsed_end == end && number >= 0) return number;
  return BadInput(
      fmt::format("{}: expected a number from 0 to 2^63 - 1 for metadata '{}', found {}",
                  file.path(), key, QuoteName(text)));
}

Result<CheckpointInfo> InfoOf(const SafetensorsReader& file) {
  // Checked first, because a newer format may have changed everything else.
  THIMBLE_ASSIGN_OR_RETURN(const int64_t version, NumberOf(file, kVersionKey));
  if (version != kCheckpointVersion) {
    return BadInput(fmt::format(
        "{}: expected a checkpoint of format version {}, found {}: written by {} Thimble",
        file.path(), kCheckpointVersion, version,
        version < kCheckpointVersion ? "an older" : "a newer"));
  }
  CheckpointInfo info;
  info.format_version = static_cast<int>(version);
  THIMBLE_ASSIGN_OR_RETURN(info.model, TextOf(file, kModelKey));
  THIMBLE_ASSIGN_OR_RETURN(info.step, NumberOf(file, kStepKey));
  THIMBLE_ASSIGN_OR_RETURN(info.simd_target, TextOf(file, kSimdKey));
  THIMBLE_ASSIGN_OR_RETURN(info.settings_json, TextOf(file, kSettingsKey));
  THIMBLE_ASSIGN_OR_RETURN(info.progress_json, TextOf(file, kProgressKey));
  return info;
}

struct OpenCheckpoint {
  SafetensorsReader file;
  CheckpointInfo info;
};

Result<OpenCheckpoint> OpenFile(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(SafetensorsReader file, SafetensorsReader::Open(path));
  THIMBLE_ASSIGN_OR_RETURN(CheckpointInfo info, InfoOf(file));
  return OpenCheckpoint{std::move(file), std::move(info)};
}

std::string PreviousPath(const std::string& folder) { return folder + "/previous.safetensors"; }

// Opens the folder's checkpoint. If it is damaged, the error suggests the previous one.
Result<OpenCheckpoint> Open(const std::string& folder) {
  const std::string path = CheckpointPath(folder);
  auto opened = OpenFile(path);
  if (opened.ok() || opened.error().kind != ErrorKind::kBadInput) return opened;
  const auto previous = OpenFile(PreviousPath(folder));
  if (!previous.ok()) return opened;
  return BadInput(fmt::format(
      "{}; the previous checkpoint, of step {}, is intact: to continue from there, run: mv {} {}",
      opened.error().message, previous->info.step, ShellWord(PreviousPath(folder)),
      ShellWord(path)));
}

}  // namespace

std::string CheckpointPath(const std::string& folder) { return folder + "/state.safetensors"; }

Result<void> SaveCheckpoint(const std::string& folder, const CheckpointInfo& info,
                            std::span<const StoredTensor> tensors) {
  THIMBLE_CHECK(info.step >= 0, "step {} is negative", info.step);
  THIMBLE_TRY(MakeFolder(folder));
  const std::string next = folder + "/next.safetensors";
  THIMBLE_TRY(SaveTensors(next, tensors, ToMetadata(info)));
  return ReplaceFile(next, CheckpointPath(folder), PreviousPath(folder));
}

Result<std::optional<int64_t>> ReturnToPreviousCheckpoint(const std::string& folder) {
  const auto previous = OpenFile(PreviousPath(folder));
  if (!previous.ok()) return std::optional<int64_t>();
  THIMBLE_TRY(RenameFile(PreviousPath(folder), CheckpointPath(folder)));
  return std::optional(previous->info.step);
}

Result<std::optional<CheckpointInfo>> ReadCheckpointInfo(const std::string& folder) {
  struct stat status = {};
  if (::stat(CheckpointPath(folder).c_str(), &status) != 0 && errno == ENOENT) {
    return std::optional<CheckpointInfo>();
  }
  THIMBLE_ASSIGN_OR_RETURN(OpenCheckpoint checkpoint, Open(folder));
  return std::optional(std::move(checkpoint.info));
}

Result<CheckpointInfo> LoadCheckpoint(const std::string& folder, const std::string& model,
                                      std::span<const StoredTensor> tensors) {
  THIMBLE_ASSIGN_OR_RETURN(OpenCheckpoint checkpoint, Open(folder));
  const SafetensorsReader& file = checkpoint.file;
  if (checkpoint.info.model != model) {
    return BadInput(fmt::format("{}: expected a checkpoint of model {}, found one of {}",
                                file.path(), QuoteName(model), QuoteName(checkpoint.info.model)));
  }
  THIMBLE_TRY(LoadTensors(file, tensors, LoadRule::kExact));
  return std::move(checkpoint.info);
}

}  // namespace thimble
