#include "thimble/train/weights/state_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/train/file_fixture.h"

namespace thimble {
namespace {

// A convolution weight (O, KH, KW, I) = (2, 1, 3, 2), a bias, a mask that is listed before larger
// types, a scalar counter.
struct Model {
  std::vector<float> weight = std::vector<float>(12);
  std::vector<float> bias = std::vector<float>(2);
  std::vector<uint8_t> mask = std::vector<uint8_t>(3);
  std::vector<int32_t> counter = std::vector<int32_t>(1);

  std::vector<StoredTensor> Tensors() {
    return {{"mask", {mask.data(), DType::kU8, {3}}, FileLayout::kAsStored},
            {"conv.weight", {weight.data(), DType::kF32, {2, 1, 3, 2}}, FileLayout::kOhwiToOihw},
            {"conv.bias", {bias.data(), DType::kF32, {2}}, FileLayout::kAsStored},
            {"counter", {counter.data(), DType::kI32, {}}, FileLayout::kAsStored}};
  }
  friend bool operator==(const Model&, const Model&) = default;
};

Model FilledModel() {
  Model model;
  std::iota(model.weight.begin(), model.weight.end(), 1.0F);
  model.bias = {-1.5F, 0.25F};
  model.mask = {1, 0, 255};
  model.counter = {-7};
  return model;
}

class StateFileTest : public FileFixture {
 protected:
  StateFileTest() { EXPECT_TRUE(SaveTensors(path_, saved_.Tensors(), {{"k", "v"}}).ok()); }

  // Loads the file, which must fail and leave the model unchanged; the message without the path.
  std::string RefusalOf(std::vector<StoredTensor> tensors, const Model& model,
                        LoadRule rule = LoadRule::kExact) {
    const Model before = model;
    const Result<void> result = LoadTensors(path_, tensors, rule);
    EXPECT_EQ(model, before);
    if (result.ok()) return "was loaded";
    EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
    EXPECT_TRUE(result.error().message.starts_with(path_ + ": "));
    return result.error().message.substr(path_.size() + 2);
  }

  Model saved_ = FilledModel();
};

TEST_F(StateFileTest, LoadsWhatWasSaved) {
  Model loaded;
  ASSERT_TRUE(LoadTensors(path_, loaded.Tensors(), LoadRule::kExact).ok());
  EXPECT_EQ(loaded, saved_);
}

TEST_F(StateFileTest, OrderOfTheListDoesNotMatter) {
  Model loaded;
  std::vector<StoredTensor> tensors = loaded.Tensors();
  std::ranges::reverse(tensors);
  ASSERT_TRUE(LoadTensors(path_, tensors, LoadRule::kExact).ok());
  EXPECT_EQ(loaded, saved_);
}

TEST_F(StateFileTest, SameTensorsSameBytes) {
  const std::string first = Content(path_);
  ASSERT_TRUE(SaveTensors(path_, saved_.Tensors(), {{"k", "v"}}).ok());
  EXPECT_EQ(Content(path_), first);
}

TEST_F(StateFileTest, WeightsLieAsPyTorchExpects) {
  const Result<SafetensorsReader> file = SafetensorsReader::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->metadata(), (TensorMetadata{{"k", "v"}}));
  const TensorEntry* entry = file->Find("conv.weight");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->shape, (Shape{2, 2, 1, 3}));
  std::vector<float> values(12);
  ASSERT_TRUE(file->Read(*entry, std::as_writable_bytes(std::span(values))).ok());
  EXPECT_EQ(values, (std::vector<float>{1, 3, 5, 2, 4, 6, 7, 9, 11, 8, 10, 12}));
}

TEST_F(StateFileTest, EachTensorIsAligned) {
  const Result<SafetensorsReader> file = SafetensorsReader::Open(path_);
  ASSERT_TRUE(file.ok());
  for (const TensorEntry& entry : file->tensors()) {
    EXPECT_EQ(entry.begin % static_cast<int64_t>(SizeBytes(*entry.dtype)), 0) << entry.name;
  }
}

TEST_F(StateFileTest, ExtraTensorsAreAllowedOnlyByRule) {
  Model loaded;
  std::vector<StoredTensor> tensors = loaded.Tensors();
  tensors.pop_back();
  EXPECT_EQ(RefusalOf(tensors, loaded), "has an unexpected tensor \"counter\" of I32 ()");
  ASSERT_TRUE(LoadTensors(path_, tensors, LoadRule::kAllowExtra).ok());
  EXPECT_EQ(loaded.weight, saved_.weight);
  EXPECT_EQ(loaded.counter, Model().counter);
}

TEST_F(StateFileTest, BatchCountersOfPyTorchAreIgnored) {
  Put(path_,
      RawFile(R"({"bn.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})", 8));
  EXPECT_TRUE(LoadTensors(path_, {}, LoadRule::kExact).ok());
  Put(path_, RawFile(R"({"bn.other":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})", 8));
  EXPECT_EQ(RefusalOf({}, {}), "has an unexpected tensor \"bn.other\" of I64 ()");
}

