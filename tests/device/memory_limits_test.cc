#include "thimble/device/cpu/memory_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace thimble {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMB = 1'000'000;

// A fake /proc and /sys.
class MemoryLimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "limits_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& content) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  // A control group of version 2 with these bytes in use, and how many of them are file caches.
  void WriteGroup(const std::string& path, const std::string& max, int64_t current,
                  int64_t file_bytes) const {
    const std::string folder = "/sys/fs/cgroup" + path;
    Write(folder + "/memory.max", max + "\n");
    Write(folder + "/memory.high", "1000\n");  // slows down, does not kill
    Write(folder + "/memory.current", std::to_string(current) + "\n");
    Write(folder + "/memory.stat", "anon 5\nfile 12345\ninactive_file " +
                                       std::to_string(file_bytes - 1000) +
                                       "\nactive_file 1000\nunevictable 7\n");
  }

  MemoryLimits Read() const { return ReadMemoryLimits(root_); }
  // The limit with this name; one that leaves -1 if there is none.
  MemoryLimit Find(const std::string& name) const {
    for (const MemoryLimit& limit : Read().limits) {
      if (limit.name == name) return limit;
    }
    return {"none", "", -1, false};
  }

  std::string root_;
};

TEST_F(MemoryLimitsTest, NothingToReadIsNoLimit) {
  EXPECT_TRUE(Read().limits.empty());
  EXPECT_TRUE(CheckMemory({.block_bytes = int64_t{1} << 60}, Read()).ok());
}

TEST_F(MemoryLimitsTest, DamagedFilesAreNoLimit) {
  Write("/proc/meminfo", "MemAvailable: much kB\nSwapFree:\n");
  Write("/proc/self/cgroup", "nonsense\n0:\n:::\n0::relative\n0::/../other\n7:memory:\n");
  Write("/proc/self/limits", "Max address space -5 x bytes\nMax data size\n");
  Write("/sys/fs/cgroup/memory.max", "");
  EXPECT_TRUE(Read().limits.empty());
}

TEST_F(MemoryLimitsTest, FreeMemoryAndSwap) {
  Write("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 3000 kB\nSwapFree: 500 kB\n");
  EXPECT_EQ(Find("the machine").free_bytes, 3500 * 1024);
  EXPECT_FALSE(Find("the machine").counts_mappings);
}

