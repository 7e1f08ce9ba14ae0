// Random graphs, correct plans of them, and random changes of the layout. Executing the plan byte
// by byte shows whether a change breaks it; VerifyPlan must agree.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "tests/plan/planted_fault.h"
#include "thimble/plan/memory/place_intervals.h"

namespace thimble::toy {
namespace {

Graph MakeRandomGraph(std::mt19937& random) {
  const Shape shape{static_cast<int64_t>(1 + random() % 40)};
  Graph graph;
  ValueId w = AddInput(graph, "w", Role::kParameter, shape);
  ValueId m = AddInput(graph, "m", Role::kState, shape);
  std::vector<ValueId> values = {w, m};
  for (size_t i = 0, count = 1 + random() % 2; i < count; ++i) {
    const ValueId input = AddInput(graph, fmt::format("x{}", i), Role::kInput, shape);
    values.push_back(Append(graph, Ops(), "copy", {input}, {fmt::format("c{}", i)})[0]);
  }
  const auto any = [&] { return values[random() % values.size()]; };
  for (size_t i = 0, count = 2 + random() % 7; i < count; ++i) {
    const char* kOps[] = {"copy", "sum2", "sum2", "blur", "split"};
    const std::string op = kOps[random() % 5];
    std::vector<ValueId> inputs = {any()};
    if (op == "sum2") inputs.push_back(any());
    const auto names = {fmt::format("v{}", i), fmt::format("u{}", i)};
    for (ValueId value : Append(graph, Ops(), op, std::move(inputs), names)) {
      values.push_back(value);
    }
  }
  graph.outputs = {values.back()};
  // No version, or up to three. The gradient is neither w nor m: the op does not allow an update
  // over its third input.
  for (size_t i = 0, count = random() % 4; i < count; ++i) {
    const ValueId dw = values[2 + random() % (values.size() - 2)];
    std::tie(w, m) = AppendVersions(graph, Ops(), w, m, dw, Phase::kUpdate);
    if (random() % 2 == 0) {
      const ValueId read = random() % 2 == 0 ? w : m;
      graph.outputs =
          Append(graph, Ops(), "copy", {read}, {fmt::format("read{}", i)}, Phase::kUpdate);
    }
  }
  return graph;
}

// The same plan with the planner's offsets instead of a separate offset for each buffer.
void Compact(Plan& plan) {
  std::vector<Interval> intervals;
  for (const Placement& placement : plan.placements) {
    intervals.push_back({placement.resident ? 0 : placement.size_bytes, placement.live});
  }
  const OffsetPlan offsets = PlaceIntervals(intervals, kArenaAlignment);
  for (size_t i = 0; i < plan.placements.size(); ++i) {
    if (plan.placements[i].resident) continue;
    plan.placements[i].offset = plan.residents.end_bytes + offsets.offsets[i];
  }
  plan.arena_bytes = plan.residents.end_bytes + offsets.peak_bytes;
}

// Executes a plan: each byte holds the number of the value written there last.
class Execution {
 public:
  explicit Execution(const Plan& plan) : plan_(plan), arena_(plan.arena_bytes, kNothing) {}

  // Whether all reads find the right values. Kernels do everything that their contract allows: they
  // fill the scratch before they read, and write outputs before they have read all inputs.
  bool GoesWell() {
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      if (!plan_.graph.values[i].producer.valid()) Write(ValueId(i));
    }
    for (const Step& step : plan_.steps) {
      if (!RunStep(step)) return false;
    }
    for (ValueId output : plan_.graph.outputs) {
      if (!Holds(output)) return false;
    }
    std::vector<ValueId> kept;
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      const Value& value = plan_.graph.values[i];
      if (IsPersistent(value.role) && !value.producer.valid()) kept.push_back(ValueId(i));
    }
    for (const Carry& carry : plan_.graph.carries) {
      std::replace(kept.begin(), kept.end(), carry.from, carry.to);
    }
    return std::all_of(kept.begin(), kept.end(), [&](ValueId id) { return Holds(id); });
  }

 private:
  static constexpr int kNothing = -1;
  static constexpr int kScratch = -2;

  size_t OffsetOf(ValueId id) const {
    return plan_.placement(plan_.values[id.index()].buffer).offset;
  }
  void Fill(size_t offset, size_t size_bytes, int number) {
    std::fill_n(arena_.begin() + static_cast<ptrdiff_t>(offset), size_bytes, number);
  }
  bool Holds(size_t offset, size_t size_bytes, int number) const {
    const auto begin = arena_.begin() + static_cast<ptrdiff_t>(offset);
    return std::all_of(begin, begin + static_cast<ptrdiff_t>(size_bytes),
                       [&](int byte) { return byte == number; });
  }
  void Write(ValueId id) {
    Fill(OffsetOf(id), plan_.graph.value(id).size_bytes(), static_cast<int>(id.index()));
  }
  bool Holds(ValueId id) const {
    return Holds(OffsetOf(id), plan_.graph.value(id).size_bytes(), static_cast<int>(id.index()));
  }

