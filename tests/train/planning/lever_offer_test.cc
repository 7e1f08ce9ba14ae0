#include "thimble/train/planning/lever_offer.h"

#include <gtest/gtest.h>

#include "thimble/program/techniques.h"

namespace thimble {
namespace {

// What is offered for --scratch where only values above `bytes` work.
std::string OfferAbove(int64_t bytes, const TrainConfig& config) {
  const auto offer = FirstOffer(*FindLever("scratch"), config, [&](const LeverOffer& tried) {
    TrainConfig with = config;
    tried.Ask(with);
    return with.scratch_bytes > bytes;
  });
  return offer ? offer->option() : "";
}

TEST(LeverOffer, IsTheFirstThatWorksBelowWhatWasAskedFor) {
  TrainConfig config;
  EXPECT_EQ(OfferAbove(0, config), "--scratch 64KiB");
  EXPECT_EQ(OfferAbove(100'000, config), "--scratch 128KiB");
  EXPECT_EQ(OfferAbove(1 << 20, config), "");
  config.scratch_bytes = 64 << 10;
  EXPECT_EQ(OfferAbove(0, config), "");
}

TEST(LeverOffer, LeversThatSaveNothingHaveNone) {
  EXPECT_FALSE(FirstOffer(*FindLever("conv"), TrainConfig{}, [](const LeverOffer&) {
                 return true;
               }).has_value());
}

}  // namespace
}  // namespace thimble
