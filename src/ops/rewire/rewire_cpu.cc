#include <algorithm>
#include <bit>
#include <cstring>

#include "thimble/base/check.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/rewire/block_keys.h"
#include "thimble/ops/rewire/moved_pools.h"
#include "thimble/ops/rewire/rewire.h"
#include "thimble/ops/rewire/rewire_rule.h"
#include "thimble/ops/rewire/rewire_scratch.h"
#include "thimble/tensor/pattern.h"
#include "thimble/tensor/smallest_keys.h"

namespace thimble {
namespace {

// One rewiring. Results are made in scratch and copied to the outputs, so that an output may have
// the address of its input: first the pools one by one, then the pattern, by which pools are read.
class RewireRun {
 public:
  explicit RewireRun(const KernelCall& call);

  void Drop();
  void Grow();
  void WriteOutputs() const;

 private:
  void FillTable();
  void KeepIn(RewireTensor& tensor);
  void KeepWith(RewireTensor& tensor, SmallestKeys chosen);
  void KeepMore(int64_t count);
  void GrowIn(const RewireTensor& tensor);
  void CopyOut(const std::byte* from, const TensorView& to) const;
  int64_t TotalDropped() const;

  template <class Visit>
  void VisitActive(const RewireTensor& tensor, const Visit& visit) const;
  template <class Visit>
  void VisitCandidates(const RewireTensor& tensor, KeyRange range, const Visit& visit) const;

