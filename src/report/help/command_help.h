// HelpProgram: what help, manual page and shell completion say about a program, its commands and
// their options.
#pragma once

#include <string>
#include <vector>

namespace thimble {

struct HelpOption {
  std::string name;           // "--batch", "-h, --help"; "RUN" for a word that is no option
  std::string value = {};     // what it takes (train/options/option_values.h); empty for switches
  std::string help = {};      // in a few words, without a full stop
  std::string standard = {};  // the default; empty: none worth showing
  std::string group = {};     // heading
};

struct HelpCommand {
  std::string name;
  std::string what;                      // one line
  std::vector<HelpOption> words = {};    // "RUN", "[RUN]", "RUN..."
  std::vector<HelpOption> options = {};  // those of a group one after the other
  std::string notes = {};                // lines as they are shown: examples, remarks
};

struct HelpProgram {
  std::string name;
  std::string what;  // one line
  std::string version;
  std::vector<HelpOption> options = {};  // of the program itself
  std::vector<HelpCommand> commands = {};
};

}  // namespace thimble
