// VerifyPlan accepts a correct plan and finds every planted fault of its simulation, with a message
// that names step and values. Faults of the layout: verify_plan_layout_test.cc; random faults:
// verify_plan_random_test.cc.
#include "thimble/plan/verify_plan.h"

#include <gtest/gtest.h>

#include <tuple>

#include "tests/plan/planted_fault.h"

namespace thimble::toy {
namespace {

class VerifyPlanFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(VerifyPlanFaultTest, IsFound) { ExpectFound(GetParam()); }

const Fault kSharing[] = {
    {"InPlaceWhereTheOpForbidsIt", [](Plan& p) { MoveInto(p, "a", "x"); },
     "step 0 (node 0, copy): output 'a' [384, 480) shares bytes with input 'x' [384, 480), which "
     "the "
     "op does not allow"},
    {"InPlaceOverTheOtherInput", [](Plan& p) { MoveInto(p, "loss", "c"); },
     "step 3 (node 3, sum2): output 'loss' [768, 864) shares bytes with input 'c'"},
    {"InPlaceOverAnInputGivenTwice",
     [](Plan& p) { ReadInstead(p, 3, 1, "b"), MoveInto(p, "loss", "b"); },
     "output 'loss' [640, 736) shares bytes with input 'b'"},
    {"InPlaceOverAnInputReadLater",
     [](Plan& p) {
       ReadInstead(p, 3, 1, "b");
       ReadInstead(p, 3, 0, "c");
       MoveInto(p, "loss", "c");
     },
     "step 4 (node 4, copy): reads 'c' [768, 864), but [768, 864) holds 'loss' since step 3"},
    {"OutputOfTheGraphOverwritten", [](Plan& p) { MoveInto(p, "dw", "loss"); },
     "after the last step: returns 'loss' [896, 992), but [896, 992) holds 'dw' since step 4"},
    {"UpdateOverTheWrongInput",
     [](Plan& p) { std::swap(p.graph.nodes[5].inputs[0], p.graph.nodes[5].inputs[1]); },
     "step 5 (node 5, update): output 'w.next' [128, 224) shares bytes with input 'w'"},
    {"ScratchOverInput", [](Plan& p) { ScratchInto(p, 2, "b"); },
     "step 2 (node 2, blur): scratch [640, 736) overlaps input 'b'"},
    {"ScratchOverOutput", [](Plan& p) { ScratchInto(p, 2, "c"); },
     "step 2 (node 2, blur): scratch [768, 864) overlaps output 'c'"},
    {"ScratchOverLiveValue", [](Plan& p) { ReadInstead(p, 4, 0, "x"), ScratchInto(p, 2, "x"); },
     "step 4 (node 4, copy): reads 'x' [384, 480), but [384, 480) holds scratch since step 2"},
    {"ScratchOverParameter", [](Plan& p) { ScratchInto(p, 2, "w"); },
     "step 2 (node 2, blur): scratch [128, 224) is written over resident 'w' [128, 224)"},
    {"ScratchOverReservedResident",
     [](Plan& p) { ScratchOf(p, 2).offset = 64, ScratchOf(p, 2).resident = true; },
     "scratch [64, 144) is written over resident 'ring' [0, 128), which is reserved"},
};
INSTANTIATE_TEST_SUITE_P(Sharing, VerifyPlanFaultTest, ::testing::ValuesIn(kSharing), NameOf);

const Fault kScratch[] = {
    {"Missing", [](Plan& p) { p.steps[2].scratch = {}; },
     "step 2 (node 2, blur): no scratch, but the kernel requires 80 bytes"},
    {"TooSmall", [](Plan& p) { ScratchOf(p, 2).size_bytes = 79; },
     "has 79 bytes, but the kernel requires 80"},
    {"TooSmallForTheThreads", [](Plan& p) { p.limits.threads = 2; },
     "has 80 bytes, but the kernel requires 160"},
    {"NotAskedFor", [](Plan& p) { std::swap(p.steps[1].scratch, p.steps[2].scratch); },
     "step 1 (node 1, sum2): scratch"},
    {"OutsideItsLife",
     [](Plan& p) {
       ScratchOf(p, 2).live = {3, 4};
     },
     "'scratch of 2' is used outside its live range [3, 4)"},
    {"NoSuchBuffer", [](Plan& p) { p.steps[2].scratch = BufferId(99); },
     "step 2 (node 2, blur): there is no such scratch buffer"},
};
INSTANTIATE_TEST_SUITE_P(Scratch, VerifyPlanFaultTest, ::testing::ValuesIn(kScratch), NameOf);

void DropLastStep(Plan& plan) {
  plan.steps.pop_back();
  for (Placement& placement : plan.placements) {
    placement.live.end = std::min<size_t>(placement.live.end, 5);
  }
  for (ValuePlace& place : plan.values) place.live.end = std::min<size_t>(place.live.end, 5);
}

void SwapLossAndGradient(Plan& plan) {
  std::swap(plan.steps[3], plan.steps[4]);
  SetLife(plan, "dw", {3, 6});
  SetLife(plan, "loss", {4, 6});
  SetLife(plan, "b", {1, 5});
}

const Fault kSteps[] = {
    {"MissingStep", DropLastStep, "after the last step: node 5 (update) has not run"},
    {"DoubledStep", [](Plan& p) { p.steps[1].node = NodeId(0); },
     "step 1 (node 0, copy): the node has already run"},
    {"NoSuchNode", [](Plan& p) { p.steps[4].node = NodeId(17); }, "step 4: there is no such node"},
    {"NoNode", [](Plan& p) { p.steps[4].node = {}; }, "step 4: there is no such node"},
    {"WrongOrder", [](Plan& p) { std::swap(p.steps[1], p.steps[2]); },
     "step 1 (node 2, blur): reads 'b' [640, 736), which is not yet written"},
    {"LaterPhaseFirst", SwapLossAndGradient,
     "step 4 (node 3, sum2): forward node after a backward node"},
    {"KernelOutOfRange", [](Plan& p) { p.steps[1].kernel = 3; },
     "step 1 (node 1, sum2): kernel 3, but the op has 3 kernels"},
    {"KernelOfAnotherDevice", [](Plan& p) { p.steps[1].kernel = kCudaKernel; },
     "kernel 'toy_cuda' is for cuda, the plan is for cpu"},
    {"PlanForAnotherDevice", [](Plan& p) { p.device = DeviceKind::kCuda; },
     "kernel 'toy' is for cpu, the plan is for cuda"},
    {"KernelDeclines", [](Plan& p) { p.steps[1].kernel = kDecliningKernel; },
     "kernel 'toy_picky' declines: never in the mood"},
};
INSTANTIATE_TEST_SUITE_P(Steps, VerifyPlanFaultTest, ::testing::ValuesIn(kSteps), NameOf);

const Fault kLives[] = {
    {"EndsBeforeLastRead",
     [](Plan& p) {
       SetLife(p, "b", {1, 3});
     },
     "step 3 (node 3, sum2): reads 'b' [640, 736) outside its live range [1, 3)"},
    {"BeginsAfterWrite",
     [](Plan& p) {
       SetLife(p, "b", {2, 4});
     },
     "step 1 (node 1, sum2): writes 'b' [640, 736) outside its live range [2, 4)"},
    {"InputBeginsLate",
     [](Plan& p) {
       SetLife(p, "x", {1, 2});
     },
     "before the first step: 'x' [384, 480) exists before the first step, but its live range "
     "starts at step 1"},
    {"OutputOfTheGraphEndsEarly",
     [](Plan& p) {
       SetLife(p, "loss", {3, 5});
     },
     "returns 'loss' [896, 992), whose live range is only [3, 5)"},
    {"NextVersionBeginsLate",
     [](Plan& p) {
       PlaceOf(p, "w.next").live = {6, 6};
     },
     "step 5 (node 5, update): writes 'w.next' [128, 224) outside its live range [6, 6)"},
};
INSTANTIATE_TEST_SUITE_P(Lives, VerifyPlanFaultTest, ::testing::ValuesIn(kLives), NameOf);

TEST(VerifyPlanTest, AcceptsAllowedSharing) {
  Plan plan = TrainingPlan();
  MoveInto(plan, "b", "a");     // in place, allowed
  MoveInto(plan, "loss", "b");  // and again
  MoveInto(plan, "dw", "x");    // where an input was, after its last use
  const auto verdict = VerifyPlan(Ops(), plan);
  EXPECT_TRUE(verdict.ok()) << verdict.error().message;
}

TEST(VerifyPlanTest, AcceptsAnEmptyPlan) {
  EXPECT_TRUE(VerifyPlan(Ops(), Plan{}).ok());
  Graph graph;
  AddInput(graph, "x", Role::kInput, {24});
  EXPECT_TRUE(VerifyPlan(Ops(), NaivePlanner(std::move(graph)).Run()).ok());
}

TEST(VerifyPlanTest, AcceptsValuesWithoutBytesButNotTheirWrongOrder) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {0});
  const ValueId y = Append(graph, Ops(), "copy", {x}, {"y"})[0];
  graph.outputs = Append(graph, Ops(), "copy", {y}, {"z"});
  Plan plan = NaivePlanner(std::move(graph)).Run();
  EXPECT_TRUE(VerifyPlan(Ops(), plan).ok());
  std::swap(plan.steps[0], plan.steps[1]);
  ExpectRejected(plan, "step 0 (node 1, copy): reads 'y'");
}

