// RunFolder: the files of one run. Everything but metrics.jsonl is replaced atomically.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "thimble/base/result.h"
#include "thimble/train/config.h"

namespace thimble {

// Where a run has its checkpoint.
inline std::string CheckpointFolder(const std::string& run_folder) {
  return run_folder + "/checkpoint";
}

// The settings of the run in this folder. A model file is the run's own copy: the original may have
// changed since, or moved.
Result<void> ReadRunConfig(const std::string& run_folder, TrainConfig& config);

class RunFolder {
 public:
  // Makes the folder. Refuses one that holds a run already unless `config.resume`, and then refuses
  // a run whose results other settings decided (model files count by what is in them, see
  // KeepModelFile). An empty config.out takes a free name below runs/.
  static Result<RunFolder> Open(const TrainConfig& config);
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&& other) noexcept;
  ~RunFolder();

  const std::string& path() const { return path_; }
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string checkpoint_folder() const { return CheckpointFolder(path_); }

  Result<void> Write(std::string_view name, std::string_view content) const;
  // Keeps the text of the run's model file. An error where the run was started with another one.
  Result<void> KeepModelFile(const std::string& path, const std::string& text) const;

  // Starts metrics.jsonl at this length: 0, or what it had at the checkpoint that is continued.
  Result<void> StartMetrics(int64_t size_bytes);
  Result<void> AppendMetrics(std::string line);  // without the newline
  int64_t metrics_bytes() const { return metrics_bytes_; }

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
  int metrics_file_ = -1;
  int64_t metrics_bytes_ = 0;
};

}  // namespace thimble
