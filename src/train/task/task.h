// Task: what is trained, and on what: a network, the arrays and shapes of its batches, and what its
// loss and its correct answers count. Trainer, plans, budget and reports know no more about images
// or sentences than this. A new task is one folder's worth of classes here and a line in
// find_task.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/batch_source.h"
#include "thimble/data/text/text_dataset.h"
#include "thimble/model/image_classifier.h"
#include "thimble/model/translator.h"
#include "thimble/tensor/batch_shape.h"

namespace thimble {

enum class DataPart { kTrain, kValidation, kTest };

// "train", "validation" or "test"; kBadInput for anything else.
Result<DataPart> ParseDataPart(std::string_view name);

// What planning needs to know.
class Task {
 public:
  virtual ~Task() = default;

  virtual const std::string& model() const = 0;
  // The text of its model file; empty for other networks.
  virtual const std::string& model_text() const = 0;
  // The forward graph of a batch. Its outputs: `loss` and `correct`, the number of correct answers.
  virtual Result<Network> Build(const OpRegistry& ops, const BatchShape& shape,
                                Mode mode) const = 0;

  // What is counted: "images", "tokens" (of targets).
  virtual std::string_view unit() const = 0;
  // Whether the loss of a batch is the sum over what is counted, instead of the mean.
  virtual bool loss_is_sum() const = 0;

  virtual std::vector<BatchField> fields() const = 0;
  // The shapes of training batches of this size (BatchShape::size), the full one first.
  virtual std::vector<BatchShape> TrainShapes(int64_t batch) const = 0;
  // The shapes in which a part of the data is evaluated, `batch` at a time. Empty if there is no
  // such part, or if nothing is known about it.
  virtual std::vector<BatchShape> EvaluateShapes(DataPart part, int64_t batch) const = 0;
  // A full batch of any size.
  virtual BatchShape FullShape(int64_t batch) const = 0;
  // The size of a batch of all training data; 0: unlimited or unknown.
  virtual int64_t largest_batch() const { return 0; }
  // The same with full batches only.
  virtual std::shared_ptr<const Task> InFullBatches() const = 0;
  // The same with few of its shapes, among them those that need the most memory; nullptr if it has
  // only few. Sizes of many plans are found with these (plan_sizer.h).
  virtual std::shared_ptr<const Task> InLargestShapes() const { return nullptr; }

  // If answers are sentences: the network that writes them, and the tokens of the longest sentence
  // of a part of the data, with </s>; 0 if nothing is known about it.
  virtual const TranslatorSpec* translator() const { return nullptr; }
  virtual int64_t longest_to_translate(DataPart /*part*/) const { return 0; }

  // Writes a batch that looks like one of the data, for measuring memory and time.
  virtual void MakeUp(const BatchShape& shape, BatchArrays arrays) const = 0;
};

using TaskPtr = std::shared_ptr<const Task>;

// A file that is needed to use the trained network.
struct FileToKeep {
  std::string name;
  std::string content;
};

// The data of a task, opened and checked.
class TaskData {
 public:
  virtual ~TaskData() = default;

  // Identifies the data, independent of where their files are.
  virtual const std::string& identity() const = 0;
  // What was left out of the files, a line for each kind.
  virtual std::vector<std::string> Omissions() const { return {}; }
  virtual bool Has(DataPart part) const = 0;
  // Batches of the shapes that the task gives for this size.
  virtual std::unique_ptr<TrainingSource> Training(int64_t batch) const = 0;
  // Requires that there is such a part.
  virtual std::unique_ptr<EvaluationSource> Evaluation(DataPart part, int64_t batch) const = 0;

  // The sentences of a part, if answers are sentences; otherwise, or without such a part, nullptr.
  virtual const TextDataset* Sentences(DataPart /*part*/) const { return nullptr; }
  // What the run folder must contain so that the network can be used without the data.
  virtual std::vector<FileToKeep> FilesToKeep() const { return {}; }
};

struct OpenedTask {
  TaskPtr task;
  std::unique_ptr<TaskData> data;
};

}  // namespace thimble
