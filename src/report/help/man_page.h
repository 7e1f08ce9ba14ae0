// The manual page, in the language of man(7).
#pragma once

#include <string>

#include "thimble/report/help/command_help.h"

namespace thimble {

// Section 1. An option that several commands share is explained with the first of them.
std::string ManPage(const HelpProgram& program);

}  // namespace thimble
