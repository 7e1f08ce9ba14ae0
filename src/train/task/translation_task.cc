#include "thimble/train/task/translation_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/base/check.h"
#include "thimble/data/text/text_sources.h"
#include "thimble/model/model_file.h"
#include "thimble/model/sequence_layers.h"

namespace thimble {
namespace {

// Sentences of IWSLT'14 have about this many tokens.
constexpr int64_t kUsualLength = 25;
// The dictionaries of IWSLT'14 with 10,000 joint subwords (docs/text-data.md), for plans without
// data.
constexpr int64_t kUsualSourceWords = 8848;
constexpr int64_t kUsualTargetWords = 6632;
// Every shape needs plans of its own. Little time is spent in evaluation.
constexpr int32_t kTrainShapes = 32;
constexpr int32_t kEvaluateShapes = 8;

int64_t LongestSentence(const TextDataset& dataset) {
  int32_t longest = 1;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const PairLength length = dataset.LengthAt(i);
    longest = std::max({longest, length.source, length.target});
  }
  return longest;
}

// Memory grows about linearly with the tokens of either side. How steeply differs from plan to
// plan, so this keeps the shapes with the most tokens of both sides, of the source, of the target,
// and with the most sentences. The ring of batches has room for just these.
std::vector<BatchShape> LargestOf(const std::vector<BatchShape>& shapes) {
  struct Weights {
    int64_t sentence, source, target;
  };
  std::vector<BatchShape> largest;
  for (const Weights& weights : {Weights{0, 1, 1}, {0, 1, 0}, {0, 0, 1}, {1, 0, 0}}) {
    const auto weight = [&](const BatchShape& shape) {
      return shape.samples * (weights.sentence + weights.source * shape.source_length +
                              weights.target * shape.target_length);
    };
    const BatchShape found = *std::ranges::max_element(shapes, {}, weight);
    if (std::ranges::find(largest, found) == largest.end()) largest.push_back(found);
  }
  return largest;
}

// Null if there is no such part.
const TextDataset* DatasetOf(const TextData& data, DataPart part) {
  if (part == DataPart::kTrain) return data.train.get();
  return part == DataPart::kTest ? data.test.get() : data.validation.get();
}

class OpenedText final : public TaskData {
 public:
  OpenedText(std::shared_ptr<const TextData> data, uint64_t seed)
      : data_(std::move(data)), seed_(seed) {}

  const std::string& identity() const override { return data_->identity; }
  std::vector<std::string> Omissions() const override {
    std::vector<std::string> lines;
    const TextOmissions left = data_->train->omissions();
    if (left.empty_pairs + left.long_pairs > 0) {
      lines.push_back(fmt::format(
          "training pairs left out: {} with an empty sentence, {} with one of more than {} tokens",
          left.empty_pairs, left.long_pairs, data_->max_sentence_tokens));
    }
    for (const auto& [dataset, name] :
         {std::pair{data_->validation.get(), "validation"}, {data_->test.get(), "test"}}) {
      const int64_t cut = dataset == nullptr ? 0 : dataset->omissions().cut_sentences;
      if (cut == 0) continue;
      lines.push_back(fmt::format("sentences cut at {} tokens: {} of the {} set",
                                  data_->max_sentence_tokens, cut, name));
    }
    return lines;
  }
  const TextDataset* Sentences(DataPart part) const override { return DatasetOf(*data_, part); }
  std::vector<FileToKeep> FilesToKeep() const override {
    std::vector<FileToKeep> files = {
        {kSourceDictionaryFile, data_->train->source_dictionary().ToText()},
        {kTargetDictionaryFile, data_->train->target_dictionary().ToText()}};
    if (data_->merges != nullptr) files.push_back({kMergesFile, data_->merges->ToText()});
    return files;
  }
  bool Has(DataPart part) const override { return DatasetOf(*data_, part) != nullptr; }
  std::unique_ptr<TrainingSource> Training(int64_t batch) const override {
    return std::make_unique<TextTraining>(
        *data_->train, TranslationTask::LimitsOf(*data_->train, DataPart::kTrain, batch), seed_);
  }
  std::unique_ptr<EvaluationSource> Evaluation(DataPart part, int64_t batch) const override {
    THIMBLE_CHECK(Has(part), "there are no validation sentences");
    const TextDataset& dataset = *DatasetOf(*data_, part);
    return std::make_unique<TextEvaluation>(
        dataset, TranslationTask::LimitsOf(dataset, DataPart::kTest, batch));
  }

 private:
  std::shared_ptr<const TextData> data_;
  uint64_t seed_;
};

// The data of the configuration; null if none were given.
Result<std::shared_ptr<const TextData>> DataOf(const TrainConfig& config) {
  if (!IsTextData(config.data)) return std::shared_ptr<const TextData>();
  if (config.validation > 0) {
    return BadInput(
        "--validation: only for images; a folder of text has a validation set of its "
        "own");
  }
  TextDataOptions options;
  options.max_sentence_tokens =
      static_cast<int32_t>(std::clamp<int64_t>(config.batch, 2, options.max_sentence_tokens));
  THIMBLE_ASSIGN_OR_RETURN(TextData data, OpenTextData(config.data, options));
  return std::make_shared<const TextData>(std::move(data));
}

Result<std::shared_ptr<const TranslationTask>> MakeTask(const TrainConfig& config,
                                                        std::shared_ptr<const TextData> data) {
  int64_t source_words = kUsualSourceWords;
  int64_t target_words = kUsualTargetWords;
  if (data != nullptr) {
    source_words = data->train->source_dictionary().size();
    target_words = data->train->target_dictionary().size();
  }
  THIMBLE_ASSIGN_OR_RETURN(TranslatorSpec spec,
                           FindTranslator(config.model, source_words, target_words));
  return std::make_shared<const TranslationTask>(ModelName(config.model), std::move(spec),
                                                 std::move(data), config.seed);
}

}  // namespace

