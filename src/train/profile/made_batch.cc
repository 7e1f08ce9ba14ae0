#include "thimble/train/profile/made_batch.h"

#include <algorithm>
#include <cstring>

namespace thimble {
namespace {

// The shape of the batch, or part of the full batch, that the plan trains.
BatchShape ShapeOf(const TrainingProgram& program, size_t plan) {
  for (const auto& [shapes, index] : program.part_plans) {
    if (index == plan) return shapes.first;
  }
  return program.full;
}

}  // namespace

MadeBatch::MadeBatch(const TrainingProgram& program, Executor& executor, size_t plan)
    : executor_(executor), plan_(plan) {
  MakeFields(program);
  Make<int32_t>(kSamplesInput, [](size_t i) { return static_cast<int32_t>(i); });
  Make<int32_t>(kEpochInput, [](size_t) { return int32_t{1}; });
  // So small that weights stay near their first values however many steps are run: when a network
  // saturates, its gradients become subnormal numbers, with which processors calculate slowly.
  Make<float>(kLearningRateInput, [](size_t) { return 1e-6F; });
  const double counted =
      program.task->loss_is_sum() ? static_cast<double>(std::max<int64_t>(1, program.batch)) : 1;
  Make<float>(kLossWeightInput, [&](size_t) { return static_cast<float>(1 / counted); });
  Make<int32_t>(kUpdateInput, [](size_t) { return int32_t{0}; });
  if (!HasInput(kSeenInput)) return;
  seen_ = executor.device().AllocateHost(2 * sizeof(int32_t));
  const int32_t later = 1;
  std::memcpy(seen_->bytes().data() + sizeof(later), &later, sizeof(later));
}

bool MadeBatch::HasInput(std::string_view name) const {
  return executor_.program().plans[plan_].graph.Find(name).valid();
}

void MadeBatch::MakeFields(const TrainingProgram& program) {
  std::vector<std::span<std::byte>> arrays;
  for (const BatchField& field : program.task->fields()) {
    if (!HasInput(field.name)) return;  // an update
    const TensorView view = executor_.View(plan_, field.name);
    inputs_.push_back({view, executor_.device().AllocateHost(view.size_bytes())});
    arrays.push_back(inputs_.back().numbers->bytes().first(view.size_bytes()));
  }
  program.task->MakeUp(ShapeOf(program, plan_), arrays);
}

template <class T>
void MadeBatch::Make(std::string_view name, FunctionRef<T(size_t)> number) {
  if (!HasInput(name)) return;
  const TensorView view = executor_.View(plan_, name);
  auto numbers = executor_.device().AllocateHost(view.size_bytes());
  const TensorView made{numbers->bytes().data(), view.dtype, view.shape};
  const auto elements = made.As<T>();
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = number(i);
  inputs_.push_back({view, std::move(numbers)});
}

void MadeBatch::Write(bool first_part) const {
  for (const MadeInput& input : inputs_) executor_.Write(input.view, input.numbers->bytes());
  if (!seen_) return;
  const auto seen = seen_->bytes().subspan(first_part ? 0 : sizeof(int32_t), sizeof(int32_t));
  executor_.Write(executor_.View(plan_, kSeenInput), seen);
}

MadeStep::MadeStep(const TrainingProgram& program, Executor& executor) : executor_(executor) {
  for (size_t plan = 0; plan < program.program.plans.size(); ++plan) {
    const int64_t runs = program.program.runs_per_step[plan];
    if (runs > 0) plans_.push_back({plan, runs, MadeBatch(program, executor, plan)});
  }
}

MadeStep::MadeStep(const TrainingProgram& program, Executor& executor, const BatchShape& shape)
    : executor_(executor) {
  THIMBLE_CHECK(!program.in_parts(), "batches are split");
  const size_t plan = program.TrainPlan(shape);
  plans_.push_back({plan, 1, MadeBatch(program, executor, plan)});
}

void MadeStep::Prepare(size_t index, bool first_part) const {
  executor_.Prepare(plans_[index].plan);
  plans_[index].batch.Write(first_part);
}

void MadeStep::ForEachRun(FunctionRef<void(size_t, bool)> run) const {
  for (size_t index = 0; index < plans_.size(); ++index) {
    for (int64_t i = 0; i < plans_[index].runs; ++i) run(index, index == 0 && i == 0);
  }
}

void MadeStep::Run() const {
  ForEachRun([&](size_t index, bool first_part) {
    Prepare(index, first_part);
    executor_.Run(plans_[index].plan);
  });
}

void FillPrefetchRing(Executor& executor) {
  for (const Resident& resident : executor.program().residents.residents) {
    if (resident.category != Category::kData) continue;
    const auto bytes = executor.ResidentBytes(resident.name);
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  }
  executor.StoreResidents();
}

}  // namespace thimble
