// LeverOffer: a value of a lever that may make the arena smaller; planning shows whether it does.
#pragma once

#include <optional>
#include <string>

#include "thimble/base/function_ref.h"
#include "thimble/program/lever.h"
#include "thimble/train/options/config.h"

namespace thimble {

struct LeverOffer {
  const Lever* lever = nullptr;
  std::string value;

  std::string option() const;  // "--scratch 64KiB"
  void Ask(TrainConfig& config) const;
};

// The first value worth trying for this configuration that `works`; nullopt if there is none.
std::optional<LeverOffer> FirstOffer(const Lever& lever, const TrainConfig& config,
                                     FunctionRef<bool(const LeverOffer&)> works);

}  // namespace thimble
