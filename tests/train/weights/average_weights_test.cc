#include "thimble/train/weights/average_weights.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "tests/train/file_fixture.h"
#include "thimble/tensor/short_numbers.h"
#include "thimble/train/weights/state_file.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;

class AverageWeightsTest : public FileFixture {
 protected:
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }

  // A file with these tensors, and its path.
  std::string Save(const std::string& name, const std::vector<StoredTensor>& tensors) {
    EXPECT_TRUE(SaveTensors(PathOf(name), tensors, {}).ok());
    return PathOf(name);
  }
  std::string SaveFloats(const std::string& name, std::vector<float> numbers,
                         const std::string& tensor = "w") {
    return Save(name, {{tensor, {numbers.data(), DType::kF32, {std::ssize(numbers)}}}});
  }
  std::string Refusal(const std::vector<std::string>& paths) {
    const auto averaged = AverageWeights(paths, PathOf("mean"), {});
    EXPECT_FALSE(std::filesystem::exists(PathOf("mean")));
    if (averaged.ok()) return "was accepted";
    EXPECT_EQ(averaged.error().kind, ErrorKind::kBadInput);
    return averaged.error().message;
  }
};

// More than two pieces.
TEST_F(AverageWeightsTest, EachNumberIsTheMean) {
  std::vector<std::vector<float>> files(3, std::vector<float>(2500));
  std::vector<std::string> paths;
  for (size_t f = 0; f < files.size(); ++f) {
    for (size_t i = 0; i < files[f].size(); ++i) {
      files[f][i] = static_cast<float>(std::sin(static_cast<double>(i * (f + 1))));
    }
    paths.push_back(SaveFloats("file" + std::to_string(f), files[f]));
  }
  ASSERT_TRUE(AverageWeights(paths, PathOf("mean"), {{"model", "m"}}).ok());
  std::vector<float> mean(2500);
  const std::vector<StoredTensor> tensors = {{"w", {mean.data(), DType::kF32, {2500}}}};
  ASSERT_TRUE(LoadTensors(PathOf("mean"), tensors, LoadRule::kExact).ok());
  for (size_t i = 0; i < mean.size(); ++i) {
    const double sum = static_cast<double>(files[0][i]) + files[1][i] + files[2][i];
    EXPECT_EQ(mean[i], static_cast<float>(sum / 3)) << i;
  }
  EXPECT_EQ(SafetensorsReader::Open(PathOf("mean"))->metadata().at("model"), "m");
}

TEST_F(AverageWeightsTest, OfOneFileIsItself) {
  const std::string path = SaveFloats("file", {1.5F, -0.1F, 3e38F});
  ASSERT_TRUE(AverageWeights({{path}}, PathOf("mean"), {}).ok());
  EXPECT_EQ(Content(PathOf("mean")), Content(path));
}

// 1 and the next number of 16 bits: the mean lies between them.
TEST_F(AverageWeightsTest, SixteenBitsAreRoundedOnce) {
  std::vector<F16> numbers = {F16{0x3C00}, F16{0x3C01}};
  const std::vector<StoredTensor> tensors = {{"w", {numbers.data(), DType::kF16, {2}}}};
  const std::string first = Save("first", tensors);
  numbers = {F16{0x3C01}, F16{0x3C02}};
  const std::string second = Save("second", tensors);
  ASSERT_TRUE(AverageWeights(std::vector{first, second}, PathOf("mean"), {}).ok());
  ASSERT_TRUE(LoadTensors(PathOf("mean"), tensors, LoadRule::kExact).ok());
  EXPECT_EQ(numbers[0].bits, 0x3C00);  // ties to even
  EXPECT_EQ(numbers[1].bits, 0x3C02);
}

TEST_F(AverageWeightsTest, FilesMustHaveTheSameTensors) {
  const std::string path = SaveFloats("file", {1, 2});
  EXPECT_THAT(Refusal({path, SaveFloats("longer", {1, 2, 3})}),
              HasSubstr("longer: has tensor \"w\" of F32 (3); expected F32 (2), as in " + path));
  EXPECT_THAT(Refusal({path, SaveFloats("other", {1, 2}, "v")}),
              HasSubstr("other: no tensor \"w\"; expected F32 (2), as in " + path));
  std::vector<float> numbers = {1, 2};
  const TensorView view{numbers.data(), DType::kF32, {2}};
  EXPECT_THAT(Refusal({path, Save("more", {{"w", view}, {"v", view}})}),
              HasSubstr("more: has 2 tensors, expected 1, as in " + path));
}

TEST_F(AverageWeightsTest, OtherWrongFiles) {
  std::vector<int32_t> counts = {1, 2};
  const std::string path = Save("counts", {{"n", {counts.data(), DType::kI32, {2}}}});
  EXPECT_THAT(Refusal({path}), HasSubstr("counts: tensor \"n\" of I32 (2) has no numbers"));
  EXPECT_THAT(Refusal({PathOf("nowhere")}), HasSubstr("nowhere: "));
}

}  // namespace
}  // namespace thimble
