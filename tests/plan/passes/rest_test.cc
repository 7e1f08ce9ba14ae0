#include "thimble/plan/passes/rest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/toy_draft.h"
#include "tests/support/model_graphs.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/passes/placement.h"
#include "thimble/plan/pipeline.h"

namespace thimble {
namespace {

using testing::HasSubstr;

PlanOptions SideBySide() {
  PlanOptions options;
  options.device = DeviceKind::kCuda;
  return options;
}

PlanDraft PlacedDraft() {
  PlanDraft draft = toy::MakeDraft(TrainingGraph("wrn-16-1", 4), BuiltinOps());
  EXPECT_TRUE(MakePlacementPass()->Run(draft, BuiltinOps(), {}).ok());
  return draft;
}

struct Reuse {
  size_t peak_bytes = 0;
  size_t at_once = 0;  // pairs of buffers of which one reuses bytes of the other within two steps
  size_t overlaps = 0;
};

Reuse ReuseOf(const PlanDraft& draft) {
  const std::vector<DraftBuffer> buffers = Buffers(draft);
  Reuse reuse;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].resident) continue;
    const size_t begin = (*draft.offsets)[i];
    const size_t end = begin + buffers[i].size_bytes;
    reuse.peak_bytes = std::max(reuse.peak_bytes, end);
    for (size_t j = 0; j < buffers.size(); ++j) {
      const size_t other = (*draft.offsets)[j];
      if (j == i || buffers[j].resident || other >= end || begin >= other + buffers[j].size_bytes) {
        continue;
      }
      reuse.overlaps += buffers[i].live.Overlaps(buffers[j].live);
      const size_t free_from = buffers[i].live.end;
      reuse.at_once += buffers[j].live.first >= free_from && buffers[j].live.first < free_from + 2;
    }
  }
  return reuse;
}

TEST(RestPass, LeavesDevicesAloneThatRunOneStepAfterTheOther) {
  PlanDraft draft = PlacedDraft();
  const auto before = draft.offsets;
  EXPECT_EQ(MakeRestPass()->Run(draft, BuiltinOps(), {}).value(), "");
  EXPECT_EQ(draft.offsets, before);
}

TEST(RestPass, HasNothingToDoWithoutPlacement) {
  PlanDraft draft = toy::MakeDraft(TrainingGraph("wrn-10-1", 4), BuiltinOps());
  EXPECT_EQ(MakeRestPass()->Run(draft, BuiltinOps(), SideBySide()).value(), "");
  EXPECT_FALSE(draft.offsets.has_value());
}

TEST(RestPass, UsesBytesAgainLaterWithinTheSameArena) {
  PlanDraft draft = PlacedDraft();
  const Reuse before = ReuseOf(draft);
  EXPECT_THAT(MakeRestPass()->Run(draft, BuiltinOps(), SideBySide()).value(),
              HasSubstr("(goal: 4 steps apart)"));
  const Reuse after = ReuseOf(draft);
  EXPECT_LE(after.peak_bytes, before.peak_bytes);
  EXPECT_EQ(after.overlaps, 0U);
  EXPECT_LT(2 * after.at_once, before.at_once);
}

TEST(RestPass, SavesNothingButCanBeLeftOut) {
  EXPECT_FALSE(MakeRestPass()->Info().saves_bytes);
  PlanOptions options;
  options.skipped_passes = {"rest"};
  EXPECT_TRUE(CheckSkippedPasses(options).ok());
}

}  // namespace
}  // namespace thimble
