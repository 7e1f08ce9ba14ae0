#include "thimble/program/update_in_backward/update_in_backward.h"

#include <fmt/format.h>

#include "thimble/grad/training_graph.h"

namespace thimble {
namespace {

std::string ExactnessInBackward(const Graph& /*forward*/, const LeverSetting& setting) {
  if (setting.value == "false") return std::string(Name(Exactness::kSameBits));
  if (setting.drops_gradients) {
    return fmt::format("{}: gradients that are not finite are dropped layer by layer",
                       Name(Exactness::kLossy));
  }
  if (setting.in_parts && setting.optimizer == "adam") {
    return fmt::format("{}: the second moment adds up the squares of the parts' gradients",
                       Name(Exactness::kLossy));
  }
  return std::string(Name(setting.in_parts ? Exactness::kEqual : Exactness::kSameBits));
}

const Lever& UpdateInBackwardLever() {
  static const Lever lever{
      .name = "update-in-backward",
      .takes = {},
      .help = "use each gradient as soon as it is computed, without an array for all of them",
      .what = "update weights or momentum while backward still runs",
      .plain = "false",
      .decides_results = true,
      .training_only = true,
      .worth_trying =
          [](const LeverSetting& setting) {
            return setting.value == "false" ? std::vector<std::string>{"true"}
                                            : std::vector<std::string>{};
          },
      .exactness = ExactnessInBackward};
  return lever;
}

class UpdateInBackward final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "update-in-backward",
            .exactness = Exactness::kLossy,
            .what = UpdateInBackwardLever().what};
  }
  const Lever* lever() const override { return &UpdateInBackwardLever(); }
  Result<std::string> ChangeUpdate(const std::string& /*value*/, bool in_parts,
                                   UpdateSpec& update) const override {
    update.in_backward = true;
    THIMBLE_ASSIGN_OR_RETURN(const GradientUse use, ChooseGradientUse(update, in_parts));
    if (!use.in_backward) {
      return fmt::format("not done, an array of gradients is kept: {}", use.why_not);
    }
    std::string done = "parameters are updated in backward";
    if (in_parts) {
      const bool is_adam = update.optimizer.name == "adam";
      done = fmt::format("parts add their gradients to the {}", is_adam ? "moments" : "momentum");
    }
    if (update.checks_gradients()) done += "; gradients that are not finite are dropped";
    return done;
  }
};

}  // namespace

std::unique_ptr<const Technique> MakeUpdateInBackward() {
  return std::make_unique<UpdateInBackward>();
}

}  // namespace thimble
