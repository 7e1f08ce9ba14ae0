#include "thimble/train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "thimble/base/atomic_file.h"
#include "thimble/base/file_reader.h"
#include "thimble/model/model_file.h"
#include "thimble/train/options.h"

namespace thimble {
namespace {

constexpr std::string_view kConfigFile = "config.toml";
constexpr std::string_view kMetricsFile = "metrics.jsonl";
constexpr std::string_view kModelFile = "model.toml";

bool Exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

// Options of a model are separated by what other programs take for something else in a path.
std::string WithoutSeparators(std::string name) {
  for (char& c : name) {
    if (c == ':' || c == ',' || c == '=') c = '-';
  }
  return name;
}

std::string FreeName(const TrainConfig& config) {
  const std::string data = config.data.substr(0, config.data.find(':'));
  const std::string model = WithoutSeparators(ModelName(config.model));
  for (int number = 1;; ++number) {
    std::string path = fmt::format("runs/{}-{}-{}", model, data, number);
    if (!Exists(path)) return path;
  }
}

Result<void> CheckSameRun(const std::string& path, const TrainConfig& config) {
  TrainConfig saved;
  THIMBLE_TRY(ReadConfigFile(path, saved));
  if (IsModelFile(saved.model) && IsModelFile(config.model)) saved.model = config.model;
  if (const std::string difference = FirstDifference(saved, config); !difference.empty()) {
    return BadInput(fmt::format("--resume {}: this run was started with other settings: {}",
                                config.out, difference));
  }
  return {};
}

}  // namespace

Result<void> ReadRunConfig(const std::string& run_folder, TrainConfig& config) {
  THIMBLE_TRY(ReadConfigFile(fmt::format("{}/{}", run_folder, kConfigFile), config));
  if (IsModelFile(config.model)) config.model = fmt::format("{}/{}", run_folder, kModelFile);
  return {};
}

Result<RunFolder> RunFolder::Open(const TrainConfig& config) {
  if (config.out.empty() && config.resume) return BadInput("--resume needs --out FOLDER");
  RunFolder folder(config.out.empty() ? FreeName(config) : config.out);
  if (Exists(folder.File(kConfigFile))) {
    if (!config.resume) {
      return BadInput(
          fmt::format("--out {}: holds a run already; add --resume to continue it, or "
                      "choose another folder",
                      folder.path_));
    }
    THIMBLE_TRY(CheckSameRun(folder.File(kConfigFile), config));
  }
  if (auto made = MakeFolder(folder.path_); !made.ok()) return WithContext("--out", made.error());
  if (access(folder.path_.c_str(), W_OK) != 0) {
    return BadInput(
        fmt::format("--out {}: cannot be written: {}", folder.path_, std::strerror(errno)));
  }
  return folder;
}

RunFolder::RunFolder(RunFolder&& other) noexcept { *this = std::move(other); }

RunFolder& RunFolder::operator=(RunFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(metrics_file_, other.metrics_file_);
  std::swap(metrics_bytes_, other.metrics_bytes_);
  return *this;
}

RunFolder::~RunFolder() {
  if (metrics_file_ >= 0) close(metrics_file_);
}

Result<void> RunFolder::Write(std::string_view name, std::string_view content) const {
  return WriteFileAtomically(File(name), content);
}

Result<void> RunFolder::KeepModelFile(const std::string& path, const std::string& text) const {
  // Nothing decides results before there are settings: a copy without them is left of a start that
  // failed.
  if (Exists(File(kConfigFile))) {
    THIMBLE_ASSIGN_OR_RETURN(const std::string kept,
                             ReadWholeFile(File(kModelFile), kMaxModelFileBytes));
    if (kept == text) return {};
    return BadInput(
        fmt::format("--resume {0}: {1} is not what it was when this run was started; --model {2} "
                    "goes on with the network as it was",
                    path_, path, File(kModelFile)));
  }
  return Write(kModelFile, text);
}

Result<void> RunFolder::StartMetrics(int64_t size_bytes) {
  const std::string path = File(kMetricsFile);
  const auto failed = [&] { return Failed(fmt::format("{}: {}", path, std::strerror(errno))); };
  metrics_file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (metrics_file_ < 0) return failed();
  struct stat info {};
  if (fstat(metrics_file_, &info) != 0) return failed();
  // What came after the checkpoint will be written again; a lost tail (power failure) is left out.
  metrics_bytes_ = std::min<int64_t>(size_bytes, info.st_size);
  if (ftruncate(metrics_file_, metrics_bytes_) != 0) return failed();
  if (lseek(metrics_file_, metrics_bytes_, SEEK_SET) < 0) return failed();
  return {};
}

Result<void> RunFolder::AppendMetrics(std::string line) {
  line += '\n';
  const char* next = line.data();
  size_t left = line.size();
  while (left > 0) {
    const ssize_t written = write(metrics_file_, next, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return Failed(fmt::format("{}: {}", File(kMetricsFile), std::strerror(errno)));
    }
    next += written;
    left -= static_cast<size_t>(written);
  }
  metrics_bytes_ += static_cast<int64_t>(line.size());
  return {};
}

}  // namespace thimble
