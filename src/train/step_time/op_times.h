// OpTimes: how long ops take on one machine, from which the time of a training step is predicted
// before it runs.
//
// Calls of one kind (same op, kernel and types of numbers) were measured in several sizes
// (profile/calibrate.h). The time of another size is
//
//   (seconds per call + flops * seconds per flop + bytes * seconds per byte) * correction
//
// where the sum is fitted to all samples of the kind, and the correction is what the nearest
// samples differ from it: products of few channels run slower than the fit says, and so on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/graph/op_def.h"
#include "thimble/plan/cost.h"
#include "thimble/plan/program.h"

namespace thimble {

struct OpSample {
  NodeCost cost;
  double seconds = 0;
  friend bool operator==(const OpSample& a, const OpSample& b) {
    return a.cost.flops == b.cost.flops && a.cost.bytes == b.cost.bytes && a.seconds == b.seconds;
  }
};

// The samples of calls that behave alike.
class CallTimes {
 public:
  // Requires at least one sample.
  explicit CallTimes(std::vector<OpSample> samples);
  double Seconds(const NodeCost& cost) const;
  const std::vector<OpSample>& samples() const { return samples_; }

 private:
  double Fitted(const NodeCost& cost) const;

  std::vector<OpSample> samples_;
  double per_call_ = 0;
  double per_flop_ = 0;
  double per_byte_ = 0;
};

class OpTimes {
 public:
  // Samples by kind (KindOf). All seconds must be finite and above 0.
  using Samples = std::map<std::string, std::vector<OpSample>, std::less<>>;

  OpTimes() = default;  // knows nothing
  // `threads`: of the CPU, with which the samples were measured.
  OpTimes(const Samples& samples, int threads);

  bool empty() const { return by_kind_.empty(); }
  int threads() const { return threads_; }
  Samples samples() const;

  // One call. Kinds that were not measured take the time of other kinds of the same op or, if there
  // are none, of all calls. Requires !empty().
  double Seconds(std::string_view kind, const NodeCost& cost) const;

 private:
  std::map<std::string, CallTimes, std::less<>> by_kind_;
  std::map<std::string, CallTimes, std::less<>> by_op_;
  std::vector<CallTimes> all_;  // one element, or none
  int threads_ = 1;
};

// "conv2d Conv2dCpu hh>h": op, kernel, and a letter for the type of each input and output; capital
// letters are packed. Followed by "/64K" if the kernel is limited to 64 KiB of scratch memory per
// thread, less than it would use by default: some kernels then take another way.
std::string KindOf(const Plan& plan, const Step& step, const OpRegistry& ops);

// "2.24 ms", "1.35 s".
std::string FormatSeconds(double seconds);

// A training step with a full batch: all runs of its plans. 0 if `times` is empty.
double StepSeconds(const Program& program, const OpRegistry& ops, const OpTimes& times);

}  // namespace thimble
