// Options of `thimble train` on the command lines of the benchmarks; they determine the plan.
#pragma once

#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {

// CIFAR-10's shapes, so that no data set is needed; two threads.
TrainConfig BenchDefaults();

// Reads the option at arguments[*index] and its value, if it has one, and leaves *index at the last
// word used.
Result<void> ReadTrainFlag(const std::vector<std::string>& arguments, size_t* index,
                           TrainConfig& config);

// The batches that are planned: the full one only, or those of all shapes.
enum class BenchBatches { kFull, kAllShapes };

// Checks the values, pins the SIMD target and plans the training.
Result<TrainingProgram> PlanForBench(const TrainConfig& config,
                                     BenchBatches batches = BenchBatches::kFull);

}  // namespace thimble