TranslationTask::TranslationTask(std::string model, TranslatorSpec spec,
                                 std::shared_ptr<const TextData> data, uint64_t seed, Shapes shapes)
    : model_(std::move(model)),
      spec_(std::move(spec)),
      data_(std::move(data)),
      seed_(seed),
      shapes_(shapes) {}

BatchLimits TranslationTask::LimitsOf(const TextDataset& dataset, DataPart part, int64_t batch) {
  return {.max_tokens = static_cast<int32_t>(std::max(batch, LongestSentence(dataset))),
          .max_shapes = part == DataPart::kTrain ? kTrainShapes : kEvaluateShapes};
}

// Evaluation measures the loss without smoothing: -log p of the right token.
Result<Network> TranslationTask::Build(const OpRegistry& ops, const BatchShape& shape,
                                       Mode mode) const {
  TranslatorSpec spec = spec_;
  if (mode == Mode::kEvaluate) spec.label_smoothing = 0;
  return BuildTranslator(spec, ops, {shape.samples, shape.source_length, shape.target_length}, mode,
                         seed_);
}

std::vector<BatchField> TranslationTask::fields() const { return SentenceFields(); }

std::vector<BatchShape> TranslationTask::ShapesOf(DataPart part, int64_t batch) const {
  const TextDataset* dataset = data_ == nullptr ? nullptr : DatasetOf(*data_, part);
  if (dataset == nullptr) return {};
  const std::lock_guard lock(mutex_);
  std::vector<BatchShape>& shapes = known_shapes_[{part, batch}];
  if (shapes.empty()) {
    shapes = ChooseBatchShapes(*dataset, LimitsOf(*dataset, part, batch));
    std::ranges::stable_sort(shapes, std::greater(), TokensOf);
    if (shapes_ == Shapes::kLargest) shapes = LargestOf(shapes);
  }
  return shapes;
}

std::vector<BatchShape> TranslationTask::TrainShapes(int64_t batch) const {
  if (data_ == nullptr) return {FullShape(batch)};
  return ShapesOf(DataPart::kTrain, batch);
}

std::vector<BatchShape> TranslationTask::EvaluateShapes(DataPart part, int64_t batch) const {
  return ShapesOf(part, batch);
}

BatchShape TranslationTask::FullShape(int64_t batch) const {
  if (data_ != nullptr) return ShapesOf(DataPart::kTrain, batch).front();
  return {std::max<int64_t>(1, batch / kUsualLength), kUsualLength, kUsualLength};
}

std::shared_ptr<const Task> TranslationTask::InFullBatches() const {
  return std::make_shared<TranslationTask>(model_, spec_, nullptr, seed_);
}

std::shared_ptr<const Task> TranslationTask::InLargestShapes() const {
  if (data_ == nullptr || shapes_ == Shapes::kLargest) return nullptr;
  return std::make_shared<TranslationTask>(model_, spec_, data_, seed_, Shapes::kLargest);
}

// Sizes of plans do not depend on decoding, which needs less memory than training.
int64_t TranslationTask::longest_to_translate(DataPart part) const {
  if (data_ == nullptr || shapes_ == Shapes::kLargest) return 0;
  const TextDataset* dataset = DatasetOf(*data_, part);
  int32_t longest = 0;
  for (int64_t i = 0; dataset != nullptr && i < dataset->size(); ++i) {
    longest = std::max(longest, dataset->LengthAt(i).source);
  }
  return longest;
}

void TranslationTask::MakeUp(const BatchShape& shape, BatchArrays arrays) const {
  const auto fill_tokens = [&](size_t field, int64_t words) {
    const std::span<int32_t> tokens = ArrayOf<int32_t>(arrays[field]);
    const int64_t usual = std::max<int64_t>(1, words - Dictionary::kNumSpecial);
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<int32_t>(
          std::min(words - 1, Dictionary::kNumSpecial + static_cast<int64_t>(i) * 7919 % usual));
    }
  };
  const auto fill_lengths = [&](size_t field, int64_t length) {
    std::ranges::fill(ArrayOf<int32_t>(arrays[field]), static_cast<int32_t>(length));
  };
  fill_tokens(0, spec_.source_words);
  fill_lengths(1, shape.source_length);
  fill_tokens(2, spec_.target_words);
  fill_tokens(3, spec_.target_words);
  fill_lengths(4, shape.target_length);
}

Result<TaskPtr> DescribeTranslationTask(const TrainConfig& config) {
  THIMBLE_ASSIGN_OR_RETURN(std::shared_ptr<const TextData> data, DataOf(config));
  THIMBLE_ASSIGN_OR_RETURN(TaskPtr task, MakeTask(config, std::move(data)));
  return task;
}

Result<OpenedTask> OpenTranslationTask(const TrainConfig& config) {
  THIMBLE_ASSIGN_OR_RETURN(std::shared_ptr<const TextData> data, DataOf(config));
  if (data == nullptr) {
    return BadInput(fmt::format("--data {}: {} translates; expected {}", config.data, config.model,
                                TextDataForms()));
  }
  THIMBLE_ASSIGN_OR_RETURN(TaskPtr task, MakeTask(config, data));
  return OpenedTask{std::move(task), std::make_unique<OpenedText>(std::move(data), config.seed)};
}

}  // namespace thimble
