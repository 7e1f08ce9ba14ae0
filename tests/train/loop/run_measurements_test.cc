#include "thimble/train/loop/run_measurements.h"

#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

class RunMeasurements : public testing::Test {
 protected:
  RunMeasurements() {
    run_.executor->ScanArena();
    AddMeasurements(*run_.executor, summary_);
  }
  std::string Verdict() const {
    const auto verdict = CheckMeasurements(*run_.executor, summary_);
    if (verdict.ok()) return "";
    EXPECT_EQ(verdict.error().kind, ErrorKind::kFailed);
    return verdict.error().message;
  }

  // The ring is filled by the training loop, which does not run here.
  static TrainConfig WithoutRing() {
    TrainConfig config = TinyConfig();
    config.prefetch = 0;
    return config;
  }

  TinyRun run_{WithoutRing()};
  TrainSummary summary_;
};

TEST_F(RunMeasurements, AreThoseOfTheExecutor) {
  EXPECT_EQ(summary_.arena_bytes, static_cast<int64_t>(run_.program.program.arena_bytes));
  EXPECT_EQ(summary_.planned_peak_bytes, static_cast<int64_t>(run_.executor->planned_peak_bytes()));
  EXPECT_GT(summary_.planned_peak_bytes, 0);
  EXPECT_EQ(summary_.measured_peak_bytes,
            static_cast<int64_t>(run_.executor->audit().measured_peak_bytes()));
  EXPECT_EQ(summary_.device, "cpu");
  EXPECT_EQ(summary_.threads, 1);
}

TEST_F(RunMeasurements, EveryDifferenceIsAFailure) {
  summary_.measured_peak_bytes = summary_.planned_peak_bytes;
  EXPECT_EQ(Verdict(), "");
  summary_.heap_calls_in_steps = 2;
  summary_.map_calls_in_steps = 1;
  EXPECT_EQ(Verdict(), "memory was allocated during steps: 2 heap and 1 mapping calls");
  summary_.device_allocations_in_steps = 3;
  EXPECT_EQ(Verdict(), "cpu allocated memory 3 times during steps");
  summary_.planned_peak_bytes = 64;
  summary_.measured_peak_bytes = 128;
  EXPECT_EQ(Verdict(), "planned peak 64 bytes, measured 128");
}

}  // namespace
}  // namespace thimble
