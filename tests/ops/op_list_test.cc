// Checks of every op in op_list.inc, with the calls from the ops' own test files: a file defines
// `std::vector<OpCase> <Name>Cases()` and adds a line to op_cases.inc.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <set>

#include "tests/ops/op_names.h"
#include "tests/support/cuda_memory.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {

#define OP_CASES(name) std::vector<OpCase> name##Cases();
#include "tests/ops/op_cases.inc"
#undef OP_CASES

namespace {

// Made once: every process of this program lists all tests, and most then run a single one.
const std::vector<OpCase>& AllCases() {
  static const std::vector<OpCase> all = [] {
    std::vector<OpCase> result;
    const auto append = [&](std::vector<OpCase> cases) {
      std::move(cases.begin(), cases.end(), std::back_inserter(result));
    };
#define OP_CASES(name) append(name##Cases());
#include "tests/ops/op_cases.inc"
#undef OP_CASES
    return result;
  }();
  return all;
}

// One of AllCases.
struct ListedCase {
  const OpCase* op_case;
};

// How GoogleTest prints it.
void PrintTo(const ListedCase& listed, std::ostream* stream) {
  *stream << ToString(*listed.op_case);
}

// Whether this process may run tests of listed cases. Most run a single other test, and would take
// longer to list thousands of cases than to run it.
bool MayRunListedCases() {
  const std::string filter = GTEST_FLAG_GET(filter);
  return filter.find('*') != std::string::npos || filter.find("AllOps/") != std::string::npos;
}

std::vector<ListedCase> KernelCases() {
  std::vector<ListedCase> result;
  if (!MayRunListedCases()) return result;
  for (const OpCase& op_case : AllCases()) result.push_back({&op_case});
  return result;
}

std::vector<ListedCase> DifferentiableCases() {
  std::vector<ListedCase> result;
  if (!MayRunListedCases()) return result;
  for (const OpCase& op_case : AllCases()) {
    if (BuiltinOps().Get(op_case.op).gradient()) result.push_back({&op_case});
  }
  return result;
}

std::string CaseName(const testing::TestParamInfo<ListedCase>& info) {
  return fmt::format("{}_{}", info.param.op_case->op, info.index);
}

class OpKernels : public testing::TestWithParam<ListedCase> {};
TEST_P(OpKernels, AgreeWithReference) { CheckKernels(*GetParam().op_case); }
INSTANTIATE_TEST_SUITE_P(AllOps, OpKernels, testing::ValuesIn(KernelCases()), CaseName);

class OpGradients : public testing::TestWithParam<ListedCase> {};
TEST_P(OpGradients, AgreeWithComplexStep) { CheckGradient(*GetParam().op_case); }
INSTANTIATE_TEST_SUITE_P(AllOps, OpGradients, testing::ValuesIn(DifferentiableCases()), CaseName);

class CudaKernels : public testing::TestWithParam<std::string> {};
TEST_P(CudaKernels, AgreeWithReference) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  for (const OpCase& op_case : AllCases()) {
    if (op_case.op == GetParam()) CheckCudaKernels(op_case);
  }
}
INSTANTIATE_TEST_SUITE_P(CudaOps, CudaKernels, testing::ValuesIn(OpNames()), OpName);

class EveryOp : public testing::TestWithParam<std::string> {};

TEST_P(EveryOp, HasCases) {
  std::set<std::string> checked;
  for (const OpCase& op_case : AllCases()) checked.insert(op_case.op);
  EXPECT_TRUE(checked.contains(GetParam()))
      << "no test checks this op: give its test file a ...Cases() and op_cases.inc a line";
}

TEST_P(EveryOp, HasReferenceForAllNumberTypes) {
  const ReferenceSet& reference = BuiltinOps().Get(GetParam()).reference();
  EXPECT_NE(reference.f32, nullptr);
  EXPECT_NE(reference.f64, nullptr);
  EXPECT_NE(reference.c128, nullptr);
}

TEST_P(EveryOp, EndsItsKernelsWithReferenceThatTakesAllFloats) {
  const OpDef& op = BuiltinOps().Get(GetParam());
  ASSERT_FALSE(op.kernels().empty());
  EXPECT_EQ(op.kernels().back().name, "reference");
  EXPECT_EQ(op.kernels().back().device, DeviceKind::kCpu);
  for (const OpCase& op_case : AllCases()) {
    if (op_case.op != op.name() || !op_case.number_types.empty()) continue;
    EXPECT_EQ(op.kernels().back().declines(PreparedCase(op_case).call()), "");
  }
}

TEST_P(EveryOp, HasGradientOrReason) {
  const OpDef& op = BuiltinOps().Get(GetParam());
  EXPECT_NE(static_cast<bool>(op.gradient()), !op.no_gradient_reason().empty())
      << "exactly one of Gradient and NoGradient";
}

TEST_P(EveryOp, CostsSomethingForSomeCase) {
  // Move pixels or write zeros: nothing is computed.
  const std::set<std::string> free_ops = {"clear", "image_crop_flip"};
  int64_t most = 0;
  for (const OpCase& op_case : AllCases()) {
    if (op_case.op != GetParam()) continue;
    const PreparedCase prepared(op_case);
    most = std::max(most, prepared.op.CountFlops(prepared.call()));
  }
  EXPECT_EQ(most == 0, free_ops.contains(GetParam()));
}

TEST_P(EveryOp, ReusesOnlyInputsOfTheSameTypeAndShape) {
  const OpDef& op = BuiltinOps().Get(GetParam());
  for (const OpCase& op_case : AllCases()) {
    if (op_case.op != op.name()) continue;
    const PreparedCase prepared(op_case);
    for (size_t output = 0; output < op.outputs().size(); ++output) {
      for (size_t input = 0; input < op.inputs().size(); ++input) {
        if (!op.MayReuse(output, input) || input >= op_case.inputs.size()) continue;
        EXPECT_EQ(op.outputs()[output].dtype, op.inputs()[input].dtype);
        EXPECT_EQ(prepared.outputs[output], op_case.inputs[input]) << ToString(op_case);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, EveryOp, testing::ValuesIn(OpNames()), OpName);

// f32, two types of 16 bits and a mix.
TEST(ShortNumbers, AreCheckedWhereAKernelTakesThem) {
  const auto checked = CheckKernels({.op = "add", .inputs = {{3, 5}, {3, 5}}});
  EXPECT_EQ(std::count(checked.begin(), checked.end(), "AddCpu"), 4);
  EXPECT_EQ(std::count(checked.begin(), checked.end(), "reference"), 1);
}

TEST(CudaShortNumbers, AreCheckedWhereAKernelTakesThem) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  const auto checked = CheckCudaKernels({.op = "add", .inputs = {{3, 5}, {3, 5}}});
  EXPECT_EQ(std::count(checked.begin(), checked.end(), "AddCuda"), 4);
}

}  // namespace
}  // namespace thimble
