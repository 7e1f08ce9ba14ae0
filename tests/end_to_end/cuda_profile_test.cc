// `thimble profile` on a GPU. Without one these tests are skipped.
#include "tests/end_to_end/profile_checks.h"
#include "tests/support/cuda_or_skip.h"

namespace thimble {
namespace {

class CudaProfileEndToEnd : public ThimbleFixture {
 protected:
  void SetUp() override {
    ThimbleFixture::SetUp();
    THIMBLE_CUDA_OR_SKIP();
  }
};

TEST_F(CudaProfileEndToEnd, MeasuresWhatWasPlanned) {
  for (const char* options :
       {"--batch 8", "--batch 1", "--batch 7", "--batch 8 --math fp32",
        "--batch 8 --without in-place", "--batch 3 --augment crop-flip --momentum 0",
        "--batch 7 --microbatch 3"}) {
    const std::string command =
        std::string("profile --device cuda --model wrn-10-1 --repeat 2 --json ") + options;
    const auto profile = ParseObject(RunWell(command).out);
    ExpectMeasuredAsPlanned(profile, command);
    EXPECT_EQ(profile["device"], "cuda");
    EXPECT_NE(profile["device_name"], "");
  }
}

TEST_F(CudaProfileEndToEnd, AgreesWithThePlan) {
  const std::string options = " --device cuda --model wrn-10-1 --batch 6 --json";
  const auto plan = ParseObject(RunWell("plan" + options).out);
  const auto profile = ParseObject(RunWell("profile --repeat 1" + options).out);
  EXPECT_EQ(profile["arena_bytes"], plan["arena_bytes"]);
  EXPECT_EQ(profile["categories"]["measured"], plan["categories"]);
}

TEST_F(CudaProfileEndToEnd, WritesATrace) {
  RunWell("profile --device cuda --model wrn-10-1 --batch 2 --repeat 2 --trace @/trace.json");
  EXPECT_FALSE(ParseObject(Content(At("trace.json")))["traceEvents"].empty());
}

}  // namespace
}  // namespace thimble
