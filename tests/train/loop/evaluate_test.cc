#include "thimble/train/loop/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/fake_dataset.h"
#include "tests/train/tiny_run.h"
#include "thimble/data/batches.h"

namespace thimble {
namespace {

// Images of one colour, all of class `label`; reading `broken_index` fails.
class OneClassDataset final : public ImageDataset {
 public:
  OneClassDataset(const ImageFormat& format, int64_t size, int32_t label, int64_t broken_index = -1)
      : format_(format), size_(size), label_(label), broken_index_(broken_index) {}
  const ImageFormat& format() const override { return format_; }
  int64_t size() const override { return size_; }
  Result<void> Read(int64_t index, std::span<uint8_t> pixels, int32_t& label) const override {
    if (index == broken_index_) return Failed("broken image");
    std::fill(pixels.begin(), pixels.end(), uint8_t{128});
    label = label_;
    return {};
  }

 private:
  ImageFormat format_;
  int64_t size_;
  int32_t label_;
  int64_t broken_index_;
};

// All weights of the last layer zero, and a bias that prefers class 3: the answer is always 3.
void PreferClassThree(const TinyRun& run) {
  for (const char* name : {"fc.weight", "fc.bias"}) {
    const auto bytes = run.executor->ResidentBytes(name);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
  }
  const float preference = 2;
  std::memcpy(run.executor->ResidentBytes("fc.bias").data() + 3 * sizeof(float), &preference,
              sizeof(float));
}

TEST(Evaluate, CountsRightAnswersAndMeansTheLoss) {
  const TinyRun run;
  PreferClassThree(run);
  const ImageFormat& format = run.data.test->format();
  const double sum = std::exp(2.0) + 9;
  const auto right =
      Evaluate(*run.executor, run.program, EvalBatches(OneClassDataset(format, 6, 3), 4));
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(right->count, 6);
  EXPECT_EQ(right->accuracy, 1);
  EXPECT_NEAR(right->loss, std::log(sum) - 2, 1e-6);
  const auto wrong =
      Evaluate(*run.executor, run.program, EvalBatches(OneClassDataset(format, 6, 4), 4));
  EXPECT_EQ(wrong->accuracy, 0);
  EXPECT_NEAR(wrong->loss, std::log(sum), 1e-6);
}

TEST(Evaluate, SmallerLastBatchCountsByItsImages) {
  const TinyRun run;
  const auto all = Evaluate(*run.executor, run.program, EvalBatches(*run.data.test, 4));
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->count, 6);
  const double right = all->accuracy * 6;
  EXPECT_EQ(right, std::round(right));
  // Again: nothing of the first run remains.
  const auto again = Evaluate(*run.executor, run.program, EvalBatches(*run.data.test, 4));
  EXPECT_EQ(again->loss, all->loss);
  EXPECT_EQ(again->accuracy, all->accuracy);
}

TEST(Evaluate, LeavesTheWeightsAlone) {
  const TinyRun run;
  const auto bytes = run.executor->device().arena().first(run.program.program.residents.end_bytes);
  const std::vector<std::byte> before(bytes.begin(), bytes.end());
  ASSERT_TRUE(Evaluate(*run.executor, run.program, EvalBatches(*run.data.test, 4)).ok());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), before.begin()));
}

TEST(Evaluate, AnUnreadableImageIsAnError) {
  const TinyRun run;
  const OneClassDataset dataset(run.data.test->format(), 6, 3, /*broken_index=*/5);
  const auto result = Evaluate(*run.executor, run.program, EvalBatches(dataset, 4));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "broken image");
}

TEST(EvaluateDeathTest, ANumberOfImagesThatWasNotPlanned) {
  const TinyRun run;
  const OneClassDataset dataset(run.data.test->format(), 5, 3);
  EXPECT_DEATH((void)Evaluate(*run.executor, run.program, EvalBatches(dataset, 4)),
               "no plan 'evaluate 1'");
}

}  // namespace
}  // namespace thimble
