// Random calls of every op, on every kernel: for any shape, results agree with the reference and
// nothing outside the buffers is touched. The test file of an op has `OpCase
// Random_<op>(CaseDraw&)` and op_generators.inc a line; support/property_run.h explains how to run
// more cases, others or one.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "tests/ops/op_names.h"
#include "tests/support/case_draw.h"
#include "tests/support/cuda_memory.h"
#include "tests/support/op_check.h"
#include "tests/support/property_run.h"
#include "thimble/base/check.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {

#define OP_GENERATOR(name, weight) OpCase Random_##name(CaseDraw& draw);
#include "tests/ops/op_generators.inc"
#undef OP_GENERATOR

namespace {

struct Generator {
  std::string op;
  uint32_t weight;
  OpCase (*generate)(CaseDraw& draw);
};

const std::vector<Generator>& Generators() {
  static const std::vector<Generator> generators = {
#define OP_GENERATOR(name, weight) {#name, weight, &Random_##name},
#include "tests/ops/op_generators.inc"
#undef OP_GENERATOR
  };
  return generators;
}

// Null if the op has none.
const Generator* FindGenerator(const std::string& op) {
  const auto found = std::find_if(Generators().begin(), Generators().end(),
                                  [&](const Generator& generator) { return generator.op == op; });
  return found == Generators().end() ? nullptr : &*found;
}

OpCase MakeRandomCase(const Generator& generator, uint64_t seed, uint32_t number) {
  CaseDraw draw(seed, generator.op, number);
  const auto input_seed = draw.Word();
  OpCase op_case = generator.generate(draw);
  EXPECT_EQ(op_case.op, generator.op) << "Random_" << generator.op << " makes another op";
  op_case.seed = input_seed;
  return op_case;
}

// One thread with plenty of scratch, one with the minimum, and more threads with any amount.
std::vector<KernelLimits> RandomLimits(CaseDraw draw) {
  constexpr size_t kLeast = 1;  // kernels then use their smallest blocks
  constexpr size_t kMost = size_t{1} << 20;
  std::vector<KernelLimits> limits = {{1, kMost}, {1, kLeast}};
  for (int threads : {2, 3, 5}) {
    limits.push_back({threads, draw.OneIn(4) ? kLeast : kMost >> draw.Between(0, 10)});
  }
  return limits;
}

// A kernel that accepts none of this many random calls counts as untested.
constexpr uint32_t kManyCases = 40;

// Runs check(case, number) for the op's random cases. `check` returns the kernels that accepted the
// case; every kernel of the device must accept at least one.
template <class Check>
void CheckRandomCases(const std::string& op, uint32_t cases, DeviceKind device,
                      const Check& check) {
  const Generator* generator = FindGenerator(op);
  if (generator == nullptr) GTEST_SKIP() << "EveryOp.HasGenerator fails for it";
  const PropertyRun run = PropertyRun::FromEnvironment(cases);
  std::set<std::string_view> taken;
  run.ForEachCase(op, generator->weight, [&](uint32_t number) {
    const OpCase op_case = MakeRandomCase(*generator, run.seed, number);
    SCOPED_TRACE(ToString(op_case));
    for (std::string_view kernel : check(op_case, run.seed, number)) taken.insert(kernel);
  });
  if (run.alone || run.cases * generator->weight < kManyCases) return;
  for (const Kernel& kernel : BuiltinOps().Get(op).kernels()) {
    EXPECT_TRUE(kernel.device != device || taken.contains(kernel.name))
        << kernel.name << " declined all random cases: Random_" << op << " must make some for it";
  }
}

void CheckOnCpu(const std::string& op, uint32_t cases) {
  CheckRandomCases(op, cases, DeviceKind::kCpu,
                   [&](const OpCase& op_case, uint64_t seed, uint32_t number) {
                     return CheckKernels(op_case, RandomLimits({seed, op + " limits", number}));
                   });
}

class OpProperty : public testing::TestWithParam<std::string> {};

// A few seconds for all ops.
class ShortOpProperty : public OpProperty {};
TEST_P(ShortOpProperty, RandomCallsAgreeWithReference) { CheckOnCpu(GetParam(), 6); }

// A minute or two. ctest selects it by the name of its instance.
class LongOpProperty : public OpProperty {};
TEST_P(LongOpProperty, RandomCallsAgreeWithReference) { CheckOnCpu(GetParam(), 200); }

class CudaOpProperty : public OpProperty {};
TEST_P(CudaOpProperty, RandomCallsAgreeWithReference) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  CheckRandomCases(
      GetParam(), 16, DeviceKind::kCuda,
      [](const OpCase& op_case, uint64_t, uint32_t) { return CheckCudaKernels(op_case); });
}

INSTANTIATE_TEST_SUITE_P(AllOps, ShortOpProperty, testing::ValuesIn(OpNames()), OpName);
INSTANTIATE_TEST_SUITE_P(SlowOps, LongOpProperty, testing::ValuesIn(OpNames()), OpName);
INSTANTIATE_TEST_SUITE_P(CudaOps, CudaOpProperty, testing::ValuesIn(OpNames()), OpName);

TEST(OpGenerators, EveryOpHasOne) {
  for (const std::string& op : OpNames()) {
    EXPECT_NE(FindGenerator(op), nullptr)
        << op << " is not tested with random calls: give its test file an OpCase Random_" << op
        << "(CaseDraw&) and op_generators.inc a line";
  }
}

}  // namespace
}  // namespace thimble
