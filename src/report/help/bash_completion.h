// Shell completion, as a script for bash without dependencies.
#pragma once

#include <string>

#include "thimble/report/help/command_help.h"

namespace thimble {

// Completes commands, their options and the values of options: known words, files and folders.
std::string BashCompletion(const HelpProgram& program);

}  // namespace thimble
