#include "thimble/program/plan_levers.h"

#include <fmt/format.h>

#include "thimble/base/byte_size.h"
#include "thimble/plan/recompute/recompute_spec.h"

namespace thimble {
namespace {

Lever Recompute() {
  return {
      .name = "recompute",
      .takes = "none|cheap|blocks[:N]|sqrt|optimal[:SIZE]",
      .help =
          "forward values to drop and recompute in backward; cheap: norms and activations; "
          "optimal: for the smallest arena or, with SIZE, for the least work that fits",
      .what = "keep only the values between blocks and recompute the rest in backward",
      .plain = "none",
      .training_only = true,
      .check = [](std::string_view value) -> Result<void> {
        THIMBLE_TRY(ParseRecompute(std::string(value)));
        return {};
      },
      .worth_trying = [](const LeverSetting& setting) -> std::vector<std::string> {
        if (setting.value == "none" || setting.value == "cheap") return {"blocks", "optimal"};
        return {};
      },
      .budget_steps = [](const LeverSetting& setting) -> std::vector<LeverStep> {
        if (setting.value != "none") return {};
        return {{"optimal"}};
      },
      .within_bytes = [](int64_t limit_bytes) { return fmt::format("optimal:{}", limit_bytes); }};
}

Lever Convolution() {
  return {.name = "conv",
          .takes = "direct|winograd",
          .help =
              "convolution algorithm; winograd: a quarter of the multiplications for 3x3 filters, "
              "different rounding",
          .what = "fewer multiplications, different rounding",
          .plain = "direct",
          .decides_results = true,
          .exactness = [](const Graph&, const LeverSetting& setting) {
            const bool same = setting.value == "direct";
            return std::string(Name(same ? Exactness::kSameBits : Exactness::kEqual));
          }};
}

constexpr const char* kPlainScratch = "1048576";

Lever Scratch() {
  return {.name = "scratch",
          .takes = "SIZE",
          .help = "scratch memory per thread for packed panels; a GPU gets as much as 16 threads",
          .what = "smaller packed panels per thread",
          .plain = kPlainScratch,
          // Direct convolutions of fp32 numbers run well from 64 KiB on. (Winograd needs more.)
          .worth_trying =
              [](const LeverSetting& setting) {
                const Result<int64_t> asked = ParseByteSize(setting.value);
                std::vector<std::string> values;
                for (int64_t kib = 64; asked.ok() && (kib << 10) < *asked; kib *= 2) {
                  values.push_back(std::to_string(kib) + "KiB");
                }
                return values;
              },
          // Those of 16-bit and sparse numbers take half as long with 128 KiB as with 64.
          .budget_steps = [](const LeverSetting& setting) -> std::vector<LeverStep> {
            if (setting.value != kPlainScratch) return {};
            return {{"128KiB"}, {"64KiB"}};
          }};
}

}  // namespace

const std::vector<Lever>& PlanLevers() {
  static const std::vector<Lever> levers = {Recompute(), Convolution(), Scratch()};
  return levers;
}

}  // namespace thimble
