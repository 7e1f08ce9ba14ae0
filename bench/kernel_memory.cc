#include "bench/kernel_memory.h"

#include "thimble/base/byte_size.h"
#include "thimble/plan/plan.h"
#include "thimble/tensor/short_numbers.h"

namespace thimble {
namespace {

// Pseudo-random, the same in every run.
uint32_t MixedBits(size_t index) {
  uint32_t bits = static_cast<uint32_t>(index) * 2654435761U;
  bits ^= bits >> 15;
  bits *= 2246822519U;
  return bits ^ (bits >> 13);
}

// Assigns number(i) to each element.
template <class T, class Number>
void FillWith(const TensorView& view, const Number& number) {
  const std::span<T> elements = view.As<T>();
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = number(i);
}

void Fill(const TensorView& view) {
  const bool ones = view.shape.rank() < 2;
  switch (view.dtype) {
    case DType::kF32:
      return FillWith<float>(view, [=](size_t i) {
        return ones ? 1.0F : static_cast<float>(MixedBits(i) >> 8) * 0x1p-23F - 1.0F;
      });
    case DType::kU8:
      return FillWith<uint8_t>(view, [](size_t i) { return static_cast<uint8_t>(MixedBits(i)); });
    case DType::kI32:
      return FillWith<int32_t>(view, [](size_t) { return 0; });
    case DType::kF16:
      return FillWith<F16>(view, [](size_t) { return ToF16(1.0F); });
    case DType::kBF16:
      return FillWith<BF16>(view, [](size_t) { return ToBF16(1.0F); });
    case DType::kQ8:
      std::ranges::fill(view.bytes(), std::byte{0});
      return;
  }
}

size_t ArenaBytes(const KernelCase& the_case, size_t scratch_bytes) {
  const auto room = [](size_t bytes) { return RoundUp(bytes, kArenaAlignment); };
  size_t total = room(scratch_bytes);
  for (size_t i = 0; i < the_case.inputs.size(); ++i) {
    total +=
        room(TensorView{nullptr, the_case.op->inputs()[i].dtype, the_case.inputs[i]}.size_bytes());
  }
  for (size_t i = 0; i < the_case.outputs.size(); ++i) {
    total += room(
        TensorView{nullptr, the_case.op->outputs()[i].dtype, the_case.outputs[i]}.size_bytes());
  }
  return total;
}

}  // namespace

std::span<std::byte> KernelMemory::Take(size_t size_bytes) {
  const std::span<std::byte> taken = arena_.bytes().subspan(used_bytes_, size_bytes);
  used_bytes_ += RoundUp(size_bytes, kArenaAlignment);
  return taken;
}

Result<KernelMemory> KernelMemory::Create(const KernelCase& the_case, const KernelLimits& limits) {
  const size_t scratch_bytes = the_case.kernel->scratch_bytes(the_case.call(), limits);
  THIMBLE_ASSIGN_OR_RETURN(Arena arena, Arena::Map(ArenaBytes(the_case, scratch_bytes)));
  KernelMemory memory(std::move(arena));
  for (size_t i = 0; i < the_case.inputs.size(); ++i) {
    TensorView view{nullptr, the_case.op->inputs()[i].dtype, the_case.inputs[i]};
    view.data = memory.Take(view.size_bytes()).data();
    Fill(view);
    memory.inputs_.push_back(view);
  }
  for (size_t i = 0; i < the_case.outputs.size(); ++i) {
    TensorView view{nullptr, the_case.op->outputs()[i].dtype, the_case.outputs[i]};
    for (const auto& [output, input] : the_case.in_place) {
      if (output == i) view.data = memory.inputs_[input].data;
    }
    if (view.data == nullptr) view.data = memory.Take(view.size_bytes()).data();
    memory.outputs_.push_back(view);
  }
  memory.scratch_ = memory.Take(scratch_bytes);
  return memory;
}

void KernelMemory::Run(const KernelCase& the_case, ThreadPool& pool) const {
  the_case.kernel->run({inputs_, outputs_, the_case.attributes, scratch_, pool});
}

}  // namespace thimble
