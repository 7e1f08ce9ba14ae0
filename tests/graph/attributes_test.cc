#include "thimble/graph/attributes.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(Attributes, FindsByNameAndType) {
  const Attributes attributes = {{"stride", int64_t{2}},
                                 {"epsilon", 1e-5},
                                 {"mean", std::vector<double>{1, 2}},
                                 {"dims", std::vector<int64_t>{3, 4}}};
  EXPECT_EQ(attributes.Int("stride"), 2);
  EXPECT_EQ(attributes.Float("epsilon"), 1e-5);
  EXPECT_EQ(attributes.Floats("mean"), (std::vector<double>{1, 2}));
  EXPECT_EQ(attributes.Ints("dims"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(attributes.Find("padding"), nullptr);
}

TEST(Attributes, OrderOfSettingDoesNotMatter) {
  const Attributes first = {{"a", int64_t{1}}, {"b", int64_t{2}}};
  const Attributes second = {{"b", int64_t{2}}, {"a", int64_t{1}}};
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.entries()[0].first, "a");
}

TEST(Attributes, LaterSettingReplaces) {
  Attributes attributes = {{"a", int64_t{1}}};
  attributes.Set("a", 2.5);
  EXPECT_EQ(attributes.entries().size(), 1U);
  EXPECT_EQ(attributes.Float("a"), 2.5);
}

TEST(Attributes, ValuesAndTypesAreCompared) {
  EXPECT_NE((Attributes{{"a", int64_t{1}}}), (Attributes{{"a", int64_t{2}}}));
  EXPECT_NE((Attributes{{"a", int64_t{1}}}), (Attributes{{"a", 1.0}}));
  EXPECT_NE((Attributes{{"a", int64_t{1}}}), Attributes());
}

TEST(Attributes, Prints) {
  EXPECT_EQ(ToString(Attributes{{"stride", int64_t{2}}, {"mean", std::vector<double>{1, 2.5}}}),
            "mean=[1, 2.5] stride=2");
  EXPECT_EQ(ToString(Attributes{{"dims", std::vector<int64_t>{3, 4}}, {"epsilon", 0.5}}),
            "dims=[3, 4] epsilon=0.5");
  EXPECT_EQ(ToString(Attributes()), "");
}

TEST(AttributesDeathTest, MissingNameStops) {
  EXPECT_DEATH(static_cast<void>(Attributes().Int("stride")), "no attribute 'stride'");
}

TEST(AttributesDeathTest, OtherTypeStops) {
  const Attributes attributes = {{"a", 1.0}};
  EXPECT_DEATH(static_cast<void>(attributes.Int("a")), "'a' has another type");
  EXPECT_DEATH(static_cast<void>(attributes.Ints("a")), "'a' has another type");
}

}  // namespace
}  // namespace thimble
