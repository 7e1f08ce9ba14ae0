// Feeds arbitrary bytes to the reader of checkpoints, for a network of four small tensors.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "fuzz/check_error.h"
#include "fuzz/fresh_input.h"
#include "fuzz/scratch_folder.h"
#include "thimble/train/run_folder/checkpoint.h"
#include "thimble/train/run_folder/run_state.h"

namespace thimble {
namespace {

constexpr const char* kModel = "wrn-10-1";
constexpr std::byte kUntouched{0x5a};

// The destination of a checkpoint: every kind of tensor and layout.
struct Network {
  std::array<std::byte, 256> arena;
  std::array<StoredTensor, 4> tensors = {
      StoredTensor{"conv.weight", View(0, DType::kF32, {2, 1, 2, 3}), FileLayout::kOhwiToOihw},
      StoredTensor{"fc.weight", View(64, DType::kF32, {2, 3}), FileLayout::kAsStored},
      StoredTensor{"labels", View(128, DType::kI32, {4}), FileLayout::kAsStored},
      StoredTensor{"pixels", View(192, DType::kU8, {5}), FileLayout::kAsStored},
  };

  Network() { arena.fill(kUntouched); }
  TensorView View(size_t offset, DType dtype, const Shape& shape) {
    return {arena.data() + offset, dtype, shape};
  }
  bool untouched() const {
    return std::ranges::all_of(arena, [](std::byte byte) { return byte == kUntouched; });
  }
};

// Whether the folder has a checkpoint of the network.
bool Load(const std::string& folder) {
  const std::string path = CheckpointPath(folder);
  const auto info = ReadCheckpointInfo(folder);
  Network network;
  const auto loaded = LoadCheckpoint(folder, kModel, network.tensors);
  if (!info.ok()) CheckError(info.error(), path);
  if (!loaded.ok()) {
    CheckError(loaded.error(), path);
    THIMBLE_CHECK(network.untouched(), "a rejected checkpoint changed a tensor");
    return false;
  }
  THIMBLE_CHECK(info.ok() && info->has_value() && **info == *loaded, "two ways of reading differ");
  THIMBLE_CHECK(loaded->step >= 0 && loaded->model == kModel, "step {}", loaded->step);
  if (const auto state = RunStateFromJson(loaded->progress_json); !state.ok()) {
    CheckError(state.error(), "progress");
  }
  return true;
}

}  // namespace

std::string FreshInput() {
  const ScratchFolder folder;
  Network network;
  CheckpointInfo info;
  info.model = kModel;
  info.step = 4;
  info.simd_target = "avx2";
  info.progress_json = ToJson(RunState{.step = 4});
  THIMBLE_CHECK(SaveCheckpoint(folder.path(), info, network.tensors).ok(), "cannot be saved");
  THIMBLE_CHECK(Load(folder.path()), "cannot be loaded");
  return folder.Read("state.safetensors");
}

}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const thimble::ScratchFolder folder;
  folder.Write("state.safetensors", thimble::AsText(bytes, size));
  thimble::Load(folder.path());
  return 0;
}
