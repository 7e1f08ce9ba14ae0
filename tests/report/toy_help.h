// The description of a program with two commands, for tests of help.
#pragma once

#include "thimble/report/help/command_help.h"

namespace thimble {

inline HelpProgram ToyHelp() {
  const HelpOption device{"--device", "cpu|cuda", "where to run", "cpu", "Where and files"};
  const HelpOption help{"-h, --help", "", "print this help", "", "Output"};
  return {.name = "toy",
          .what = "plays with toys",
          .version = "1.2",
          .options = {help},
          .commands = {
              {.name = "play",
               .what = "play for a while",
               .options = {{"--batch", "N", "toys at a time", "100", "What"},
                           {"--data", "shapes[:N]|cifar10:DIR", "toys", "", "What"},
                           {"--loud", "", "with noise", "", "What"},
                           {"--out", "DIR", "where toys go", "", "Where and files"},
                           device,
                           help},
               .notes = "Examples:\n  toy play --batch 3\n"},
              {.name = "report",
               .what = "what was played",
               .words = {{"RUN...", "DIR", "folders of games"}},
               .options = {{"--out", "FILE", "the page", "", "Where and files"}, device, help}}}};
}

}  // namespace thimble
