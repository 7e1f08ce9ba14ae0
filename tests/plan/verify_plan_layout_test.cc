// Faults of sizes, offsets and live ranges, planted in a correct plan: VerifyPlan finds each one
// before it simulates a step, and names it.
#include "thimble/plan/verify_plan_layout.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/plan/planted_fault.h"

namespace thimble::toy {
namespace {

class VerifyPlanLayoutFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(VerifyPlanLayoutFaultTest, IsFound) {
  ExpectFound(GetParam());
  Plan plan = TrainingPlan();
  GetParam().plant(plan);
  EXPECT_FALSE(VerifyPlanLayout(plan).ok());
}

const Fault kBuffers[] = {
    {"LiveValuesOverEachOther", [](Plan& p) { BufferOf(p, "c").offset = BufferOf(p, "b").offset; },
     "buffers 'b' [640, 736) and 'c' [640, 736) overlap and are both alive at step 2"},
    {"LiveValuesOverlapByALine", [](Plan& p) { BufferOf(p, "c").offset -= 64; },
     "buffers 'b' [640, 736) and 'c' [704, 800) overlap and are both alive at step 2"},
    {"InPlaceAtAShiftedOffset",
     [](Plan& p) { BufferOf(p, "loss").offset = BufferOf(p, "b").offset + 64; },
     "buffers 'b' [640, 736) and 'loss' [704, 800) overlap and are both alive at step 3"},
    {"ScratchOverInput", [](Plan& p) { ScratchOf(p, 2).offset = BufferOf(p, "b").offset; },
     "'scratch of 2' [640, 720) overlap and are both alive at step 2"},
    {"ScratchOverOutput", [](Plan& p) { ScratchOf(p, 2).offset = BufferOf(p, "c").offset + 64; },
     "buffers 'c' [768, 864) and 'scratch of 2' [832, 912) overlap and are both alive at step 2"},
    {"Misaligned", [](Plan& p) { BufferOf(p, "c").offset += 32; },
     "buffer 'c' at offset 800 is not aligned to 64"},
    {"BeyondTheArena", [](Plan& p) { BufferOf(p, "c").offset = p.arena_bytes - 64; },
     "buffer 'c' of 96 bytes at offset 1216 ends beyond 1280"},
    {"EndOverflows",
     [](Plan& p) { BufferOf(p, "c").offset = std::numeric_limits<size_t>::max() - 63; },
     "buffer 'c' of 96 bytes at offset 18446744073709551552 ends beyond 1280"},
    {"AmongResidents", [](Plan& p) { BufferOf(p, "c").offset = 0; },
     "buffer 'c' at offset 0 is inside the residents, which end at 384"},
    {"TooSmallForItsShape", [](Plan& p) { BufferOf(p, "c").size_bytes = 92; },
     "value 'c' has 96 bytes, its buffer 'c' only 92"},
    {"TooLargeForItsShape", [](Plan& p) { BufferOf(p, "c").size_bytes = 100; },
     "buffer 'c' has 100 bytes, its largest value 96"},
    {"LivesBeyondTheLastStep", [](Plan& p) { BufferOf(p, "c").live.end = 7; },
     "buffer 'c' has live range [2, 7) in a plan of 6 steps"},
    {"LivesBackwards",
     [](Plan& p) {
       BufferOf(p, "c").live = {4, 2};
     },
     "buffer 'c' has live range [4, 2)"},
};
INSTANTIATE_TEST_SUITE_P(Buffers, VerifyPlanLayoutFaultTest, ::testing::ValuesIn(kBuffers), NameOf);

const Fault kValues[] = {
    {"NoBuffer", [](Plan& p) { PlaceOf(p, "b").buffer = {}; }, "value 'b' has no buffer"},
    {"NoSuchBuffer", [](Plan& p) { PlaceOf(p, "b").buffer = BufferId(99); },
     "value 'b' has no buffer"},
    {"LivesLongerThanItsBuffer", [](Plan& p) { BufferOf(p, "b").live.end = 3; },
     "value 'b' has live range [1, 4), its buffer 'b' only [1, 3)"},
    {"LivesBeforeItsBuffer", [](Plan& p) { BufferOf(p, "b").live.first = 2; },
     "value 'b' has live range [1, 4), its buffer 'b' only [2, 4)"},
    {"ActivationInAResidentBuffer", [](Plan& p) { MoveInto(p, "b", "w"); },
     "value 'b' has role activation, its buffer 'w' is resident"},
    {"ParameterInAnOrdinaryBuffer", [](Plan& p) { BufferOf(p, "w").resident = false; },
     "buffer 'w'"},
    {"PlaceMissing", [](Plan& p) { p.values.pop_back(); }, "places for 9 values, the graph has 10"},
    {"CarriedElsewhere", [](Plan& p) { MoveInto(p, "w.next", "m"); },
     "'w.next' at 256 is carried from 'w' at 128: not the same buffer"},
};
INSTANTIATE_TEST_SUITE_P(Values, VerifyPlanLayoutFaultTest, ::testing::ValuesIn(kValues), NameOf);

Resident& ResidentOf(Plan& plan, std::string_view name) {
  for (Resident& resident : plan.residents.residents) {
    if (resident.name == name) return resident;
  }
  return plan.residents.residents.at(99);
}

const Fault kResidents[] = {
    {"ParameterMoved", [](Plan& p) { BufferOf(p, "w").offset = 384; },
     "parameter 'w' is at 384 with 96 bytes, but in the resident layout at 128 with 96"},
    {"ResidentMoved", [](Plan& p) { ResidentOf(p, "ring").offset = 64; },
     "resident 'w' at 128 overlaps 'ring', which ends at 192"},
    {"TwoAtOneOffset", [](Plan& p) { ResidentOf(p, "m").offset = 128; },
     "residents 'w' and 'm' both begin at 128"},
    {"Misaligned", [](Plan& p) { ResidentOf(p, "w").offset = 132; },
     "resident 'w' at offset 132 is not aligned to 64"},
    {"BeyondTheirEnd", [](Plan& p) { ResidentOf(p, "m").offset = 320; },
     "resident 'm' of 96 bytes at offset 320 ends beyond 384"},
    {"SizeOfAnotherShape", [](Plan& p) { ResidentOf(p, "m").size_bytes = 92; },
     "state 'm' is at 256 with 96 bytes, but in the resident layout at 256 with 92"},
    {"SameName", [](Plan& p) { ResidentOf(p, "ring").name = "m"; }, "two residents are named 'm'"},
    {"NotThere", [](Plan& p) { ResidentOf(p, "m").name = "n"; },
     "state 'm' is not in the resident layout"},
};
INSTANTIATE_TEST_SUITE_P(Residents, VerifyPlanLayoutFaultTest, ::testing::ValuesIn(kResidents),
                         NameOf);

const Fault kArena[] = {
    {"NotAMultiple", [](Plan& p) { p.arena_bytes += 8; },
     "arena of 1288 bytes is not a multiple of 64"},
    {"TooSmall", [](Plan& p) { p.arena_bytes -= 64; }, "ends beyond 1216"},
    {"TooSmallForResidents", [](Plan& p) { p.arena_bytes = 320; },
     "residents end at 384, beyond the arena of 320 bytes"},
    {"NoThreads", [](Plan& p) { p.limits.threads = 0; }, "0 threads"},
};
INSTANTIATE_TEST_SUITE_P(Arena, VerifyPlanLayoutFaultTest, ::testing::ValuesIn(kArena), NameOf);

TEST(VerifyPlanLayoutTest, AcceptsBuffersThatShareBytesOneAfterTheOther) {
  Plan plan = TrainingPlan();
  BufferOf(plan, "c").offset = BufferOf(plan, "x").offset;
  BufferOf(plan, "dw").offset = BufferOf(plan, "b").offset;
  EXPECT_TRUE(VerifyPlanLayout(plan).ok());
  EXPECT_TRUE(VerifyPlan(Ops(), plan).ok());
}

}  // namespace
}  // namespace thimble::toy
