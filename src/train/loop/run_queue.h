// RunQueue: runs of plans in flight. On an asynchronous device the next run is
// enqueued before the results of the last one are read, so that the device never waits for the
// host; on the CPU, Launch returns when the run is done.
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
#include "thimble/data/batch_source.h"
#include "thimble/exec/executor.h"

namespace thimble {

// The inputs and outputs of one plan; without data if the plan has no such value. Evaluation has no
// learning rate, an update has little else; `samples` and `epoch` exist if there are random draws
// (augmentation, dropout), `seen` if batches are trained in parts, `update` and `loss_scale` if
// updates need them.
struct PlanPorts {
  std::vector<TensorView> batch;  // one for each field of batches; empty in an update
  TensorView samples;
  TensorView epoch;
  TensorView seen;
  TensorView learning_rate;
  TensorView loss_weight;
  TensorView update;
  TensorView loss;
  TensorView correct;
  TensorView loss_scale;  // state, read after the run
};

// The state of loss scaling after a run; all 0 if there is none.
struct LossScaleState {
  float scale = 0;
  float good_updates = 0;
  float skipped = 0;  // updates with a gradient that was not finite
  float not_finite = 0;
};

struct FinishedRun {
  double loss = 0;  // this and `correct` are 0 if the plan has no such output
  int64_t correct = 0;
  LossScaleState loss_scale = {};
};

class RunQueue {
 public:
  // The capacity is as many steps as the device allows in flight, each with `runs_per_step` runs.
  // `fields` are those of the batches. `executor` must outlive this.
  RunQueue(Executor& executor, std::span<const BatchField> fields, int64_t runs_per_step = 1);

  size_t max_runs() const { return max_runs_; }
  // Runs launched and not collected.
  size_t size() const { return static_cast<size_t>(launched_ - collected_); }
  bool empty() const { return size() == 0; }
  bool full() const { return size() == max_runs_; }

  // Prepares a run. Requires that the queue is not full.
  const PlanPorts& Begin(size_t plan);
  // Writes an input that is a single number; at most eight per run.
  template <class T>
  void Set(const TensorView& input, T number) {
    static_assert(sizeof(T) == sizeof(Word));
    Word word;
    std::memcpy(&word, &number, sizeof(word));
    SetWord(input, word);
  }
  // Writes the input `samples`: `fill` gets the buffer to fill. Requires that the plan has it.
  void SetSamples(FunctionRef<void(std::span<int32_t>)> fill);
  void Launch();
  // Whether the last Launch took longer than later ones of its plan, which was prepared in it.
  bool last_launch_was_slower() const { return executor_.last_run_was_slower(); }
  // Waits for the oldest run. Requires that there is one.
  FinishedRun Collect();

 private:
  using Word = uint32_t;
  // In host memory that the device can access; followed by the buffer for samples.
  struct Slot {
    std::array<Word, 8> numbers;  // what Set wrote
    float loss;
    int32_t correct;
    LossScaleState loss_scale;
  };

  std::span<std::byte> SlotBytes(int64_t run) const;
  Slot& SlotOf(int64_t run) const;
  void SetWord(const TensorView& input, Word word);

  Executor& executor_;
  const size_t max_runs_;
  std::vector<PlanPorts> ports_;  // by plan
  size_t slot_bytes_ = 0;
  std::unique_ptr<HostMemory> slots_;
  std::vector<DeviceMark> marks_;  // by run mod max_runs_
  int64_t launched_ = 0;
  int64_t collected_ = 0;
  size_t plan_ = 0;         // of the run being prepared
  size_t num_numbers_ = 0;  // set for that run
};

}  // namespace thimble
