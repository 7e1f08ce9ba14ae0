// Lever: an option that makes a plan smaller or faster, with everything that other code needs to
// know about it. The command line, configuration files, the plain plan, the table of savings and
// the advice of `thimble plan`, and the report are made from the table of levers (techniques.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/device/device_kind.h"
#include "thimble/graph/graph.h"
#include "thimble/plan/pass.h"

namespace thimble {

// The current value of a lever and the settings that other values depend on.
struct LeverSetting {
  std::string value;  // current value of this lever
  int64_t batch = 0;  // samples per update or, if `counts_tokens`, tokens of the longer side
  DeviceKind device = DeviceKind::kCpu;
  bool in_parts = false;         // the batch is trained in parts
  bool drops_gradients = false;  // gradients that are not finite do not end the run
  std::string optimizer = "sgd";
  bool counts_tokens = false;
};

// A value that a budget may choose.
struct LeverStep {
  std::string value;
  // Percentage points of accuracy that it is expected to cost, from runs of wrn-28-2 on CIFAR-10
  // (docs/techniques).
  double lost_points = 0;
};

struct Lever {
  std::string name;  // "microbatch": the option --microbatch, and the key in files
  // "N"; "none|cheap|blocks[:N]": values, as help shows them (option_values.h). Empty: a switch,
  // whose values are "true" and "false".
  std::string takes;
  std::string help;  // help text of the option
  std::string what;  // what it does, for the table of savings
  // The value in the plain plan; empty: no value chosen.
  std::string plain = {};
  // A resumed run must have the same value, otherwise its results would differ from those of an
  // uninterrupted run.
  bool decides_results = false;
  bool training_only = false;  // has no effect on evaluation
  // Rejects invalid values, with the reason. (Not needed if `takes` lists all values.)
  std::function<Result<void>(std::string_view value)> check = {};
  // Values that may make the arena smaller than the current value does, in the order to try them.
  // Empty for levers that save no bytes.
  std::function<std::vector<std::string>(const LeverSetting&)> worth_trying = {};
  // The values that a budget may choose, each with a smaller arena than the one before. If there is
  // no function: the first value worth trying, at no cost.
  std::function<std::vector<LeverStep>(const LeverSetting&)> budget_steps = {};
  // A value about halfway between two that a budget may choose, for levers whose values are
  // numbers: then a budget takes no more of it than it needs. nullopt if there is none worth
  // telling apart.
  std::function<std::optional<LeverStep>(const LeverStep& milder, const LeverStep& stronger)>
      between = {};
  // The value with the least work whose arena has at most this many bytes, for a lever that can
  // trade one for the other.
  std::function<std::string(int64_t limit_bytes)> within_bytes = {};
  // How exact a run with this setting is. `forward` is a forward graph of the network.
  std::function<std::string(const Graph& forward, const LeverSetting&)> exactness =
      [](const Graph&, const LeverSetting&) { return std::string(Name(Exactness::kSameBits)); };
};

}  // namespace thimble
