#include "thimble/train/dump_batches.h"

#include <fmt/format.h>

#include <vector>

#include "thimble/data/batches.h"
#include "thimble/train/safetensors_writer.h"

namespace thimble {

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
  const ImageFormat& format = data.train->format();
  const std::vector<TensorSpec> specs = {
      {"labels", DType::kI32, {num_steps, config.batch}},
      {"images",
       DType::kU8,
       {num_steps, config.batch, format.height, format.width, format.channels}}};
  THIMBLE_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, specs, {}));
  std::vector<uint8_t> images(static_cast<size_t>(config.batch * format.image_bytes()));
  std::vector<int32_t> labels(static_cast<size_t>(config.batch));
  for (const bool write_images : {false, true}) {
    for (int64_t step = 0; step < num_steps; ++step) {
      THIMBLE_TRY(batches.Fill(step, images, labels));
      THIMBLE_TRY(writer.Append(write_images ? std::as_bytes(std::span(images))
                                             : std::as_bytes(std::span(labels))));
    }
  }
  return writer.Finish();
}

}  // namespace thimble
