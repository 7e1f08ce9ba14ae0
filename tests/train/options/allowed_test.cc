#include "thimble/train/options/allowed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thimble/program/techniques.h"

namespace thimble {
namespace {

using testing::HasSubstr;

bool Permits(std::string_view allow, std::string_view lever, const std::string& value,
             Exactness exactness) {
  const auto allowed = Allowed::Parse(allow);
  EXPECT_TRUE(allowed.ok()) << allowed.error().message;
  return allowed->Permits(*FindLever(lever), value, exactness);
}

TEST(Allowed, AClassAllowsWhatIsAtLeastAsExact) {
  EXPECT_TRUE(Permits("same-bits", "recompute", "optimal", Exactness::kSameBits));
  EXPECT_FALSE(Permits("same-bits", "microbatch", "10", Exactness::kEqual));
  EXPECT_TRUE(Permits("equal", "microbatch", "10", Exactness::kEqual));
  EXPECT_FALSE(Permits("equal", "precision", "fp16", Exactness::kLossy));
  EXPECT_TRUE(Permits("lossy", "precision", "fp16", Exactness::kLossy));
}

TEST(Allowed, LimitsReduceAClass) {
  EXPECT_FALSE(Permits("lossy,sparsity<=0", "sparsity", "0.5", Exactness::kLossy));
  EXPECT_TRUE(Permits("lossy,sparsity<=0", "precision", "fp16", Exactness::kLossy));
  EXPECT_TRUE(Permits("lossy,sparsity<=0.8", "sparsity", "0.8", Exactness::kLossy));
  EXPECT_FALSE(Permits("microbatch>=8,lossy", "microbatch", "5", Exactness::kLossy));
  EXPECT_TRUE(Permits("same-bits,scratch>=64KiB", "scratch", "64KiB", Exactness::kSameBits));
  EXPECT_FALSE(Permits("same-bits,scratch>=128KiB", "scratch", "64KiB", Exactness::kSameBits));
}

TEST(Allowed, WithoutAClassOnlyWhatIsNamed) {
  const char* list = "recompute,microbatch>=8,fp16,q8";
  EXPECT_TRUE(Permits(list, "recompute", "optimal", Exactness::kSameBits));
  EXPECT_TRUE(Permits(list, "microbatch", "10", Exactness::kLossy));
  EXPECT_FALSE(Permits(list, "microbatch", "5", Exactness::kLossy));
  EXPECT_TRUE(Permits(list, "precision", "fp16", Exactness::kLossy));
  EXPECT_FALSE(Permits(list, "precision", "bf16", Exactness::kLossy));
  EXPECT_TRUE(Permits(list, "store", "optimizer=q8", Exactness::kLossy));
  EXPECT_FALSE(Permits(list, "scratch", "64KiB", Exactness::kSameBits));
}

TEST(Allowed, None) {
  EXPECT_TRUE(Allowed::Parse("none")->nothing());
  EXPECT_FALSE(Allowed::Parse("same-bits")->nothing());
  EXPECT_FALSE(Allowed::Parse("fp16")->nothing());
}

TEST(Allowed, BadInput) {
  const auto expect = [](std::string_view text, std::string_view message) {
    const auto allowed = Allowed::Parse(text);
    ASSERT_FALSE(allowed.ok()) << text;
    EXPECT_EQ(allowed.error().kind, ErrorKind::kBadInput) << text;
    EXPECT_THAT(allowed.error().message, HasSubstr(message)) << text;
  };
  expect("", "--allow : expected none, same-bits, equal, lossy");
  expect("fast", "one of microbatch, precision");
  expect("lossy,", "--allow : expected");
  expect("lossy,equal", "equal is a second class");
  expect("fp16<=3", "no such lever");
  expect("sparsity<0.8", "expected a limit, such as sparsity<=N");
  expect("sparsity<=", "expected a limit");
  expect("sparsity<=much", "expected a limit");
  expect("microbatch=>8", "expected a limit");
}

}  // namespace
}  // namespace thimble
