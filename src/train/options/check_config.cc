// CheckConfig: what a single option accepts, and which options exclude each other.
#include <fmt/format.h>

#include <algorithm>

#include "thimble/base/utf8.h"
#include "thimble/plan/recompute/recompute_spec.h"
#include "thimble/train/options/allowed.h"
#include "thimble/train/options/option_values.h"
#include "thimble/train/options/options.h"
#include "thimble/train/options/schedule.h"
#include "thimble/train/options/update_options.h"

namespace thimble {
namespace {

Result<void> CheckText(const Option& option, const std::string& text) {
  // The files of the run folder must be UTF-8.
  if (!IsUtf8(text)) return BadInput(fmt::format("--{}: expected UTF-8 text", option.name));
  const std::vector<std::string> words = OnlyValues(option.value);
  if (words.empty() || std::find(words.begin(), words.end(), text) != words.end()) return {};
  return BadInput(fmt::format("--{} {}: expected {}", option.name, text, AnyOf(words)));
}

// Rejects options that the device does not support.
Result<void> CheckDeviceOptions(const TrainConfig& config) {
  if (config.math == "tf32" && config.device == "cpu") {
    return BadInput("--math tf32: only with --device cuda; the CPU computes in fp32");
  }
  if (config.conv == "winograd" && config.device == "cuda") {
    return BadInput("--conv winograd: only with --device cpu");
  }
  const auto fold_norms = config.levers.find("fold-norms");
  if (fold_norms != config.levers.end() && fold_norms->second == "true" &&
      config.device == "cuda") {
    return BadInput("--fold-norms: only with --device cpu");
  }
  return {};
}

}  // namespace

Result<void> CheckConfig(const TrainConfig& config) {
  // The limit of networks (image_classifier.cc).
  constexpr int64_t kMaxBatch = 1 << 20;
  // More threads than this are a typing error; each needs scratch memory.
  constexpr int64_t kMaxThreads = 1024;
  // Each slot needs memory for a batch; more than a few only hide a slow disk.
  constexpr int64_t kMaxPrefetch = 1024;
  // Each hypothesis has two candidates, and top_words gives at most 64.
  constexpr int64_t kMaxBeam = 32;
  // The minimum with which kernels are guaranteed to work.
  constexpr int64_t kMinScratchBytes = 16 << 10;
  for (const Option& option : TrainOptions()) THIMBLE_TRY(CheckText(option, option.get(config)));
  if (config.batch < 1)
    return BadInput(fmt::format("--batch {}: must be at least 1", config.batch));
  if (config.batch > kMaxBatch) {
    return BadInput(fmt::format("--batch {}: must be at most {}", config.batch, kMaxBatch));
  }
  if (config.microbatch < 0 || config.microbatch > config.batch) {
    return BadInput(fmt::format("--microbatch {}: must be from 1 to the batch size, {}",
                                config.microbatch, config.batch));
  }
  if (config.bn_group < 0 || config.bn_group > config.batch) {
    return BadInput(fmt::format("--bn-group {}: must be from 0 to the batch size, {}",
                                config.bn_group, config.batch));
  }
  if (config.threads > kMaxThreads) {
    return BadInput(fmt::format("--threads {}: must be at most {}", config.threads, kMaxThreads));
  }
  if (config.prefetch > kMaxPrefetch) {
    return BadInput(
        fmt::format("--prefetch {}: must be at most {}", config.prefetch, kMaxPrefetch));
  }
  if (config.scratch_bytes < kMinScratchBytes) {
    return BadInput(fmt::format("--scratch {}: must be at least {} bytes per thread",
                                config.scratch_bytes, kMinScratchBytes));
  }
  THIMBLE_TRY(CheckOptimizer(config.optimizer));
  THIMBLE_TRY(Allowed::Parse(config.allow));
  if (auto update = UpdateSpecOf(config); !update.ok()) return update.error();
  if (config.resume && config.overwrite) {
    return BadInput("--resume continues the run in --out, --overwrite deletes it: choose one");
  }
  if (config.beam > kMaxBeam) {
    return BadInput(fmt::format("--beam {}: must be at most {}", config.beam, kMaxBeam));
  }
  if (config.extend && !config.resume) return BadInput("--extend: only with --resume");
  if (auto recompute = ParseRecompute(config.recompute); !recompute.ok()) return recompute.error();
  THIMBLE_TRY(CheckDeviceOptions(config));
  if (auto schedule = ParseSchedule(config.schedule); !schedule.ok()) return schedule.error();
  return {};
}

}  // namespace thimble
