// Finds the task of a configuration: the only place that knows all tasks.
#pragma once

#include "thimble/base/result.h"
#include "thimble/train/options/config.h"
#include "thimble/train/task/task.h"

namespace thimble {

// The task as far as planning needs it; files of published images are not read, and need not exist.
// With a factory: classification of the images of config.data by that network.
Result<TaskPtr> DescribeTask(const TrainConfig& config);
Result<TaskPtr> DescribeTask(const TrainConfig& config, const ModelFactory& model);

// The same with its data, opened and checked.
Result<OpenedTask> OpenTask(const TrainConfig& config);
Result<OpenedTask> OpenTask(const TrainConfig& config, const ModelFactory& model);

}  // namespace thimble
