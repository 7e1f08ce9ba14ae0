// Lever: something that a user can turn to make a plan smaller or faster, with all that anybody has
// to know of it. From the table of levers (techniques.h) follow the command line, configuration
// files, the plain plan, `thimble plan`'s table of savings and its advice, and the report.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/device/device_kind.h"
#include "thimble/graph/graph.h"
#include "thimble/plan/pass.h"

namespace thimble {

// What there is to choose from when a lever is turned.
struct LeverSetting {
  std::string value;  // of this lever, as it is
  int64_t batch = 0;  // samples of an update
  DeviceKind device = DeviceKind::kCpu;
};

struct Lever {
  std::string name;   // "microbatch": the option --microbatch, the key in files
  std::string takes;  // "N"; "none|cheap|blocks[:N]": as help shows it, and all values if a list
  std::string help;   // of the option
  std::string what;   // what it does, for the table of savings
  // What the plain plan has: a value, or nothing where nobody chose one.
  std::string plain = {};
  // A resumed run must have the same value, or its results would not be those of one run.
  bool decides_results = false;
  bool training_only = false;  // evaluation has no use for it
  // Why a text is no value of it. (One of a list needs no check.)
  std::function<Result<void>(std::string_view value)> check = {};
  // Values that may make the arena smaller than the one there is, the one to offer first. None for
  // levers that save no bytes.
  std::function<std::vector<std::string>(const LeverSetting&)> worth_trying = {};
  // How exact a run with this setting is. `forward` is a graph of the network.
  std::function<std::string(const Graph& forward, const LeverSetting&)> exactness =
      [](const Graph&, const LeverSetting&) { return std::string(Name(Exactness::kSameBits)); };
};

}  // namespace thimble
