// Stretches: bytes and work of running parts of a chain, from which schedules are composed.
//
// A problem (s, t) starts before stage s, with the backward steps of all stages after t done;
// backward of the stages t, …, s remains. Its entry are the values made before stage s that it
// still needs: those read by backward steps of [s, t], or by forward nodes that may have to run
// again for them (those of [s, t-1], and of t those that its own backward steps need). If t is the
// last stage, forward has not run yet, and all of its nodes count.
//
// Bytes are the most that is alive during the part, in addition to the entry of the caller's
// problem and to the fixed values. An output that may overwrite an input which is not read again
// adds nothing.
//
// Example: four stages, every value has 64 bytes (tests/plan/recompute/toy_chain.h).
//
//   stage 0  a = copy(x)     backward of 3  dc = copy(c)
//   stage 1  b = copy(a)     backward of 2  db = mix(dc, b)
//   stage 2  c = mix(b, a)   backward of 1  da = mix(db, a)
//   stage 3  e = copy(c)
//
// The whole step is the problem (0, 3). With as little memory as possible it is solved like this:
//   split (0, 3) at 3  Forward(0, 3, 3) runs a, b, c and keeps c, the entry of (3, 3): 128 bytes,
//                      a and b, while c overwrites b. Then (3, 3): e and dc; c is released.
//   split (0, 2) at 2  Forward(0, 2, 2) runs a and b again and keeps b, the entry of (2, 2): 128
//                      bytes, the work of two nodes. Then (2, 2): db over dc; b is released.
//   split (0, 1) at 1  Forward(0, 1, 1) runs a once more and keeps it. Then (1, 1): da over db.
//   (0, 0)             has no backward steps.
// With more memory a stage is saved instead: SavedBytes(1, 3) keeps b for db and is not run again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "thimble/plan/recompute/chain.h"

namespace thimble {

struct StretchCost {
  size_t bytes = 0;
  double work = 0;  // of nodes that run again
};

// Which nodes run in a part, as positions in Chain::forward and Chain::backward. In few bytes: the
// candidates for one plan of wrn-28-2 have 200,000 of them.
struct ChainStep {
  static constexpr uint32_t kMaxPosition = (uint32_t{1} << 31) - 1;  // far above any graph
  ChainStep(bool in_backward, size_t at)
      : backward(in_backward ? 1 : 0), position(static_cast<uint32_t>(at) & kMaxPosition) {}

  uint32_t backward : 1;
  uint32_t position : 31;
  friend bool operator==(const ChainStep&, const ChainStep&) = default;
};
static_assert(sizeof(ChainStep) == sizeof(uint32_t));

class Stretches {
 public:
  // All must outlive this.
  Stretches(const Graph& graph, const OpRegistry& ops, const Chain& chain);

  // Bytes of gradients alive before the backward steps of this stage.
  size_t GradientBytes(size_t stage) const { return gradient_bytes_[stage]; }

  // Values made in the stages [s, i) that the problem (i, t) needs: how many, and their bytes.
  struct EntrySize {
    size_t count = 0;
    size_t bytes = 0;
  };
  // For all s from 0 to i.
  std::vector<EntrySize> Entries(size_t i, size_t t) const;
  EntrySize Entry(size_t s, size_t i, size_t t) const { return Entries(i, t)[s]; }
  // Forward through the stages [s, i) for the entry of (i, t). Depends on t only through the number
  // of values in Entry(s, i, t), or on whether it is the last stage.
  StretchCost Forward(size_t s, size_t i, size_t t) const;
  std::vector<ChainStep> ForwardSteps(size_t s, size_t i, size_t t) const;

  // Bytes of the values of stage s that its own backward steps read, or that the problem (s+1, t)
  // needs; and the cost of running s forward for them.
  size_t SavedBytes(size_t s, size_t t) const;
  StretchCost ForwardSaving(size_t s, size_t t) const;
  std::vector<ChainStep> ForwardSavingSteps(size_t s, size_t t) const;

  // Backward through one stage. `saved`: the values that it reads exist; else each is rebuilt right
  // before the first step that needs it.
  StretchCost Backward(size_t stage, bool saved) const;
  std::vector<ChainStep> BackwardSteps(size_t stage, bool saved) const;

 private:
  // Something about each value that the stages [s, i) make.
  template <class T>
  class OfMade {
   public:
    OfMade(const Stretches& stretches, size_t s, size_t i)
        : numbers_(stretches.numbers_),
          first_(stretches.made_before_[s]),
          items_(stretches.made_before_[i] - first_) {}

    bool Contains(ValueId value) const {
      return numbers_[value.index()] - first_ < items_.size();  // wraps around below the first
    }
    auto operator[](ValueId value) const { return items_[numbers_[value.index()] - first_]; }
    decltype(auto) operator[](ValueId value) { return items_[numbers_[value.index()] - first_]; }

   private:
    const std::vector<size_t>& numbers_;
    size_t first_;
    std::vector<T> items_;
  };
  using Wanted = OfMade<bool>;

  // A stage that reads a value, and the smallest t of the problems in which it may have to.
  struct Use {
    size_t stage = 0;
    size_t from_t = 0;
  };

  void NumberValues();
  void FindUses();
  // The values that the stages [s, i) make.
  std::span<const ValueId> Made(size_t s, size_t i) const {
    return std::span(made_).subspan(made_before_[s], made_before_[i] - made_before_[s]);
  }
  bool IsFirstPass(size_t t) const { return t + 1 == chain_.num_stages; }
  bool Needs(ValueId value, size_t i, size_t t) const;
  Wanted EntryValues(size_t s, size_t i, size_t t) const;
  Wanted Saved(size_t s, size_t t) const;
  // The forward nodes of the stages [s, i); in later passes only those needed for the wanted
  // values.
  std::vector<ChainStep> Nodes(size_t s, size_t i, size_t t, Wanted wanted) const;
  StretchCost PlayForward(const std::vector<ChainStep>& steps, size_t s, size_t i, size_t t,
                          const Wanted& wanted) const;
  // The forward nodes that must run before a backward step of the stage, given the present values.
  std::vector<ChainStep> Missing(size_t stage, size_t step, const Wanted& present) const;
  const ChainValue& Of(ValueId value) const { return chain_.values[value.index()]; }
  // Whether the backward steps of the stage that makes the value read it.
  bool IsReadWhereMade(ValueId value) const {
    const size_t end = Of(value).backward_end;
    return end > 0 && chain_.stage_of_backward[end - 1] == Of(value).first;
  }
  bool MayDrop(ValueId value) const { return Of(value).kind == ChainValue::Kind::kForward; }

  const Graph& graph_;
  const Chain& chain_;
  std::vector<const OpDef*> forward_ops_;   // by position in Chain::forward
  std::vector<const OpDef*> rerun_ops_;     // likewise
  std::vector<const OpDef*> backward_ops_;  // by position in Chain::backward
  std::vector<size_t> gradient_bytes_;      // by stage
  // Values are numbered in the order in which forward makes them, so that those of a stretch follow
  // one another.
  static constexpr size_t kNotMade = std::numeric_limits<size_t>::max();
  std::vector<ValueId> made_;           // by number
  std::vector<size_t> numbers_;         // by ValueId; kNotMade if forward does not make it
  std::vector<size_t> made_before_;     // by stage, up to num_stages: values of earlier stages
  std::vector<std::vector<Use>> uses_;  // by ValueId
};

}  // namespace thimble
