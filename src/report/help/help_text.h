// Help as `thimble --help` and `thimble train --help` print it.
#pragma once

#include <cstddef>
#include <string>

#include "thimble/report/help/command_help.h"

namespace thimble {

// Help for the program, in lines of at most `width` columns unless a word is longer; 0: 80 columns.
std::string HelpText(const HelpProgram& program, size_t width);
// Help for one command of the program called `program_name`: usage, options under their headings
// with values and defaults, notes.
std::string HelpText(const std::string& program_name, const HelpCommand& command, size_t width);

}  // namespace thimble
