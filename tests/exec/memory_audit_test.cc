// The audit must find every fault that kernels can cause, and name the buffer.
#include "thimble/exec/memory_audit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/exec/planted_kernel.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

void WriteNothing(const KernelCall&) {}
// Writes two buffers after its own, or two before.
void WriteFarBehind(const KernelCall& call) {
  CopyInput(call);
  Words(call)[2 * NumWords(call)] = 5;
}
void WriteFarBefore(const KernelCall& call) {
  CopyInput(call);
  Words(call)[-2 * NumWords(call)] = 5;
}

// x -> a = relu -> p = planted -> b = relu -> c = relu, which is the output. Memory has the same
// order.
void AppendChain(PlantedRun& run, int64_t elements) {
  const ValueId a = run.Append("relu", "a", run.Input(elements));
  const ValueId p = run.Append("planted", "p", a);
  run.Output(run.Append("relu", "c", run.Append("relu", "b", p)));
}

// Memory in the order x, p, a, b; runs a, b and then, as the last step, p.
void AppendPlantedLast(PlantedRun& run, int64_t elements) {
  const ValueId x = run.Input(elements);
  run.Output(run.Append("planted", "p", x, Phase::kBackward));
  run.Append("relu", "b", run.Append("relu", "a", x));
}

TEST(MemoryAuditTest, FindsNothingWhereAllIsWell) {
  for (int64_t elements : {PlantedRun::kPadded, PlantedRun::kFlush, int64_t{1}}) {
    PlantedRun run(&CopyInput);
    AppendChain(run, elements);
    Executor& executor = run.Run();
    EXPECT_THAT(run.Faults(), IsEmpty());
    EXPECT_EQ(executor.audit().measured_peak_bytes(), executor.planned_peak_bytes());
    const Plan& plan = executor.program().plans[0];
    for (size_t i = 0; i < plan.placements.size(); ++i) {
      EXPECT_EQ(executor.audit().measured_buffers()[i], plan.placements[i].size_bytes);
    }
  }
}

TEST(MemoryAuditTest, FindsAWordInThePaddingBehind) {
  PlantedRun run(&WriteOneWordTooMany);
  AppendChain(run, PlantedRun::kPadded);
  run.Run();
  EXPECT_THAT(run.Faults(), HasSubstr("'p' at offset 256 has 80 bytes planned, 84 found in use"));
}

TEST(MemoryAuditTest, FindsAWordInThePaddingBehindAnOutput) {
  PlantedRun run(&WriteOneWordTooMany);
  AppendPlantedLast(run, PlantedRun::kPadded);
  run.Run();
  EXPECT_THAT(run.Faults(), HasSubstr("'p' at offset 128 has 80 bytes planned, 84 found in use"));
}

TEST(MemoryAuditTest, FindsAWordInANeighbourThatIsNotYetBorn) {
  PlantedRun run(&WriteOneWordTooMany);
  AppendChain(run, PlantedRun::kFlush);
  run.Run();
  EXPECT_THAT(run.Faults(), HasSubstr("before step 2: 'b' at offset 384 was written up to byte 4 "
                                      "while no buffer was alive there"));
}

TEST(MemoryAuditTest, FindsAWordInANeighbourThatIsDead) {
  PlantedRun run(&WriteOneWordTooMany);
  AppendPlantedLast(run, PlantedRun::kFlush);
  run.Run();
  EXPECT_THAT(run.Faults(), HasSubstr("after the last step: byte 259 was written while no "
                                      "buffer was alive there, last used by 'a'; nearest buffer "
                                      "before it: 'p'"));
}

TEST(MemoryAuditTest, FindsAWriteLongBeforeBirth) {
  PlantedRun run(&WriteFarBehind);
  AppendChain(run, PlantedRun::kFlush);
  run.Run();
  EXPECT_THAT(run.Faults(), HasSubstr("before step 3: 'c' at offset 512 was written up to byte 4"));
}

TEST(MemoryAuditTest, FindsAWriteAfterDeath) {
  PlantedRun run(&WriteFarBefore);
  AppendChain(run, PlantedRun::kFlush);
  run.Run();
  EXPECT_THAT(run.Faults(), HasSubstr("byte 3 was written while no buffer was alive there, last "
                                      "used by 'x'"));
}

TEST(MemoryAuditTest, FindsAnUnwrittenEnd) {
  PlantedRun run(&WriteOneWordTooFew);
  AppendChain(run, PlantedRun::kPadded);
  run.Run();
  EXPECT_THAT(run.Faults(), HasSubstr("'p' at offset 256 has 80 bytes planned, 76 found in use"));
}

TEST(MemoryAuditTest, FindsAnUnwrittenEndOfAnOutput) {
  PlantedRun run(&WriteOneWordTooFew);
  AppendPlantedLast(run, PlantedRun::kFlush);
  run.Run();
  EXPECT_THAT(run.Faults(), HasSubstr("'p' at offset 128 has 128 bytes planned, 124 found in use"));
}

