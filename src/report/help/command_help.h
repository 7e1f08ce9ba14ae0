// HelpProgram: describes a program, its commands and their options, for help, manual page and shell
// completion.
#pragma once

#include <string>
#include <vector>

namespace thimble {

struct HelpOption {
  std::string name;           // "--batch", "-h, --help"; "RUN" for a positional argument
  std::string value = {};     // values it takes (train/options/option_values.h); empty: a switch
  std::string help = {};      // in a few words, without a full stop
  std::string standard = {};  // the default; empty: none worth showing
  std::string group = {};     // heading
};

struct HelpCommand {
  std::string name;
  std::string what;                      // one line
  std::vector<HelpOption> words = {};    // "RUN", "[RUN]", "RUN..."
  std::vector<HelpOption> options = {};  // sorted by group
  std::string notes = {};                // printed as they are: examples, remarks
};

struct HelpProgram {
  std::string name;
  std::string what;  // one line
  std::string version;
  std::vector<HelpOption> options = {};  // of the program itself
  std::vector<HelpCommand> commands = {};
};

}  // namespace thimble