  const KernelCall& call_;
  RewirePorts ports_;
  RewireDraw draw_;
  bool is_set_;
  float threshold_;
  int64_t blocks_;
  const uint32_t* old_words_;
  const uint32_t* old_starts_;
  std::span<RewireTensor> tensors_;
  std::byte* new_pool_;
  uint32_t* new_words_;
  int64_t below_ = 0;  // weights below the threshold, less those that a tensor must keep
};

RewireRun::RewireRun(const KernelCall& call)
    : call_(call),
      ports_(RewirePortsOf(call.inputs.size())),
      draw_(MakeRewireDraw(call.attributes.Int("seed"), call.In<int32_t>(ports_.update())[0])),
      is_set_(call.attributes.Int("method") == kRewireSet),
      threshold_(ClampThreshold(call.In<float>(ports_.threshold())[0])),
      blocks_(PatternBlocks(call.attributes.Ints("tensors"))),
      old_words_(reinterpret_cast<const uint32_t*>(call.In<int32_t>(0))),
      old_starts_(old_words_ + blocks_ * kPatternBlockWords) {
  size_t pool_bytes = 0;
  for (size_t pool = 1; pool <= ports_.pools; ++pool) {
    pool_bytes = std::max(pool_bytes, call.inputs[pool].size_bytes());
  }
  const size_t num_tensors = call.attributes.Ints("tensors").size();
  const RewireScratch plan =
      PlanRewireScratch(num_tensors, pool_bytes, static_cast<size_t>(PatternWords(blocks_)));
  THIMBLE_CHECK(plan.end == call.scratch.size());
  tensors_ = {reinterpret_cast<RewireTensor*>(call.scratch.data()), num_tensors};
  new_pool_ = call.scratch.data() + plan.pool_begin;
  new_words_ = reinterpret_cast<uint32_t*>(call.scratch.data() + plan.pattern_begin);
  FillTable();
}

void RewireRun::FillTable() {
  const std::vector<int64_t>& elements = call_.attributes.Ints("tensors");
  int64_t block = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const int64_t end = block + PatternBlocks(elements[i]);
    tensors_[i] = {.first_block = block,
                   .elements = elements[i],
                   .active = int64_t{old_starts_[end]} - int64_t{old_starts_[block]}};
    THIMBLE_CHECK(tensors_[i].active >= 1 && tensors_[i].room() >= 0,
                  "tensor {} of {} elements has {} active ones", i, elements[i],
                  tensors_[i].active);
    block = end;
  }
  THIMBLE_CHECK(old_starts_[0] == 0 && old_starts_[blocks_] == call_.in_shape(1).elements(),
                "the pattern is one for {} weights", old_starts_[blocks_]);
}

// visit(word, bit, key) for each active position, with its key of KeepKey, in order.
template <class Visit>
void RewireRun::VisitActive(const RewireTensor& tensor, const Visit& visit) const {
  alignas(64) float copy[kPatternBlock];
  const int64_t end = tensor.first_block + PatternBlocks(tensor.elements);
  for (int64_t block = tensor.first_block; block < end; ++block) {
    const size_t count = old_starts_[block + 1] - old_starts_[block];
    const float* number =
        ReadNumbers(ConstNumbersOf(call_.inputs[1]) + old_starts_[block], count, copy);
    for (int64_t w = block * kPatternBlockWords; w < (block + 1) * kPatternBlockWords; ++w) {
      for (uint32_t rest = old_words_[w]; rest != 0; rest &= rest - 1) {
        visit(w, rest & (~rest + 1), KeepKey(*number++));
      }
    }
  }
}

// Copies the bits of the weights to keep to the new pattern, which has none in this tensor yet.
void RewireRun::KeepWith(RewireTensor& tensor, SmallestKeys chosen) {
  int64_t kept = 0;
  VisitActive(tensor, [&](int64_t word, uint32_t bit, uint32_t key) {
    if (!chosen.Take(key)) return;
    new_words_[word] |= bit;
    ++kept;
  });
  tensor.kept = kept;
}

void RewireRun::KeepIn(RewireTensor& tensor) {
  const auto smallest = [&](int64_t wanted) {
    return FindSmallestKeys(wanted, [&](KeyRange /*range*/, const auto& visit) {
      VisitActive(tensor, [&](int64_t, uint32_t, uint32_t key) { visit(key); });
    });
  };
  if (is_set_) {
    tensor.grown = DropsOfSet(call_.attributes.Float("fraction"), tensor);
    return KeepWith(tensor, smallest(tensor.active - tensor.grown));
  }
  KeepWith(tensor, {uint64_t{KeepKey(threshold_)} + 1, 0});  // the threshold and what is larger
  if (tensor.kept == 0) KeepWith(tensor, smallest(1));
}

int64_t RewireRun::TotalDropped() const {
  int64_t dropped = 0;
  for (const RewireTensor& tensor : tensors_) dropped += tensor.dropped();
  return dropped;
}

// Decides which weights stay and how many each tensor grows.
void RewireRun::Drop() {
  std::fill_n(new_words_, blocks_ * kPatternBlockWords, 0U);
  call_.pool.Run(tensors_.size(),
                 [&](size_t tensor, size_t /*thread*/) { KeepIn(tensors_[tensor]); });
  if (is_set_) return;
  below_ = TotalDropped();
  int64_t room = 0;
  for (const RewireTensor& tensor : tensors_) room += tensor.room();
  if (below_ > room) KeepMore(below_ - room);
  ShareOut(tensors_, std::min(below_, room), draw_);
}

// Keeps the largest of the weights to be dropped, of all tensors.
void RewireRun::KeepMore(int64_t count) {
  const auto visit_dropped = [&](const auto& visit) {
    for (RewireTensor& tensor : tensors_) {
      VisitActive(tensor, [&](int64_t word, uint32_t bit, uint32_t key) {
        if ((new_words_[word] & bit) == 0) visit(tensor, word, bit, key);
      });
    }
  };
  SmallestKeys chosen = FindSmallestKeys(count, [&](KeyRange /*range*/, const auto& visit) {
    visit_dropped([&](RewireTensor&, int64_t, uint32_t, uint32_t key) { visit(key); });
  });
  visit_dropped([&](RewireTensor& tensor, int64_t word, uint32_t bit, uint32_t key) {
    if (!chosen.Take(key)) return;
    new_words_[word] |= bit;
    ++tensor.kept;
  });
}

// visit(word, bit, key) for each position that was inactive and has a random key in the range.
template <class Visit>
void RewireRun::VisitCandidates(const RewireTensor& tensor, KeyRange range,
                                const Visit& visit) const {
  BlockKeys drawn;
  int64_t left = tensor.elements;
  for (int64_t block = tensor.first_block; left > 0; ++block) {
    DrawBlockKeys(draw_, block, range, drawn);
    for (int64_t i = 0; i < kPatternBlockWords; ++i, left -= kPatternWordBits) {
      const int64_t word = block * kPatternBlockWords + i;
      const uint32_t candidates = ~old_words_[word] & PatternElementBits(left);
      for (uint32_t rest = candidates & drawn.in_range[i]; rest != 0; rest &= rest - 1) {
        visit(word, rest & (~rest + 1), drawn.keys[i * kPatternWordBits + std::countr_zero(rest)]);
      }
    }
  }
}

void RewireRun::GrowIn(const RewireTensor& tensor) {
  if (tensor.grown == 0) return;
  SmallestKeys chosen = FindSmallestKeys(tensor.grown, [&](KeyRange range, const auto& visit) {
    VisitCandidates(tensor, range, [&](int64_t, uint32_t, uint32_t key) { visit(key); });
  });
  const KeyRange all_chosen{0, static_cast<uint32_t>(std::min<uint64_t>(chosen.below, UINT32_MAX))};
  VisitCandidates(tensor, all_chosen, [&](int64_t word, uint32_t bit, uint32_t key) {
    if (chosen.Take(key)) new_words_[word] |= bit;
  });
}

void RewireRun::Grow() {
  call_.pool.Run(tensors_.size(),
                 [&](size_t tensor, size_t /*thread*/) { GrowIn(tensors_[tensor]); });
  SetStarts({reinterpret_cast<int32_t*>(new_words_), static_cast<size_t>(PatternWords(blocks_))},
            blocks_);
}

void RewireRun::CopyOut(const std::byte* from, const TensorView& to) const {
  ParallelElements(call_.pool, to.size_bytes(), [&](size_t begin, size_t end) {
    std::memcpy(to.bytes().data() + begin, from + begin, end - begin);
  });
}

void RewireRun::WriteOutputs() const {
  const PatternChange change{old_words_, new_words_, blocks_};
  for (size_t pool = 1; pool <= ports_.pools; ++pool) {
    MovePool(call_.pool, change, tensors_, call_.inputs[pool], new_pool_);
    CopyOut(new_pool_, call_.outputs[pool]);
  }
  CopyOut(reinterpret_cast<const std::byte*>(new_words_), call_.outputs[0]);
  call_.Out<float>(ports_.threshold())[0] =
      is_set_ ? threshold_ : NextThreshold(threshold_, below_, call_.attributes.Int("quota"));
  call_.Out<int32_t>(ports_.moved())[0] = static_cast<int32_t>(TotalDropped());
}

}  // namespace

