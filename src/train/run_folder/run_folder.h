// RunFolder: the files of one run. The folder is locked while a run uses it; all files except
// metrics.jsonl are replaced atomically.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/train/options/config.h"

namespace thimble {

// The folder of a run's checkpoint.
inline std::string CheckpointFolder(const std::string& run_folder) {
  return run_folder + "/checkpoint";
}

// The file of the weights of one epoch, from 1.
std::string EpochWeightsName(int64_t epoch);

// Reads the configuration of the run in this folder. A model file is the run's own copy, because
// the original may have been changed or moved. kBadInput if either is damaged.
Result<void> ReadRunConfig(const std::string& run_folder, TrainConfig& config);

class RunFolder {
 public:
  // Creates and locks the folder; if config.out is empty, a new one in runs/. kFailed if it is in
  // use. kBadInput if it contains a run and neither --resume nor --overwrite is set, or if a run
  // without a checkpoint is resumed with different settings. (The settings of a run with a
  // checkpoint are checked against that, not here.)
  static Result<RunFolder> Open(const TrainConfig& config);
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&& other) noexcept;
  // Unlocks the folder. Removes folders that Open created if they are still empty.
  ~RunFolder();

  const std::string& path() const { return path_; }
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string checkpoint_folder() const { return CheckpointFolder(path_); }

  // kFailed if the folder was deleted or moved since it was opened.
  Result<void> CheckStillThere() const;

  Result<void> Write(std::string_view name, std::string_view content) const;
  // kBadInput if the run was started with a model file whose text differs from this one.
  Result<void> CheckModelFile(const std::string& path, const std::string& text) const;
  // Stores the text of the run's model file, sealed.
  Result<void> KeepModelFile(const std::string& text) const;
  // Does nothing if there is no such file.
  Result<void> Remove(std::string_view name) const;
  // Removes the files of the previous run, and nothing else.
  Result<void> Clear() const;

 private:
  RunFolder() = default;
  Result<void> Make(const TrainConfig& config);
  Result<void> Lock();
  Result<void> CheckRun(const TrainConfig& config) const;

  std::string path_;
  int descriptor_ = -1;            // of the folder; locked
  std::vector<std::string> made_;  // folders created by Open, the deepest first
};

}  // namespace thimble
