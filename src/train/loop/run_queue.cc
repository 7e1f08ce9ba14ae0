#include "thimble/train/loop/run_queue.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "thimble/base/byte_size.h"
#include "thimble/base/check.h"
#include "thimble/grad/training_graph.h"
#include "thimble/model/network_builder.h"

namespace thimble {
namespace {

// Without data if the plan has no such value.
TensorView FindView(const Executor& executor, size_t plan, std::string_view name) {
  const bool there = executor.program().plans[plan].graph.Find(name).valid();
  return there ? executor.View(plan, name) : TensorView{};
}

PlanPorts PortsOf(const Executor& executor, size_t plan, std::span<const BatchField> fields) {
  std::vector<TensorView> batch;
  for (const BatchField& field : fields) {
    const TensorView view = FindView(executor, plan, field.name);
    if (view.data != nullptr) batch.push_back(view);
  }
  THIMBLE_CHECK(batch.empty() || batch.size() == fields.size(), "a plan has {} of {} batch inputs",
                batch.size(), fields.size());
  return {.batch = std::move(batch),
          .samples = FindView(executor, plan, kSamplesInput),
          .epoch = FindView(executor, plan, kEpochInput),
          .seen = FindView(executor, plan, kSeenInput),
          .learning_rate = FindView(executor, plan, kLearningRateInput),
          .loss_weight = FindView(executor, plan, kLossWeightInput),
          .update = FindView(executor, plan, kUpdateInput),
          .loss = FindView(executor, plan, kLossOutput),
          .correct = FindView(executor, plan, kCorrectOutput),
          .loss_scale = FindView(executor, plan, kLossScaleState)};
}

}  // namespace

RunQueue::RunQueue(Executor& executor, std::span<const BatchField> fields, int64_t runs_per_step)
    : executor_(executor),
      max_runs_(executor.device().runs_in_flight() * static_cast<size_t>(runs_per_step)),
      marks_(max_runs_) {
  size_t samples_bytes = 0;
  const Program& program = executor.program();
  for (size_t plan = 0; plan < program.plans.size(); ++plan) {
    // Plans that translate are in groups; they are run elsewhere.
    ports_.push_back(program.groups[plan].empty() ? PortsOf(executor, plan, fields) : PlanPorts{});
    const TensorView& samples = ports_.back().samples;
    if (samples.data != nullptr) samples_bytes = std::max(samples_bytes, samples.size_bytes());
  }
  // In host memory, they are written to the arena directly.
  if (executor.device().arena_is_host_memory()) samples_bytes = 0;
  slot_bytes_ = RoundUp(sizeof(Slot) + samples_bytes, kArenaAlignment);
  slots_ = executor.device().AllocateHost(max_runs_ * slot_bytes_);
}

std::span<std::byte> RunQueue::SlotBytes(int64_t run) const {
  return slots_->bytes().subspan(static_cast<size_t>(run) % max_runs_ * slot_bytes_, slot_bytes_);
}

RunQueue::Slot& RunQueue::SlotOf(int64_t run) const {
  return *reinterpret_cast<Slot*>(SlotBytes(run).data());  // NOLINT: raw storage
}

const PlanPorts& RunQueue::Begin(size_t plan) {
  THIMBLE_CHECK(!full(), "{} runs are already in flight", size());
  plan_ = plan;
  num_numbers_ = 0;
  executor_.Prepare(plan);
  return ports_[plan];
}

void RunQueue::SetWord(const TensorView& input, Word word) {
  Slot& slot = SlotOf(launched_);
  THIMBLE_CHECK(num_numbers_ < slot.numbers.size(), "a run has more than {} numbers as inputs",
                slot.numbers.size());
  Word& number = slot.numbers[num_numbers_++];
  number = word;
  executor_.Write(input, std::as_bytes(std::span(&number, 1)));
}

void RunQueue::SetSamples(FunctionRef<void(std::span<int32_t>)> fill) {
  const TensorView& input = ports_[plan_].samples;
  THIMBLE_CHECK(input.data != nullptr, "the plan has no input for samples");
  if (executor_.device().arena_is_host_memory()) return fill(input.As<int32_t>());
  const auto bytes = SlotBytes(launched_).subspan(sizeof(Slot), input.size_bytes());
  const TensorView room{bytes.data(), input.dtype, input.shape};
  fill(room.As<int32_t>());
  executor_.Write(input, bytes);
}

void RunQueue::Launch() {
  Slot& slot = SlotOf(launched_);
  const PlanPorts& ports = ports_[plan_];
  executor_.Run(plan_);
  slot.loss = 0;
  slot.correct = 0;
  slot.loss_scale = {};
  if (ports.loss.data != nullptr) {
    executor_.Read(ports.loss, std::as_writable_bytes(std::span(&slot.loss, 1)));
    executor_.Read(ports.correct, std::as_writable_bytes(std::span(&slot.correct, 1)));
  }
  if (ports.loss_scale.data != nullptr) {
    executor_.Read(ports.loss_scale, std::as_writable_bytes(std::span(&slot.loss_scale, 1)));
  }
  marks_[static_cast<size_t>(launched_) % max_runs_] = executor_.device().Mark();
  ++launched_;
}

FinishedRun RunQueue::Collect() {
  THIMBLE_CHECK(!empty(), "no run was launched");
  executor_.device().Wait(marks_[static_cast<size_t>(collected_) % max_runs_]);
  const Slot& slot = SlotOf(collected_);
  ++collected_;
  return {static_cast<double>(slot.loss), slot.correct, slot.loss_scale};
}

}  // namespace thimble
