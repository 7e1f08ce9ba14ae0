#include "thimble/report/profile_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/train/made_profile.h"

namespace thimble {
namespace {

using testing::HasSubstr;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// All rows have as many cells as the header. Only valid if no cell is quoted.
void ExpectRectangle(const std::string& text, size_t rows) {
  const auto lines = Lines(text);
  ASSERT_EQ(lines.size(), rows + 1) << text;
  for (const std::string& line : lines) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(lines[0].begin(), lines[0].end(), ','))
        << line;
  }
}

TEST(ProfileCsv, Categories) {
  const std::string text = CategoriesCsv(ProfileWithDifference());
  ExpectRectangle(text, kNumCategories + 1);
  EXPECT_EQ(Lines(text)[0], "category,planned_bytes,measured_bytes");
  EXPECT_THAT(text, HasSubstr("\nmodel,400,400\n"));
  EXPECT_THAT(text, HasSubstr("\nactivations,3000,3004\n"));
  EXPECT_THAT(text, HasSubstr("\ngaps,332,328\n"));
}

TEST(ProfileCsv, Layers) {
  const std::string text = LayersCsv(ProfileWithDifference());
  ExpectRectangle(text, 3);
  EXPECT_THAT(text, HasSubstr("layer,planned_model_bytes,measured_model_bytes,planned_gradients"));
  EXPECT_THAT(text, HasSubstr("\nsecond,0,0,0,0,0,0,2000,2004,300,300,0,0,2,3,0,30000000\n"));
}

TEST(ProfileCsv, Program) {
  const std::string text = ProgramCsv(MadeProfile());
  ExpectRectangle(text, 4);
  EXPECT_THAT(text, HasSubstr("\n3,update,sgd,sgd_kernel,first,400,400,0,0,0,0,0,0,300,300,64,64,"
                              "4,0,1000000\n"));
}

TEST(ProfileCsv, QuotesNamesThatNeedIt) {
  Profile profile = MadeProfile();
  for (StepRecord& step : profile.record.steps) step.layer = "a,\"b\"";
  EXPECT_THAT(ProgramCsv(profile), HasSubstr(",\"a,\"\"b\"\"\","));
  EXPECT_THAT(LayersCsv(profile), HasSubstr("\n\"a,\"\"b\"\"\","));
}

}  // namespace
}  // namespace thimble
