#include "thimble/train/loop/dump_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "thimble/base/augmentation.h"
#include "thimble/base/function_ref.h"
#include "thimble/data/batches.h"
#include "thimble/train/task/image_task.h"
#include "thimble/train/weights/safetensors_writer.h"

namespace thimble {
namespace {

using ChangeImages = FunctionRef<void(int64_t step, std::span<uint8_t> images)>;

// Does the same as image_crop_flip in the graph.
void CropFlipBatch(const TrainBatches& batches, const ImageFormat& format,
                   const RandomSource& source, int64_t step, std::span<uint8_t> images) {
  const auto epoch = static_cast<uint32_t>(batches.BatchAt(step).epoch);
  std::vector<int32_t> samples(static_cast<size_t>(batches.CountAt(step)));
  batches.Samples(step, samples);
  std::vector<uint8_t> original(static_cast<size_t>(format.image_bytes()));
  uint8_t* image = images.data();
  for (const int32_t sample : samples) {
    std::copy_n(image, original.size(), original.begin());
    CropFlipImage(DrawCropFlip(source, epoch, static_cast<uint32_t>(sample)), format.height,
                  format.width, format.channels, original.data(), image);
    image += original.size();
  }
}

// `shape` is that of the labels; the images have it too, followed by (H, W, C). `change` is called
// with each batch before it is written.
template <class Batches>
Result<void> WriteSteps(const Batches& batches, int64_t num_steps,
                        const std::vector<int64_t>& shape, const ImageFormat& format,
                        const std::string& path, ChangeImages change) {
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
      if (write_images) change(step, image_bytes);
      THIMBLE_TRY(writer.Append(write_images ? std::as_bytes(image_bytes)
                                             : std::as_bytes(std::span(labels).first(count))));
    }
  }
  return writer.Finish();
}

}  // namespace

Result<void> DumpBatches(const TrainConfig& config, const ImageData& data, int64_t num_steps,
                         const std::string& path) {
  const TrainBatches batches(*data.train, config.batch, config.seed);
  if (num_steps > data.train->size() / config.batch) {
    return BadInput(fmt::format("--dump-steps {}: the training set has only {} full batches",
                                num_steps, data.train->size() / config.batch));
  }
  const ImageFormat& format = data.train->format();
  const RandomSource source(config.seed, RandomPurpose::kAugment);
  const bool crop_flip = ChosenAugmentation(config, data.augmentation) == Augmentation::kCropFlip;
  return WriteSteps(batches, num_steps, {num_steps, config.batch}, format, path,
                    [&](int64_t step, std::span<uint8_t> images) {
                      if (crop_flip) CropFlipBatch(batches, format, source, step, images);
                    });
}

Result<void> DumpImages(const ImageDataset& dataset, const std::string& path) {
  // Any size gives the same file; this one keeps the buffer below a megabyte.
  constexpr int64_t kBatch = 100;
  const EvalBatches batches(dataset, kBatch);
  return WriteSteps(batches, batches.num_batches(), {dataset.size()}, dataset.format(), path,
                    [](int64_t, std::span<uint8_t>) {});
}

}  // namespace thimble
