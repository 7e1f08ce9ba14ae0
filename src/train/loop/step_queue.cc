#include "thimble/train/loop/step_queue.h"

#include "thimble/base/check.h"

namespace thimble {

namespace {

std::vector<BatchShape> PartShapes(const TrainingProgram& program) {
  std::vector<BatchShape> shapes;
  for (const auto& [shape, parts] : program.cuts) shapes.push_back(shape.With(parts.LargestSize()));
  return shapes;
}

}  // namespace

StepQueue::StepQueue(const TrainingProgram& program, const TrainingSource& batches,
                     Executor& executor, int64_t num_slots)
    : program_(program),
      batches_(batches),
      parts_(batches, [&](const BatchShape& shape) { return program.PartsOf(shape); }),
      feed_(parts_, executor, num_slots, PartShapes(program)),
      runs_(executor, batches.fields(), program.most_runs_per_step()),
      runs_per_step_(static_cast<size_t>(program.most_runs_per_step())) {}

Result<void> StepQueue::Start(int64_t first_step, int64_t end_step) {
  launched_ = collected_ = first_step;
  return feed_.Start(parts_.FirstPart(first_step), parts_.FirstPart(end_step));
}

double StepQueue::LossWeight(const BatchPart& part, int64_t count) const {
  const int64_t counted = program_.task->loss_is_sum() ? 1 : part.samples.count;
  return static_cast<double>(counted) / static_cast<double>(count);
}

Result<void> StepQueue::Launch(double learning_rate) {
  THIMBLE_CHECK(!full(), "{} steps are already in flight", size());
  const int64_t count = batches_.CountAt(launched_);
  const int64_t first = parts_.FirstPart(launched_);
  slower_ = false;
  for (int64_t part = first; part < first + parts_.NumParts(launched_); ++part) {
    THIMBLE_TRY(LaunchPart(part, LossWeight(parts_.PartAt(part), count), learning_rate));
  }
  if (program_.in_parts()) LaunchUpdate(batches_.StepAt(launched_).shape, learning_rate);
  ++launched_;
  return {};
}

Result<void> StepQueue::LaunchPart(int64_t part, double loss_weight, double learning_rate) {
  const BatchPart now = parts_.PartAt(part);
  const PlanPorts& ports =
      runs_.Begin(program_.in_parts() ? program_.PartPlan(now.shape(), now.batch.shape)
                                      : program_.TrainPlan(now.batch.shape));
  THIMBLE_TRY(feed_.Next(part, ports.batch));
  WriteDraws(ports, part, now.batch.epoch);
  runs_.Set(ports.loss_weight, static_cast<float>(loss_weight));
  if (program_.in_parts()) runs_.Set(ports.seen, static_cast<int32_t>(now.samples.first));
  WriteUpdateNumbers(ports, learning_rate);
  runs_.Launch();
  slower_ |= runs_.last_launch_was_slower();
  return {};
}

void StepQueue::LaunchUpdate(const BatchShape& batch, double learning_rate) {
  const PlanPorts& ports = runs_.Begin(program_.UpdatePlan(batch));
  WriteUpdateNumbers(ports, learning_rate);
  runs_.Launch();
  slower_ |= runs_.last_launch_was_slower();
}

void StepQueue::WriteUpdateNumbers(const PlanPorts& ports, double learning_rate) {
  if (ports.learning_rate.data != nullptr) {
    runs_.Set(ports.learning_rate, static_cast<float>(learning_rate));
  }
  if (ports.update.data != nullptr) runs_.Set(ports.update, static_cast<int32_t>(launched_));
}

void StepQueue::WriteDraws(const PlanPorts& ports, int64_t part, int64_t epoch) {
  if (ports.samples.data == nullptr) return;
  runs_.SetSamples([&](std::span<int32_t> samples) { parts_.Samples(part, samples); });
  runs_.Set(ports.epoch, static_cast<uint32_t>(epoch));
}

FinishedRun StepQueue::Collect() {
  THIMBLE_CHECK(!empty(), "no step was launched");
  const int64_t step = collected_++;
  const int64_t count = batches_.CountAt(step);
  FinishedRun sum;
  const int64_t first = parts_.FirstPart(step);
  for (int64_t part = first; part < first + parts_.NumParts(step); ++part) {
    const FinishedRun run = runs_.Collect();
    sum.loss += run.loss * LossWeight(parts_.PartAt(part), count);
    sum.correct += run.correct;
    sum.loss_scale = run.loss_scale;
  }
  if (!program_.in_parts()) return sum;
  sum.loss_scale = runs_.Collect().loss_scale;
  return sum;
}

}  // namespace thimble
