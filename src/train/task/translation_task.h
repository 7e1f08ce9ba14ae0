// Translation: pairs of sentences, in batches of about equally many tokens.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "thimble/data/text/batch_shapes.h"
#include "thimble/data/text/text_dataset.h"
#include "thimble/model/translator.h"
#include "thimble/train/options/config.h"
#include "thimble/train/task/task.h"

namespace thimble {

class TranslationTask final : public Task {
 public:
  enum class Shapes { kAll, kLargest };

  // Without data, every batch has sentences of 25 tokens on each side.
  TranslationTask(std::string model, TranslatorSpec spec, std::shared_ptr<const TextData> data,
                  uint64_t seed, Shapes shapes = Shapes::kAll);

  const TranslatorSpec& spec() const { return spec_; }
  // Limits of batches of this size; larger if a sentence of the data set is longer.
  static BatchLimits LimitsOf(const TextDataset& dataset, DataPart part, int64_t batch);

  const std::string& model() const override { return model_; }
  const std::string& model_text() const override { return spec_.text; }
  Result<Network> Build(const OpRegistry& ops, const BatchShape& shape, Mode mode) const override;
  std::string_view unit() const override { return "tokens"; }
  bool loss_is_sum() const override { return true; }
  std::vector<BatchField> fields() const override;
  std::vector<BatchShape> TrainShapes(int64_t batch) const override;
  std::vector<BatchShape> EvaluateShapes(DataPart part, int64_t batch) const override;
  BatchShape FullShape(int64_t batch) const override;
  std::shared_ptr<const Task> InFullBatches() const override;
  std::shared_ptr<const Task> InLargestShapes() const override;
  const TranslatorSpec* translator() const override { return &spec_; }
  int64_t longest_to_translate(DataPart part) const override;
  void MakeUp(const BatchShape& shape, BatchArrays arrays) const override;

 private:
  // The shapes for a part of the data, the largest first. Found once: reads all lengths.
  std::vector<BatchShape> ShapesOf(DataPart part, int64_t batch) const;

  std::string model_;
  TranslatorSpec spec_;
  std::shared_ptr<const TextData> data_;
  uint64_t seed_;
  Shapes shapes_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<DataPart, int64_t>, std::vector<BatchShape>> known_shapes_;
};

// The dictionaries of a run, in its folder.
inline constexpr const char* kSourceDictionaryFile = "dict.source.txt";
inline constexpr const char* kTargetDictionaryFile = "dict.target.txt";

// Describing opens the data, if any were given.
Result<TaskPtr> DescribeTranslationTask(const TrainConfig& config);
Result<OpenedTask> OpenTranslationTask(const TrainConfig& config);

}  // namespace thimble