TEST(VerifyPlanTest, RejectsInputsOverEachOther) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {24});
  const ValueId y = AddInput(graph, "y", Role::kInput, {24});
  graph.outputs = Append(graph, Ops(), "sum2", {x, y}, {"z"});
  Plan plan = NaivePlanner(std::move(graph)).Run();
  MoveInto(plan, "y", "x");
  ExpectRejected(plan, "before the first step: 'y' [128, 224) overlaps: [128, 224) holds 'x'");
}

TEST(VerifyPlanTest, RejectsOutputsOverEachOther) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {24});
  graph.outputs = Append(graph, Ops(), "split", {x}, {"y", "z"});
  Plan plan = NaivePlanner(std::move(graph)).Run();
  MoveInto(plan, "z", "y");
  ExpectRejected(plan, "step 0 (node 0, split): outputs 'y' [256, 352) and 'z' [256, 352) overlap");
}

TEST(VerifyPlanTest, RejectsReadingAParameterAfterItsUpdate) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {24});
  const ValueId w = AddInput(graph, "w", Role::kParameter, {24});
  const ValueId m = AddInput(graph, "m", Role::kState, {24});
  graph.outputs = Append(graph, Ops(), "copy", {w}, {"late"}, Phase::kUpdate);
  AppendUpdate(graph, Ops(), w, m, x);
  Plan plan = NaivePlanner(std::move(graph)).Run();
  ASSERT_TRUE(VerifyPlan(Ops(), plan).ok());
  std::swap(plan.steps[0], plan.steps[1]);
  SetLife(plan, "late", {1, 2});
  for (const char* next : {"w.next", "m.next"}) PlaceOf(plan, next).live = {0, 2};
  ExpectRejected(plan,
                 "step 1 (node 0, copy): reads 'w' [128, 224), but [128, 224) holds "
                 "'w.next' since step 0");
}