std::string_view RewireCpu::Declines(const OpCall& call) {
  const RewirePorts ports = RewirePortsOf(call.inputs.size());
  for (size_t pool = 1; pool <= ports.pools; ++pool) {
    if (call.input_type(pool) != call.output_type(pool)) return "moves numbers, converts none";
  }
  const auto tensors = static_cast<int64_t>(call.attributes.Ints("tensors").size());
  const bool in_8_bits = ports.pools == 2 && call.input_type(2) == DType::kQ8;
  if (in_8_bits && call.inputs[2][0] != PoolNumbers(DType::kQ8, call.inputs[1][0], tensors)) {
    return "a pool in 8 bits has a block more for each tensor";
  }
  return {};
}

size_t RewireCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  size_t pool_bytes = 0;
  for (size_t pool = 1; pool <= RewirePortsOf(call.inputs.size()).pools; ++pool) {
    const auto numbers = static_cast<size_t>(call.inputs[pool].elements());
    pool_bytes = std::max(pool_bytes, StorageBytes(call.input_type(pool), numbers));
  }
  return PlanRewireScratch(call.attributes.Ints("tensors").size(), pool_bytes,
                           static_cast<size_t>(call.inputs[0].elements()))
      .end;
}

void RewireCpu::Run(const KernelCall& call) {
  RewireRun rewiring(call);
  rewiring.Drop();
  rewiring.Grow();
  rewiring.WriteOutputs();
}

}  // namespace thimble
