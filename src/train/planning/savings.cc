#include "thimble/train/planning/savings.h"

#include <fmt/format.h>

#include "thimble/program/techniques.h"
#include "thimble/train/planning/lever_offer.h"

namespace thimble {
namespace {

struct Offer {
  LeverOffer offer;
  std::string exactness;
};

// Whether the offer can be planned, alone and together with the other offers.
bool CanBePlanned(const LeverOffer& offer, TrainConfig config, const std::vector<Offer>& others,
                  const PlanSizer& sizer) {
  offer.Ask(config);
  if (!sizer.Of(config).ok()) return false;
  for (const Offer& other : others) other.offer.Ask(config);
  return sizer.Of(config).ok();
}

// The first value worth trying of each lever that saves bytes.
Result<std::vector<Offer>> Offers(const TrainConfig& config, const PlanSizer& sizer) {
  std::vector<Offer> offers;
  for (const Lever* lever : Levers()) {
    const auto offer = FirstOffer(*lever, config, [&](const LeverOffer& tried) {
      return CanBePlanned(tried, config, offers, sizer);
    });
    if (!offer) continue;
    TrainConfig asked = config;
    offer->Ask(asked);
    THIMBLE_ASSIGN_OR_RETURN(std::string exactness, sizer.ExactnessOf(*lever, asked));
    offers.push_back({*offer, std::move(exactness)});
  }
  return offers;
}

// The techniques that save bytes and are applied unless left out.
std::vector<TechniqueInfo> AlwaysSaving() {
  std::vector<TechniqueInfo> always = AlwaysDone();
  std::erase_if(always, [](const TechniqueInfo& done) { return !done.saves_bytes; });
  return always;
}

// A limit for recompute may be unreachable if passes are left out; then uses the smallest arena.
Result<PlanSize> SizeOf(const PlanSizer& sizer, TrainConfig config) {
  auto size = sizer.Of(config);
  if (size.ok() || size.error().kind != ErrorKind::kDoesNotFit) return size;
  config.recompute = "optimal";
  return sizer.Of(config);
}

Result<void> FindAlways(const PlanSizer& sizer, const TrainConfig& asked, Savings& savings) {
  const std::vector<TechniqueInfo> always = AlwaysSaving();
  TrainConfig bare = asked;
  for (const TechniqueInfo& done : always) bare.without.emplace(done.name);
  THIMBLE_ASSIGN_OR_RETURN(const PlanSize without, SizeOf(sizer, bare));
  savings.bare_arena_bytes = without.arena_bytes;
  for (const TechniqueInfo& done : always) {
    const std::string name(done.name);
    TrainConfig alone = bare;
    alone.without.erase(name);
    TrainConfig left_out = asked;
    left_out.without.insert(name);
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, SizeOf(sizer, alone));
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize others, SizeOf(sizer, left_out));
    savings.always.push_back({name, std::string(Name(done.exactness)), std::string(done.what),
                              size.arena_bytes, size.step_flops, others.arena_bytes});
  }
  return {};
}

Result<void> FindOffered(const PlanSizer& sizer, const std::vector<Offer>& offers,
                         const TrainConfig& asked, Savings& savings) {
  savings.together_arena_bytes = savings.asked_arena_bytes;
  // With all offers except `left_out`; with all if that is offers.size().
  const auto without = [&](size_t left_out) {
    TrainConfig config = asked;
    for (size_t i = 0; i < offers.size(); ++i) {
      if (i != left_out) offers[i].offer.Ask(config);
    }
    return sizer.Of(config);
  };
  for (size_t i = 0; i < offers.size(); ++i) {
    TrainConfig alone = asked;
    offers[i].offer.Ask(alone);
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, sizer.Of(alone));
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize others, without(i));
    const LeverOffer& offer = offers[i].offer;
    savings.offered.push_back({offer.option(), offers[i].exactness, offer.lever->what,
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

// With the requested microbatch, with 10 (as offered) and with 1.
Result<std::vector<SmallestArena>> FindSmallestArenas(const TrainConfig& config,
                                                      const PlanSizer& sizer) {
  std::vector<SmallestArena> arenas;
  const int64_t part = config.microbatch == 0 ? config.batch : config.microbatch;
  for (const int64_t microbatch : {config.microbatch, int64_t{10}, int64_t{1}}) {
    if (!arenas.empty() && microbatch >= part) continue;
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
