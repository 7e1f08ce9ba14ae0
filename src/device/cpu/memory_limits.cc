#include "thimble/device/cpu/memory_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "thimble/base/byte_size.h"

namespace thimble {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kKiB = 1024;

// Growth of the process from mapping the arena to its end, without the arena, measured in trainings
// whose report another process draws. Heap and stacks: 0.2 MiB with 186 steps of plans (wrn-10-1),
// 0.8 with 1017 (wrn-28-2 in parts), 3.2 with 3863 (wrn-100-1). Code that runs for the first time:
// 0.8 to 1.1 MiB. The two constants add up to 0.9 to 1.6 MiB more in each case.
constexpr int64_t kBesideBytes = 2 * kMiB;
constexpr int64_t kBesideBytesPerStep = 1 * kKiB;
// The kernel's tables have 8 bytes for each page of 4 KiB.
constexpr int64_t kBytesPerTableByte = 512;
// Touched bytes of a thread's stack, including the kernel's own data; 35 kB measured.
constexpr int64_t kTouchedBytesPerThread = 48 * kKiB;

// "Unlimited" in control groups version 1 is a little less than 2^63, far above any real limit.
constexpr int64_t kNoLimit = int64_t{1} << 62;
// glibc's default if stacks are unlimited.
constexpr int64_t kUsualStackBytes = 2 * kMiB;

std::optional<int64_t> ToNumber(std::string_view text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [parsed_end, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || parsed_end != end || number < 0 || number >= kNoLimit) return {};
  return number;
}

// Files in /proc and /sys report a size of 0, so FileReader cannot read them; they are short.
std::vector<std::vector<std::string>> ReadWords(const std::string& path) {
  std::vector<std::vector<std::string>> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    std::vector<std::string>& words = lines.emplace_back();
    for (std::string word; stream >> word;) words.push_back(word);
  }
  return lines;
}

// The number after these words at the beginning of a line, for example after {"VmSize:"} in
// "VmSize: 123 kB". nullopt if there is none or it is "unlimited".
std::optional<int64_t> Find(const std::vector<std::vector<std::string>>& lines,
                            const std::vector<std::string>& key) {
  for (const std::vector<std::string>& words : lines) {
    if (words.size() <= key.size()) continue;
    if (std::equal(key.begin(), key.end(), words.begin())) return ToNumber(words[key.size()]);
  }
  return {};
}

// The only number of a file.
std::optional<int64_t> ReadNumber(const std::string& path) {
  const auto lines = ReadWords(path);
  if (lines.empty() || lines[0].size() != 1) return {};
  return ToNumber(lines[0][0]);
}

std::string LimitAndUse(int64_t limit_bytes, int64_t used_bytes) {
  return fmt::format("limit {}, {} in use", FormatBytes(limit_bytes), FormatBytes(used_bytes));
}

// Free memory and swap.
struct Machine {
  std::optional<int64_t> available_bytes;
  int64_t free_swap_bytes = 0;
  // All that may be mapped, and is; only if the system promises no more than it has.
  std::optional<int64_t> commit_limit_bytes;
  int64_t committed_bytes = 0;
};

Machine ReadMachine(const std::string& root) {
  const auto lines = ReadWords(root + "/proc/meminfo");
  Machine machine;
  if (const auto available = Find(lines, {"MemAvailable:"})) {
    machine.available_bytes = *available * kKiB;
  }
  machine.free_swap_bytes = Find(lines, {"SwapFree:"}).value_or(0) * kKiB;
  constexpr int64_t kNeverOvercommit = 2;
  const auto commit_limit = Find(lines, {"CommitLimit:"});
  if (commit_limit && ReadNumber(root + "/proc/sys/vm/overcommit_memory") == kNeverOvercommit) {
    machine.commit_limit_bytes = *commit_limit * kKiB;
    machine.committed_bytes = Find(lines, {"Committed_AS:"}).value_or(0) * kKiB;
  }
  return machine;
}

// Page cache that the kernel can drop without harm. Half of the mapped files count as in use: a
// training without the pages of its own code would read them again and again. (wrn-28-2 took eight
// times as long when the group lacked 3 MB of them; the other half is code that only planning
// needs.) Version 1 reports totals that include child groups, under names of their own.
int64_t FileCacheBytes(const std::string& folder) {
  const auto lines = ReadWords(folder + "/memory.stat");
  const auto bytes = [&](const std::string& key) {
    return Find(lines, {"total_" + key}).value_or(Find(lines, {key}).value_or(0));
  };
  const int64_t mapped = bytes("mapped_file") + bytes("file_mapped");  // version 1, version 2
  return std::max<int64_t>(bytes("inactive_file") + bytes("active_file") - mapped / 2, 0);
}

// One control group of either version; nullopt if it has no limit.
struct GroupFiles {
  const char* limit;
  const char* use;
  const char* swap_limit;  // version 1: memory and swap together
  const char* swap_use;
  bool swap_includes_memory;
};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "memory.swap.max",
                                  "memory.swap.current", false};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes",
                                  true};

void AddGroup(const std::string& folder, const std::string& name, const GroupFiles& files,
              int64_t free_swap_bytes, std::vector<MemoryLimit>& limits) {
  const auto read = [&](const char* file) { return ReadNumber(folder + "/" + file); };
  const auto limit = read(files.limit);
  const auto use = read(files.use);
  if (!limit || !use) return;
  const int64_t used = std::max<int64_t>(*use - FileCacheBytes(folder), 0);
  const int64_t memory = std::max<int64_t>(*limit - used, 0);
  int64_t free = memory + free_swap_bytes;
  if (const auto swap_limit = read(files.swap_limit)) {
    const int64_t swap_used = read(files.swap_use).value_or(0);
    const int64_t swap = std::max<int64_t>(*swap_limit - swap_used, 0);
    const int64_t cache = *use - used;
    free = std::min(free, files.swap_includes_memory ? swap + cache : memory + swap);
  }
  limits.push_back({"the control group " + name, LimitAndUse(*limit, used), free, false});
}

