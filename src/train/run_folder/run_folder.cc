#include "thimble/train/run_folder/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "thimble/base/atomic_file.h"
#include "thimble/base/file_reader.h"
#include "thimble/base/sealed_text.h"
#include "thimble/model/model_file.h"
#include "thimble/train/options/options.h"
#include "thimble/train/run_folder/checkpoint.h"

namespace thimble {
namespace {

constexpr std::string_view kConfigFile = "config.toml";
constexpr std::string_view kModelFile = "model.toml";

bool Exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

// Replaces the separators of model options, which have other meanings in paths.
std::string WithoutSeparators(std::string name) {
  for (char& c : name) {
    if (c == ':' || c == ',' || c == '=') c = '-';
  }
  return name;
}

std::string NumberedName(const TrainConfig& config, int number) {
  const std::string data = config.data.substr(0, config.data.find(':'));
  return fmt::format("runs/{}-{}-{}", WithoutSeparators(ModelName(config.model)), data, number);
}

// Creates the folder and its parents. `made` gets those that were missing, the deepest first.
Result<void> MakeMissing(const std::string& path, std::vector<std::string>& made) {
  std::vector<std::string> missing;
  for (std::filesystem::path folder = path; !folder.empty() && !Exists(folder);
       folder = folder.parent_path()) {
    missing.push_back(folder);
    if (folder == folder.parent_path()) break;
  }
  if (auto result = MakeFolder(path); !result.ok()) return WithContext("--out", result.error());
  made = std::move(missing);
  return {};
}

// Checks that a sealed file has not changed since it was written.
Result<void> CheckSealOf(const std::string& path, int64_t max_bytes) {
  const auto text = ReadSealedFile(path, max_bytes);
  if (!text.ok()) return text.error();
  return {};
}

Result<void> CheckSameRun(const std::string& path, const TrainConfig& config) {
  TrainConfig saved;
  THIMBLE_TRY(ReadConfigFile(path, saved));
  if (IsModelFile(saved.model) && IsModelFile(config.model)) saved.model = config.model;
  if (const std::string difference = FirstDifference(saved, config); !difference.empty()) {
    return BadInput(fmt::format("--resume {}: this run was started with different settings: {}",
                                config.out, difference));
  }
  return {};
}

constexpr std::string_view kEpochPrefix = "epoch-";
constexpr std::string_view kWeightsSuffix = ".safetensors";

// Whether this is a name of EpochWeightsName, or the same with ".sparse".
bool IsEpochWeights(std::string_view name) {
  if (!name.starts_with(kEpochPrefix) || !name.ends_with(kWeightsSuffix)) return false;
  name.remove_prefix(kEpochPrefix.size());
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  const std::string_view rest = name.substr(digits);
  return digits > 0 && (rest == kWeightsSuffix || rest == ".sparse.safetensors");
}

// Names in a folder, all found before any file is removed.
std::vector<std::string> EpochWeightsIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename();
    if (IsEpochWeights(name)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

std::string EpochWeightsName(int64_t epoch) {
  return fmt::format("{}{}{}", kEpochPrefix, epoch, kWeightsSuffix);
}

Result<void> ReadRunConfig(const std::string& run_folder, TrainConfig& config) {
  const std::string path = fmt::format("{}/{}", run_folder, kConfigFile);
  THIMBLE_TRY(CheckSealOf(path, kMaxConfigBytes));
  THIMBLE_TRY(ReadConfigFile(path, config));
  if (!IsModelFile(config.model)) return {};
  config.model = fmt::format("{}/{}", run_folder, kModelFile);
  return CheckSealOf(config.model, kMaxModelFileBytes);
}

Result<RunFolder> RunFolder::Open(const TrainConfig& config) {
  if (config.out.empty() && config.resume) return BadInput("--resume requires --out FOLDER");
  RunFolder folder;
  THIMBLE_TRY(folder.Make(config));
  THIMBLE_TRY(folder.Lock());
  THIMBLE_TRY(folder.CheckRun(config));
  return folder;
}

Result<void> RunFolder::Make(const TrainConfig& config) {
  path_ = config.out;
  if (!config.out.empty()) return MakeMissing(path_, made_);
  THIMBLE_TRY(MakeMissing("runs", made_));
  // Several programs may search for a free name at once: mkdir succeeds for only one of them.
  for (int number = 1;; ++number) {
    path_ = NumberedName(config, number);
    if (mkdir(path_.c_str(), 0777) == 0) break;
    if (errno == EEXIST) continue;
    return BadInput(fmt::format("--out {}: cannot be created: {}", path_, std::strerror(errno)));
  }
  made_.insert(made_.begin(), path_);
  return {};
}

Result<void> RunFolder::Lock() {
  descriptor_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) {
    return BadInput(fmt::format("--out {}: cannot be opened: {}", path_, std::strerror(errno)));
  }
  // File systems without locks return other errors: the run then continues without a lock.
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
  return Failed(fmt::format("--out {}: another process is using this run folder", path_));
}

Result<void> RunFolder::CheckRun(const TrainConfig& config) const {
  const bool configured = Exists(File(kConfigFile));
  const bool begun = Exists(CheckpointPath(checkpoint_folder()));
  if (!configured && !begun) return {};
  if (!config.resume && !config.overwrite) {
    return BadInput(
        fmt::format("--out {}: already contains a run; add --resume to continue it or --overwrite "
                    "to replace it, or choose another folder",
                    path_));
  }
  if (!config.resume || !configured) return {};
  THIMBLE_TRY(CheckSealOf(File(kConfigFile), kMaxConfigBytes));
  return begun ? Result<void>() : CheckSameRun(File(kConfigFile), config);
}

RunFolder::RunFolder(RunFolder&& other) noexcept { *this = std::move(other); }

RunFolder& RunFolder::operator=(RunFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(made_, other.made_);
  return *this;
}

RunFolder::~RunFolder() {
  // Fails, as intended, for folders that are not empty.
  for (const std::string& folder : made_) rmdir(folder.c_str());
  if (descriptor_ >= 0) close(descriptor_);
}

Result<void> RunFolder::CheckStillThere() const {
  struct stat opened {};
  struct stat named {};
  if (fstat(descriptor_, &opened) == 0 && stat(path_.c_str(), &named) == 0 &&
      opened.st_dev == named.st_dev && opened.st_ino == named.st_ino) {
    return {};
  }
  return Failed(
      fmt::format("{}: the run folder was deleted or moved while the run used it", path_));
}

Result<void> RunFolder::Write(std::string_view name, std::string_view content) const {
  THIMBLE_TRY(CheckStillThere());
  return WriteFileAtomically(File(name), content);
}

Result<void> RunFolder::CheckModelFile(const std::string& path, const std::string& text) const {
  // A model file without config.toml is left over from a start that failed.
  if (!Exists(File(kConfigFile))) return {};
  THIMBLE_ASSIGN_OR_RETURN(const std::string kept,
                           ReadSealedFile(File(kModelFile), kMaxModelFileBytes));
  if (WithoutSeal(kept) == WithoutSeal(SealToml(text))) return {};
  return BadInput(
      fmt::format("--resume {0}: {1} has changed since this run was started; to continue with the "
                  "original network, use --model {2}",
                  path_, path, File(kModelFile)));
}

Result<void> RunFolder::KeepModelFile(const std::string& text) const {
  return Write(kModelFile, SealToml(text));
}

Result<void> RunFolder::Remove(std::string_view name) const {
  if (unlink(File(name).c_str()) == 0 || errno == ENOENT) return {};
  return Failed(fmt::format("{}: cannot be removed: {}", File(name), std::strerror(errno)));
}

Result<void> RunFolder::Clear() const {
  THIMBLE_TRY(CheckStillThere());
  // The checkpoint goes first: after an interruption, no run is continued from the remaining files.
  for (const char* name :
       {"checkpoint/state.safetensors", "checkpoint/previous.safetensors",
        "checkpoint/next.safetensors", "config.toml", "model.toml", "plan.json", "metrics.jsonl",
        "summary.json", "weights.safetensors", "weights.sparse.safetensors", "best.safetensors",
        "best.sparse.safetensors", "report.html", "dict.source.txt", "dict.target.txt",
        "bpe.codes"}) {
    THIMBLE_TRY(Remove(name));
  }
  for (const std::string& name : EpochWeightsIn(path_)) THIMBLE_TRY(Remove(name));
  return {};
}

}  // namespace thimble
