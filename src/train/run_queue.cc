#include "thimble/train/run_queue.h"

#include "thimble/base/check.h"
#include "thimble/grad/training_graph.h"
#include "thimble/model/network_builder.h"

namespace thimble {
namespace {

PlanPorts PortsOf(const Executor& executor, size_t plan) {
  PlanPorts ports;
  ports.images = executor.View(plan, kImagesInput);
  ports.labels = executor.View(plan, kLabelsInput);
  if (executor.program().plans[plan].graph.Find(kLearningRateInput).valid()) {
    ports.learning_rate = executor.View(plan, kLearningRateInput);
  }
  ports.loss = executor.View(plan, kLossOutput);
  ports.correct = executor.View(plan, kCorrectOutput);
  return ports;
}

}  // namespace

RunQueue::RunQueue(Executor& executor)
    : executor_(executor), max_runs_(executor.device().runs_in_flight()), runs_(max_runs_) {
  for (size_t plan = 0; plan < executor.program().plans.size(); ++plan) {
    ports_.push_back(PortsOf(executor, plan));
  }
  slots_ = executor.device().AllocateHost(max_runs_ * sizeof(Slot));
}

RunQueue::Slot& RunQueue::SlotOf(int64_t run) const {
  const size_t index = static_cast<size_t>(run) % max_runs_;
  return reinterpret_cast<Slot*>(slots_->bytes().data())[index];  // NOLINT: raw storage
}

const PlanPorts& RunQueue::Begin(size_t plan) {
  THIMBLE_CHECK(!full(), "{} runs are under way already", size());
  plan_ = plan;
  num_numbers_ = 0;
  executor_.Prepare(plan);
  return ports_[plan];
}

void RunQueue::SetWord(const TensorView& input, Word word) {
  Slot& slot = SlotOf(launched_);
  THIMBLE_CHECK(num_numbers_ < slot.numbers.size(), "more than {} numbers", slot.numbers.size());
  Word& number = slot.numbers[num_numbers_++];
  number = word;
  executor_.Write(input, std::as_bytes(std::span(&number, 1)));
}

void RunQueue::Launch() {
  Slot& slot = SlotOf(launched_);
  executor_.Run(plan_);
  executor_.Read(ports_[plan_].loss, std::as_writable_bytes(std::span(&slot.loss, 1)));
  executor_.Read(ports_[plan_].correct, std::as_writable_bytes(std::span(&slot.correct, 1)));
  runs_[static_cast<size_t>(launched_) % max_runs_] = {executor_.last_run_was_audited(),
                                                       executor_.device().Mark()};
  ++launched_;
}

FinishedRun RunQueue::Collect() {
  THIMBLE_CHECK(!empty(), "no run was launched");
  const Launched& run = runs_[static_cast<size_t>(collected_) % max_runs_];
  executor_.device().Wait(run.mark);
  const Slot& slot = SlotOf(collected_);
  ++collected_;
  return {static_cast<double>(slot.loss), slot.correct, run.audited};
}

}  // namespace thimble
