// The smallest possible training runs, for tests of the trainer and its parts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/train/image_programs.h"
#include "thimble/exec/executor.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/loop/initialize.h"
#include "thimble/train/loop/loss_scale_watch.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {

// Three steps per epoch, the last one of two images.
inline TrainConfig TinyConfig() {
  TrainConfig config;
  config.model = "wrn-10-1";
  config.data = "shapes:10,6";
  config.batch = 4;
  config.threads = 1;
  config.log_every = 1;
  return config;
}

inline ImageData TinyData(const TrainConfig& config) {
  auto data = OpenImageData(config.data, {.seed = config.seed, .validation = config.validation});
  THIMBLE_CHECK(data.ok());
  return std::move(data).value();
}

// Data, plans and an arena with random weights.
struct TinyRun {
  explicit TinyRun(const TrainConfig& run_config = TinyConfig())
      : config(run_config),
        data(TinyData(config)),
        program(MakeTrainingProgram(config, SpecOf(data), CountsOf(data), BuiltinOps()).value()),
        executor(Executor::Create(program.program, BuiltinOps()).value()) {
    InitializeResidents(*executor, program.inits, config.seed, program.update.sparsity);
    InitializeLossScale(*executor, program.update);
    executor->StoreResidents();
  }

  TrainConfig config;
  ImageData data;
  TrainingProgram program;
  std::unique_ptr<Executor> executor;
};

}  // namespace thimble
