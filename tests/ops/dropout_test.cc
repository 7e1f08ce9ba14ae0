#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/case_draw.h"
#include "tests/support/cuda_memory.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"
#include "thimble/ops/dropout/dropout_draw.h"

namespace thimble {
namespace {

using testing::HasSubstr;

using Floats = std::vector<float>;

OpCase DropoutCase(const Shape& x, double rate, int64_t seed = 7, int64_t stream = 0) {
  return {.op = "dropout",
          .inputs = {x, Shape{x[0]}, Shape{1}},
          .attributes = {{"rate", rate}, {"seed", seed}, {"stream", stream}},
          .integer_bound = 50000};
}

}  // namespace

std::vector<OpCase> DropoutCases() {
  return {DropoutCase({1}, 0.5),
          DropoutCase({5}, 0.3, -1),
          DropoutCase({0, 8}, 0.3),
          DropoutCase({3, 0, 2}, 0.3),
          DropoutCase({2, 3}, 0, 1, 2),
          DropoutCase({7, 6, 9, 3}, 0.3, 3, 1),
          DropoutCase({4, 5, 5, 4}, 0.9, 3, 0xFFFFFFFF),
          DropoutCase({3, 1027}, 0.25, int64_t{1} << 40, 5),
          DropoutCase({2, 130, 131}, 0.3),  // more than a chunk of a sample
          DropoutCase({2, 64, 64, 8}, 0.999)};
}

OpCase Random_dropout(CaseDraw& draw) {
  const double rate = draw.OneIn(8) ? 0 : 0.99 * draw.Fraction();
  return DropoutCase(draw.AnyShape(), rate, draw.Word(), draw.Word());
}

namespace {

// Dropout applied to ones: 0 where an element was dropped.
struct OnesCall {
  int64_t seed = 7;
  int64_t stream = 0;
  int epoch = 3;
  std::vector<int> samples = {11};
  int64_t elements = 256;
  double rate = 0.5;

