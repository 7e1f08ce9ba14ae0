#include "thimble/program/factored_moment/factored_moment.h"

#include <fmt/format.h>

namespace thimble {
namespace {

constexpr const char* kFull = "full";
constexpr const char* kFactored = "factored";

const Lever& SecondMomentLever() {
  static const Lever lever{
      .name = "second-moment",
      .takes = "full|factored",
      .help = "adam; factored: keep means of rows and columns instead of the second moment",
      .what = "keep means of rows and columns instead of Adam's second moment",
      .plain = kFull,
      .decides_results = true,
      .training_only = true,
      .worth_trying =
          [](const LeverSetting& setting) {
            const bool helps = setting.optimizer == "adam" && setting.value == kFull;
            return helps ? std::vector<std::string>{kFactored} : std::vector<std::string>{};
          },
      // A pilot on translation lost 0.1 BLEU; for images it has not been measured.
      .budget_steps =
          [](const LeverSetting& setting) {
            const bool helps = setting.optimizer == "adam" && setting.value == kFull;
            return helps ? std::vector<LeverStep>{{kFactored, 0.1}} : std::vector<LeverStep>{};
          },
      .exactness =
          [](const Graph&, const LeverSetting& setting) {
            const bool same = setting.value == kFull || setting.optimizer != "adam";
            return std::string(Name(same ? Exactness::kSameBits : Exactness::kLossy));
          }};
  return lever;
}

class SecondMoment final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {
        .name = "second-moment", .exactness = Exactness::kLossy, .what = SecondMomentLever().what};
  }
  const Lever* lever() const override { return &SecondMomentLever(); }
  Result<std::string> ChangeUpdate(const std::string& value, bool /*in_parts*/,
                                   UpdateSpec& update) const override {
    if (value == kFull) return std::string();
    if (update.optimizer.name != "adam") {
      return BadInput(fmt::format("--second-moment {}: only with --optimizer adam", value));
    }
    update.optimizer.factored = true;
    return std::string("matrices keep means of rows and columns");
  }
};

}  // namespace

std::unique_ptr<const Technique> MakeSecondMoment() { return std::make_unique<SecondMoment>(); }

}  // namespace thimble