// A machine that promises no more than it has refuses mappings, whether or not they are touched.
TEST_F(MemoryLimitsTest, WhatMayStillBePromised) {
  const std::string name = "the machine (vm.overcommit_memory is 2)";
  Write("/proc/meminfo", "CommitLimit: 5000 kB\nCommitted_AS: 3000 kB\n");
  EXPECT_EQ(Find(name).free_bytes, -1);
  for (const char* usual : {"0\n", "1\n", "many\n", ""}) {
    Write("/proc/sys/vm/overcommit_memory", usual);
    EXPECT_EQ(Find(name).free_bytes, -1) << usual;
  }
  Write("/proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_EQ(Find(name).free_bytes, 2000 * 1024);
  EXPECT_TRUE(Find(name).counts_mappings);
  Write("/proc/meminfo", "CommitLimit: 5000 kB\nCommitted_AS: 9000 kB\n");
  EXPECT_EQ(Find(name).free_bytes, 0);
  Write("/proc/meminfo", "CommitLimit: ? kB\nCommitted_AS: 9000 kB\n");
  EXPECT_EQ(Find(name).free_bytes, -1);
}

TEST_F(MemoryLimitsTest, ControlGroupsOfVersion2UpToTheRoot) {
  Write("/proc/self/cgroup", "0::/jobs/7/step\n");
  WriteGroup("/jobs/7/step", "max", 1, 2000);
  WriteGroup("/jobs/7", std::to_string(600 * kMB), 300 * kMB, 100 * kMB);
  WriteGroup("/jobs", std::to_string(900 * kMB), 300 * kMB, 100 * kMB);
  WriteGroup("", "max", 1, 2000);
  EXPECT_EQ(Read().limits.size(), 2U);
  // File caches can be reclaimed.
  const MemoryLimit limit = Find("the control group /jobs/7");
  EXPECT_EQ(limit.free_bytes, 400 * kMB);
  EXPECT_THAT(limit.detail, HasSubstr("limit 600.00 MB, 200.00 MB in use"));
  EXPECT_EQ(Find("the control group /jobs").free_bytes, 700 * kMB);
}

// The program's own code is in use, although the system could read it again.
TEST_F(MemoryLimitsTest, MappedFilesAreHalfInUse) {
  Write("/proc/self/cgroup", "4:memory:/old\n0::/new\n");
  WriteGroup("/new", std::to_string(100 * kMB), 30 * kMB, 10 * kMB);
  const std::string stat = "inactive_file 4000000\nactive_file 6000000\n";
  const auto free = [&] { return Find("the control group /new").free_bytes; };
  Write("/sys/fs/cgroup/new/memory.stat", stat + "file_mapped 8000000\n");
  EXPECT_EQ(free(), 76 * kMB);
  Write("/sys/fs/cgroup/new/memory.stat", stat + "file_mapped 50000000\n");  // shared memory too
  EXPECT_EQ(free(), 70 * kMB);
  const std::string old = "/sys/fs/cgroup/memory/old/memory.";
  Write(old + "limit_in_bytes", "100000000\n");
  Write(old + "usage_in_bytes", "30000000\n");
  Write(old + "stat", stat + "total_inactive_file 5000000\ntotal_active_file 7000000\n" +
                          "mapped_file 1\ntotal_mapped_file 4000000\n");
  EXPECT_EQ(Find("the control group /old").free_bytes, 80 * kMB);
}

TEST_F(MemoryLimitsTest, SwapOfVersion2) {
  Write("/proc/self/cgroup", "0::/a\n");
  WriteGroup("/a", std::to_string(100 * kMB), 30 * kMB, 10 * kMB);
  const auto free = [&] { return Find("the control group /a").free_bytes; };
  EXPECT_EQ(free(), 80 * kMB);
  Write("/proc/meminfo", "SwapFree: 50000 kB\n");
  EXPECT_EQ(free(), 80 * kMB + 51'200'000);
  Write("/sys/fs/cgroup/a/memory.swap.max", "max\n");
  EXPECT_EQ(free(), 80 * kMB + 51'200'000);
  Write("/sys/fs/cgroup/a/memory.swap.max", "7000000\n");
  Write("/sys/fs/cgroup/a/memory.swap.current", "4000000\n");
  EXPECT_EQ(free(), 83 * kMB);
  Write("/sys/fs/cgroup/a/memory.swap.max", "0\n");
  EXPECT_EQ(free(), 80 * kMB);
}

TEST_F(MemoryLimitsTest, ControlGroupsOfVersion1) {
  Write("/proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/jobs/7\n1:cpu:/y\n0::/\n");
  const std::string folder = "/sys/fs/cgroup/memory/jobs/7/";
  Write(folder + "memory.limit_in_bytes", "200000000\n");
  Write(folder + "memory.usage_in_bytes", "90000000\n");
  Write(
      folder + "memory.stat",
      "inactive_file 1\nactive_file 2\ntotal_inactive_file 30000000\ntotal_active_file 10000000\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "90000000\n");
  EXPECT_EQ(Read().limits.size(), 1U);
  const auto free = [&] { return Find("the control group /jobs/7").free_bytes; };
  EXPECT_EQ(free(), 150 * kMB);
  Write("/proc/meminfo", "SwapFree: 100000 kB\n");
  EXPECT_EQ(free(), 150 * kMB + 102'400'000);
  // The limit on memory and swap together.
  Write(folder + "memory.memsw.limit_in_bytes", "210000000\n");
  Write(folder + "memory.memsw.usage_in_bytes", "95000000\n");
  EXPECT_EQ(free(), 155 * kMB);
}

// A container without its own cgroup namespace: it sees its own group as the root.
TEST_F(MemoryLimitsTest, AGroupThatIsMountedAsTheRoot) {
  Write("/proc/self/cgroup", "4:memory:/docker/0123\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "50000000\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "20000000\n");
  EXPECT_EQ(Find("the control group /").free_bytes, 30 * kMB);
}

// A file that is damaged or missing leaves the limits of the other groups.
TEST_F(MemoryLimitsTest, OneUnreadableGroupAmongOthers) {
  Write("/proc/self/cgroup", "0::/a/b/c\n");
  WriteGroup("/a/b/c", "12 34", 1, 2000);
  WriteGroup("/a/b", "-1", 1, 2000);
  WriteGroup("/a", "50000000", 20 * kMB, 1000);
  EXPECT_EQ(Read().limits.size(), 1U);
  EXPECT_EQ(Find("the control group /a").free_bytes, 30 * kMB + 1000);
  // Without its statistics, nothing is known to be cache.
  std::filesystem::remove(root_ + "/sys/fs/cgroup/a/memory.stat");
  EXPECT_EQ(Find("the control group /a").free_bytes, 30 * kMB);
  std::filesystem::remove(root_ + "/sys/fs/cgroup/a/memory.current");
  EXPECT_TRUE(Read().limits.empty());
}

TEST_F(MemoryLimitsTest, MoreInUseThanAllowed) {
  Write("/proc/self/cgroup", "0::/a\n");
  WriteGroup("/a", "1000000", 30 * kMB, 1000);
  EXPECT_EQ(Find("the control group /a").free_bytes, 0);
}

TEST_F(MemoryLimitsTest, LimitsOfTheProcess) {
  Write("/proc/self/status", "VmSize:\t  2000 kB\nVmRSS: 1 kB\nVmData:\t  500 kB\n");
  Write("/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max data size             3072000              unlimited            bytes     \n"
        "Max stack size            8388608              unlimited            bytes     \n"
        "Max address space         unlimited            unlimited            bytes     \n");
  EXPECT_EQ(Read().limits.size(), 1U);
  EXPECT_EQ(Read().stack_bytes, 8 << 20);
  EXPECT_EQ(Find("the limit on data (ulimit -d)").free_bytes, 2500 * 1024);
  EXPECT_TRUE(Find("the limit on data (ulimit -d)").counts_mappings);
  Write("/proc/self/limits",
        "Max stack size unlimited unlimited bytes\nMax address space 4096000 4096000 bytes\n");
  EXPECT_EQ(Find("the limit on address space (ulimit -v)").free_bytes, 2000 * 1024);
  EXPECT_EQ(Read().stack_bytes, 2 << 20);
}

TEST(CheckMemory, TheLastByteDecides) {
  MemoryNeed need = {.block_bytes = 0, .threads = 3, .plan_steps = 100};
  MemoryLimits limits = {{{"the machine", "", 500 * kMB, false}}, 8 << 20};
  const int64_t rest = 500 * kMB - need.BesideBytes();
  need.block_bytes = rest - rest / 512;  // page tables
  EXPECT_TRUE(CheckMemory(need, limits).ok());
  ++need.block_bytes;
  const auto refused = CheckMemory(need, limits);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(ExitCode(refused.error()), 1);
}

// Stacks use addresses, but hardly any memory.
TEST(CheckMemory, StacksCountWhereAddressesDo) {
  const MemoryNeed need = {.block_bytes = 10 * kMB, .threads = 100};
  MemoryLimits limits = {{{"memory", "", 100 * kMB, false}}, 8 << 20};
  EXPECT_TRUE(CheckMemory(need, limits).ok());
  limits.limits[0].counts_mappings = true;
  EXPECT_FALSE(CheckMemory(need, limits).ok());
  limits.limits[0].free_bytes = 900 * kMB;
  EXPECT_TRUE(CheckMemory(need, limits).ok());
}

TEST(CheckMemory, NamesTheTightestLimitAndWhatHelps) {
  const MemoryLimits limits = {{{"the machine", "", 90 * kMB, false},
                                {"the control group /a", "limit 60 MB, 20 MB in use", 40 * kMB},
                                {"the limit on data", "", 200 * kMB, true}},
                               8 << 20};
  MemoryNeed need = {.block_bytes = 80 * kMB};
  const int64_t rest = 40 * kMB - need.BesideBytes();
  const auto refused = CheckMemory(need, limits);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(
      refused.error().message,
      AllOf(HasSubstr("the arena needs 80.00 MB (80000000 bytes)"),
            HasSubstr("the control group /a allows only 40.00 MB more (limit 60 MB, 20 MB in use)"),
            HasSubstr("--batch"), HasSubstr("--microbatch"), HasSubstr("--recompute"),
            HasSubstr("--budget " + std::to_string(rest - rest / 512))));
  EXPECT_THAT(DescribeTightest(limits),
              HasSubstr("the control group /a allows only 40.00 MB more"));
  need.budget_helps = false;
  EXPECT_THAT(CheckMemory(need, limits).error().message, testing::Not(HasSubstr("--budget")));
}

TEST(CheckMemory, NoAdviceForABudgetWhereNothingIsLeft) {
  const auto refused = CheckMemory({.block_bytes = 80}, {{{"the machine", "", 10, false}}, 0});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, testing::Not(HasSubstr("--budget")));
}

// The real machine has memory for a small arena, but not for the whole address space.
TEST(CheckMemory, OnThisMachine) {
  const MemoryLimits limits = ReadMemoryLimits();
  EXPECT_FALSE(limits.limits.empty());
  EXPECT_GT(limits.stack_bytes, 0);
  EXPECT_TRUE(CheckMemory({.block_bytes = kMB}, limits).ok());
  EXPECT_FALSE(CheckMemory({.block_bytes = int64_t{1} << 50}, limits).ok());
}

}  // namespace
}  // namespace thimble
