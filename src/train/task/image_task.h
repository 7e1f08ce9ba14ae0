// Image classification: images with one label each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "thimble/data/image_dataset.h"
#include "thimble/model/image_classifier.h"
#include "thimble/train/options/config.h"
#include "thimble/train/task/task.h"

namespace thimble {

// The images of an opened data set, as a network sees them.
ImageSpec SpecOf(const ImageData& data);

// The augmentation of the configuration, or the data set's usual one if that is "auto".
Augmentation ChosenAugmentation(const TrainConfig& config, Augmentation usual);

class ImageTask final : public Task {
 public:
  // counts.train = 0: unknown; then there are full batches only.
  ImageTask(ImageClassifier model, const ImageCounts& counts, const ImageDraws& draws);

  const ImageClassifier& classifier() const { return model_; }
  const ImageCounts& counts() const { return counts_; }
  Augmentation augmentation() const { return draws_.augmentation; }

  const std::string& model() const override { return model_.name; }
  const std::string& model_text() const override { return model_.file_text; }
  Result<Network> Build(const OpRegistry& ops, const BatchShape& shape, Mode mode) const override;
  std::string_view unit() const override { return "images"; }
  bool loss_is_sum() const override { return false; }
  std::vector<BatchField> fields() const override;
  std::vector<BatchShape> TrainShapes(int64_t batch) const override;
  std::vector<BatchShape> EvaluateShapes(DataPart part, int64_t batch) const override;
  BatchShape FullShape(int64_t batch) const override { return {batch}; }
  int64_t largest_batch() const override { return counts_.train; }
  std::shared_ptr<const Task> InFullBatches() const override;
  void MakeUp(const BatchShape& shape, BatchArrays arrays) const override;

 private:
  ImageClassifier model_;
  ImageCounts counts_;
  ImageDraws draws_;
};

// With the configuration's augmentation and seed.
std::shared_ptr<const ImageTask> MakeImageTask(const TrainConfig& config, ImageClassifier model,
                                               const ImageCounts& counts);

// Makes the network from the images of config.data. Describing reads no files of published data
// sets; if no data was given and config.model is a model file, the images are as that says.
Result<std::shared_ptr<const ImageTask>> DescribeImageTask(const TrainConfig& config,
                                                           const ModelFactory& make_model);
Result<OpenedTask> OpenImageTask(const TrainConfig& config, const ModelFactory& make_model);

}  // namespace thimble
