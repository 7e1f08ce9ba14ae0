#include "thimble/train/task/find_task.h"

#include "thimble/train/options/usual_settings.h"
#include "thimble/train/task/image_task.h"
#include "thimble/train/task/translation_task.h"

namespace thimble {
namespace {

ModelFactory ByName(const TrainConfig& config) {
  return [name = config.model](const ImageSpec& images) { return FindModel(name, images); };
}

}  // namespace

Result<TaskPtr> DescribeTask(const TrainConfig& config) {
  if (IsTranslation(config)) return DescribeTranslationTask(config);
  return DescribeTask(config, ByName(config));
}

Result<TaskPtr> DescribeTask(const TrainConfig& config, const ModelFactory& model) {
  THIMBLE_ASSIGN_OR_RETURN(TaskPtr task, DescribeImageTask(config, model));
  return task;
}

Result<OpenedTask> OpenTask(const TrainConfig& config) {
  if (IsTranslation(config)) return OpenTranslationTask(config);
  return OpenImageTask(config, ByName(config));
}

Result<OpenedTask> OpenTask(const TrainConfig& config, const ModelFactory& model) {
  return OpenImageTask(config, model);
}

}  // namespace thimble
