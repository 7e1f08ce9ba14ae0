#include "thimble/train/step_time/op_times_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "tests/train/file_fixture.h"

namespace thimble {
namespace {

using testing::HasSubstr;

OpTimes MadeTimes() {
  return OpTimes({{"add AddCpu ff>f", {{{10, 20}, 1e-6}, {{100, 200}, 1.5e-6}}},
                  {"conv2d Conv2dCpu hh>h", {{{1'000, 50}, 0.25}}}},
                 3);
}

// Sets a variable of the environment, and restores it.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(OpTimesText, IsReadAsItWasWritten) {
  const auto read = ParseOpTimes(ToText({"this machine", MadeTimes()}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->machine, "this machine");
  EXPECT_EQ(read->times.threads(), 3);
  EXPECT_EQ(read->times.samples(), MadeTimes().samples());
}

TEST(OpTimesText, ErrorsNameTheLine) {
  const std::string head = "thimble op times 2\nmachine\n2\n";
  EXPECT_TRUE(ParseOpTimes(head + "add AddCpu f>f\t1\t2\t0.5\n").ok());
  for (const char* line :
       {"", "add", "add\t1", "add\t1\t2", "add\t1\t2\t", "add\t1\t2\t0", "add\t1\t2\t-1",
        "add\t1\t2\t1e-300", "add\t1\t2\t1e300", "add\t-1\t2\t1", "add\t1\t-2\t1", "add\t1\t2\tnan",
        "add\t1\t2\tinf", "add\t1\t2\t1\t1", "add\t1.5\t2\t1", "\t1\t2\t1", "# add\t1\t2\t1",
        "add\t99999999999999999999\t2\t1"}) {
    const auto read = ParseOpTimes(head + line + "\n");
    ASSERT_FALSE(read.ok()) << line;
    EXPECT_THAT(read.error().message, HasSubstr("line 4")) << line;
  }
  EXPECT_FALSE(ParseOpTimes("").ok());
  EXPECT_FALSE(ParseOpTimes("thimble op times 3\nmachine\n2\n").ok());
  EXPECT_FALSE(ParseOpTimes("thimble op times 2\nmachine\n0\n").ok());
}

class OpTimesCache : public FileFixture {};

TEST_F(OpTimesCache, IsFoundAgain) {
  const ScopedVariable cache("XDG_CACHE_HOME", folder_ + "/cache");
  const TrainConfig config;
  EXPECT_TRUE(LoadOpTimes(config).empty());
  ASSERT_TRUE(SaveOpTimes(config, MadeTimes()).ok());
  EXPECT_EQ(LoadOpTimes(config).samples(), MadeTimes().samples());
  TrainConfig gpu;
  gpu.device = "cuda";
  EXPECT_TRUE(LoadOpTimes(gpu).empty());
}

TEST_F(OpTimesCache, DamagedFilesAndOtherMachinesAreIgnored) {
  const ScopedVariable cache("XDG_CACHE_HOME", folder_ + "/cache");
  const TrainConfig config;
  ASSERT_TRUE(SaveOpTimes(config, MadeTimes()).ok());
  const std::string path = *OpTimesPath(config);
  std::string text = Content(path);
  Put(path, ToText({"another machine", MadeTimes()}));
  EXPECT_TRUE(LoadOpTimes(config).empty());
  text[text.find("0.25")] = '7';
  Put(path, text);
  EXPECT_TRUE(LoadOpTimes(config).empty());
}

TEST_F(OpTimesCache, IsInTheHomeFolderByDefault) {
  const ScopedVariable cache("XDG_CACHE_HOME", "");
  const ScopedVariable home("HOME", "/home/someone");
  EXPECT_EQ(*OpTimesPath({}), "/home/someone/.cache/thimble/op-times-cpu.txt");
  const ScopedVariable nowhere("HOME", "");
  EXPECT_FALSE(OpTimesPath({}).ok());
  EXPECT_TRUE(LoadOpTimes({}).empty());
}

}  // namespace
}  // namespace thimble
