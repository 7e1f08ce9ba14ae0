// RunQueue: runs of a classifier's plans whose results are on their way. Where the device works by
// itself, the next run is enqueued before the results of the last one are looked at, so that it
// never waits for the host; on the CPU a run is done when it was launched.
//
//   const PlanPorts& ports = queue.Begin(plan);   // then write the inputs
//   queue.Set(ports.learning_rate, 0.1F);
//   queue.Launch();
//   ...                                           // up to max_runs() of them
//   const FinishedRun run = queue.Collect();      // the oldest
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "thimble/base/function_ref.h"
#include "thimble/exec/executor.h"

namespace thimble {

// The inputs and outputs of one plan; nowhere where it has no such value. Evaluation has no
// learning rate, an update nothing else; samples and epoch are there where something is
// drawn (augmentation, dropout), seen where a batch is trained in parts.
struct PlanPorts {
  TensorView images;
  TensorView labels;
  TensorView samples;
  TensorView epoch;
  TensorView seen;
  TensorView learning_rate;
  TensorView loss;
  TensorView correct;
};

struct FinishedRun {
  double loss = 0;  // both are 0 where the plan has none
  int64_t correct = 0;
  bool audited = false;
};

class RunQueue {
 public:
  // There is room for as many steps as the device may have under way, each of so many runs.
  // `executor` must outlive this.
  explicit RunQueue(Executor& executor, int64_t runs_per_step = 1);

  size_t max_runs() const { return max_runs_; }
  // Launched and not collected.
  size_t size() const { return static_cast<size_t>(launched_ - collected_); }
  bool empty() const { return size() == 0; }
  bool full() const { return size() == max_runs_; }

  // Prepares a run. Requires that the queue is not full.
  const PlanPorts& Begin(size_t plan);
  // Writes an input of a single number; a few per run.
  template <class T>
  void Set(const TensorView& input, T number) {
    static_assert(sizeof(T) == sizeof(Word));
    Word word;
    std::memcpy(&word, &number, sizeof(word));
    SetWord(input, word);
  }
  // Writes the input `samples`, which `fill` gets the room for. Requires that the plan has it.
  void SetSamples(FunctionRef<void(std::span<int32_t>)> fill);
  void Launch();
  // Waits for the oldest run. Requires that there is one.
  FinishedRun Collect();

 private:
  using Word = uint32_t;
  // In memory that the device copies from and to by itself; room for samples follows.
  struct Slot {
    std::array<Word, 6> numbers;  // what Set wrote
    float loss;
    int32_t correct;
  };
  struct Launched {
    bool audited = false;
    DeviceMark mark = 0;
  };

  std::span<std::byte> SlotBytes(int64_t run) const;
  Slot& SlotOf(int64_t run) const;
  void SetWord(const TensorView& input, Word word);

  Executor& executor_;
  const size_t max_runs_;
  std::vector<PlanPorts> ports_;  // by plan
  size_t slot_bytes_ = 0;
  std::unique_ptr<HostMemory> slots_;
  std::vector<Launched> runs_;  // by run mod max_runs_
  int64_t launched_ = 0;
  int64_t collected_ = 0;
  size_t plan_ = 0;         // of the run that was begun
  size_t num_numbers_ = 0;  // that were set for it
};

}  // namespace thimble