// Adds the group at `path` below `mount` and all its parents.
void AddGroups(const std::string& mount, std::string path, const GroupFiles& files,
               int64_t free_swap_bytes, std::vector<MemoryLimit>& limits) {
  // Not visible to this process.
  if (path.empty() || path[0] != '/' || path.find("/..") != std::string::npos) return;
  while (path.size() > 1) {
    AddGroup(mount + path, path, files, free_swap_bytes, limits);
    path.resize(path.rfind('/'));
  }
  AddGroup(mount, "/", files, free_swap_bytes, limits);
}

bool ListsMemory(const std::string& controllers) {
  std::istringstream stream(controllers);
  for (std::string name; std::getline(stream, name, ',');) {
    if (name == "memory") return true;
  }
  return false;
}

void AddControlGroups(const std::string& root, int64_t free_swap_bytes,
                      std::vector<MemoryLimit>& limits) {
  const std::string mount = root + "/sys/fs/cgroup";
  std::ifstream file(root + "/proc/self/cgroup");
  // "4:cpu,memory:/path" in version 1, "0::/path" in version 2.
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      AddGroups(mount, path, kVersion2, free_swap_bytes, limits);
    } else if (ListsMemory(controllers)) {
      AddGroups(mount + "/memory", path, kVersion1, free_swap_bytes, limits);
    }
  }
}

void AddProcessLimits(const std::string& root, MemoryLimits& result) {
  const auto limits = ReadWords(root + "/proc/self/limits");
  const auto status = ReadWords(root + "/proc/self/status");
  const auto add = [&](const char* name, const std::optional<int64_t>& limit, const char* used) {
    if (!limit) return;
    const int64_t used_bytes = Find(status, {used}).value_or(0) * kKiB;
    result.limits.push_back(
        {name, LimitAndUse(*limit, used_bytes), std::max<int64_t>(*limit - used_bytes, 0), true});
  };
  add("the limit on address space (ulimit -v)", Find(limits, {"Max", "address", "space"}),
      "VmSize:");
  add("the limit on data (ulimit -d)", Find(limits, {"Max", "data", "size"}), "VmData:");
  result.stack_bytes = Find(limits, {"Max", "stack", "size"}).value_or(kUsualStackBytes);
}

}  // namespace

int64_t MemoryNeed::BesideBytes() const {
  return kBesideBytes + plan_steps * kBesideBytesPerStep + threads * kTouchedBytesPerThread;
}

// The prefetch thread has a stack too.
int64_t MemoryNeed::BesideAddresses(int64_t stack_bytes) const {
  return kBesideBytes + plan_steps * kBesideBytesPerStep + threads * stack_bytes;
}

MemoryLimits ReadMemoryLimits(const std::string& root) {
  MemoryLimits result;
  const Machine machine = ReadMachine(root);
  if (machine.available_bytes) {
    result.limits.push_back(
        {"the machine",
         fmt::format("{} of memory and {} of swap", FormatBytes(*machine.available_bytes),
                     FormatBytes(machine.free_swap_bytes)),
         *machine.available_bytes + machine.free_swap_bytes, false});
  }
  if (const auto limit = machine.commit_limit_bytes) {
    result.limits.push_back({"the machine (vm.overcommit_memory is 2)",
                             LimitAndUse(*limit, machine.committed_bytes),
                             std::max<int64_t>(*limit - machine.committed_bytes, 0), true});
  }
  AddControlGroups(root, machine.free_swap_bytes, result.limits);
  AddProcessLimits(root, result);
  return result;
}

Result<void> CheckMemory(const MemoryNeed& need, const MemoryLimits& limits) {
  const auto beside = [&](const MemoryLimit& limit) {
    return limit.counts_mappings ? need.BesideAddresses(limits.stack_bytes) : need.BesideBytes();
  };
  const auto left_for_block = [&](const MemoryLimit& limit) {
    const int64_t rest = limit.free_bytes - beside(limit);
    return limit.counts_mappings ? rest : rest - rest / kBytesPerTableByte;
  };
  const auto tightest = std::min_element(limits.limits.begin(), limits.limits.end(),
                                         [&](const MemoryLimit& a, const MemoryLimit& b) {
                                           return left_for_block(a) < left_for_block(b);
                                         });
  if (tightest == limits.limits.end() || need.block_bytes <= left_for_block(*tightest)) return {};
  const int64_t left = left_for_block(*tightest);
  return Failed(fmt::format(
      "not enough memory: {} needs {} ({} bytes) plus about {} for the process, but {} allows only "
      "{} more ({}); {}{}",
      need.what, FormatBytes(need.block_bytes), need.block_bytes, FormatBytes(beside(*tightest)),
      tightest->name, FormatBytes(tightest->free_bytes), tightest->detail, need.advice,
      left > 0 && need.budget_helps
          ? fmt::format("; thimble plan --budget {} shows what fits", left)
          : ""));
}

std::string DescribeTightest(const MemoryLimits& limits) {
  const auto tightest = std::min_element(
      limits.limits.begin(), limits.limits.end(),
      [](const MemoryLimit& a, const MemoryLimit& b) { return a.free_bytes < b.free_bytes; });
  if (tightest == limits.limits.end()) return "the memory limits cannot be read";
  return fmt::format("{} allows only {} more ({})", tightest->name,
                     FormatBytes(tightest->free_bytes), tightest->detail);
}

}  // namespace thimble
