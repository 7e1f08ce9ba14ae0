#include "thimble/train/task/image_task.h"

#include <algorithm>
#include <utility>

#include "thimble/base/check.h"
#include "thimble/data/batches.h"
#include "thimble/model/model_file.h"

namespace thimble {
namespace {

// Shapes that occur when `images` are taken `batch` at a time.
std::vector<BatchShape> ShapesOf(int64_t images, int64_t batch) {
  std::vector<BatchShape> shapes;
  if (images >= batch) shapes.push_back({batch});
  if (images % batch != 0) shapes.push_back({images % batch});
  return shapes;
}

int64_t CountOf(const ImageCounts& counts, DataPart part) {
  if (part == DataPart::kTrain) return counts.train;
  return part == DataPart::kTest ? counts.test : counts.validation;
}

uint8_t MadeByte(size_t index) {
  return static_cast<uint8_t>(index * 2654435761U >> 13);  // looks random
}

ImageSpec MakeSpec(const ImageFormat& format, Augmentation augmentation) {
  return {format.height, format.width, format.channels, format.classes,
          format.mean,   format.std,   augmentation};
}

class OpenedImages final : public TaskData {
 public:
  OpenedImages(ImageData data, uint64_t seed) : data_(std::move(data)), seed_(seed) {}

  const std::string& identity() const override { return data_.identity; }
  bool Has(DataPart part) const override {
    return part != DataPart::kValidation || data_.validation != nullptr;
  }
  std::unique_ptr<TrainingSource> Training(int64_t batch) const override {
    return std::make_unique<TrainBatches>(*data_.train, batch, seed_);
  }
  std::unique_ptr<EvaluationSource> Evaluation(DataPart part, int64_t batch) const override {
    return std::make_unique<EvalBatches>(DatasetOf(part), batch);
  }

 private:
  const ImageDataset& DatasetOf(DataPart part) const {
    THIMBLE_CHECK(Has(part), "there are no validation images");
    if (part == DataPart::kTrain) return *data_.train;
    return part == DataPart::kTest ? *data_.test : *data_.validation;
  }

  ImageData data_;
  uint64_t seed_;
};

}  // namespace

ImageSpec SpecOf(const ImageData& data) {
  return MakeSpec(data.train->format(), data.augmentation);
}

Augmentation ChosenAugmentation(const TrainConfig& config, Augmentation usual) {
  if (config.augment == "none") return Augmentation::kNone;
  if (config.augment == "crop-flip") return Augmentation::kCropFlip;
  return usual;
}

ImageTask::ImageTask(ImageClassifier model, const ImageCounts& counts, const ImageDraws& draws)
    : model_(std::move(model)), counts_(counts), draws_(draws) {}

Result<Network> ImageTask::Build(const OpRegistry& ops, const BatchShape& shape, Mode mode) const {
  return BuildNetwork(model_, ops, shape.samples, mode, draws_);
}

std::vector<BatchField> ImageTask::fields() const {
  const ImageSpec& images = model_.images;
  return ImageFields(images.height * images.width * images.channels);
}

std::vector<BatchShape> ImageTask::TrainShapes(int64_t batch) const {
  std::vector<BatchShape> shapes = {{batch}};
  if (counts_.train % batch != 0) shapes.push_back({counts_.train % batch});
  return shapes;
}

std::vector<BatchShape> ImageTask::EvaluateShapes(DataPart part, int64_t batch) const {
  return ShapesOf(CountOf(counts_, part), batch);
}

std::shared_ptr<const Task> ImageTask::InFullBatches() const {
  return std::make_shared<ImageTask>(model_, ImageCounts{}, draws_);
}

void ImageTask::MakeUp(const BatchShape& /*shape*/, BatchArrays arrays) const {
  for (size_t i = 0; i < arrays[0].size(); ++i) arrays[0][i] = std::byte{MadeByte(i)};
  const std::span<int32_t> labels = ArrayOf<int32_t>(arrays[1]);
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<int32_t>(static_cast<int64_t>(i) % model_.images.classes);
  }
}

std::shared_ptr<const ImageTask> MakeImageTask(const TrainConfig& config, ImageClassifier model,
                                               const ImageCounts& counts) {
  const ImageDraws draws{ChosenAugmentation(config, model.images.augmentation), config.seed};
  return std::make_shared<ImageTask>(std::move(model), counts, draws);
}

Result<std::shared_ptr<const ImageTask>> DescribeImageTask(const TrainConfig& config,
                                                           const ModelFactory& make_model) {
  if (config.data_given || !IsModelFile(config.model)) {
    THIMBLE_ASSIGN_OR_RETURN(
        const ImageDescription data,
        DescribeImageData(config.data, {.seed = config.seed, .validation = config.validation}));
    THIMBLE_ASSIGN_OR_RETURN(ImageClassifier model,
                             make_model(MakeSpec(data.format, data.augmentation)));
    return MakeImageTask(config, std::move(model), data.counts);
  }
  THIMBLE_ASSIGN_OR_RETURN(const ModelFile file, ReadModelFile(config.model));
  THIMBLE_ASSIGN_OR_RETURN(ImageClassifier model, make_model(file.images));
  return MakeImageTask(config, std::move(model), {});
}

Result<OpenedTask> OpenImageTask(const TrainConfig& config, const ModelFactory& make_model) {
  THIMBLE_ASSIGN_OR_RETURN(
      ImageData data,
      OpenImageData(config.data, {.seed = config.seed, .validation = config.validation}));
  THIMBLE_ASSIGN_OR_RETURN(ImageClassifier model, make_model(SpecOf(data)));
  model.images.augmentation = data.augmentation;  // depends on the data, not on the network
  TaskPtr task = MakeImageTask(config, std::move(model), CountsOf(data));
  return OpenedTask{std::move(task), std::make_unique<OpenedImages>(std::move(data), config.seed)};
}

}  // namespace thimble
