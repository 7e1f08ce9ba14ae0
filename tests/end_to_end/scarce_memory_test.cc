// Machines with too little memory for a run: it ends before the first step, with the reason.
#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

using testing::HasSubstr;

// Sanitizers map terabytes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanLimitAddresses = false;
#else
constexpr bool kCanLimitAddresses = true;
#endif

constexpr int64_t kMiB = 1 << 20;
// An arena of about 60 MB.
constexpr const char* kOptions =
    " --model wrn-10-1 --data shapes:100,4 --batch 100 --threads 2 --steps 1 ";

class ScarceMemoryEndToEnd : public ThimbleFixture {
 protected:
  void SetUp() override {
    ThimbleFixture::SetUp();
    if (!kCanLimitAddresses) GTEST_SKIP() << "sanitizers need all addresses";
  }
  ProcessResult RunWithin(const std::string& text, int64_t max_address_bytes) const {
    return Run(text, {.max_address_bytes = max_address_bytes});
  }
  // The minimum with which the kernel and the loader can start the program; it depends on the GPU
  // code.
  int64_t LeastToStart() const {
    int64_t mib = 8;
    while (RunWithin("--version", mib * kMiB).exit_code != 0 && mib < 256) ++mib;
    return mib;
  }
};

TEST_F(ScarceMemoryEndToEnd, AnArenaThatDoesNotFitIsRefusedBeforeTheFirstStep) {
  const int64_t limit = (LeastToStart() + 40) * kMiB;
  const ProcessResult refused = RunWithin("train" + std::string(kOptions) + "--out @/run", limit);
  ExpectRefusal(refused, 1, "the limit on address space (ulimit -v) allows only", "train");
  EXPECT_THAT(refused.err, HasSubstr("not enough memory: the arena needs"));
  EXPECT_FALSE(std::filesystem::exists(At("run/metrics.jsonl")));
  // As the message suggests: parts of a batch need less.
  const ProcessResult smaller =
      RunWithin("train" + std::string(kOptions) + "--microbatch 10 --out @/small", limit);
  EXPECT_EQ(smaller.exit_code, 0) << smaller.err;
}

TEST_F(ScarceMemoryEndToEnd, EvaluationAndProfileSayItToo) {
  ExpectRefusal(RunWithin("profile --model wrn-10-1 --batch 200 --threads 1", 70 * kMiB), 1,
                "not enough memory", "profile");
  RunWell("train --model wrn-10-1 --data shapes:400,4 --batch 4 --steps 1 --out @/run");
  ExpectRefusal(RunWithin("eval @/run --part train --batch 400 --threads 1", 70 * kMiB), 1,
                "not enough memory", "eval");
}

// With any small amount of memory: a message and an exit code, never a signal.
TEST_F(ScarceMemoryEndToEnd, NothingAborts) {
  for (const char* command : {"plan", "train --out @/run"}) {
    for (const int64_t more_mib : {0, 1, 3}) {
      const int64_t limit_mib = LeastToStart() + more_mib;
      const ProcessResult result = RunWithin(std::string(command) + kOptions, limit_mib * kMiB);
      EXPECT_EQ(result.signal, 0) << command << " " << limit_mib << "\n" << result.err;
      EXPECT_THAT(result.exit_code, testing::AnyOf(0, 1, 127)) << result.err;  // 127: the loader
      if (result.exit_code == 1) {
        EXPECT_THAT(result.err, HasSubstr("memory"));
      }
    }
  }
}

TEST_F(ScarceMemoryEndToEnd, ThreadsThatDoNotFit) {
  const ProcessResult result = RunWithin(
      "train --model wrn-10-1 --data shapes:8,4 --batch 4 --steps 1 --threads 200 --out "
      "@/run",
      200 * kMiB);
  ExpectRefusal(result, 1, "ulimit -v", "200 threads");
}

}  // namespace
}  // namespace thimble
