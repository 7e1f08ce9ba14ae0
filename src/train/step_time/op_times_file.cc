#include "thimble/train/step_time/op_times_file.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "thimble/base/atomic_file.h"
#include "thimble/base/sealed_text.h"
#include "thimble/base/version.h"
#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

constexpr std::string_view kFirstLine = "thimble op times 2";
constexpr int64_t kMaxBytes = 4 << 20;  // far more than a calibration writes
// Of one call.
constexpr double kLeastSeconds = 1e-12;
constexpr double kMostSeconds = 1e6;

// The processor's name, as Linux states it; empty if it does not.
std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

// Takes the text up to `end` from the front of `text`, and `end` with it.
std::string_view TakeUntil(char end, std::string_view& text) {
  const size_t length = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return taken;
}

template <class Number>
bool Parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// "KIND\tFLOPS\tBYTES\tSECONDS"
bool ParseSample(std::string_view line, OpTimes::Samples& samples) {
  const std::string_view kind = TakeUntil('\t', line);
  OpSample sample;
  if (kind.empty() || kind[0] == '#' || !Parse(TakeUntil('\t', line), sample.cost.flops) ||
      !Parse(TakeUntil('\t', line), sample.cost.bytes) || !Parse(line, sample.seconds)) {
    return false;
  }
  if (sample.cost.flops < 0 || sample.cost.bytes < 0) return false;
  if (!(sample.seconds >= kLeastSeconds && sample.seconds <= kMostSeconds)) return false;
  samples[std::string(kind)].push_back(sample);
  return true;
}

}  // namespace

std::string MachineOf(const TrainConfig& config) {
  if (DeviceOf(config) != DeviceKind::kCpu) {
    return fmt::format("{} {} {}", Version(), config.device, ResolvedMath(config));
  }
  return fmt::format("{} cpu {} {}", Version(), ActiveSimdTarget(), ProcessorName());
}

std::string ToText(const OpTimesFile& file) {
  std::string text = fmt::format("{}\n{}\n{}\n", kFirstLine, file.machine, file.times.threads());
  for (const auto& [kind, samples] : file.times.samples()) {
    for (const OpSample& sample : samples) {
      text += fmt::format("{}\t{}\t{}\t{:.4g}\n", kind, sample.cost.flops, sample.cost.bytes,
                          sample.seconds);
    }
  }
  return SealToml(text);
}

Result<OpTimesFile> ParseOpTimes(std::string_view text) {
  text = WithoutSeal(text);
  if (TakeUntil('\n', text) != kFirstLine) {
    return BadInput(fmt::format("line 1: expected '{}'", kFirstLine));
  }
  OpTimesFile file;
  file.machine = TakeUntil('\n', text);
  int threads = 0;
  if (!Parse(TakeUntil('\n', text), threads) || threads < 1) {
    return BadInput("line 3: expected the number of threads");
  }
  OpTimes::Samples samples;
  for (int line = 4; !text.empty(); ++line) {
    if (!ParseSample(TakeUntil('\n', text), samples)) {
      return BadInput(
          fmt::format("line {}: expected a kind of call, its arithmetic, bytes and "
                      "seconds, separated by tabs",
                      line));
    }
  }
  file.times = OpTimes(samples, threads);
  return file;
}

Result<std::string> OpTimesPath(const TrainConfig& config) {
  std::string folder;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    folder = cache;
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    folder = fmt::format("{}/.cache", home);
  } else {
    return Failed("no folder for measured times: neither XDG_CACHE_HOME nor HOME is set");
  }
  return fmt::format("{}/thimble/op-times-{}.txt", folder, config.device);
}

Result<void> SaveOpTimes(const TrainConfig& config, const OpTimes& times) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string path, OpTimesPath(config));
  THIMBLE_TRY(MakeFolder(std::filesystem::path(path).parent_path().string()));
  return WriteFileAtomically(path, ToText({MachineOf(config), times}));
}

OpTimes LoadOpTimes(const TrainConfig& config) {
  const Result<std::string> path = OpTimesPath(config);
  if (!path.ok()) return {};
  const Result<std::string> text = ReadSealedFile(*path, kMaxBytes);
  if (!text.ok()) return {};
  Result<OpTimesFile> file = ParseOpTimes(*text);
  if (!file.ok() || file->machine != MachineOf(config)) return {};
  return std::move(file->times);
}

}  // namespace thimble
