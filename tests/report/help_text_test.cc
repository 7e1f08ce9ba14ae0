#include "thimble/report/help/help_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/report/toy_help.h"

namespace thimble {
namespace {

using testing::HasSubstr;

TEST(HelpText, OfTheProgramListsItsCommands) {
  EXPECT_EQ(HelpText(ToyHelp(), 0),
            "plays with toys\n\nUsage: toy COMMAND [OPTIONS]\n\nCommands:\n"
            "  play                    play for a while\n"
            "  report                  what was played\n"
            "\nOutput:\n"
            "  -h, --help              print this help\n"
            "\ntoy COMMAND --help lists the options of a command.\n");
}

TEST(HelpText, OfACommandHasHeadingsValuesAndDefaults) {
  EXPECT_EQ(HelpText("toy", ToyHelp().commands[0], 0),
            "play for a while\n\nUsage: toy play [OPTIONS]\n"
            "\nWhat:\n"
            "  --batch N               toys at a time (default: 100)\n"
            "  --data shapes[:N]|cifar10:DIR\n"
            "                          toys\n"
            "  --loud                  with noise\n"
            "\nWhere and files:\n"
            "  --out DIR               where toys go\n"
            "  --device cpu|cuda       where to run (default: cpu)\n"
            "\nOutput:\n"
            "  -h, --help              print this help\n"
            "\nExamples:\n  toy play --batch 3\n");
}

TEST(HelpText, NamesTheWordsOfACommand) {
  EXPECT_THAT(HelpText("toy", ToyHelp().commands[1], 0),
              HasSubstr("Usage: toy report RUN... [OPTIONS]\n\n"
                        "  RUN...                  folders of games\n"));
}

TEST(HelpText, FitsTheTerminal) {
  HelpCommand command{.name = "play", .what = "play"};
  std::string help;
  for (int i = 0; i < 40; ++i) help += (i > 0 ? " word" : "word");
  command.options.push_back({"--batch", "N", help, "a b", "What"});
  for (const auto& [asked, widest] :
       {std::pair<size_t, size_t>{0, 80}, {50, 50}, {10, 40}, {900, 100}}) {
    std::istringstream lines(HelpText("toy", command, asked));
    size_t found = 0;
    for (std::string line; std::getline(lines, line);) found = std::max(found, line.size());
    EXPECT_LE(found, widest);
    EXPECT_GT(found, widest - 6);  // and the width is used
  }
  // A default is not split.
  EXPECT_THAT(HelpText("toy", command, 50), HasSubstr("(default: a b)\n"));
}

}  // namespace
}  // namespace thimble
