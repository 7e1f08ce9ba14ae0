#include "thimble/report/help/bash_completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/toy_help.h"

// The script in bash: tests/end_to_end/completion_test.cc.
namespace thimble {
namespace {

using testing::HasSubstr;

TEST(BashCompletion, HasCommandsOptionsAndValues) {
  const std::string script = BashCompletion(ToyHelp());
  EXPECT_THAT(script, HasSubstr("in play | report) command="));
  EXPECT_THAT(script, HasSubstr("words='play report' options='--help'"));
  EXPECT_THAT(script,
              HasSubstr(" play) options='--batch --data --loud --out --device --help' ;;\n"));
  EXPECT_THAT(script, HasSubstr(" report) words='' files=-d options='--out --device --help' ;;\n"));
  EXPECT_THAT(script, HasSubstr(" *:--device) words='cpu cuda' ;;\n"));
  EXPECT_THAT(script, HasSubstr(" *:--data) words='shapes cifar10:' ;;\n"));
  EXPECT_THAT(script, HasSubstr(" *:--batch) words='' ;;\n"));
  EXPECT_THAT(script, testing::EndsWith("\ncomplete -F _toy toy\n"));
  EXPECT_EQ(script.find('%'), std::string::npos);
}

TEST(BashCompletion, AnOptionMayTakeOtherThingsElsewhere) {
  const std::string script = BashCompletion(ToyHelp());
  EXPECT_THAT(script, HasSubstr(" play:--out) words='' files=-d ;;\n"));
  EXPECT_THAT(script, HasSubstr(" report:--out) words='' files=-f ;;\n"));
}

}  // namespace
}  // namespace thimble
