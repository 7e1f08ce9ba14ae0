#include "thimble/exec/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdlib>

#include "tests/exec/planted_kernel.h"
#include "tests/exec/small_training.h"
#include "tests/support/scarce_threads.h"

namespace thimble {
namespace {

using testing::IsEmpty;

void ExpectSameResidents(const ResidentContents& actual, const ResidentContents& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, bytes] : expected) {
    EXPECT_TRUE(actual.at(name) == bytes) << "'" << name << "' differs";
  }
}

TEST(ExecutorTest, ThreadsThatCannotBeStartedAreAnError) {
  SmallTraining training(/*threads=*/4);
  const ScarceThreads scarce(1);
  const auto executor = Executor::Create(training.executor().program(), BuiltinOps());
  ASSERT_FALSE(executor.ok());
  EXPECT_EQ(executor.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(executor.error().message, testing::HasSubstr("try --threads 2"));
}

TEST(ExecutorTest, ACopyOfTheProgramOnlyOnRequest) {
  SmallTraining training;
  const Program& program = training.executor().program();
  EXPECT_EQ(&Executor::CreateFor(program, BuiltinOps()).value()->program(), &program);
  EXPECT_NE(&Executor::Create(program, BuiltinOps()).value()->program(), &program);
}

// So that a lack of memory shows before the first step.
TEST(ExecutorTest, TheWholeArenaIsInMemoryBeforeTheFirstStep) {
  SmallTraining training;
  EXPECT_GE(training.executor().device().ArenaResidentBytes(),
            static_cast<int64_t>(training.executor().program().arena_bytes));
}

TEST(ExecutorTest, MeasuresWhatWasPlanned) {
  for (int threads : {1, 2}) {
    SmallTraining training(threads);
    Executor& executor = training.executor();
    for (uint32_t step = 0; step < 2; ++step) {
      training.Run(kTrain, step);
      training.Run(kEvaluate, step);
    }
    executor.ScanArena();
    EXPECT_THAT(executor.audit().faults(), IsEmpty());
    EXPECT_EQ(executor.audit().measured_peak_bytes(), executor.planned_peak_bytes());
    EXPECT_EQ(executor.device().arena().size(), executor.program().arena_bytes);
    EXPECT_LE(executor.planned_peak_bytes(), executor.program().arena_bytes);
    EXPECT_GT(executor.planned_peak_bytes() + kArenaAlignment, executor.program().arena_bytes);
  }
}

TEST(ExecutorTest, EverySkippedPassIsMeasuredToo) {
  const ResidentContents expected = [] {
    SmallTraining training(2);
    training.Run(kTrain, 0);
    return training.Residents();
  }();
  for (const char* pass : {"order", "in-place", "placement"}) {
    SmallTraining training(PlanOptions{DeviceKind::kCpu, {2, 1 << 18}, {pass}});
    training.Run(kTrain, 0);
    training.Run(kEvaluate, 0);
    training.executor().ScanArena();
    EXPECT_THAT(training.executor().audit().faults(), IsEmpty()) << pass;
    EXPECT_EQ(training.executor().audit().measured_peak_bytes(),
              training.executor().planned_peak_bytes())
        << pass;
    // All passes are same-bits.
    ExpectSameResidents(training.Residents(), expected);
  }
}

TEST(ExecutorTest, OnlyTheFirstRunOfAPlanIsAudited) {
  SmallTraining training;
  training.Run(kTrain, 0);
  EXPECT_TRUE(training.executor().last_run_was_audited());
  training.Run(kTrain, 1);
  EXPECT_FALSE(training.executor().last_run_was_audited());
  training.Run(kEvaluate, 1);
  EXPECT_TRUE(training.executor().last_run_was_audited());
}

TEST(ExecutorTest, PlannedPeakIsThatOfThePlansThatRan) {
  SmallTraining training;
  // Before any run only the residents exist.
  EXPECT_LE(training.executor().planned_peak_bytes(),
            training.executor().program().residents.end_bytes);
  training.Run(kEvaluate, 0);
  const size_t evaluation = training.executor().planned_peak_bytes();
  EXPECT_EQ(evaluation, PlannedPeakBytes(training.executor().program().plans[kEvaluate]));
  training.Run(kTrain, 0);
  EXPECT_GT(training.executor().planned_peak_bytes(), evaluation);
}

TEST(ExecutorTest, TrainingLowersTheLoss) {
  SmallTraining training(2);
  const float first = training.Run(kTrain, 0);
  float last = first;
  for (int step = 0; step < 10; ++step) last = training.Run(kTrain, 0);
  EXPECT_TRUE(std::isfinite(first));
  EXPECT_LT(last, first / 2);
}

TEST(ExecutorTest, SameBitsForAnyNumberOfThreads) {
  SmallTraining alone(1);
  std::vector<float> losses;
  for (uint32_t step = 0; step < 3; ++step) losses.push_back(alone.Run(kTrain, step));
  for (int threads : {2, 3}) {
    SCOPED_TRACE(threads);
    SmallTraining training(threads);
    for (uint32_t step = 0; step < 3; ++step) {
      EXPECT_EQ(training.Run(kTrain, step), losses[step]) << "step " << step;
    }
    ExpectSameResidents(training.Residents(), alone.Residents());
  }
}

TEST(ExecutorTest, SameBitsForAnyScratch) {
  SmallTraining small(2, 1 << 12);
  SmallTraining large(2, 1 << 20);
  EXPECT_LT(small.executor().program().arena_bytes, large.executor().program().arena_bytes);
  for (uint32_t step = 0; step < 3; ++step) {
    EXPECT_EQ(small.Run(kTrain, step), large.Run(kTrain, step)) << "step " << step;
  }
  ExpectSameResidents(small.Residents(), large.Residents());
}

TEST(ExecutorTest, KeepsNoStateOutsideTheResidents) {
  SmallTraining both;
  both.Run(kTrain, 0);
  both.Run(kTrain, 1);
  SmallTraining first;
  first.Run(kTrain, 0);
  // In another executor, and after other work.
  SmallTraining second;
  second.Run(kTrain, 7);
  second.Run(kEvaluate, 8);
  second.SetResidents(first.Residents());
  second.Run(kTrain, 1);
  ExpectSameResidents(second.Residents(), both.Residents());
}

TEST(ExecutorTest, TheAuditChangesNoResult) {
  SmallTraining audited;
  SmallTraining plain;
  const ResidentContents start = plain.Residents();
  plain.Run(kTrain, 9);
  plain.SetResidents(start);
  EXPECT_EQ(plain.Run(kTrain, 0), audited.Run(kTrain, 0));
  ASSERT_TRUE(audited.executor().last_run_was_audited());
  ASSERT_FALSE(plain.executor().last_run_was_audited());
  ExpectSameResidents(plain.Residents(), audited.Residents());
}

TEST(ExecutorTest, TimesEveryStepAndChangesNoResult) {
  SmallTraining plain(2);
  SmallTraining timed(2);
  Executor& executor = timed.executor();
  std::vector<double> seconds(executor.program().plans[kTrain].steps.size());
  for (uint32_t step = 0; step < 2; ++step) {
    plain.Run(kTrain, step);
    timed.Feed(kTrain, step);
    if (step == 0) {
      executor.Run(kTrain);  // audited
    } else {
      executor.RunTimed(kTrain, seconds);
    }
  }
  ExpectSameResidents(timed.Residents(), plain.Residents());
  EXPECT_THAT(seconds, testing::Each(testing::Gt(0.0)));
}

TEST(ExecutorTest, EvaluationReadsTheTrainedResidentsAndChangesNone) {
  SmallTraining training;
  const float before = training.Run(kEvaluate, 5);
  for (uint32_t step = 0; step < 3; ++step) training.Run(kTrain, step);
  const ResidentContents trained = training.Residents();
  const float after = training.Run(kEvaluate, 5);
  EXPECT_NE(before, after);
  EXPECT_EQ(training.Run(kEvaluate, 5), after);
  ExpectSameResidents(training.Residents(), trained);
}

TEST(ExecutorTest, ViewsLieInTheArena) {
  SmallTraining training;
  const Executor& executor = training.executor();
  const std::byte* base = executor.device().arena().data();
  const TensorView weight = executor.View(kTrain, "conv1.weight");
  EXPECT_EQ(weight.shape, (Shape{16, 3, 3, 3}));
  EXPECT_EQ(weight.data, executor.ResidentBytes("conv1.weight").data());
  EXPECT_EQ(weight.data, executor.View(kEvaluate, "conv1.weight").data);
  EXPECT_EQ(weight.data, base + executor.program().residents.Find("conv1.weight")->offset);
  EXPECT_EQ(executor.View(kTrain, kLabelsInput).dtype, DType::kI32);
}

TEST(ExecutorDeathTest, UnknownNamesAreTheProgrammersFault) {
  SmallTraining training;
  EXPECT_DEATH((void)training.executor().View(kTrain, "nobody"), "plan 'train' has no value");
  EXPECT_DEATH((void)training.executor().ResidentBytes("nobody"), "no resident 'nobody'");
}

TEST(ExecutorDeathTest, EveryRunMustBePrepared) {
  SmallTraining training;
  training.Run(kTrain, 0);
  EXPECT_DEATH(training.executor().Run(kTrain), "Run of plan 'train' without Prepare");
  training.executor().Prepare(kTrain);
  EXPECT_DEATH(training.executor().Run(kEvaluate), "Run of plan 'evaluate' without Prepare");
}

TEST(ExecutorTest, RunsAllocateNothing) {
  ASSERT_TRUE(CountsAllocations());
  SmallTraining training(3);
  for (uint32_t step = 0; step < 3; ++step) {
    training.Run(kTrain, step);
    training.Run(kEvaluate, step);
  }
  const AllocationCounts counts = training.executor().allocations_in_runs();
  EXPECT_EQ(counts.heap_calls, 0);
  EXPECT_EQ(counts.heap_bytes, 0);
  EXPECT_EQ(counts.map_calls, 0);
}

void* volatile sink = nullptr;

AllocationCounts CountsOf(void (*run)(const KernelCall&), int times) {
  PlantedRun planted(run);
  planted.Output(planted.Append("planted", "p", planted.Input(PlantedRun::kPadded)));
  return planted.Run(times).allocations_in_runs();
}

TEST(ExecutorTest, CountsAKernelThatCallsNew) {
  const auto run = [](const KernelCall& call) {
    CopyInput(call);
    auto* numbers = new float[25];
    sink = numbers;
    delete[] numbers;
  };
  for (int times : {1, 3}) {  // audited or not
    const AllocationCounts counts = CountsOf(run, times);
    EXPECT_EQ(counts.heap_calls, times);
    EXPECT_EQ(counts.heap_bytes, 100 * times);
    EXPECT_EQ(counts.map_calls, 0);
  }
}

TEST(ExecutorTest, CountsAKernelThatCallsMalloc) {
  const auto run = [](const KernelCall& call) {
    CopyInput(call);
    sink = std::malloc(1000);
    std::free(sink);
  };
  EXPECT_EQ(CountsOf(run, 2).heap_calls, 2);
  EXPECT_EQ(CountsOf(run, 2).heap_bytes, 2000);
}

TEST(ExecutorTest, CountsAKernelThatMapsMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers own mmap (see malloc_interposer.cc)";
#endif
  const auto run = [](const KernelCall& call) {
    CopyInput(call);
    sink = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(sink, 4096);
  };
  EXPECT_EQ(CountsOf(run, 2).map_calls, 2);
  EXPECT_EQ(CountsOf(run, 2).heap_calls, 0);
}

TEST(ExecutorTest, CountsNothingOfAKernelThatAllocatesNothing) {
  const AllocationCounts counts = CountsOf(&CopyInput, 3);
  EXPECT_EQ(counts.heap_calls, 0);
  EXPECT_EQ(counts.map_calls, 0);
}

}  // namespace
}  // namespace thimble