TEST(MemoryAuditTest, FindsAnOutputThatWasNeverWritten) {
  PlantedRun run(&WriteNothing);
  AppendChain(run, PlantedRun::kPadded);
  run.Run();
  EXPECT_THAT(run.Faults(), HasSubstr("'p' at offset 256 has 80 bytes planned, 0 found in use"));
}

TEST(MemoryAuditTest, FindsScratchThatIsNotUsedToItsLastWord) {
  PlantedRun run(
      [](const KernelCall& call) {
        CopyInput(call);
        std::memset(call.scratch.data(), 0, call.scratch.size() - 4);
      },
      /*scratch_bytes=*/192);
  AppendChain(run, PlantedRun::kPadded);
  run.Run();
  EXPECT_THAT(run.Faults(), HasSubstr("'scratch of p planted' at offset 640 has 192 bytes planned, "
                                      "188 found in use"));
}

TEST(MemoryAuditTest, AcceptsScratchThatIsUsed) {
  PlantedRun run(
      [](const KernelCall& call) {
        CopyInput(call);
        std::memset(call.scratch.data() + call.scratch.size() - 4, 0, 4);
      },
      /*scratch_bytes=*/192);
  AppendChain(run, PlantedRun::kPadded);
  run.Run();
  EXPECT_THAT(run.Faults(), IsEmpty());
}

TEST(MemoryAuditTest, FindsResidentsThatNobodyWrote) {
  PlantedRun run(&CopyInput);
  AppendChain(run, PlantedRun::kPadded);
  run.graph().AddValue({"w", {5}, DType::kF32, Role::kParameter, {}, {}});
  run.Run();
  EXPECT_THAT(run.Faults(), HasSubstr("resident 'w' at offset 0 has 20 bytes planned, 0 found"));
}

TEST(MemoryAuditTest, FindsAWordBehindAResident) {
  PlantedRun run(&CopyInput);
  AppendChain(run, PlantedRun::kPadded);
  run.graph().AddValue({"w", {5}, DType::kF32, Role::kParameter, {}, {}});
  Executor& executor = run.Run();
  std::memset(executor.ResidentBytes("w").data(), 1, 24);
  EXPECT_THAT(run.Faults(), HasSubstr("resident 'w' at offset 0 has 20 bytes planned, 24 found"));
}

// In AddressSanitizer builds a run without audit stops at the first write to unowned memory.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kStopsAtStrayWrites = true;
#else
constexpr bool kStopsAtStrayWrites = false;
#endif

TEST(MemoryAuditTest, FindsLaterRunsThatWriteIntoGaps) {
  // Correct in the audited run, wrong afterwards: only the scan of the arena can find it.
  static int num_runs = 0;
  num_runs = 0;
  PlantedRun run([](const KernelCall& call) {
    if (num_runs++ == 0) return CopyInput(call);
    WriteOneWordTooMany(call);
  });
  AppendChain(run, PlantedRun::kPadded);
  if (kStopsAtStrayWrites) {
    EXPECT_DEATH(run.Run(2), "use-after-poison");
    return;
  }
  run.Run(2);
  EXPECT_THAT(
      run.Faults(),
      HasSubstr("byte 339 belongs to no buffer and was written; nearest buffer before it: 'p'"));
}

TEST(MemoryAuditTest, CountsAPeakAboveThePlan) {
  // There is free space after the last buffer of the arena.
  PlantedRun run(&WriteOneWordTooMany);
  run.Output(run.Append("planted", "p", run.Input(PlantedRun::kPadded)));
  Executor& executor = run.Run();
  EXPECT_EQ(executor.planned_peak_bytes(), 128U + 80);
  EXPECT_EQ(executor.audit().measured_peak_bytes(), 128U + 84);
}

TEST(MemoryAuditDeathTest, WritingBehindTheArenaStopsTheProgram) {
  PlantedRun run(&WriteOneWordTooMany);
  run.Output(run.Append("planted", "p", run.Input(PlantedRun::kFlush)));
  EXPECT_DEATH(run.Run(), "");
}

TEST(MemoryAuditTest, StopsListingFaultsAtSomePoint) {
  PlantedRun run(&WriteNothing);
  ValueId value = run.Input(PlantedRun::kPadded);
  for (int i = 0; i < 50; ++i) value = run.Append("planted", fmt::format("p{}", i), value);
  run.Output(value);
  Executor& executor = run.Run();
  EXPECT_EQ(executor.audit().faults().size(), 20U);
}

TEST(MemoryAuditTest, ReadingBeforeWritingGivesNaN) {
  PlantedRun run([](const KernelCall& call) {
    for (int64_t i = 0; i < NumWords(call); ++i) Words(call)[i] += call.In<float>(0)[i];
  });
  run.Output(run.Append("planted", "p", run.Input(PlantedRun::kPadded)));
  Executor& executor = run.Run();
  EXPECT_TRUE(std::isnan(executor.View(0, "p").As<float>()[0]));
}

}  // namespace
}  // namespace thimble
