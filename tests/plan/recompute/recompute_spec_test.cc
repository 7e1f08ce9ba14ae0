#include "thimble/plan/recompute/recompute_spec.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(RecomputeSpec, ReadsAllStrategies) {
  EXPECT_EQ(*ParseRecompute("none"), RecomputeSpec{});
  EXPECT_EQ(*ParseRecompute("cheap"), RecomputeSpec{.kind = RecomputeKind::kCheap});
  EXPECT_EQ(*ParseRecompute("blocks"), RecomputeSpec{.kind = RecomputeKind::kBlocks});
  EXPECT_EQ(*ParseRecompute("blocks:3"),
            (RecomputeSpec{.kind = RecomputeKind::kBlocks, .stride = 3}));
  EXPECT_EQ(*ParseRecompute("sqrt"), RecomputeSpec{.kind = RecomputeKind::kSqrt});
  EXPECT_EQ(*ParseRecompute("optimal"), RecomputeSpec{.kind = RecomputeKind::kOptimal});
  EXPECT_EQ(*ParseRecompute("optimal:64MB"),
            (RecomputeSpec{.kind = RecomputeKind::kOptimal, .limit_bytes = 64000000}));
}

TEST(RecomputeSpec, WritesWhatItReads) {
  for (const char* text :
       {"none", "cheap", "blocks", "blocks:2", "sqrt", "optimal", "optimal:4096"}) {
    EXPECT_EQ(ToString(*ParseRecompute(text)), text);
  }
}

TEST(RecomputeSpec, SaysWhatIsWrong) {
  for (const char* text :
       {"", "some", "blocks:", "blocks:0", "blocks:-1", "blocks:2x", "blocks:1.5",
        "optimal:", "optimal:0", "optimal:-3MB", "optimal:much", "sqrt:2", "cheap:1", "none:1",
        "Optimal", "optimal:99999999999999999999"}) {
    const auto spec = ParseRecompute(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.error().kind, ErrorKind::kBadInput) << text;
    EXPECT_NE(spec.error().message.find("--recompute"), std::string::npos) << text;
  }
  EXPECT_NE(ParseRecompute("half").error().message.find("none, cheap, blocks, blocks:N, sqrt"),
            std::string::npos);
}

}  // namespace
}  // namespace thimble