// w and m change twice in backward, w once more in the update; each version is read.
//   0  a = sum2(x, w)             3  d2 = sum2(d1, w.next)        5  w.next3, m.next3 = update
//   1  d1 = copy(a)  [backward]   4  w.next2, m.next2 = update      (w.next2, m.next2, d1)
//   2  w.next, m.next = update
Plan VersionsPlan() {
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {24});
  ValueId w = AddInput(graph, "w", Role::kParameter, {24});
  ValueId m = AddInput(graph, "m", Role::kState, {24});
  const ValueId a = Append(graph, Ops(), "sum2", {x, w}, {"a"})[0];
  const ValueId d1 = Append(graph, Ops(), "copy", {a}, {"d1"}, Phase::kBackward)[0];
  std::tie(w, m) = AppendVersions(graph, Ops(), w, m, d1, Phase::kBackward);
  const ValueId d2 = Append(graph, Ops(), "sum2", {d1, w}, {"d2"}, Phase::kBackward)[0];
  std::tie(w, m) = AppendVersions(graph, Ops(), w, m, d2, Phase::kBackward);
  AppendVersions(graph, Ops(), w, m, d1, Phase::kUpdate);
  graph.outputs = {d2};
  return NaivePlanner(std::move(graph)).Run();
}

// Swaps two steps and adjusts all live ranges.
void SwapSteps(Plan& plan, size_t a, size_t b) {
  std::swap(plan.steps[a], plan.steps[b]);
  for (size_t value = 0; value < plan.values.size(); ++value) {
    plan.values[value].live = {0, plan.steps.size()};
  }
  for (Placement& placement : plan.placements) placement.live = {0, plan.steps.size()};
}

