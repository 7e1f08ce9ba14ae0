#include "thimble/train/dump_batches.h"

#include <fmt/format.h>

#include <vector>

#include "thimble/data/batches.h"
#include "thimble/train/safetensors_writer.h"

namespace thimble {
namespace {

// `shape` is that of the labels; the images have it too, followed by (H, W, C).
Result<void> WriteSteps(const BatchSource& batches, int64_t num_steps,
                        const std::vector<int64_t>& shape, const ImageFormat& format,
                        const std::string& path) {
  std::vector<int64_t> image_shape = shape;
  image_shape.insert(image_shape.end(), {format.height, format.width, format.channels});
  const std::vector<TensorSpec> specs = {{"labels", DType::kI32, Shape(shape)},
                                         {"images", DType::kU8, Shape(image_shape)}};
  THIMBLE_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, specs, {}));
  const int64_t largest = batches.CountAt(0);
  std::vector<uint8_t> images(static_cast<size_t>(largest * batches.image_bytes()));
  std::vector<int32_t> labels(static_cast<size_t>(largest));
  for (const bool write_images : {false, true}) {
    for (int64_t step = 0; step < num_steps; ++step) {
      THIMBLE_TRY(batches.Fill(step, images, labels));
      const auto count = static_cast<size_t>(batches.CountAt(step));
      const auto image_bytes = std::span(images).first(count * batches.image_bytes());
      THIMBLE_TRY(writer.Append(write_images ? std::as_bytes(image_bytes)
                                             : std::as_bytes(std::span(labels).first(count))));
    }
  }
  return writer.Finish();
}

}  // namespace

Augmentation ChosenAugmentation(const TrainConfig& config, const ImageData& data) {
  if (config.augment == "none") return Augmentation::kNone;
  if (config.augment == "crop-flip") return Augmentation::kCropFlip;
  return data.augmentation;
}

Result<void> DumpBatches(const TrainConfig& config, const ImageData& data, int64_t num_steps,
                         const std::string& path) {
  const TrainBatches batches(*data.train, config.batch, config.seed,
                             ChosenAugmentation(config, data));
  if (num_steps > data.train->size() / config.batch) {
    return BadInput(fmt::format("--dump-steps {}: the training set has {} full batches", num_steps,
                                data.train->size() / config.batch));
  }
  return WriteSteps(batches, num_steps, {num_steps, config.batch}, data.train->format(), path);
}

Result<void> DumpImages(const ImageDataset& dataset, const std::string& path) {
  // Any size gives the same file; this one keeps the buffer below a megabyte.
  constexpr int64_t kBatch = 100;
  const EvalBatches batches(dataset, kBatch);
  return WriteSteps(batches, batches.num_steps(), {dataset.size()}, dataset.format(), path);
}

}  // namespace thimble
