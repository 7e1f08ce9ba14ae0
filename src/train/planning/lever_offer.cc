#include "thimble/train/planning/lever_offer.h"

#include <fmt/format.h>

#include "thimble/train/options/options.h"

namespace thimble {

std::string LeverOffer::option() const {
  if (lever->takes.empty()) return "--" + lever->name;
  return fmt::format("--{} {}", lever->name, value);
}

void LeverOffer::Ask(TrainConfig& config) const { Set(*lever, value, config); }

std::optional<LeverOffer> FirstOffer(const Lever& lever, const TrainConfig& config,
                                     FunctionRef<bool(const LeverOffer&)> works) {
  if (!lever.worth_trying) return std::nullopt;
  for (std::string& value : lever.worth_trying(SettingOf(lever, config))) {
    LeverOffer offer{&lever, std::move(value)};
    if (works(offer)) return offer;
  }
  return std::nullopt;
}

}  // namespace thimble
