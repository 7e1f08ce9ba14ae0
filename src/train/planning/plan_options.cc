#include "thimble/train/planning/plan_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>

#include "thimble/program/techniques.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

// The planner's passes among the techniques to leave out. kBadInput for unknown names.
Result<std::set<std::string>> SkippedPasses(const std::set<std::string>& without) {
  std::set<std::string> known;
  for (const TechniqueInfo& always : AlwaysDone()) known.emplace(always.name);
  for (const std::string& name : without) {
    if (known.contains(name)) continue;
    return BadInput(fmt::format("no technique '{}' to leave out; expected one of {}", name,
                                fmt::join(known, ", ")));
  }
  std::set<std::string> skipped;
  for (const PassInfo& pass : OptionalPasses()) {
    if (without.contains(std::string(pass.name))) skipped.emplace(pass.name);
  }
  return skipped;
}

}  // namespace

Result<PlanOptions> PlanOptionsOf(const TrainConfig& config) {
  PlanOptions options;
  THIMBLE_ASSIGN_OR_RETURN(options.recompute, ParseRecompute(config.recompute));
  options.device = DeviceOf(config);
  options.limits.scratch_bytes_per_thread = static_cast<size_t>(config.scratch_bytes);
  if (options.device == DeviceKind::kCpu) {
    options.limits.threads = ResolvedThreads(config);
  } else {
    options.limits.scratch_bytes_per_thread *= kThreadsOfAGpu;
    if (ResolvedMath(config) == "fp32") options.kernel_options.insert("fp32");
  }
  THIMBLE_ASSIGN_OR_RETURN(options.skipped_passes, SkippedPasses(config.without));
  if (config.conv == "winograd") options.kernel_options.insert(config.conv);
  return options;
}

}  // namespace thimble
