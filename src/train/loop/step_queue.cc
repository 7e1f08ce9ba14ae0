#include "thimble/train/loop/step_queue.h"

#include "thimble/base/check.h"

namespace thimble {

StepQueue::StepQueue(const TrainingProgram& program, const TrainBatches& batches,
                     Executor& executor, int64_t num_slots)
    : program_(program),
      batches_(batches),
      parts_(batches, [&](int64_t samples) { return program.PartsOf(samples); }),
      feed_(parts_, executor, num_slots, program.part),
      runs_(executor, program.runs_per_step()),
      runs_per_step_(static_cast<size_t>(program.runs_per_step())) {}

Result<void> StepQueue::Start(int64_t first_step, int64_t end_step) {
  launched_ = collected_ = first_step;
  return feed_.Start(parts_.FirstPart(first_step), parts_.FirstPart(end_step));
}

Result<void> StepQueue::Launch(double learning_rate) {
  THIMBLE_CHECK(!full(), "{} steps are already in flight", size());
  const int64_t end = parts_.FirstPart(launched_ + 1);
  for (int64_t part = parts_.FirstPart(launched_); part < end; ++part) {
    THIMBLE_TRY(LaunchPart(part, learning_rate));
  }
  if (program_.in_parts()) LaunchUpdate(batches_.CountAt(launched_), learning_rate);
  ++launched_;
  return {};
}

Result<void> StepQueue::LaunchPart(int64_t part, double learning_rate) {
  const BatchPart now = parts_.PartAt(part);
  const PlanPorts& ports =
      runs_.Begin(program_.in_parts() ? program_.PartPlan({now.range.count, now.batch})
                                      : program_.TrainPlan(now.batch));
  THIMBLE_TRY(feed_.Next(part, ports.images, ports.labels));
  WriteDraws(ports, part);
  runs_.Set(ports.loss_weight, static_cast<float>(static_cast<double>(now.range.count) /
                                                  static_cast<double>(now.batch)));
  if (program_.in_parts()) runs_.Set(ports.seen, static_cast<int32_t>(now.seen));
  WriteUpdateNumbers(ports, learning_rate);
  runs_.Launch();
  return {};
}

void StepQueue::LaunchUpdate(int64_t batch_samples, double learning_rate) {
  const PlanPorts& ports = runs_.Begin(program_.UpdatePlan(batch_samples));
  WriteUpdateNumbers(ports, learning_rate);
  runs_.Launch();
}

void StepQueue::WriteUpdateNumbers(const PlanPorts& ports, double learning_rate) {
  if (ports.learning_rate.data != nullptr) {
    runs_.Set(ports.learning_rate, static_cast<float>(learning_rate));
  }
  if (ports.update.data != nullptr) runs_.Set(ports.update, static_cast<int32_t>(launched_));
}

void StepQueue::WriteDraws(const PlanPorts& ports, int64_t part) {
  if (ports.samples.data == nullptr) return;
  runs_.SetSamples([&](std::span<int32_t> samples) { parts_.Samples(part, samples); });
  runs_.Set(ports.epoch, static_cast<uint32_t>(parts_.PartAt(part).range.epoch));
}

FinishedRun StepQueue::Collect() {
  THIMBLE_CHECK(!empty(), "no step was launched");
  const int64_t step = collected_++;
  if (!program_.in_parts()) return runs_.Collect();
  FinishedRun sum;
  const int64_t end = parts_.FirstPart(step + 1);
  for (int64_t part = parts_.FirstPart(step); part < end; ++part) {
    const BatchPart now = parts_.PartAt(part);
    const FinishedRun run = runs_.Collect();
    sum.loss += run.loss * static_cast<double>(now.range.count) / static_cast<double>(now.batch);
    sum.correct += run.correct;
    sum.audited |= run.audited;
  }
  const FinishedRun update = runs_.Collect();
  sum.audited |= update.audited;
  sum.loss_scale = update.loss_scale;
  return sum;
}

}  // namespace thimble