  bool RunStep(const Step& step) {
    const Node& node = plan_.graph.node(step.node);
    if (step.scratch.valid()) {
      const Placement& scratch = plan_.placement(step.scratch);
      Fill(scratch.offset, scratch.size_bytes, kScratch);
    }
    for (ValueId input : node.inputs) {
      if (!Holds(input)) return false;
    }
    for (ValueId output : node.outputs) Write(output);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!IsReplaced(node, i) && !Holds(node.inputs[i])) return false;
    }
    for (ValueId output : node.outputs) {
      if (!Holds(output)) return false;
    }
    if (!step.scratch.valid()) return true;
    const Placement& scratch = plan_.placement(step.scratch);
    return Holds(scratch.offset, scratch.size_bytes, kScratch);
  }

  // By an output that may overwrite the input and shares its buffer.
  bool IsReplaced(const Node& node, size_t input) const {
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      if (plan_.values[node.outputs[output].index()].buffer ==
              plan_.values[node.inputs[input].index()].buffer &&
          Ops().Get(node.op).MayReuse(output, input)) {
        return true;
      }
    }
    return false;
  }

  const Plan& plan_;
  std::vector<int> arena_;
};

BufferId AnyOrdinaryBuffer(std::mt19937& random, const Plan& plan) {
  while (true) {
    const BufferId id(random() % plan.placements.size());
    if (!plan.placement(id).resident) return id;
  }
}

// Moves one buffer to a random aligned offset above the residents.
void MoveABuffer(std::mt19937& random, Plan& plan) {
  Placement& buffer = plan.placements[AnyOrdinaryBuffer(random, plan).index()];
  const size_t room = plan.arena_bytes - plan.residents.end_bytes - buffer.size_bytes;
  buffer.offset =
      plan.residents.end_bytes + random() % (room / kArenaAlignment + 1) * kArenaAlignment;
}

// Puts one value into the buffer of another.
void ShareABuffer(std::mt19937& random, Plan& plan) {
  std::vector<std::string> names;
  for (const Value& value : plan.graph.values) {
    if (!IsPersistent(value.role)) names.push_back(value.name);
  }
  const std::string& value = names[random() % names.size()];
  MoveInto(plan, value, names[random() % names.size()]);
}

// Swaps two steps of one phase. Everything is alive all the time, so that only the contents of
// bytes can be wrong.
void SwapSteps(std::mt19937& random, Plan& plan) {
  for (ValuePlace& place : plan.values) place.live = {0, plan.steps.size()};
  for (Placement& placement : plan.placements) placement.live = {0, plan.steps.size()};
  const auto phase = [&](size_t step) { return plan.graph.node(plan.steps[step].node).phase; };
  const size_t a = random() % plan.steps.size();
  size_t b = random() % plan.steps.size();
  while (phase(a) != phase(b)) b = random() % plan.steps.size();
  std::swap(plan.steps[a], plan.steps[b]);
}

struct Tally {
  int harmless = 0;
  int harmful = 0;
};

void ExpectSameVerdict(const Plan& plan, const std::string& where, Tally& tally) {
  const bool goes_well = Execution(plan).GoesWell();
  (goes_well ? tally.harmless : tally.harmful)++;
  const auto verdict = VerifyPlan(Ops(), plan);
  EXPECT_EQ(verdict.ok(), goes_well)
      << where << ": " << (verdict.ok() ? "accepted" : verdict.error().message) << "\n"
      << ToString(plan.graph);
}

TEST(VerifyPlanRandomTest, AcceptsCorrectPlans) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    Tally tally;
    Plan plan = NaivePlanner(MakeRandomGraph(random)).Run();
    ExpectSameVerdict(plan, fmt::format("naive, seed {}", seed), tally);
    Compact(plan);
    ExpectSameVerdict(plan, fmt::format("compact, seed {}", seed), tally);
    EXPECT_EQ(tally.harmful, 0) << "seed " << seed;
  }
}

TEST(VerifyPlanRandomTest, AgreesWithExecutionWhereABufferMoves) {
  Tally tally;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    Plan plan = NaivePlanner(MakeRandomGraph(random)).Run();
    if (random() % 2 == 0) Compact(plan);
    MoveABuffer(random, plan);
    ExpectSameVerdict(plan, fmt::format("seed {}", seed), tally);
  }
  EXPECT_GT(tally.harmless, 500);
  EXPECT_GT(tally.harmful, 500);
}

TEST(VerifyPlanRandomTest, AgreesWithExecutionWhereStepsChangePlaces) {
  Tally tally;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    Plan plan = NaivePlanner(MakeRandomGraph(random)).Run();
    SwapSteps(random, plan);
    ExpectSameVerdict(plan, fmt::format("seed {}", seed), tally);
  }
  EXPECT_GT(tally.harmless, 500);
  EXPECT_GT(tally.harmful, 500);
}

TEST(VerifyPlanRandomTest, AgreesWithExecutionWhereValuesShareABuffer) {
  Tally tally;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    Plan plan = NaivePlanner(MakeRandomGraph(random)).Run();
    ShareABuffer(random, plan);
    ExpectSameVerdict(plan, fmt::format("seed {}", seed), tally);
  }
  EXPECT_GT(tally.harmless, 500);
  EXPECT_GT(tally.harmful, 500);
}

}  // namespace
}  // namespace thimble::toy
