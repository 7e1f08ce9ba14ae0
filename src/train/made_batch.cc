#include "thimble/train/made_batch.h"

namespace thimble {
namespace {

uint8_t MadeByte(size_t index) {
  return static_cast<uint8_t>(index * 2654435761U >> 13);  // looks random
}

}  // namespace

MadeBatch::MadeBatch(const TrainingProgram& program, Executor& executor) : executor_(executor) {
  const size_t plan = program.TrainPlan(program.batch);
  const auto classes = static_cast<size_t>(program.model.images.classes);
  Make<uint8_t>(plan, kImagesInput, [](size_t i) { return MadeByte(i); });
  Make<int32_t>(plan, kLabelsInput, [&](size_t i) { return static_cast<int32_t>(i % classes); });
  if (executor.program().plans[plan].graph.Find(kSamplesInput).valid()) {
    Make<int32_t>(plan, kSamplesInput, [](size_t i) { return static_cast<int32_t>(i); });
    Make<int32_t>(plan, kEpochInput, [](size_t) { return int32_t{1}; });
  }
  // Small, so that weights stay ordinary numbers however many steps are run.
  Make<float>(plan, kLearningRateInput, [](size_t) { return 0.01F; });
}

template <class T>
void MadeBatch::Make(size_t plan, std::string_view name, FunctionRef<T(size_t)> number) {
  const TensorView view = executor_.View(plan, name);
  auto numbers = executor_.device().AllocateHost(view.size_bytes());
  const TensorView made{numbers->bytes().data(), view.dtype, view.shape};
  const auto elements = made.As<T>();
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = number(i);
  inputs_.push_back({view, std::move(numbers)});
}

void MadeBatch::Write() const {
  for (const MadeInput& input : inputs_) executor_.Write(input.view, input.numbers->bytes());
}

void FillPrefetchRing(Executor& executor) {
  for (const Resident& resident : executor.program().residents.residents) {
    if (resident.category != Category::kData) continue;
    const auto bytes = executor.ResidentBytes(resident.name);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte{MadeByte(i)};
  }
  executor.StoreResidents();
}

}  // namespace thimble