TEST_F(StateFileTest, MissingTensor) {
  Model loaded;
  std::vector<StoredTensor> tensors = loaded.Tensors();
  tensors.push_back({"fc.weight", {nullptr, DType::kF32, {10, 4}}, FileLayout::kAsStored});
  EXPECT_EQ(RefusalOf(tensors, loaded, LoadRule::kAllowExtra),
            "expected tensor \"fc.weight\" of F32 (10, 4), the file has no such tensor");
}

TEST_F(StateFileTest, OtherShape) {
  Model loaded;
  std::vector<StoredTensor> tensors = loaded.Tensors();
  tensors[1].view.shape = {2, 3, 1, 2};  // as many elements
  EXPECT_EQ(RefusalOf(tensors, loaded),
            "expected tensor \"conv.weight\" of F32 (2, 2, 3, 1), the file has F32 (2, 2, 1, 3)");
}

TEST_F(StateFileTest, OtherLayout) {
  Model loaded;
  std::vector<StoredTensor> tensors = loaded.Tensors();
  tensors[1].layout = FileLayout::kAsStored;
  EXPECT_EQ(RefusalOf(tensors, loaded),
            "expected tensor \"conv.weight\" of F32 (2, 1, 3, 2), the file has F32 (2, 2, 1, 3)");
}

TEST_F(StateFileTest, OtherType) {
  Model loaded;
  std::vector<StoredTensor> tensors = loaded.Tensors();
  tensors[2].view.dtype = DType::kI32;
  EXPECT_EQ(RefusalOf(tensors, loaded),
            "expected tensor \"conv.bias\" of I32 (2), the file has F32 (2)");
  Put(path_, RawFile(R"({"conv.bias":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})", 4));
  EXPECT_EQ(RefusalOf({loaded.Tensors()[2]}, loaded),
            "expected tensor \"conv.bias\" of F32 (2), the file has BF16 (2)");
}

TEST_F(StateFileTest, DamagedFile) {
  Model loaded;
  std::filesystem::resize_file(path_, Content(path_).size() - 1);
  EXPECT_NE(RefusalOf(loaded.Tensors(), loaded).find("bytes of data"), std::string::npos);
}

TEST_F(StateFileTest, NameUsedTwice) {
  std::vector<StoredTensor> tensors = saved_.Tensors();
  tensors[0].name = tensors[1].name;
  const Result<void> result = SaveTensors(path_, tensors, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
  EXPECT_TRUE(LoadTensors(path_, saved_.Tensors(), LoadRule::kExact).ok());
}

TEST_F(StateFileTest, FullDiskLeavesThePreviousFile) {
  const std::vector<float> large(50'000, 1.0F);
  const std::vector<StoredTensor> tensors = {
      {"large", {const_cast<float*>(large.data()), DType::kF32, {50'000}}, FileLayout::kAsStored}};
  Result<void> result;
  {
    const ScopedFileSizeLimit limit(100'000);
    result = SaveTensors(path_, tensors, {});
  }
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kFailed);
  Model loaded;
  ASSERT_TRUE(LoadTensors(path_, loaded.Tensors(), LoadRule::kExact).ok());
  EXPECT_EQ(loaded, saved_);
}

TEST(FindNotFinite, NamesTheFirst) {
  std::vector<float> good = {1, -3e38F, 0};
  std::vector<float> bad = {1, 2, std::numeric_limits<float>::infinity(), std::nanf("")};
  std::vector<int32_t> whole = {0x7fc00000};  // would be NaN as a float
  const StoredTensor fine{"fine", {good.data(), DType::kF32, {3}}, FileLayout::kAsStored};
  const StoredTensor numbers{"numbers", {whole.data(), DType::kI32, {1}}, FileLayout::kAsStored};
  const StoredTensor wild{"wild", {bad.data(), DType::kF32, {2, 2}}, FileLayout::kAsStored};
  EXPECT_EQ(FindNotFinite({}), "");
  EXPECT_EQ(FindNotFinite(std::vector{fine, numbers}), "");
  EXPECT_EQ(FindNotFinite(std::vector{fine, wild}),
            "tensor \"wild\" has an infinite number at element 2");
  bad[2] = -std::nanf("");
  EXPECT_EQ(FindNotFinite(std::vector{wild}), "tensor \"wild\" has nan at element 2");
}

using LoadWeightsTest = FileFixture;

TEST_F(LoadWeightsTest, OnlyFiniteOnes) {
  std::vector<float> weights = {1, 2, 3, 4};
  const std::vector<StoredTensor> tensors = {
      {"w", {weights.data(), DType::kF32, {4}}, FileLayout::kAsStored}};
  ASSERT_TRUE(SaveTensors(path_, tensors, {}).ok());
  EXPECT_TRUE(LoadWeights(path_, tensors).ok());
  weights[3] = std::nanf("");
  ASSERT_TRUE(SaveTensors(path_, tensors, {}).ok());
  const auto loaded = LoadWeights(path_, tensors);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(loaded.error().message,
            path_ +
                ": tensor \"w\" has nan at element 3: weights must be finite; these come from a "
                "run that diverged");
}

}  // namespace
}  // namespace thimble
