// Checkpoints: all that a run needs to go on, in one file "state.safetensors" of a folder. Tensors
// are its tensors, everything else its metadata, and a checksum covers all of it. The checkpoint is
// valid until the next one is complete, so a run may be killed at any moment; then it stays as
// "previous.safetensors", for the day when the newer one turns out to be damaged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "thimble/base/result.h"
#include "thimble/train/weights/state_file.h"

namespace thimble {

// Raised when older programs can no longer read what is written.
inline constexpr int kCheckpointVersion = 2;

// What a checkpoint says beside its tensors. All strings must be UTF-8.
struct CheckpointInfo {
  int format_version = kCheckpointVersion;  // SaveCheckpoint always writes the current one
  std::string model;                        // "wrn-28-2"
  int64_t step = 0;                         // updates done; not negative
  // Results are the same bits only on the same target: a SIMD target of the CPU, or "cuda-tf32".
  std::string simd_target;
  std::string settings_json;  // what a resumed run must agree with (run_settings.h)
  std::string progress_json;  // where the run stands (run_state.h); neither is looked into here

  friend bool operator==(const CheckpointInfo&, const CheckpointInfo&) = default;
};

// The file that holds the checkpoint of `folder`.
std::string CheckpointPath(const std::string& folder);

// Makes the folder if needed, replaces its checkpoint and keeps the one before it.
Result<void> SaveCheckpoint(const std::string& folder, const CheckpointInfo& info,
                            std::span<const StoredTensor> tensors);

// Puts the checkpoint before the last one back in its place and returns its step; nullopt, with
// nothing done, where there is none that is intact.
Result<std::optional<int64_t>> ReturnToPreviousCheckpoint(const std::string& folder);

// nullopt if the folder has no checkpoint or does not exist. kBadInput if there is one that is
// damaged or of another format; the message offers the one before it where that is intact.
Result<std::optional<CheckpointInfo>> ReadCheckpointInfo(const std::string& folder);

// Fills the views. kBadInput, with the views untouched, if there is no checkpoint, it belongs to
// another model than `model`, or its tensors are not exactly these.
Result<CheckpointInfo> LoadCheckpoint(const std::string& folder, const std::string& model,
                                      std::span<const StoredTensor> tensors);

}  // namespace thimble
