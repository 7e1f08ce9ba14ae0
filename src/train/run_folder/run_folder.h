// RunFolder: the files of one run. While a run uses its folder nobody else may; everything but
// metrics.jsonl is replaced atomically.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/train/options/config.h"

namespace thimble {

// Where a run has its checkpoint.
inline std::string CheckpointFolder(const std::string& run_folder) {
  return run_folder + "/checkpoint";
}

// The settings of the run in this folder. A model file is the run's own copy: the original may have
// changed since, or moved. kBadInput where either is damaged.
Result<void> ReadRunConfig(const std::string& run_folder, TrainConfig& config);

class RunFolder {
 public:
  // Makes the folder and locks it. Refuses one that is in use (kFailed), and one that holds a run
  // already unless `config` says --resume or --overwrite. A run that never came to a checkpoint is
  // resumed only with the settings that it was started with; one that did is judged by its
  // checkpoint. An empty config.out takes a free name below runs/.
  static Result<RunFolder> Open(const TrainConfig& config);
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&& other) noexcept;
  // Unlocks the folder. Folders that Open made go again where nothing was put into them.
  ~RunFolder();

  const std::string& path() const { return path_; }
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string checkpoint_folder() const { return CheckpointFolder(path_); }

  // kFailed where the folder is no longer the one that was opened: deleted, or moved away.
  Result<void> CheckStillThere() const;

  Result<void> Write(std::string_view name, std::string_view content) const;
  // An error where the run was started with another model file than this text.
  Result<void> CheckModelFile(const std::string& path, const std::string& text) const;
  // Keeps the text of the run's model file, sealed.
  Result<void> KeepModelFile(const std::string& text) const;
  // Nothing happens where there is no such file.
  Result<void> Remove(std::string_view name) const;
  // Removes the files of the run that was here, and nothing else.
  Result<void> Clear() const;

 private:
  RunFolder() = default;
  Result<void> Make(const TrainConfig& config);
  Result<void> Lock();
  Result<void> CheckRun(const TrainConfig& config) const;

  std::string path_;
  int descriptor_ = -1;            // of the folder; locked
  std::vector<std::string> made_;  // by Open, the deepest first
};

}  // namespace thimble
