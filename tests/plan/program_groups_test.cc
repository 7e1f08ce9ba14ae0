// Caches belong to the plans of their group and cost no other plan anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cache_graphs.h"

namespace thimble {
namespace {

const Plan& PlanOf(const Program& program, const char* name) {
  const Plan* plan = program.Find(name);
  THIMBLE_CHECK(plan != nullptr, "no plan '{}'", name);
  return *plan;
}

TEST(ProgramGroups, CachesAreResidentsOfTheirGroupOnly) {
  const Program program = PlanGroups();
  ASSERT_EQ(program.residents.residents.size(), 1U);
  EXPECT_EQ(program.residents.residents[0].name, "w");
  for (const char* name : {"fill A", "use A", "fill B", "use B"}) {
    const Resident* cache = PlanOf(program, name).residents.Find("cache");
    ASSERT_NE(cache, nullptr) << name;
    EXPECT_EQ(cache->offset, program.residents.end_bytes) << name;
    EXPECT_EQ(cache->category, Category::kActivations);
  }
  EXPECT_EQ(PlanOf(program, "use A").residents.Find("cache")->size_bytes, 400U);
  EXPECT_EQ(PlanOf(program, "use B").residents.Find("cache")->size_bytes, 4000U);
  EXPECT_EQ(PlanOf(program, "other").residents, program.residents);
}

TEST(ProgramGroups, OtherPlansDoNotPayForCaches) {
  const Program program = PlanGroups();
  EXPECT_LT(PlanOf(program, "other").arena_bytes, 400U);
  EXPECT_LT(PlanOf(program, "use A").arena_bytes, 4000U);
  EXPECT_EQ(program.arena_bytes, PlanOf(program, "use B").arena_bytes);
}

TEST(ProgramGroups, WhatAPlanComputesLiesAboveTheCachesOfItsGroup) {
  const Program program = PlanGroups();
  for (const Plan& plan : program.plans) {
    for (const Placement& placement : plan.placements) {
      if (placement.resident) continue;
      EXPECT_GE(placement.offset, plan.residents.end_bytes);
    }
  }
}

TEST(ProgramGroups, AddedPlansGetTheSameResidents) {
  Program program = PlanGroups();
  Program more;
  more.residents = program.residents;
  const std::vector<NamedGraph> graphs = {
      {.name = "use C", .graph = cache_graphs::Using(5000), .group = "C"}};
  ASSERT_TRUE(AddToProgram(more, graphs, BuiltinOps(), {}).ok());
  const size_t before = program.plans.size();
  Append(program, std::move(more));
  ASSERT_EQ(program.plans.size(), before + 1);
  EXPECT_EQ(program.groups.back(), "C");
  EXPECT_EQ(program.names.back(), "use C");
  EXPECT_EQ(program.arena_bytes, PlanOf(program, "use C").arena_bytes);
}

TEST(ProgramGroupsDeathTest, OtherResidentsDoNotFit) {
  Program program = PlanGroups();
  EXPECT_DEATH(Append(program, Program{}), "different residents");
}

}  // namespace
}  // namespace thimble
