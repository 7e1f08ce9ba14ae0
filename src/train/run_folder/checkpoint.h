// Checkpoints: everything a run needs to continue, in the file "state.safetensors" of a folder: its
// tensors, everything else as metadata, and a checksum of the whole. A checkpoint stays valid until
// the next one is complete, so a run may be killed at any moment. It is then kept as
// "previous.safetensors", in case the newer one is damaged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "thimble/base/result.h"
#include "thimble/train/weights/state_file.h"

namespace thimble {

// Incremented when older versions can no longer read the format.
inline constexpr int kCheckpointVersion = 2;

// The metadata of a checkpoint. All strings must be UTF-8.
struct CheckpointInfo {
  int format_version = kCheckpointVersion;  // SaveCheckpoint always writes the current one
  std::string model;                        // "wrn-28-2"
  int64_t step = 0;                         // updates done; not negative
  // Results are the same bits only on the same target: a SIMD target of the CPU, or "cuda-tf32".
  std::string simd_target;
  std::string settings_json;  // settings that a resumed run must have (run_settings.h); opaque here
  std::string progress_json;  // progress of the run (run_state.h); opaque here

  friend bool operator==(const CheckpointInfo&, const CheckpointInfo&) = default;
};

// The file that holds the checkpoint of `folder`.
std::string CheckpointPath(const std::string& folder);

// Creates the folder if needed, replaces its checkpoint and keeps the previous one.
Result<void> SaveCheckpoint(const std::string& folder, const CheckpointInfo& info,
                            std::span<const StoredTensor> tensors);

// Replaces the checkpoint by the previous one and returns the step of that; nullopt, with nothing
// changed, if there is no intact previous one.
Result<std::optional<int64_t>> ReturnToPreviousCheckpoint(const std::string& folder);

// nullopt if the folder has no checkpoint or does not exist. kBadInput if the checkpoint is damaged
// or has another format version; the message suggests the previous one if that is intact.
Result<std::optional<CheckpointInfo>> ReadCheckpointInfo(const std::string& folder);

// Fills the views. kBadInput, with the views unchanged, if there is no checkpoint, its model is not
// `model`, or its tensors are not exactly these.
Result<CheckpointInfo> LoadCheckpoint(const std::string& folder, const std::string& model,
                                      std::span<const StoredTensor> tensors);

}  // namespace thimble
