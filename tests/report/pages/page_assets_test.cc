#include "thimble/report/pages/page_assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PageAssets, RulesAreBalanced) {
  const std::string rules(PageRules());
  EXPECT_EQ(std::count(rules.begin(), rules.end(), '{'),
            std::count(rules.begin(), rules.end(), '}'));
  EXPECT_THAT(rules, HasSubstr("@media print"));
}

// They are inside <style> and <script> and must not end them; tips are set as text, not HTML.
TEST(PageAssets, StayWithinTheirElements) {
  for (const std::string& asset : {std::string(PageRules()), std::string(PageScript())}) {
    EXPECT_THAT(asset, Not(HasSubstr("</")));
  }
  const std::string script(PageScript());
  for (const char* risk : {"innerHTML", "eval", "fetch", "XMLHttpRequest", "import"}) {
    EXPECT_THAT(script, Not(HasSubstr(risk)));
  }
}

}  // namespace
}  // namespace thimble
