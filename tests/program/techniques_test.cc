#include "thimble/program/techniques.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace thimble {
namespace {

TEST(Techniques, HaveNamesOfTheirOwnAndSayWhatTheyDo) {
  std::set<std::string_view> names;
  for (const auto& technique : Techniques()) {
    EXPECT_TRUE(names.insert(technique->Info().name).second) << technique->Info().name;
    EXPECT_FALSE(technique->Info().what.empty()) << technique->Info().name;
  }
}

TEST(Levers, AreComplete) {
  std::set<std::string> names;
  for (const Lever* lever : Levers()) {
    EXPECT_TRUE(names.insert(lever->name).second) << lever->name;
    EXPECT_FALSE(lever->help.empty() || lever->what.empty()) << lever->name;
    if (lever->takes.empty()) {  // a switch
      EXPECT_TRUE(lever->plain == "true" || lever->plain == "false") << lever->name;
    }
    // The plain value is a valid value of the lever and gives the same bits.
    if (lever->check && !lever->plain.empty()) {
      EXPECT_TRUE(lever->check(lever->plain).ok()) << lever->name;
    }
    EXPECT_EQ(lever->exactness(Graph(), {lever->plain, 8}), "same-bits") << lever->name;
    EXPECT_EQ(FindLever(lever->name), lever);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"microbatch", "bn-group", "recompute", "conv"}));
  EXPECT_EQ(FindLever("nonsense"), nullptr);
}

// Values worth trying are valid and differ from the plain one.
TEST(Levers, WhatIsWorthTryingIsTaken) {
  for (const Lever* lever : Levers()) {
    if (!lever->worth_trying) continue;
    std::vector<std::string> values;
    for (const char* optimizer : {"sgd", "adam"}) {
      const LeverSetting plain{.value = lever->plain, .batch = 100, .optimizer = optimizer};
      const std::vector<std::string> of_optimizer = lever->worth_trying(plain);
      values.insert(values.end(), of_optimizer.begin(), of_optimizer.end());
    }
    EXPECT_FALSE(values.empty()) << lever->name;
    for (const std::string& value : values) {
      EXPECT_NE(value, lever->plain) << lever->name;
      const bool is_taken = !lever->check || lever->check(value).ok();
      EXPECT_TRUE(is_taken) << lever->name << " " << value;
    }
  }
}

class Nothing final : public Technique {
 public:
  TechniqueInfo Info() const override { return {.name = "nothing", .what = "does nothing"}; }
};

TEST(AddedTechnique, IsThereAsLongAsItLives) {
  const size_t before = Techniques().size();
  {
    const AddedTechnique added(std::make_unique<Nothing>());
    ASSERT_EQ(Techniques().size(), before + 1);
    EXPECT_EQ(Techniques().back()->Info().name, "nothing");
  }
  EXPECT_EQ(Techniques().size(), before);
}

}  // namespace
}  // namespace thimble
