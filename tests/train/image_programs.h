// Plans and sizes for image classifiers, without opening data.
#pragma once

#include <utility>

#include "thimble/model/image_classifier.h"
#include "thimble/train/planning/plan_sizer.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/task/image_task.h"

namespace thimble {

// config.model, for such images.
inline Result<TaskPtr> ImageTaskOf(const TrainConfig& config, const ImageSpec& images,
                                   const ImageCounts& counts) {
  THIMBLE_ASSIGN_OR_RETURN(ImageClassifier model, FindModel(config.model, images));
  return TaskPtr(MakeImageTask(config, std::move(model), counts));
}

inline Result<TrainingProgram> MakeTrainingProgram(const TrainConfig& config,
                                                   const ImageSpec& images,
                                                   const ImageCounts& counts,
                                                   const OpRegistry& ops) {
  THIMBLE_ASSIGN_OR_RETURN(const TaskPtr task, ImageTaskOf(config, images, counts));
  return MakeTrainingProgram(config, task, ops);
}

inline Result<TrainingProgram> MakeTrainingProgram(const TrainConfig& config,
                                                   const ImageClassifier& model,
                                                   const ImageCounts& counts,
                                                   const OpRegistry& ops) {
  return MakeTrainingProgram(config, TaskPtr(MakeImageTask(config, model, counts)), ops);
}

inline const ImageTask& ImagesOf(const TrainingProgram& program) {
  return static_cast<const ImageTask&>(*program.task);
}

// The task of a given network, with default settings.
inline TaskPtr TaskOf(const ImageClassifier& model, const ImageCounts& counts) {
  return MakeImageTask(TrainConfig{}, model, counts);
}

}  // namespace thimble
