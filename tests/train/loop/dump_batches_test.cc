#include "thimble/train/loop/dump_batches.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/run_op.h"
#include "tests/train/file_fixture.h"
#include "thimble/data/batches.h"
#include "thimble/train/weights/safetensors_reader.h"

namespace thimble {
namespace {

using DumpTest = FileFixture;

template <class T>
std::vector<T> ReadAll(const SafetensorsReader& file, std::string_view name) {
  const TensorEntry* entry = file.Find(name);
  std::vector<T> values(static_cast<size_t>(entry->shape.elements()));
  EXPECT_TRUE(file.Read(*entry, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

TEST_F(DumpTest, BatchesAreThoseOfTheTraining) {
  const TrainConfig config{.data = "shapes:30,20", .batch = 10, .seed = 7};
  const auto data = OpenImageData(config.data, {.seed = config.seed});
  ASSERT_TRUE(data.ok());
  ASSERT_TRUE(DumpBatches(config, *data, 2, path_).ok());
  const auto file = SafetensorsReader::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->Find("images")->shape, Shape({2, 10, 32, 32, 3}));
  EXPECT_EQ(file->Find("labels")->shape, Shape({2, 10}));
  const TrainBatches batches(*data->train, 10, config.seed);
  std::vector<uint8_t> images(2 * 10 * 3072);
  std::vector<int32_t> labels(2 * 10);
  for (size_t step = 0; step < 2; ++step) {
    ASSERT_TRUE(batches
                    .Fill(static_cast<int64_t>(step), std::span(images).subspan(step * 30720),
                          std::span(labels).subspan(step * 10))
                    .ok());
  }
  EXPECT_EQ(ReadAll<uint8_t>(*file, "images"), images);
  EXPECT_EQ(ReadAll<int32_t>(*file, "labels"), labels);
}

// The file has what the op makes of the training's inputs.
TEST_F(DumpTest, AugmentedBatchesAreThoseThatTheNetworkSees) {
  const TrainConfig config{.data = "shapes:20,20", .batch = 10, .augment = "crop-flip", .seed = 7};
  const auto data = OpenImageData(config.data, {.seed = config.seed});
  ASSERT_TRUE(data.ok());
  ASSERT_TRUE(DumpBatches(config, *data, 2, path_).ok());
  const auto file = SafetensorsReader::Open(path_);
  ASSERT_TRUE(file.ok());
  const auto dumped = ReadAll<uint8_t>(*file, "images");
  const TrainBatches batches(*data->train, 10, config.seed);
  for (int64_t step = 0; step < 2; ++step) {
    std::vector<uint8_t> images(10 * 3072);
    std::vector<int32_t> labels(10);
    std::vector<int32_t> samples(10);
    ASSERT_TRUE(batches.Fill(step, images, labels).ok());
    batches.Samples(step, samples);
    const auto seen = RunOp({.op = "image_crop_flip",
                             .inputs = {Shape{10, 32, 32, 3}, Shape{10}, Shape{1}},
                             .attributes = {{"seed", static_cast<int64_t>(config.seed)}}},
                            {{{}, {images.begin(), images.end()}}, {{}, samples}, {{}, {0}}})[0]
                          .integers;
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), dumped.begin() + step * 30720)) << step;
    EXPECT_FALSE(std::equal(images.begin(), images.end(), dumped.begin() + step * 30720)) << step;
  }
}

TEST_F(DumpTest, RefusesMoreBatchesThanAreFull) {
  const TrainConfig config{.data = "shapes:35,20", .batch = 10};
  const auto data = OpenImageData(config.data, {});
  const auto dumped = DumpBatches(config, *data, 4, path_);
  ASSERT_FALSE(dumped.ok());
  EXPECT_EQ(dumped.error().message, "--dump-steps 4: the training set has only 3 full batches");
}

TEST_F(DumpTest, ImagesAreTheWholePartInOrder) {
  const auto data = OpenImageData("shapes:10,105", {});  // not a multiple of the chunk
  ASSERT_TRUE(DumpImages(*data->test, path_).ok());
  const auto file = SafetensorsReader::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->Find("images")->shape, Shape({105, 32, 32, 3}));
  const auto images = ReadAll<uint8_t>(*file, "images");
  const auto labels = ReadAll<int32_t>(*file, "labels");
  std::vector<uint8_t> pixels(3072);
  for (const size_t index : {size_t{0}, size_t{99}, size_t{100}, size_t{104}}) {
    int32_t label = -1;
    ASSERT_TRUE(data->test->Read(static_cast<int64_t>(index), pixels, label).ok());
    EXPECT_EQ(labels[index], label);
    EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), images.begin() + index * 3072));
  }
}

}  // namespace
}  // namespace thimble
