#include "thimble/train/savings.h"

#include <fmt/format.h>

#include <functional>

#include "thimble/plan/pipeline.h"

namespace thimble {
namespace {

// A technique that a user can ask for. One line here, and `thimble plan` says what it would save.
struct Offer {
  std::string name;
  std::string exactness;
  std::string what;
  std::function<void(TrainConfig&)> ask;
};

// Small enough to show what parts save; batch norm keeps statistics that are worth something.
constexpr int64_t kOfferedMicrobatch = 10;

// Samples of the largest part.
int64_t PartOf(const TrainConfig& config) {
  return config.microbatch == 0 ? config.batch : config.microbatch;
}

// The smallest that can be planned with, whether the other offers are taken or not.
int64_t OfferedScratch(const TrainConfig& config, const std::vector<Offer>& others,
                       const PlanSizer& sizer) {
  return SmallestScratch(config, [&](TrainConfig tried) {
    if (!sizer.Of(tried).ok()) return false;
    for (const Offer& offer : others) offer.ask(tried);
    return sizer.Of(tried).ok();
  });
}

Result<std::vector<Offer>> Offers(const TrainConfig& config, const PlanSizer& sizer) {
  std::vector<Offer> offers;
  if (PartOf(config) > kOfferedMicrobatch) {
    THIMBLE_ASSIGN_OR_RETURN(const std::string exactness,
                             sizer.MicrobatchExactness(config.batch, kOfferedMicrobatch));
    offers.push_back({fmt::format("--microbatch {}", kOfferedMicrobatch), exactness,
                      "train a batch in parts, and update from the sum of their gradients",
                      [](TrainConfig& asked) { asked.microbatch = kOfferedMicrobatch; }});
  }
  if (config.recompute == "none" || config.recompute == "cheap") {
    offers.push_back({"--recompute blocks", std::string(Name(Exactness::kSameBits)),
                      "keep what passes between blocks, and rebuild the rest in backward",
                      [](TrainConfig& asked) { asked.recompute = "blocks"; }});
  }
  if (const int64_t scratch_bytes = OfferedScratch(config, offers, sizer); scratch_bytes > 0) {
    offers.push_back({fmt::format("--scratch {}KiB", scratch_bytes >> 10),
                      std::string(Name(Exactness::kSameBits)), "smaller packed panels per thread",
                      [=](TrainConfig& asked) { asked.scratch_bytes = scratch_bytes; }});
  }
  return offers;
}

// A limit for recompute may be out of reach with passes left out: then as small as can be.
Result<PlanSize> SizeOf(const PlanSizer& sizer, TrainConfig config) {
  auto size = sizer.Of(config);
  if (size.ok() || size.error().kind != ErrorKind::kDoesNotFit) return size;
  config.recompute = "optimal";
  return sizer.Of(config);
}

Result<void> FindAlways(const PlanSizer& sizer, const TrainConfig& asked, Savings& savings) {
  std::vector<PassInfo> passes = OptionalPasses();
  std::erase_if(passes, [](const PassInfo& pass) { return !pass.saves_bytes; });
  TrainConfig bare = asked;
  for (const PassInfo& pass : passes) bare.without.emplace(pass.name);
  THIMBLE_ASSIGN_OR_RETURN(const PlanSize without, SizeOf(sizer, bare));
  savings.bare_arena_bytes = without.arena_bytes;
  for (const PassInfo& pass : passes) {
    TrainConfig alone = bare;
    alone.without.erase(std::string(pass.name));
    TrainConfig left_out = asked;
    left_out.without.emplace(pass.name);
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, SizeOf(sizer, alone));
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize others, SizeOf(sizer, left_out));
    savings.always.push_back({std::string(pass.name), std::string(Name(pass.exactness)),
                              std::string(pass.what), size.arena_bytes, size.step_flops,
                              others.arena_bytes});
  }
  return {};
}

Result<void> FindOffered(const PlanSizer& sizer, const std::vector<Offer>& offers,
                         const TrainConfig& asked, Savings& savings) {
  savings.together_arena_bytes = savings.asked_arena_bytes;
  // With all offers but one, or with all.
  const auto without = [&](size_t left_out) {
    TrainConfig config = asked;
    for (size_t i = 0; i < offers.size(); ++i) {
      if (i != left_out) offers[i].ask(config);
    }
    return sizer.Of(config);
  };
  for (size_t i = 0; i < offers.size(); ++i) {
    TrainConfig alone = asked;
    offers[i].ask(alone);
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, sizer.Of(alone));
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize others, without(i));
    savings.offered.push_back({offers[i].name, offers[i].exactness, offers[i].what,
                               size.arena_bytes, size.step_flops, others.arena_bytes});
    savings.together_arena_bytes = size.arena_bytes;
  }
  if (offers.size() > 1) {
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize together, without(offers.size()));
    savings.together_arena_bytes = together.arena_bytes;
  }
  return {};
}

}  // namespace

Result<Savings> FindSavings(const TrainConfig& config, const PlanSizer& sizer) {
  Savings savings;
  THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, sizer.Of(config));
  savings.asked_arena_bytes = size.arena_bytes;
  savings.asked_step_flops = size.step_flops;
  THIMBLE_TRY(FindAlways(sizer, config, savings));
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<Offer> offers, Offers(config, sizer));
  THIMBLE_TRY(FindOffered(sizer, offers, config, savings));
  return savings;
}

// In the parts that were asked for, in those that are offered, and sample by sample.
Result<std::vector<SmallestArena>> FindSmallestArenas(const TrainConfig& config,
                                                      const PlanSizer& sizer) {
  std::vector<SmallestArena> arenas;
  for (const int64_t microbatch : {config.microbatch, kOfferedMicrobatch, int64_t{1}}) {
    if (!arenas.empty() && microbatch >= PartOf(config)) continue;
    TrainConfig asked = config;
    asked.microbatch = microbatch;
    asked.recompute = "optimal";
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, sizer.Of(asked));
    std::string options = "--recompute optimal";
    if (microbatch > 0) options += fmt::format(" --microbatch {}", microbatch);
    arenas.push_back({microbatch, std::move(options), size.arena_bytes, size.step_flops});
  }
  return arenas;
}

}  // namespace thimble
