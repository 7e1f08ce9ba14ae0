#include "thimble/program/precision/precision.h"

#include <fmt/format.h>

#include "thimble/program/precision/storage_types.h"

namespace thimble {
namespace {

std::string LossyUnless(bool same) {
  return std::string(Name(same ? Exactness::kSameBits : Exactness::kLossy));
}

const Lever& PrecisionLever() {
  constexpr const char* kPlain = "fp32";
  static const Lever lever{
      .name = "precision",
      .takes = "fp32|fp16|bf16|mixed16",
      .help = "type in which numbers are stored; mixed16: fp16 with weights and optimizer in fp32",
      .what = "store numbers in 16 bits",
      .plain = kPlain,
      .decides_results = true,
      .worth_trying =
          [](const LeverSetting& setting) {
            return setting.value == kPlain ? std::vector<std::string>{"fp16"}
                                           : std::vector<std::string>{};
          },
      .exactness =
          [](const Graph&, const LeverSetting& setting) {
            return LossyUnless(setting.value == kPlain);
          }};
  return lever;
}

const Lever& StoreLever() {
  static const Lever lever{
      .name = "store",
      .takes = "CATEGORY=TYPE[,...]",
      .help =
          "type of one category: model, optimizer, gradients, activations or "
          "activation-gradients as fp32, fp16 or bf16; optimizer also as q8 (8 bits)",
      .what = "store single categories in other types",
      .decides_results = true,
      .check =
          [](std::string_view value) {
            StorageTypes types;
            return ParseStore(value, types);
          },
      .budget_steps =
          [](const LeverSetting& setting) {
            return setting.value.empty() ? std::vector<LeverStep>{{"optimizer=q8", 0.05}}
                                         : std::vector<LeverStep>{};
          },
      .exactness = [](const Graph&,
                      const LeverSetting& setting) { return LossyUnless(setting.value.empty()); }};
  return lever;
}

const Lever& RoundingLever() {
  static const Lever lever{.name = "stochastic-rounding",
                           .takes = "on|off",
                           .help =
                               "round weights and optimizer state of fewer than 32 bits at random, "
                               "so that small updates "
                               "are not lost",
                           .what = "round updates at random",
                           .plain = "on",
                           .decides_results = true,
                           .training_only = true};
  return lever;
}

const Lever& FeedbackLever() {
  static const Lever lever{
      .name = "error-feedback",
      .takes = "auto|on|off",
      .help =
          "return what rounding takes from weights through their momentum; auto: for weights in "
          "bf16",
      .what = "return rounding errors of weights",
      .plain = "auto",
      .decides_results = true,
      .training_only = true};
  return lever;
}

// Where `types` names a type for weights.
void ChooseRounding(const StorageTypes& types, UpdateSpec& update) {
  update.stochastic_rounding |= HasShortState(types);
  if (update.optimizer.name != "sgd") return;  // no other one has error feedback
  const StorageTypes::Type weights = types[StoredCategory::kModel];
  // A unit of bf16 is 1/256 of a weight, and random rounding by such units disturbs training more
  // than the gradients' own noise once the learning rate is small. Those of fp16 are 1/8 of that.
  if (weights) update.error_feedback = *weights == DType::kBF16;
}

class Precision final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "precision", .exactness = Exactness::kLossy, .what = PrecisionLever().what};
  }
  const Lever* lever() const override { return &PrecisionLever(); }
  Result<std::string> ChangeUpdate(const std::string& value, bool /*in_parts*/,
                                   UpdateSpec& update) const override {
    THIMBLE_ASSIGN_OR_RETURN(const StorageTypes types, ParsePrecision(value));
    ChooseRounding(types, update);
    return std::string();
  }
  Result<std::string> ChangeProgram(const std::string& value, const OpRegistry& ops,
                                    const UpdateSpec& /*update*/,
                                    std::vector<NamedGraph>& graphs) const override {
    THIMBLE_ASSIGN_OR_RETURN(const StorageTypes types, ParsePrecision(value));
    StoreAs(types, ops, graphs);
    return Describe(types) + "; statistics, softmax and loss fp32";
  }
};

class Store final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "store", .exactness = Exactness::kLossy, .what = StoreLever().what};
  }
  const Lever* lever() const override { return &StoreLever(); }
  Result<std::string> ChangeUpdate(const std::string& value, bool /*in_parts*/,
                                   UpdateSpec& update) const override {
    StorageTypes types;
    THIMBLE_TRY(ParseStore(value, types));
    ChooseRounding(types, update);
    return std::string();
  }
  Result<std::string> ChangeProgram(const std::string& value, const OpRegistry& ops,
                                    const UpdateSpec& /*update*/,
                                    std::vector<NamedGraph>& graphs) const override {
    StorageTypes types;
    THIMBLE_TRY(ParseStore(value, types));
    StoreAs(types, ops, graphs);
    return Describe(types);
  }
};

// Only asked for where it is switched off.
class StochasticRounding final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "stochastic-rounding",
            .exactness = Exactness::kLossy,
            .what = RoundingLever().what,
            .saves_bytes = false};
  }
  const Lever* lever() const override { return &RoundingLever(); }
  Result<std::string> ChangeUpdate(const std::string& /*value*/, bool /*in_parts*/,
                                   UpdateSpec& update) const override {
    if (!update.stochastic_rounding) return std::string();
    update.stochastic_rounding = update.error_feedback = false;
    return std::string("updates are rounded to the nearest");
  }
};

// Only asked for where it is not left to the type of the weights.
class ErrorFeedback final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "error-feedback",
            .exactness = Exactness::kLossy,
            .what = FeedbackLever().what,
            .saves_bytes = false};
  }
  const Lever* lever() const override { return &FeedbackLever(); }
  Result<std::string> ChangeUpdate(const std::string& value, bool /*in_parts*/,
                                   UpdateSpec& update) const override {
    update.error_feedback = value == "on";
    if (update.error_feedback && update.optimizer.name != "sgd") {
      return BadInput(fmt::format(
          "--error-feedback on: errors return through the momentum of --optimizer sgd, not {}",
          update.optimizer.name));
    }
    return std::string(update.error_feedback ? "rounding errors of weights return"
                                             : "rounding errors of weights are lost");
  }
};

}  // namespace

std::unique_ptr<const Technique> MakePrecision() { return std::make_unique<Precision>(); }
std::unique_ptr<const Technique> MakeStore() { return std::make_unique<Store>(); }
std::unique_ptr<const Technique> MakeStochasticRounding() {
  return std::make_unique<StochasticRounding>();
}
std::unique_ptr<const Technique> MakeErrorFeedback() { return std::make_unique<ErrorFeedback>(); }

}  // namespace thimble