  std::vector<Floats> RunAll() const {
    const auto batch = static_cast<int64_t>(samples.size());
    const Floats ones(static_cast<size_t>(batch * elements), 1.0F);
    std::vector<Floats> results;
    for (auto& outputs : RunAllKernels(DropoutCase({batch, elements}, rate, seed, stream),
                                       {{ones, {}}, {{}, samples}, {{}, {epoch}}})) {
      results.push_back(std::move(outputs[0].floats));
    }
    return results;
  }
  Floats Run() const { return RunAll()[0]; }
};

TEST(Dropout, DrawsForSeedStreamEpochSampleAndElement) {
  // A data set may have up to 2^32 images: the largest index has all bits set.
  for (const int sample : {0, 49999, -1}) {
    const OnesCall call{
        .seed = 5, .stream = 9, .epoch = 199, .samples = {sample}, .elements = 1030};
    const DropoutDraw draw(5, 9, 0.5);
    for (const Floats& y : call.RunAll()) {
      for (uint32_t i = 0; i < y.size(); ++i) {
        const auto words = draw.Words(199, static_cast<uint32_t>(sample), i / 4);
        ASSERT_EQ(y[i], words[i % 4] >= 0x80000000 ? 2.0F : 0.0F) << "element " << i;
      }
    }
  }
}

void ExpectOneResultOfAllKernels(int64_t elements) {
  for (const double rate : {0.1, 0.3, 0.77}) {
    const auto results =
        OnesCall{.samples = {3, 1, 4}, .elements = elements, .rate = rate}.RunAll();
    for (const Floats& y : results) EXPECT_EQ(y, results[0]);
  }
}

TEST(Dropout, AllKernelsGiveTheSameBits) { ExpectOneResultOfAllKernels(1001); }

TEST(CudaDropout, GivesTheBitsOfTheCpu) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  for (const int64_t elements : {1, 5, 64, 1001, 4096, 40000})
    ExpectOneResultOfAllKernels(elements);
}

// The number of elements that are zero in exactly one of two results.
int64_t Differences(const Floats& a, const Floats& b) {
  int64_t differences = 0;
  for (size_t i = 0; i < a.size(); ++i) differences += (a[i] == 0) != (b[i] == 0);
  return differences;
}

TEST(Dropout, EveryCoordinateChangesAboutHalfOfTheDraws) {
  const OnesCall call{.elements = 4096};
  const Floats y = call.Run();
  EXPECT_EQ(Differences(y, call.Run()), 0);
  std::vector<OnesCall> moved(4, call);
  moved[0].seed = 8;
  moved[1].stream = 1;
  moved[2].epoch = 4;
  moved[3].samples = {12};
  for (size_t i = 0; i < moved.size(); ++i) {
    // Binomial with deviation 32: six of them.
    EXPECT_NEAR(static_cast<double>(Differences(y, moved[i].Run())), 2048, 192) << i;
  }
}

TEST(Dropout, BatchEqualsItsPartsBitForBit) {
  for (const int64_t elements : {int64_t{5}, int64_t{1000}, int64_t{20000}}) {
    const std::vector<int> samples = {9, 4, 40000, 17, 0, 2, 30};
    const auto size = static_cast<ptrdiff_t>(3 * elements);
    const Floats whole = OnesCall{.samples = samples, .elements = elements}.Run();
    const Floats first =
        OnesCall{.samples = {samples.begin(), samples.begin() + 3}, .elements = elements}.Run();
    const Floats second =
        OnesCall{.samples = {samples.begin() + 3, samples.end()}, .elements = elements}.Run();
    EXPECT_EQ(Floats(whole.begin(), whole.begin() + size), first);
    EXPECT_EQ(Floats(whole.begin() + size, whole.end()), second);
  }
}

TEST(Dropout, TheShapeOfASampleDoesNotMatter) {
  const Floats x(120, 1.0F);
  const std::vector<OpData> inputs = {{x, {}}, {{}, {8, 5}}, {{}, {2}}};
  EXPECT_EQ(RunOp(DropoutCase({2, 60}, 0.4), inputs)[0].floats,
            RunOp(DropoutCase({2, 3, 4, 5}, 0.4), inputs)[0].floats);
}

TEST(Dropout, DropsAtItsRateAndKeepsTheMean) {
  for (const double rate : {0.05, 0.3, 0.5, 0.9}) {
    std::vector<int> samples(50);
    std::iota(samples.begin(), samples.end(), 100);
    const Floats y = OnesCall{.samples = samples, .elements = 4000, .rate = rate}.Run();
    const auto count = static_cast<double>(y.size());
    const auto dropped = static_cast<double>(std::count(y.begin(), y.end(), 0.0F));
    const double deviation = std::sqrt(count * rate * (1 - rate));
    EXPECT_NEAR(dropped, count * rate, 5 * deviation) << "rate " << rate;
    const double sum = std::accumulate(y.begin(), y.end(), 0.0);
    EXPECT_NEAR(sum, count, 5 * deviation / (1 - rate)) << "rate " << rate;
  }
}

TEST(Dropout, EveryPlaceOfASampleIsDroppedSometimes) {
  // The four words of a draw, and neighbours, must be independent.
  std::vector<int> samples(2000);
  std::iota(samples.begin(), samples.end(), 0);
  const Floats y = OnesCall{.samples = samples, .elements = 8, .rate = 0.3}.Run();
  for (size_t place = 0; place < 8; ++place) {
    int64_t dropped = 0;
    int64_t with_next = 0;
    for (size_t row = 0; row < samples.size(); ++row) {
      const bool here = y[row * 8 + place] == 0;
      dropped += here;
      with_next += here && y[row * 8 + (place + 1) % 8] == 0;
    }
    EXPECT_NEAR(static_cast<double>(dropped), 600, 6 * std::sqrt(2000 * 0.3 * 0.7));
    EXPECT_NEAR(static_cast<double>(with_next), 180, 6 * std::sqrt(2000 * 0.09 * 0.91));
  }
}

TEST(Dropout, RateZeroKeepsEverything) {
  for (const Floats& y : OnesCall{.elements = 1000, .rate = 0}.RunAll()) {
    EXPECT_EQ(y, Floats(1000, 1.0F));
  }
}

TEST(Dropout, ARateThatRoundsToOneDropsNearlyEverything) {
  const double rate = std::nextafter(1.0, 0.0);
  EXPECT_EQ(DropoutDraw(1, 0, rate).threshold, 0xFFFFFFFFU);
  for (const Floats& y : OnesCall{.elements = 1000, .rate = rate}.RunAll()) {
    EXPECT_EQ(y, Floats(1000, 0.0F));
  }
}

TEST(Dropout, KeepsNanAndInfinityWhereItKeeps) {
  const Floats mask = OnesCall{.elements = 64}.Run();
  for (const float special : {NAN, INFINITY}) {
    for (const auto& outputs : RunAllKernels(DropoutCase({1, 64}, 0.5),
                                             {{Floats(64, special), {}}, {{}, {11}}, {{}, {3}}})) {
      for (size_t i = 0; i < 64; ++i) {
        const float y = outputs[0].floats[i];
        EXPECT_EQ(std::isnan(y) || std::isinf(y), mask[i] != 0);
        EXPECT_EQ(y == 0, mask[i] == 0);
      }
    }
  }
}

TEST(Dropout, RejectsWrongRatesAndStreams) {
  for (const double rate : {-0.1, 1.0, 1.5, static_cast<double>(NAN)}) {
    EXPECT_THAT(ShapeError(DropoutCase({2, 3}, rate)),
                HasSubstr("expected at least 0 and below 1"));
  }
  EXPECT_THAT(ShapeError(DropoutCase({2, 3}, 0.5, 1, -1)), HasSubstr("stream is -1"));
  EXPECT_THAT(ShapeError(DropoutCase({2, 3}, 0.5, 1, int64_t{1} << 32)),
              HasSubstr("stream is 4294967296, expected 0 to 4294967295"));
}

TEST(Dropout, RejectsWrongShapes) {
  OpCase op_case = DropoutCase({2, 8}, 0.5);
  op_case.inputs[0] = Shape{};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("at least 1 dimension (B, ...)"));
  op_case = DropoutCase({2, 8}, 0.5);
  op_case.inputs[1] = Shape{3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'samples' has shape (3), expected (2)"));
  op_case = DropoutCase({2, 8}, 0.5);
  op_case.inputs[2] = Shape{2};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'epoch' has shape (2), expected (1)"));
  EXPECT_THAT(ShapeError(DropoutCase({2, (int64_t{1} << 34) + 1}, 0.5)),
              HasSubstr("more than 17179869184 elements"));
}

}  // namespace
}  // namespace thimble