TEST(VerifyPlanTest, AcceptsSeveralVersionsInOnePlace) {
  const auto verdict = VerifyPlan(Ops(), VersionsPlan());
  EXPECT_TRUE(verdict.ok()) << verdict.error().message;
}

TEST(VerifyPlanTest, RejectsReadingAVersionThatWasOverwritten) {
  Plan plan = VersionsPlan();
  SwapSteps(plan, 3, 4);  // needs d2, which is not written yet
  ExpectRejected(plan, "step 3 (node 4, update): reads 'd2'");
  plan = VersionsPlan();
  plan.graph.nodes[4].inputs[2] = plan.graph.Find("d1");
  ASSERT_TRUE(VerifyPlan(Ops(), plan).ok());
  SwapSteps(plan, 3, 4);
  ExpectRejected(plan,
                 "step 4 (node 3, sum2): reads 'w.next' [128, 224), but [128, 224) holds "
                 "'w.next.2' since step 3");
}

TEST(VerifyPlanTest, RejectsReadingAVersionThatIsNotThereYet) {
  Plan plan = VersionsPlan();
  SwapSteps(plan, 2, 3);
  ExpectRejected(plan, "step 2 (node 3, sum2): reads 'w.next' [128, 224), which is not yet");
}

TEST(VerifyPlanTest, RejectsVersionsInTheWrongOrder) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {24});
  const ValueId w = AddInput(graph, "w", Role::kParameter, {24});
  const auto next = Append(graph, Ops(), "copy", {x}, {"w.next"});
  const auto last = Append(graph, Ops(), "copy", {x}, {"w.last"});
  for (ValueId version : {next[0], last[0]}) {
    graph.values[version.index()].role = Role::kParameter;
  }
  graph.carries = {{next[0], last[0]}, {w, next[0]}};
  Plan plan = NaivePlanner(std::move(graph)).Run();
  ASSERT_TRUE(VerifyPlan(Ops(), plan).ok());
  SwapSteps(plan, 0, 1);
  ExpectRejected(plan,
                 "step 0 (node 1, copy): 'w.last' [128, 224) is written over resident 'w' [128, "
                 "224)");
}

TEST(VerifyPlanTest, RejectsAnythingElseBetweenVersions) {
  Plan plan = VersionsPlan();
  MoveInto(plan, "d2", "x");
  BufferOf(plan, "d2").offset = BufferOf(plan, "w").offset;
  BufferOf(plan, "d2").resident = true;
  EXPECT_FALSE(VerifyPlan(Ops(), plan).ok());
  plan = VersionsPlan();
  PlaceOf(plan, "w.next.2").buffer = PlaceOf(plan, "m").buffer;
  ExpectRejected(plan, "'w.next.2' at 256 is carried from 'w.next' at 128: not the same buffer");
}

TEST(VerifyPlanTest, RejectsABrokenGraph) {
  Plan plan = TrainingPlan();
  plan.graph.nodes[1].op = "sum3";
  ExpectRejected(plan, "unknown op 'sum3'");
  plan = TrainingPlan();
  plan.graph.values[plan.graph.Find("b").index()].shape = {25};
  ExpectRejected(plan, "'b' has shape (25)");
}

}  // namespace
}  // namespace thimble::toy
