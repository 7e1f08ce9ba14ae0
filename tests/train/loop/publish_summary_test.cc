#include "thimble/train/loop/publish_summary.h"

#include <gtest/gtest.h>

#include "tests/train/file_fixture.h"
#include "thimble/device/cpu/arena.h"
#include "thimble/train/run_folder/metrics.h"

namespace thimble {
namespace {

// An observer that allocates a given amount of memory each time.
class Hungry final : public TrainObserver {
 public:
  explicit Hungry(int64_t bytes) : bytes_(bytes) {}
  void OnFinish(const TrainSummary& summary) override {
    const std::vector<char> taken(static_cast<size_t>(bytes_), 1);
    seen = summary.process_peak_bytes + 0 * taken[0];
    ++times;
  }
  int64_t seen = 0;
  int times = 0;

 private:
  int64_t bytes_;
};

// The kernel adds pages to a process's peak in batches for each processor, so the figure may still
// rise a little after the last allocation.
constexpr double kLateBytes = 1 << 20;

class PublishSummaryTest : public FileFixture {
 protected:
  PublishSummaryTest() {
    config_.out = folder_ + "/run";
    folder_of_run_.emplace(RunFolder::Open(config_).value());
  }
  TrainSummary Publish(TrainObserver& observer) {
    TrainSummary summary;
    EXPECT_TRUE(PublishSummary(*folder_of_run_, config_, observer, summary).ok());
    EXPECT_EQ(summary.json, Content(config_.out + "/summary.json"));
    return summary;
  }
  TrainConfig config_;
  std::optional<RunFolder> folder_of_run_;
};

TEST_F(PublishSummaryTest, OnceWhereTheObserverTakesNothing) {
  // Called once before, so that formatting a summary needs no new memory.
  TrainObserver nobody;
  Publish(nobody);
  Hungry observer(1);
  const int64_t before = ProcessPeakBytes();
  const TrainSummary summary = Publish(observer);
  if (ProcessPeakBytes() == before) {
    EXPECT_EQ(observer.times, 1);
  }
  EXPECT_NEAR(static_cast<double>(summary.process_peak_bytes),
              static_cast<double>(ProcessPeakBytes()), kLateBytes);
}

TEST_F(PublishSummaryTest, AgainWhereTheObserverRaisesThePeak) {
  // What the process has now and as much as its peak: more than the peak.
  const int64_t before = ProcessPeakBytes();
  Hungry observer(before);
  const TrainSummary summary = Publish(observer);
  EXPECT_GE(observer.times, 2);
  EXPECT_GE(summary.process_peak_bytes, before);
  EXPECT_NEAR(static_cast<double>(summary.process_peak_bytes),
              static_cast<double>(ProcessPeakBytes()), kLateBytes);
  EXPECT_EQ(SummaryFromJson(summary.json)->process_peak_bytes, summary.process_peak_bytes);
}

}  // namespace
}  // namespace thimble
