#include "thimble/train/savings.h"

#include <fmt/format.h>

#include "thimble/plan/pipeline.h"
#include "thimble/program/techniques.h"
#include "thimble/train/options.h"

namespace thimble {
namespace {

// A value of a lever that may make the arena smaller.
struct Offer {
  const Lever* lever = nullptr;
  std::string value;
  std::string exactness;

  std::string option() const { return fmt::format("--{} {}", lever->name, value); }
  void Ask(TrainConfig& config) const { Set(*lever, value, config); }
};

// Whether it can be planned, with the other offers taken or not.
bool CanBePlanned(const Offer& offer, TrainConfig config, const std::vector<Offer>& others,
                  const PlanSizer& sizer) {
  offer.Ask(config);
  if (!sizer.Of(config).ok()) return false;
  for (const Offer& other : others) other.Ask(config);
  return sizer.Of(config).ok();
}

// Of each lever that saves bytes, the first value that is worth trying.
Result<std::vector<Offer>> Offers(const TrainConfig& config, const PlanSizer& sizer) {
  std::vector<Offer> offers;
  for (const Lever* lever : Levers()) {
    if (!lever->worth_trying) continue;
    LeverSetting setting{ValueOf(*lever, config), config.batch, DeviceOf(config)};
    for (std::string& value : lever->worth_trying(setting)) {
      Offer offer{lever, std::move(value), ""};
      if (!CanBePlanned(offer, config, offers, sizer)) continue;
      setting.value = offer.value;
      THIMBLE_ASSIGN_OR_RETURN(offer.exactness, sizer.ExactnessOf(*lever, setting));
      offers.push_back(std::move(offer));
      break;
    }
  }
  return offers;
}

// What every plan has unless it is left out.
struct AlwaysDone {
  std::string name;
  std::string exactness;
  std::string what;
};

std::vector<AlwaysDone> WhatIsAlwaysDone() {
  std::vector<AlwaysDone> done;
  const auto add = [&](const auto& info) {
    done.push_back(
        {std::string(info.name), std::string(Name(info.exactness)), std::string(info.what)});
  };
  for (const auto& technique : Techniques()) {
    if (technique->lever() == nullptr) add(technique->Info());
  }
  for (const PassInfo& pass : OptionalPasses()) {
    if (pass.saves_bytes) add(pass);
  }
  return done;
}

// A limit for recompute may be out of reach with passes left out: then as small as can be.
Result<PlanSize> SizeOf(const PlanSizer& sizer, TrainConfig config) {
  auto size = sizer.Of(config);
  if (size.ok() || size.error().kind != ErrorKind::kDoesNotFit) return size;
  config.recompute = "optimal";
  return sizer.Of(config);
}

Result<void> FindAlways(const PlanSizer& sizer, const TrainConfig& asked, Savings& savings) {
  const std::vector<AlwaysDone> always = WhatIsAlwaysDone();
  TrainConfig bare = asked;
  for (const AlwaysDone& done : always) bare.without.insert(done.name);
  THIMBLE_ASSIGN_OR_RETURN(const PlanSize without, SizeOf(sizer, bare));
  savings.bare_arena_bytes = without.arena_bytes;
  for (const AlwaysDone& done : always) {
    TrainConfig alone = bare;
    alone.without.erase(done.name);
    TrainConfig left_out = asked;
    left_out.without.insert(done.name);
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, SizeOf(sizer, alone));
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize others, SizeOf(sizer, left_out));
    savings.always.push_back({done.name, done.exactness, done.what, size.arena_bytes,
                              size.step_flops, others.arena_bytes});
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
      if (i != left_out) offers[i].Ask(config);
    }
    return sizer.Of(config);
  };
  for (size_t i = 0; i < offers.size(); ++i) {
    TrainConfig alone = asked;
    offers[i].Ask(alone);
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, sizer.Of(alone));
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize others, without(i));
    savings.offered.push_back({offers[i].option(), offers[i].exactness, offers[i].lever->what,
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
