#include "thimble/report/help/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/toy_help.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ManPage, HasTheUsualSections) {
  const std::string page = ManPage(ToyHelp());
  EXPECT_THAT(page, testing::StartsWith(".TH TOY 1 \"\" \"toy 1.2\" \"User Commands\"\n.SH NAME\n"
                                        "toy \\- plays with toys\n.SH SYNOPSIS\n"));
  for (const char* section :
       {"OPTIONS", "COMMANDS", "SIZES", "FILES", "ENVIRONMENT", "EXIT STATUS"}) {
    EXPECT_THAT(page, HasSubstr(std::string("\n.SH ") + section + "\n"));
  }
}

TEST(ManPage, ExplainsOptionsOnce) {
  const std::string page = ManPage(ToyHelp());
  EXPECT_THAT(page,
              HasSubstr("\n.TP\n\\fB\\-\\-batch\\fR \\fIN\\fR\ntoys at a time (default: 100)\n"));
  const std::string report = page.substr(page.find(".SS toy report RUN... [OPTIONS]\n"));
  EXPECT_THAT(report, HasSubstr("\nAs for play: \\-\\-device, \\-h, \\-\\-help\n"));
  EXPECT_THAT(report, Not(HasSubstr("where to run")));
  EXPECT_THAT(report, HasSubstr("\\fB\\-\\-out\\fR \\fIFILE\\fR\nthe page\n"));
}

TEST(ManPage, TextIsNeverACommand) {
  HelpProgram program = ToyHelp();
  program.commands[0].what = ".so /etc/passwd";
  program.commands[1].what = "'a' \\fB back\\slash";
  const std::string page = ManPage(program);
  EXPECT_THAT(page, HasSubstr("\n\\&.so /etc/passwd\n"));
  EXPECT_THAT(page, HasSubstr("\n\\&'a' \\efB back\\eslash\n"));
}

}  // namespace
}  // namespace thimble
