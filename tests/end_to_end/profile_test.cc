// `thimble profile`: planned and measured bytes are equal everywhere.
#include "tests/end_to_end/profile_checks.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ProfileEndToEnd : public ThimbleFixture {};

TEST_F(ProfileEndToEnd, MeasuresWhatWasPlanned) {
  for (const char* options :
       {"--batch 8 --threads 1", "--batch 1 --threads 1", "--batch 7 --threads 2",
        "--batch 8 --conv winograd", "--batch 8 --without in-place",
        "--batch 5 --without in-place,order,placement", "--batch 3 --augment crop-flip --nesterov",
        "--batch 3 --momentum 0 --prefetch 0", "--batch 4 --data cifar100 --prefetch 3"}) {
    const std::string command =
        std::string("profile --model wrn-10-1 --repeat 1 --json ") + options;
    const ProcessResult result = RunWell(command);
    EXPECT_EQ(result.err, "");
    const auto profile = ParseObject(result.out);
    ExpectMeasuredAsPlanned(profile, command);
    if (!kSanitized) {
      EXPECT_EQ(profile["heap_calls_in_steps"], 0) << command;
    }
    EXPECT_EQ(profile["map_calls_in_steps"], 0) << command;
  }
}

// Both commands report the same plan.
TEST_F(ProfileEndToEnd, AgreesWithThePlan) {
  const std::string options = " --model wrn-10-1 --batch 6 --threads 2 --json";
  const auto plan = ParseObject(RunWell("plan" + options).out);
  const auto profile = ParseObject(RunWell("profile --repeat 2" + options).out);
  EXPECT_EQ(profile["arena_bytes"], plan["arena_bytes"]);
  EXPECT_EQ(profile["categories"]["measured"], plan["categories"]);
  EXPECT_EQ(profile["repeat"], 2);
  EXPECT_EQ(profile["threads"], 2);
}

TEST_F(ProfileEndToEnd, TextAndTables) {
  const std::string command = "profile --model wrn-10-1 --batch 2 --repeat 1 ";
  EXPECT_THAT(RunWell(command).out, HasSubstr("planned = measured in every category"));
  EXPECT_THAT(RunWell(command + "--layers --program").out, HasSubstr("step  phase"));
  EXPECT_THAT(RunWell(command + "--csv").out, StartsWith("category,planned_bytes,measured_bytes"));
  EXPECT_THAT(RunWell(command + "--csv --layers").out, StartsWith("layer,"));
  EXPECT_THAT(RunWell(command + "--csv --program").out, StartsWith("step,phase,"));
}

TEST_F(ProfileEndToEnd, WritesATrace) {
  RunWell("profile --model wrn-10-1 --batch 2 --repeat 3 --trace @/trace.json");
  const auto trace = ParseObject(Content(At("trace.json")));
  int64_t training_steps = 0;
  for (const auto& event : trace["traceEvents"]) {
    training_steps += event.contains("cat") && event["cat"] == "training step" ? 1 : 0;
  }
  EXPECT_EQ(training_steps, 3);
}

TEST_F(ProfileEndToEnd, RefusesWhatDoesNotFit) {
  ExpectRefusal("profile --model wrn-10-1 --batch 8 --budget 1MB --allow none", 3, "does not fit");
  ExpectRefusal("profile --model wrn-10-1 --budget 1MB --allow none --trace @/trace.json", 3,
                "does not fit");
  EXPECT_FALSE(std::filesystem::exists(At("trace.json")));
}

TEST_F(ProfileEndToEnd, WrongUse) {
  ExpectRefusal("profile --repeat 0", 2, "--repeat");
  ExpectRefusal("profile --repeat many", 2, "--repeat");
  ExpectRefusal("profile --json --csv", 2, "excludes");
  ExpectRefusal("profile --csv --layers --program", 2, "one table");
  ExpectRefusal("profile --model wrn-11-1", 2, "wrn-11-1");
  ExpectRefusal("profile --model wrn-10-1 --batch 1 --simd none", 2, "none");
}

// The results are printed before writing the file fails.
TEST_F(ProfileEndToEnd, ATraceThatCannotBeWritten) {
  const ProcessResult result =
      Run("profile --model wrn-10-1 --batch 1 --repeat 1 --json --trace @/nowhere/trace.json");
  ExpectRefusal(result, 1, "nowhere", "profile");
  EXPECT_EQ(ParseObject(result.out)["agrees"], true);
}

}  // namespace
}  // namespace thimble
