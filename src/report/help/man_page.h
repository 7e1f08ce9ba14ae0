// The manual page, in man(7) markup.
#pragma once

#include <string>

#include "thimble/report/help/command_help.h"

namespace thimble {

// A page of section 1. An option shared by several commands is explained at the first of them.
std::string ManPage(const HelpProgram& program);

}  // namespace thimble
